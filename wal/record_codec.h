// Encoding and decoding of one record: the only code that touches its layout.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "wal/log_format.h"

namespace geardb::wal {

/// A record whose checksum fits. The spans point into the bytes it was parsed from.
struct ParsedRecord {
  RecordHeader header;
  std::span<const std::byte> body;
  std::span<const std::byte> piece_area;
  std::vector<PieceEntry> pieces;
};

/// Parses the record at the front of `bytes`, which reach to the end of its segment or of what is
/// known. Nothing unless it is a record of LSN `lsn` whose length fits into `bytes`, whose checksum
/// (seeded with `seed`) fits, and whose pieces lie inside it. Does not look at the pieces' bytes.
/// `into` keeps its memory between calls; true when it was filled.
bool ParseRecord(std::span<const std::byte> bytes, Lsn lsn, uint64_t seed, ParsedRecord* into);

/// The same of a record of which `bytes` hold header and metadata at least: its piece area may be
/// missing, and `into->piece_area` is empty.
bool ParseIndex(std::span<const std::byte> bytes, Lsn lsn, uint64_t seed, ParsedRecord* into);

/// The bytes of a piece of this record (entry.lsn == 0 and inside, as ParseRecord made sure).
std::span<const std::byte> PieceBytes(const ParsedRecord& record, const PieceEntry& entry);

/// Do all pieces that the record itself holds fit their checksums?
bool PiecesGood(const ParsedRecord& record, uint64_t seed);

/// Writes a header in front of metadata that is already in place, with its checksum.
void FinishHeader(std::byte* record, RecordHeader header, uint64_t seed);

/// Writes a whole record of a body and no pieces (segment records, seals: an empty body gives a
/// record without metadata). `header` has lsn, synced_lsn, term, open, length, type.
void WritePlainRecord(std::byte* record, RecordHeader header, std::span<const std::byte> body,
                      uint64_t seed);

}  // namespace geardb::wal
