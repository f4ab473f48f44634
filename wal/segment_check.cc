#include "wal/segment_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "wal/record_codec.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kReadBytesMax = uint64_t{1} << 20;

bool IsZero(std::byte byte) { return byte == std::byte{0}; }

}  // namespace

std::optional<Uuid> SegmentOwner(std::span<const std::byte> bytes) {
  if (bytes.size() < kSegmentRecordBytes) return std::nullopt;
  RecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.type != static_cast<uint16_t>(RecordType::kSegment) ||
      header.length != kSegmentRecordBytes) {
    return std::nullopt;
  }
  Manifest owner;
  std::memcpy(owner.uuid.data(), bytes.data() + sizeof(header) + sizeof(MetadataPrefix),
              owner.uuid.size());
  ParsedRecord record;
  if (!ParseRecord(bytes, header.lsn, owner.Seed(), &record)) return std::nullopt;
  return owner.uuid;
}

Result<bool> HoldsOnlyZeros(Env* env, const std::string& path) {
  GEARDB_ASSIGN_OR_RETURN(auto file, env->OpenFile(path, {.mode = FileMode::kRead}));
  GEARDB_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::vector<std::byte> block(kReadBytesMax);
  for (uint64_t at = 0; at < size;) {
    GEARDB_ASSIGN_OR_RETURN(const FileExtent extent, file->NextWritten(at));
    if (extent.begin >= extent.end) break;
    for (at = extent.begin; at < extent.end;) {
      const uint64_t wanted = std::min<uint64_t>(block.size(), extent.end - at);
      GEARDB_ASSIGN_OR_RETURN(const size_t read, file->Read(at, std::span(block).first(wanted)));
      if (read == 0) return true;
      if (!std::all_of(block.begin(), block.begin() + static_cast<ptrdiff_t>(read), IsZero)) {
        return false;
      }
      at += read;
    }
  }
  return true;
}

Status CheckFreeSegment(Env* env, const std::string& path, const Manifest& manifest) {
  GEARDB_ASSIGN_OR_RETURN(auto file, env->OpenFile(path, {.mode = FileMode::kRead}));
  GEARDB_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::array<std::byte, kSegmentRecordBytes> first = {};
  GEARDB_ASSIGN_OR_RETURN(const size_t read, file->Read(0, first));
  const std::optional<Uuid> owner = SegmentOwner(std::span(first).first(read));
  if (size <= manifest.segment_bytes && owner == manifest.uuid) return Status::Ok();
  if (size == manifest.segment_bytes && std::all_of(first.begin(), first.end(), IsZero)) {
    return Status::Ok();
  }
  if (size < manifest.segment_bytes) {
    GEARDB_ASSIGN_OR_RETURN(const bool zeros, HoldsOnlyZeros(env, path));
    if (zeros) return Status::Ok();
  }
  return Status::Corruption(path, " has ", size, " bytes and is neither a segment of database ",
                            UuidText(manifest.uuid), ", of ", manifest.segment_bytes,
                            " bytes, nor an empty one; nothing is written over it");
}

Status CheckRingOwner(RingFile* ring, const std::string& path, const Manifest& manifest) {
  if (manifest.segment_bytes > ring->bytes()) return Status::Ok();
  const std::optional<Uuid> owner = SegmentOwner({ring->At(0), kSegmentRecordBytes});
  if (!owner || *owner == manifest.uuid) return Status::Ok();
  return Status::Corruption(path, " belongs to database ", UuidText(*owner), ", this is ",
                            UuidText(manifest.uuid), ": put its own back, or ", ring->bytes(),
                            " zeros to do without what only its own ring held");
}

}  // namespace geardb::wal
