// The sizes of a log: what the disk bounds it to, of its segments, where the user names none, and
// whether it can go round.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/env.h"
#include "base/status.h"

namespace geardb::engine {

/// As DatabaseOptions has them.
struct LogBytes {
  uint64_t log = 0;   ///< log_bytes_max.
  uint64_t ring = 0;  ///< ring_bytes.
  friend bool operator==(const LogBytes&, const LogBytes&) = default;
};

/// What is asked for, or what comes with the log's other files to a third of what the disk has room
/// for, if that is less: of what is free, and what the database in `directory` has there. The cold
/// store is to have the rest: a log that has filled the disk could not give a segment back, since
/// what lives in it must be moved first. The ring has two segments at
/// least (of `segment_bytes`; 0: of what ChooseSegmentBytes makes of the log): a smaller one would
/// bound records more than they do.
LogBytes LogBytesOnDisk(Env* env, const std::string& directory, const LogBytes& asked,
                        uint64_t segment_bytes);

/// What DatabaseOptions::segment_bytes of 0 stands for.
uint64_t ChooseSegmentBytes(uint64_t log_bytes_max);

/// InvalidArgument where the cleaner could never give a segment back: the one that is written stays
/// (Cleaner::ChooseStart), and where there is no other the next finds no room for ever. `where`
/// says whose segments these are.
Status CheckGoesRound(uint64_t log_bytes_max, uint64_t segment_bytes, std::string_view where);

}  // namespace geardb::engine
