// Supervisor: runs a learner in two processes, the first of which kills itself half-way, and checks
// after each that the store holds what was acknowledged.
#pragma once

#include <cstdint>
#include <string>

namespace geardb::quickstart {

struct QuickstartOptions {
  std::string directory;  ///< Of the store; empty: a new one under $TMPDIR, removed at the end.
  uint64_t seed = 1;
  uint64_t steps = 60'000;  ///< At least kStepsMin.
  bool keep = false;        ///< Do not remove the temporary directory.
};

inline constexpr uint64_t kStepsMin = 2'000;
/// Average return at which CartPole-v1 counts as solved.
inline constexpr double kSolvedReturn = 475;

/// 0: solved, and nothing acknowledged was lost. 1: one of both did not hold, or an error; stderr
/// says which. Must be called while the process has one thread.
int Supervise(const QuickstartOptions& options);

}  // namespace geardb::quickstart
