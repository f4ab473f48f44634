// Progress: what the quickstart says while it runs. On a terminal one line that is written over and
// over, else a plain line now and then.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace geardb::quickstart {

/// Where a learner stands.
struct ProgressLine {
  uint64_t steps = 0;
  uint64_t steps_total = 0;
  uint64_t episodes = 0;
  uint64_t updates = 0;
  double average_return = 0;  ///< Of the newest episodes, exploration included.
  double trial_score = 0;     ///< Of the newest greedy trial.
  double loss = 0;
};

/// Writes to stdout, and flushes at every line, so that nothing is lost by a SIGKILL. Not
/// thread-safe.
class Progress {
 public:
  /// `terminal`: stdout is one.
  explicit Progress(bool terminal);

  /// May be called at every step: shows it when it is time to.
  void Show(const ProgressLine& line);
  /// A line that stays.
  void Say(std::string_view text);

 private:
  bool terminal_;
  bool line_open_ = false;  ///< The cursor stands behind a line that is to be written over.
  uint64_t next_steps_ = 0;
  uint64_t first_steps_ = 0;
  std::chrono::steady_clock::time_point started_;
};

/// "12,345".
std::string Grouped(uint64_t number);
/// "12.3", with `decimals` digits behind the point.
std::string Decimal(double number, int decimals);

}  // namespace geardb::quickstart
