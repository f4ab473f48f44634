// The scans of what lies beyond the end of the log. The vouch scan: what do records there say was
// synced? (Rule 12.) And: which of them would be the log's, if it did not end before them?
#pragma once

#include <string>

#include "base/env.h"
#include "base/status.h"
#include "wal/log_reader.h"
#include "wal/manifest.h"
#include "wal/ring_file.h"
#include "wal/segment_map.h"

namespace geardb::wal {

/// What a reader has followed, up to `segments_end` in segments, the rest up to `stop` in the ring.
/// Of segments with a base from `kept_from` on it knows what is in them, also where it began later:
/// nothing of them was given back, and so nothing else was written into their files.
struct Followed {
  Lsn kept_from = 0;
  Lsn segments_end = 0;
  Lsn stop = 0;
};

/// The files of a log. `ring` may be null.
struct ScannedLog {
  const std::string& directory;  ///< Of ring and segments.
  const Manifest& manifest;
  const SegmentMap& map;
  RingFile* ring = nullptr;
};

/// The largest of `manifest.start` and the synced LSN of every record beyond the stop that has a
/// valid header and metadata and the manifest's epoch, in all segment files and in the ring. Every
/// aligned position is tried, except those of segments whose records all lie before the reader's
/// end, and before that end in the last one: valid records lie there without a gap. Parts of files
/// that were never written are skipped. Corruption when such a record has a later epoch than the
/// manifest: nothing is appended before its epoch is there. Large logs are read by several threads,
/// which end with the call.
Result<Lsn> ScanForVouched(Env* env, const ScannedLog& log, const Followed& followed);

/// The records of the manifest's epoch beyond the stop that are valid, with all their pieces. The
/// same positions are tried.
Result<RecordsBeyond> ScanBeyond(Env* env, const ScannedLog& log, const Followed& followed);

}  // namespace geardb::wal
