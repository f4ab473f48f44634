// Stores of which most is not in memory, and what is appended to them: what the rows of whole
// stores share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/bench/ceilings.h"
#include "tools/bench/store.h"

namespace geardb::bench {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

/// Of a step, and of a page of 64 of them, where rows do not say otherwise.
inline constexpr uint64_t kStepBytes = 1024;
inline constexpr uint64_t kPageBytes = 64 * kStepBytes;

/// The sizes of these rows by what the settings ask for: a 128th where they are tiny.
uint64_t Scaled(const Settings& settings, uint64_t bytes);
/// "2 GiB", "16 MiB".
std::string SizeText(uint64_t bytes);

/// Budgets of a store; raised to what a store needs at least.
struct WholeBudgets {
  uint64_t log_bytes = 0;  ///< In 16 segments or more, of at most 64 MiB; the ring is as large.
  uint64_t frames_bytes = 0;
  uint64_t index_bytes = 0;
};
DatabaseOptions WholeOptions(const WholeBudgets& budgets);

/// ResourceExhausted where the disk has not so much room in the bench's directory.
Status CheckDiskRoom(const Settings& settings, uint64_t bytes);

/// What a row's bytes look like.
enum class Content : uint8_t {
  kRandom,  ///< Does not get smaller.
  kHalf,    ///< 64 random bytes, 64 zeros, and so on.
};

/// Closed trajectories of one column "obs", none of them like another within reach of a compressor.
class Episodes {
 public:
  /// `steps` of `step_bytes` each.
  Episodes(int64_t steps, uint64_t step_bytes, Content content);

  uint64_t bytes() const { return bytes_; }
  /// The rows of a trajectory by its number.
  std::span<const std::byte> Rows(uint64_t number) const;
  /// Appends the next one at log ack.
  Status Append(Store* store);
  /// Appends whole ones until there are so many bytes more.
  Status AppendBytes(Store* store, uint64_t bytes);

 private:
  const int64_t steps_;
  const uint64_t step_bytes_;
  const uint64_t bytes_;
  Memory pool_;
  uint64_t next_ = 0;
};

}  // namespace geardb::bench
