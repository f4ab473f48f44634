#include "wal/record_codec.h"

#include <cstring>

#include "base/break.h"
#include "base/hash.h"

namespace geardb::wal {

bool ParseRecord(std::span<const std::byte> bytes, Lsn lsn, uint64_t seed, ParsedRecord* into) {
  RecordHeader header;
  if (bytes.size() < sizeof(header)) return false;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.length > bytes.size() || !ParseIndex(bytes, lsn, seed, into)) return false;
  const uint64_t area = PieceAreaOffset(header.metadata_length);
  if (header.metadata_length > 0 && area < header.length) {
    into->piece_area = bytes.subspan(area, header.length - area);
  }
  return true;
}

bool ParseIndex(std::span<const std::byte> bytes, Lsn lsn, uint64_t seed, ParsedRecord* into) {
  if (bytes.size() < sizeof(RecordHeader)) return false;
  RecordHeader& header = into->header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.lsn != lsn || header.zero != 0 || header.length < sizeof(RecordHeader) ||
      header.length % kRecordAlignment != 0 ||
      header.metadata_length > header.length - sizeof(RecordHeader)) {
    return false;
  }
  const size_t checked = sizeof(RecordHeader) + header.metadata_length;
  if (checked > bytes.size() || Hash64(bytes.subspan(8, checked - 8), seed) != header.checksum) {
    return false;
  }

  into->pieces.clear();
  into->body = {};
  into->piece_area = {};
  if (header.metadata_length == 0) return true;
  MetadataPrefix prefix;
  if (header.metadata_length < sizeof(prefix)) return false;
  const auto metadata = bytes.subspan(sizeof(RecordHeader), header.metadata_length);
  std::memcpy(&prefix, metadata.data(), sizeof(prefix));
  const uint64_t entries = uint64_t{prefix.piece_count} * sizeof(PieceEntry);
  if (sizeof(prefix) + entries + prefix.body_bytes != header.metadata_length) return false;
  into->body = metadata.subspan(sizeof(prefix) + entries);
  const uint64_t area = PieceAreaOffset(header.metadata_length);
  const uint64_t area_bytes = area < header.length ? header.length - area : 0;
  into->pieces.resize(prefix.piece_count);
  if (entries > 0) std::memcpy(into->pieces.data(), metadata.data() + sizeof(prefix), entries);
  for (const PieceEntry& entry : into->pieces) {
    if (entry.lsn == 0 && uint64_t{entry.offset} + entry.bytes > area_bytes) return false;
  }
  return true;
}

std::span<const std::byte> PieceBytes(const ParsedRecord& record, const PieceEntry& entry) {
  return record.piece_area.subspan(entry.offset, entry.bytes);
}

bool PiecesGood(const ParsedRecord& record, uint64_t seed) {
  if constexpr (kBreak.skip_piece_checksum) return true;
  for (const PieceEntry& entry : record.pieces) {
    if (entry.lsn == 0 && Hash64(PieceBytes(record, entry), seed) != entry.checksum) return false;
  }
  return true;
}

void FinishHeader(std::byte* record, RecordHeader header, uint64_t seed) {
  header.checksum = 0;
  std::memcpy(record, &header, sizeof(header));
  const size_t checked = sizeof(RecordHeader) + header.metadata_length;
  header.checksum = Hash64({record + 8, checked - 8}, seed);
  std::memcpy(record, &header.checksum, sizeof(header.checksum));
}

void WritePlainRecord(std::byte* record, RecordHeader header, std::span<const std::byte> body,
                      uint64_t seed) {
  if (!body.empty()) {
    const MetadataPrefix prefix{.piece_count = 0, .body_bytes = static_cast<uint32_t>(body.size())};
    std::memcpy(record + sizeof(header), &prefix, sizeof(prefix));
    std::memcpy(record + sizeof(header) + sizeof(prefix), body.data(), body.size());
    header.metadata_length = static_cast<uint32_t>(sizeof(prefix) + body.size());
    const size_t used = sizeof(header) + header.metadata_length;
    std::memset(record + used, 0, header.length - used);
  }
  FinishHeader(record, header, seed);
}

}  // namespace geardb::wal
