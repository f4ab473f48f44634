// SegmentMap: which file of a log holds which segment, by the first records of the files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/status.h"
#include "wal/manifest.h"

namespace geardb::wal {

/// The segment files of a log directory. Plain values.
struct SegmentMap {
  std::map<Lsn, std::string> names;   ///< Base → name of the file that holds it.
  std::vector<std::string> all;       ///< Every segment file, also the free ones.
  std::vector<std::string> no_files;  ///< Have a segment's name, but are directories or the like.
  std::vector<std::string> ignored;   ///< Names that are neither ring nor segment.
  /// Of `all`: files that begin neither with a segment's record nor with zeros.
  std::vector<std::string> unreadable;

  /// The base of the oldest segment from which all follow one another; 0 where there is none.
  /// Those before it are left of segments that are written again.
  Lsn FirstInRow(uint64_t segment_bytes) const;

  /// Reads the first record of every file (rule 13: a base at or beyond `start` with another epoch
  /// is free; otherwise the highest epoch wins). Segments that end at or below `from` are left
  /// out. Corruption when a file belongs to another database.
  static Result<SegmentMap> Read(Env* env, const std::string& log_directory,
                                 const Manifest& manifest, Lsn from);
};

}  // namespace geardb::wal
