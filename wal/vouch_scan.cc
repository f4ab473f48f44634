#include "wal/vouch_scan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "wal/aligned_buffer.h"
#include "wal/record_codec.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kReadBytes = uint64_t{1} << 20;

// Could the 64 bytes at `at` be the header of a record that vouches, or of one that the manifest
// cannot know of?
bool LooksLikeHeader(const std::byte* at, const Manifest& manifest, Lsn stop, uint64_t modulus,
                     uint64_t offset, RecordHeader* header) {
  Lsn lsn;
  std::memcpy(&lsn, at + offsetof(RecordHeader, lsn), sizeof(lsn));
  if (lsn < stop || lsn % modulus != offset) return false;
  std::memcpy(header, at, sizeof(*header));
  if (header->epoch() < manifest.epoch || (header->epoch() == manifest.epoch && lsn == stop)) {
    return false;
  }
  return header->zero == 0 && header->length >= sizeof(RecordHeader) &&
         header->metadata_length <= header->length && header->length <= manifest.segment_bytes;
}

// Would it change what is known?
bool IsNews(const RecordHeader& header, const Manifest& manifest, Lsn vouched) {
  return header.epoch() > manifest.epoch || header.synced_lsn > vouched;
}

// Takes up what a valid record says.
Status Heed(const RecordHeader& header, const Manifest& manifest, const std::string& where,
            Lsn* vouched) {
  if (header.epoch() > manifest.epoch) {
    return Status::Corruption(where, ": the record at LSN ", header.lsn, " is of term ",
                              header.term, ", open ", header.open, ", but MANIFEST is of term ",
                              manifest.epoch.term, ", open ", manifest.epoch.open,
                              ": it is older than the log, or another log's");
  }
  *vouched = std::max(*vouched, header.synced_lsn);
  return Status::Ok();
}

// The records of one segment file, wherever in it they begin.
class FileScan {
 public:
  FileScan(Env* env, std::string path, const Manifest& manifest, Lsn stop)
      : env_(env), path_(std::move(path)), manifest_(manifest), stop_(stop), block_(kReadBytes) {}

  /// From offset `begin` on.
  Status Run(uint64_t begin, Lsn* vouched) {
    GEARDB_ASSIGN_OR_RETURN(file_, env_->OpenFile(path_, {.mode = FileMode::kRead}));
    GEARDB_ASSIGN_OR_RETURN(const uint64_t size, file_->Size());
    uint64_t at = begin;
    while (at < size) {
      GEARDB_ASSIGN_OR_RETURN(const FileExtent extent, file_->NextWritten(at));
      if (extent.begin >= extent.end) break;
      at = AlignDown(std::max(extent.begin, at), kDirectAlignment);
      for (; at < extent.end; at += kReadBytes) {
        const uint64_t wanted = AlignUp(std::min(kReadBytes, extent.end - at), kDirectAlignment);
        GEARDB_ASSIGN_OR_RETURN(const size_t read, file_->Read(at, block_.span().first(wanted)));
        GEARDB_RETURN_IF_ERROR(ScanBlock(at, read, vouched));
      }
      at = extent.end;
    }
    return Status::Ok();
  }

 private:
  Status ScanBlock(uint64_t at, size_t bytes, Lsn* vouched) {
    RecordHeader header;
    for (uint64_t i = 0; i + sizeof(RecordHeader) <= bytes; i += kRecordAlignment) {
      if (LooksLikeHeader(block_.data() + i, manifest_, stop_, manifest_.segment_bytes, at + i,
                          &header) &&
          IsNews(header, manifest_, *vouched)) {
        GEARDB_RETURN_IF_ERROR(CheckRecord(at + i, header, vouched));
      }
    }
    return Status::Ok();
  }

  // Rare, so the record is read by itself: its metadata may lie beyond the block.
  Status CheckRecord(uint64_t at, const RecordHeader& header, Lsn* vouched) {
    record_bytes_.resize(header.length);
    GEARDB_ASSIGN_OR_RETURN(const size_t read, file_->Read(at, record_bytes_));
    if (read != record_bytes_.size() ||
        !ParseRecord(record_bytes_, header.lsn, manifest_.Seed(), &record_)) {
      return Status::Ok();
    }
    return Heed(record_.header, manifest_, path_, vouched);
  }

  Env* const env_;
  const std::string path_;
  const Manifest& manifest_;
  const Lsn stop_;
  const AlignedBuffer block_;
  std::unique_ptr<File> file_;
  std::vector<std::byte> record_bytes_;
  ParsedRecord record_;
};

Status ScanRing(RingFile* ring, const Manifest& manifest, Lsn stop, Lsn* vouched) {
  ParsedRecord record;
  RecordHeader header;
  GEARDB_ASSIGN_OR_RETURN(const auto extents, ring->WrittenExtents());
  for (const FileExtent& extent : extents) {
    for (uint64_t at = AlignDown(extent.begin, kRecordAlignment);
         at + sizeof(RecordHeader) <= extent.end; at += kRecordAlignment) {
      if (LooksLikeHeader(ring->At(at), manifest, stop, ring->bytes(), at, &header) &&
          IsNews(header, manifest, *vouched) && header.length <= ring->bytes() &&
          ParseRecord({ring->At(at), header.length}, header.lsn, manifest.Seed(), &record)) {
        GEARDB_RETURN_IF_ERROR(Heed(record.header, manifest, "the ring", vouched));
      }
    }
  }
  return Status::Ok();
}

}  // namespace

Result<Lsn> ScanForVouched(Env* env, const std::string& log_directory, const Manifest& manifest,
                           const SegmentMap& map, RingFile* ring, const Followed& followed) {
  std::map<std::string, uint64_t> followed_bytes;
  for (const auto& [base, name] : map.names) {
    if (base < followed.from || base >= followed.segments_end) continue;
    followed_bytes[name] = std::min(followed.segments_end - base, manifest.segment_bytes);
  }
  Lsn vouched = manifest.start;
  for (const std::string& name : map.all) {
    const auto found = followed_bytes.find(name);
    const uint64_t begin = found == followed_bytes.end() ? 0 : found->second;
    if (begin == manifest.segment_bytes) continue;
    FileScan scan(env, JoinPath(log_directory, name), manifest, followed.stop);
    GEARDB_RETURN_IF_ERROR(scan.Run(begin, &vouched));
  }
  if (ring != nullptr) GEARDB_RETURN_IF_ERROR(ScanRing(ring, manifest, followed.stop, &vouched));
  return vouched;
}

}  // namespace geardb::wal
