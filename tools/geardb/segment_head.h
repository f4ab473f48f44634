// A segment's first record, which says which one it is: read by a repair, and written again.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "wal/log_reader.h"

namespace geardb::cli {

/// The LSN that a segment begins with, by its file; nothing where that has no good first record.
Result<std::optional<Lsn>> ReadSegmentBase(Env* env, const std::string& path,
                                           const wal::Manifest& manifest);
/// The bytes of a segment's first record.
std::vector<std::byte> SegmentHead(const wal::Manifest& manifest, Lsn base, wal::Epoch epoch);
/// "segment-000007", a name that no file of the log's directory has.
std::string FreeSegmentName(const std::string& log_directory);

}  // namespace geardb::cli
