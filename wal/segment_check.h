// What the files of a log's directory may be, besides segments of the log that is read: spare
// files, and those of another database, which nobody may write over.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/env.h"
#include "base/status.h"
#include "wal/manifest.h"
#include "wal/ring_file.h"

namespace geardb::wal {

/// The database whose segment record these bytes are, whichever it is; nothing when they are none.
std::optional<Uuid> SegmentOwner(std::span<const std::byte> bytes);

/// Whether a file holds nothing but zeros, as everything that a creation leaves behind does.
Result<bool> HoldsOnlyZeros(Env* env, const std::string& path);

/// Whether the file may become a segment: it is one of this database that is no longer needed, or a
/// spare one. Of those, a file shorter than a segment is what a crash or a full disk leaves of a
/// spare, and holds only zeros. Corruption, naming it, for all others.
Status CheckFreeSegment(Env* env, const std::string& path, const Manifest& manifest);

/// Corruption when the ring is that of another database. Known where segments are no longer than
/// the ring: its first bytes are then a segment's first record.
Status CheckRingOwner(RingFile* ring, const std::string& path, const Manifest& manifest);

}  // namespace geardb::wal
