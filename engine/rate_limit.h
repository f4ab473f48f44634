// RateLimit: when items may come into a priority table, and when they may be drawn from it. And how
// often each.
//
// An *insert* is an item becoming drawable, a *sample* a row of a batch that was handed over. What
// is drawn and not handed over yet is *reserved*: it counts as sampled for whoever else wants to
// draw, and not for inserts.
#pragma once

#include <cstdint>
#include <optional>

namespace geardb {

/// In stored schemas: frozen.
enum class LimiterKind : uint8_t {
  kMinSize = 0,  ///< Samples wait for `min_size` items.
  /// Besides, samples per insert stay near `samples_per_insert`: with the error
  /// E = inserts * samples_per_insert - samples and its centre C = min_size * samples_per_insert,
  /// samples leave E at least C - error_buffer, and inserts at most C + error_buffer (below
  /// min_size items there may be any inserts). Reverb's SampleToInsertRatio.
  kRatio = 1,
  /// At most `capacity` items wait to be sampled, each once; inserts wait for samples.
  kQueue = 2,
  kStack = 3,  ///< A queue with a lifo selector.
};

/// One limiter. What its kind does not name is ignored.
struct RateLimit {
  LimiterKind kind = LimiterKind::kMinSize;
  uint64_t min_size = 1;          ///< kMinSize, kRatio: at least 1.
  double samples_per_insert = 1;  ///< kRatio: finite, above 0.
  double error_buffer = 0;        ///< kRatio: finite, at least max(1, samples_per_insert).
  uint64_t capacity = 0;          ///< kQueue, kStack: at least 1.

  friend bool operator==(const RateLimit&, const RateLimit&) = default;
};

/// Times an item can be sampled, at most: PriorityLimits::max_times_sampled.
inline constexpr uint32_t kMaxTimesSampledMax = 65'534;

/// What PriorityTable::Configure changes; the fields are those of PriorityTableSpec.
struct PriorityLimits {
  RateLimit limiter = {};
  uint32_t max_times_sampled = 0;
  std::optional<bool> remove_when_exhausted = {};

  friend bool operator==(const PriorityLimits&, const PriorityLimits&) = default;
};

}  // namespace geardb
