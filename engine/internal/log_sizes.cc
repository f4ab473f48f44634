#include "engine/internal/log_sizes.h"

#include <algorithm>
#include <bit>

namespace geardb::engine {
namespace {

/// As many as the cleaner's margin is a share of: one segment is free when a pass begins, and no
/// more.
constexpr uint64_t kSegments = 8;
constexpr uint64_t kSegmentBytesMin = uint64_t{64} << 10;
constexpr uint64_t kSegmentBytesMax = uint64_t{64} << 20;

}  // namespace

uint64_t ChooseSegmentBytes(uint64_t log_bytes_max) {
  return std::clamp(std::bit_floor(log_bytes_max / kSegments), kSegmentBytesMin, kSegmentBytesMax);
}

Status CheckGoesRound(uint64_t log_bytes_max, uint64_t segment_bytes, std::string_view where) {
  if (log_bytes_max / 2 >= segment_bytes) return Status::Ok();
  return Status::InvalidArgument(
      "log_bytes_max is ", log_bytes_max, "; expected at least ", 2 * segment_bytes,
      ", two segments of segment_bytes = ", segment_bytes, where,
      ": with cold_tier one of them is given back while the other is written");
}

uint64_t HalfOfLog(uint64_t log_bytes_max, uint64_t segment_bytes) {
  return log_bytes_max / segment_bytes * segment_bytes / 2;
}

}  // namespace geardb::engine
