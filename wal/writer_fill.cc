// Filling a reserved record: metadata, pieces and checksums into the ring. Any thread, many in
// parallel.
#include <algorithm>
#include <cstring>

#include "base/crash_point.h"
#include "base/hash.h"
#include "wal/record_codec.h"
#include "wal/writer_core.h"

namespace geardb::wal {
namespace {

// Copied and hashed in one go as long as it stays in the second-level cache.
constexpr uint64_t kHashBytes = uint64_t{128} << 10;

// Copies `runs` to `to` and returns the checksum of the whole.
uint64_t CopyAndHash(std::span<const std::span<const std::byte>> runs, std::byte* to,
                     uint64_t bytes, uint64_t seed) {
  std::byte* at = to;
  if (bytes <= kHashBytes) {
    for (const auto& run : runs) {
      if (!run.empty()) std::memcpy(at, run.data(), run.size());
      at += run.size();
    }
    GEARDB_CHECK(at == to + bytes);
    return Hash64({to, bytes}, seed);
  }
  Hasher64 hasher(seed);
  for (std::span<const std::byte> run : runs) {
    while (!run.empty()) {
      const size_t n = std::min<size_t>(run.size(), kHashBytes);
      std::memcpy(at, run.data(), n);
      hasher.Add({at, n});
      at += n;
      run = run.subspan(n);
    }
  }
  GEARDB_CHECK(at == to + bytes);
  return hasher.Finish();
}

uint64_t SizeOf(const PieceSource& piece) {
  uint64_t bytes = 0;
  for (const auto& run : piece.runs) bytes += run.size();
  return bytes;
}

}  // namespace

// Copies the pieces behind the metadata and writes their entries. Returns the bytes of the record
// that are used.
uint64_t LogWriter::Core::CopyPieces(const Reservation& reservation, const RecordContent& content) {
  const RecordSize& size = reservation.request.size;
  std::byte* const record = ring_->At(reservation.lsn);
  std::byte* const metadata = record + sizeof(RecordHeader);
  std::byte* entry_at = metadata + sizeof(MetadataPrefix);
  const uint64_t area = PieceAreaOffset(size.metadata_bytes);
  uint64_t offset = 0;
  for (const PieceSource& piece : content.pieces) {
    PieceEntry entry = piece.foreign;
    if (entry.lsn == 0) {
      const uint64_t aligned = AlignUp(offset, kPieceAlignment);
      std::memset(record + area + offset, 0, aligned - offset);
      const uint64_t bytes = SizeOf(piece);
      GEARDB_CHECK(aligned + bytes <= size.piece_area_bytes);
      entry.offset = static_cast<uint32_t>(aligned);
      entry.bytes = static_cast<uint32_t>(bytes);
      entry.checksum = CopyAndHash(piece.runs, record + area + aligned, bytes, seed_);
      if (piece.place) *piece.place = {reservation.lsn + area + aligned, entry.checksum};
      offset = aligned + bytes;
      CrashPoint("copy_into_ring");
    }
    std::memcpy(entry_at, &entry, sizeof(entry));
    entry_at += sizeof(entry);
  }
  return area + offset;
}

void LogWriter::Core::Fill(const Reservation& reservation, const RecordContent& content) {
  const RecordSize& size = reservation.request.size;
  const uint64_t metadata_bytes =
      sizeof(MetadataPrefix) + sizeof(PieceEntry) * content.pieces.size() + content.body.size();
  GEARDB_CHECK(metadata_bytes == size.metadata_bytes);
  std::byte* const record = ring_->At(reservation.lsn);
  std::byte* const metadata = record + sizeof(RecordHeader);
  const MetadataPrefix prefix{.piece_count = static_cast<uint32_t>(content.pieces.size()),
                              .body_bytes = static_cast<uint32_t>(content.body.size())};
  std::memcpy(metadata, &prefix, sizeof(prefix));
  if (!content.body.empty()) {
    std::memcpy(metadata + metadata_bytes - content.body.size(), content.body.data(),
                content.body.size());
  }
  const uint64_t metadata_end = sizeof(RecordHeader) + metadata_bytes;
  std::memset(record + metadata_end, 0, PieceAreaOffset(metadata_bytes) - metadata_end);
  const uint64_t used = CopyPieces(reservation, content);
  const uint64_t length = reservation.end - reservation.lsn;
  std::memset(record + used, 0, length - used);
  RecordHeader header = HeaderFor(reservation.request.type, reservation.lsn, length);
  header.synced_lsn = reservation.synced_lsn;
  header.metadata_length = size.metadata_bytes;
  header.flags = reservation.request.flags;
  header.part = reservation.request.part;
  header.group_lsn = reservation.group_lsn;
  FinishHeader(record, header, seed_);
  Commit(reservation.lsn, length);
}

}  // namespace geardb::wal
