// The vouch scan: what do records beyond the end of the log say was synced? (Rule 12.)
#pragma once

#include <string>

#include "base/env.h"
#include "base/status.h"
#include "wal/manifest.h"
#include "wal/ring_file.h"
#include "wal/segment_map.h"

namespace geardb::wal {

/// What a reader has followed: [from, segments_end) in segments, the rest up to `stop` in the ring.
struct Followed {
  Lsn from = 0;
  Lsn segments_end = 0;
  Lsn stop = 0;
};

/// The largest of `manifest.start` and the synced LSN of every record beyond the stop that has a
/// valid header and metadata and the manifest's epoch, in all segment files and in the ring. Every
/// aligned position is tried, except those of segments that the reader has followed to their end
/// or its own: valid records lie there without a gap. Parts of files that were never written are
/// skipped. Corruption when such a record has a later epoch than the manifest: nothing is appended
/// before its epoch is there.
Result<Lsn> ScanForVouched(Env* env, const std::string& log_directory, const Manifest& manifest,
                           const SegmentMap& map, RingFile* ring, const Followed& followed);

}  // namespace geardb::wal
