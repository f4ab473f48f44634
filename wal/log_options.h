// LogOptions: the sizes and times of a log.
#pragma once

#include <cstdint>

namespace geardb::wal {

/// Sizes are fixed when the log is created; an open takes them from the manifest.
struct LogOptions {
  // Behaviour.
  /// Live segments. Appends get ResourceExhausted beyond it, everything does beyond the reserve of
  /// Urgency::kReserve. At least a segment.
  uint64_t log_bytes_max = uint64_t{4} << 30;
  int64_t drain_interval_ms = 10;   ///< Published bytes are in a segment at most this much later.
  int64_t sync_interval_ms = 1000;  ///< Published bytes are synced at most this much later.
  int64_t idle_seal_ms = 100;       ///< A log without appends for so long is sealed.

  // Performance.
  uint64_t segment_bytes = uint64_t{64} << 20;  ///< Power of two, at least 64 KiB.
  uint64_t ring_bytes = uint64_t{64} << 20;     ///< Power of two, at least 32 KiB.
  bool direct_io = true;   ///< Write segments past the page cache where that works.
  bool shared_map = true;  ///< Map the ring; otherwise it is written before each publication.
  bool background = true;  ///< A thread drains, syncs, seals and makes spare files. Without it
                           ///< (tests) waits do that work themselves.
};

}  // namespace geardb::wal
