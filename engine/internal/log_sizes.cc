#include "engine/internal/log_sizes.h"

#include <algorithm>
#include <bit>
#include <string>

#include "engine/internal/cold_tier.h"
#include "wal/manifest.h"

namespace geardb::engine {
namespace {

/// As many as the cleaner's margin is a share of: one segment is free when a pass begins, and no
/// more.
constexpr uint64_t kSegments = 8;
/// Of a small disk the log may have one part of so many, all its files together: the segments that
/// are counted, the reserve, spare segments for the ring and two more, and the ring.
constexpr uint64_t kDiskShare = 3;
/// ... and the ring one part of so many.
constexpr uint64_t kRingShare = 16;
constexpr uint64_t kRingBytesLeast = uint64_t{1} << 20;
constexpr uint64_t kSegmentBytesMin = uint64_t{64} << 10;
constexpr uint64_t kSegmentBytesMax = uint64_t{64} << 20;

/// Of all files.
uint64_t BytesIn(Env* env, const std::string& directory) {
  uint64_t bytes = 0;
  const auto names = env->List(directory);
  if (!names.ok()) return bytes;  // It may not be there yet.
  for (const std::string& name : *names) {
    const auto file = env->OpenFile(JoinPath(directory, name), {.mode = FileMode::kRead});
    const auto size = file.ok() ? (*file)->Size() : file.status();
    if (size.ok()) bytes += *size;
  }
  return bytes;
}

/// Into the share of the log on a disk with so much room.
LogBytes FitLog(uint64_t room, const LogBytes& asked, uint64_t segment_bytes) {
  const uint64_t share = room / kDiskShare;
  // A ring of two segments bounds records no more than these do.
  const uint64_t ring =
      std::max({std::bit_floor(room / kRingShare), 2 * segment_bytes, kRingBytesLeast});
  LogBytes fits = {.ring = std::min(asked.ring, ring)};
  // Spare segments and the reserve come to three eighths of what is left.
  const uint64_t left = share - std::min(share, 2 * fits.ring);
  fits.log = std::min(asked.log, std::max({left / 8 * 5, share / 4, uint64_t{1}}));
  return fits;
}

}  // namespace

LogBytes LogBytesOnDisk(Env* env, const std::string& directory, const LogBytes& asked,
                        uint64_t segment_bytes) {
  auto free = env->FreeBytes(directory);
  if (free.status().code() == StatusCode::kNotFound) free = env->FreeBytes(ParentOf(directory));
  if (!free.ok()) return asked;
  const LogBytes fits = FitLog(*free, asked, segment_bytes);
  if (fits == asked) return asked;
  // What the database has is looked for only where it could count.
  uint64_t own = 0;
  for (const char* part : {wal::kLogDirectoryName, kColdDirectory}) {
    own += BytesIn(env, JoinPath(directory, part));
  }
  return FitLog(*free + own, asked, segment_bytes);
}

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

}  // namespace geardb::engine
