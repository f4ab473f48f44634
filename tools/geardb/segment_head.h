// What a repair writes of a segment: its first record, which says which one it is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "wal/log_reader.h"

namespace geardb::cli {

/// The bytes of a segment's first record.
std::vector<std::byte> SegmentHead(const wal::Manifest& manifest, Lsn base, wal::Epoch epoch);
/// "segment-000007", a name that no file of the log's directory has.
std::string FreeSegmentName(const std::string& log_directory);

}  // namespace geardb::cli
