// The log's constants and layouts on disk, shared by writer and reader. Everything here is frozen;
// wal/FORMAT.md says what it means.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/types.h"

namespace geardb::wal {

inline constexpr uint32_t kFormatVersion = 1;
/// Records begin at multiples of this, and are as long.
inline constexpr uint64_t kRecordAlignment = 64;
/// Pieces begin at multiples of this in their record.
inline constexpr uint64_t kPieceAlignment = 16;
/// The unit of drain writes; the partial last block of the log is rewritten as it fills.
inline constexpr uint64_t kBlockBytes = 4096;

/// What a record is. Values reach disk: frozen. A reader that meets an unknown type stops with
/// Unsupported, unless the record carries kSafeToIgnore.
enum class RecordType : uint16_t {
  kData = 1,     ///< The engine's operations (body) and the pieces they name.
  kPad = 2,      ///< Fills the rest of a segment; the bytes after its header mean nothing.
  kSegment = 3,  ///< First record of every segment; its body is the database's uuid.
  kSeal = 4,     ///< Written when everything before it is synced. No body.
  kCommit = 5,   ///< Reserved for group commits across databases.
  kTag = 6,      ///< A named cut; its body is the engine's.
  kPart = 7,     ///< Pieces of a record that is too large; void without the group's final record.
};

/// Header flag: a reader that does not know the type may skip the record.
inline constexpr uint16_t kSafeToIgnore = 1;

/// Which leadership and which opening of the database wrote a record. Ordered.
struct Epoch {
  uint32_t term = 0;
  uint32_t open = 0;
  friend auto operator<=>(const Epoch&, const Epoch&) = default;
};

/// The first 64 bytes of a record, little-endian as in memory.
struct RecordHeader {
  uint64_t checksum = 0;  ///< XXH3-64, seeded by the uuid, of bytes 8…63 and the metadata.
  uint64_t lsn = 0;
  uint64_t synced_lsn = 0;  ///< Everything below was synced when this record was written.
  uint32_t term = 0;
  uint32_t open = 0;
  uint32_t length = 0;  ///< Of the whole record: header, metadata, pieces, padding.
  uint32_t metadata_length = 0;
  uint16_t type = 0;
  uint16_t flags = 0;
  uint32_t part = 0;       ///< Number in its group; 0 for a record of its own.
  uint64_t group_lsn = 0;  ///< LSN of the group's first part; 0 for a record of its own.
  uint64_t zero = 0;

  Epoch epoch() const { return Epoch{term, open}; }
};
static_assert(sizeof(RecordHeader) == 64 && std::is_trivially_copyable_v<RecordHeader>);
static_assert(offsetof(RecordHeader, lsn) == 8 && offsetof(RecordHeader, synced_lsn) == 16);
static_assert(offsetof(RecordHeader, term) == 24 && offsetof(RecordHeader, length) == 32);
static_assert(offsetof(RecordHeader, type) == 40 && offsetof(RecordHeader, flags) == 42);
static_assert(offsetof(RecordHeader, part) == 44 && offsetof(RecordHeader, group_lsn) == 48);
static_assert(offsetof(RecordHeader, zero) == 56);

/// Metadata begins with this; then come `piece_count` PieceEntry and `body_bytes` of body.
struct MetadataPrefix {
  uint32_t piece_count = 0;
  uint32_t body_bytes = 0;
};
static_assert(sizeof(MetadataPrefix) == 8);

/// Where a piece's bytes are, and their checksum.
struct PieceEntry {
  uint64_t lsn = 0;     ///< The part record that holds the bytes; 0 = this record.
  uint32_t offset = 0;  ///< From the start of that record's piece area.
  uint32_t bytes = 0;
  uint64_t checksum = 0;  ///< XXH3-64 of the bytes, seeded by the uuid.
};
static_assert(sizeof(PieceEntry) == 24 && std::is_trivially_copyable_v<PieceEntry>);

/// Identity of a database; also seeds every checksum of its log, so that bytes of another database
/// never look valid.
using Uuid = std::array<std::byte, 16>;

/// Offset of the piece area in a record.
constexpr uint64_t PieceAreaOffset(uint64_t metadata_bytes) {
  return AlignUp(sizeof(RecordHeader) + metadata_bytes, kPieceAlignment);
}

/// How much room a record takes. Make it with For().
struct RecordSize {
  uint32_t metadata_bytes = 0;
  uint32_t piece_area_bytes = 0;

  /// A record with a body of `body_bytes`, pieces of its own of `piece_bytes` each, and
  /// `foreign_pieces` entries that point into parts.
  static constexpr RecordSize For(uint64_t body_bytes, std::span<const uint64_t> piece_bytes,
                                  uint64_t foreign_pieces = 0) {
    uint64_t area = 0;
    for (uint64_t bytes : piece_bytes) area = AlignUp(area, kPieceAlignment) + bytes;
    const uint64_t metadata = sizeof(MetadataPrefix) +
                              sizeof(PieceEntry) * (piece_bytes.size() + foreign_pieces) +
                              body_bytes;
    const bool fits = metadata <= UINT32_MAX && area <= UINT32_MAX;
    return fits ? RecordSize{static_cast<uint32_t>(metadata), static_cast<uint32_t>(area)}
                : RecordSize{UINT32_MAX, UINT32_MAX};
  }
  /// Bytes in the log. A record that is too large for any log gives a number that says so.
  constexpr uint64_t total() const {
    return AlignUp(PieceAreaOffset(metadata_bytes) + piece_area_bytes, kRecordAlignment);
  }
};

/// Bytes of a segment record: header, prefix, uuid.
inline constexpr uint64_t kSegmentRecordBytes = RecordSize::For(sizeof(Uuid), {}).total();
static_assert(kSegmentRecordBytes == 128);
/// Bytes of a seal: header and an empty metadata.
inline constexpr uint64_t kSealRecordBytes = 64;

}  // namespace geardb::wal
