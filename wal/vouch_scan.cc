#include "wal/vouch_scan.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "wal/record_codec.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kReadBytes = uint64_t{1} << 20;

// Could the 64 bytes at `at` be the header of a record that vouches?
bool LooksLikeHeader(const std::byte* at, const Manifest& manifest, Lsn stop, uint64_t modulus,
                     uint64_t offset, RecordHeader* header) {
  Lsn lsn;
  std::memcpy(&lsn, at + offsetof(RecordHeader, lsn), sizeof(lsn));
  if (lsn <= stop || lsn % modulus != offset) return false;
  std::memcpy(header, at, sizeof(*header));
  return header->epoch() == manifest.epoch && header->zero == 0 &&
         header->metadata_length <= header->length && header->length <= manifest.segment_bytes;
}

Status ScanFile(File* file, const Manifest& manifest, Lsn stop, Lsn* vouched) {
  GEARDB_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::vector<std::byte> block(kReadBytes);
  std::vector<std::byte> record_bytes;
  ParsedRecord record;
  RecordHeader header;
  uint64_t at = 0;
  while (at < size) {
    GEARDB_ASSIGN_OR_RETURN(FileExtent extent, file->NextWritten(at));
    extent.begin = AlignDown(extent.begin, kRecordAlignment);
    if (extent.begin >= size || extent.end <= extent.begin) break;
    for (at = extent.begin; at < extent.end; at += block.size()) {
      const uint64_t want = std::min<uint64_t>(block.size(), size - at);
      GEARDB_ASSIGN_OR_RETURN(const size_t read, file->Read(at, std::span(block).first(want)));
      for (uint64_t i = 0; i + sizeof(RecordHeader) <= read; i += kRecordAlignment) {
        if (!LooksLikeHeader(block.data() + i, manifest, stop, manifest.segment_bytes, at + i,
                             &header) ||
            header.synced_lsn <= *vouched) {
          continue;
        }
        // Rare: the record's metadata may lie beyond the block.
        record_bytes.resize(header.length);
        GEARDB_ASSIGN_OR_RETURN(const size_t got, file->Read(at + i, record_bytes));
        if (got == record_bytes.size() &&
            ParseRecord(record_bytes, header.lsn, manifest.Seed(), &record)) {
          *vouched = std::max(*vouched, record.header.synced_lsn);
        }
      }
    }
  }
  return Status::Ok();
}

Status ScanRing(RingFile* ring, const Manifest& manifest, Lsn stop, Lsn* vouched) {
  ParsedRecord record;
  RecordHeader header;
  GEARDB_ASSIGN_OR_RETURN(const auto extents, ring->WrittenExtents());
  for (const FileExtent& extent : extents) {
    for (uint64_t at = AlignDown(extent.begin, kRecordAlignment);
         at + sizeof(RecordHeader) <= extent.end; at += kRecordAlignment) {
      if (LooksLikeHeader(ring->At(at), manifest, stop, ring->bytes(), at, &header) &&
          header.synced_lsn > *vouched && header.length <= ring->bytes() &&
          ParseRecord({ring->At(at), header.length}, header.lsn, manifest.Seed(), &record)) {
        *vouched = std::max(*vouched, record.header.synced_lsn);
      }
    }
  }
  return Status::Ok();
}

}  // namespace

Result<Lsn> ScanForVouched(Env* env, const std::string& log_directory, const Manifest& manifest,
                           const SegmentMap& map, RingFile* ring, Lsn stop) {
  Lsn vouched = manifest.start;
  for (const std::string& name : map.all) {
    GEARDB_ASSIGN_OR_RETURN(
        auto file, env->OpenFile(JoinPath(log_directory, name), {.mode = FileMode::kRead}));
    GEARDB_RETURN_IF_ERROR(ScanFile(file.get(), manifest, stop, &vouched));
  }
  if (ring != nullptr) GEARDB_RETURN_IF_ERROR(ScanRing(ring, manifest, stop, &vouched));
  return vouched;
}

}  // namespace geardb::wal
