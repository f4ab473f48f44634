#include "engine/internal/image_versions.h"

#include <cstring>

namespace geardb::engine {
namespace {

/// Chunks in place 1 have kinds of their own.
constexpr uint16_t kSecondPlace = 0x100;

/// An entry as it is stored: little-endian, frozen.
struct Entry {
  uint32_t table;
  uint16_t kind;
  uint16_t place;
  uint64_t number;
  uint64_t lsn;
  uint64_t hash;
};
static_assert(sizeof(Entry) == 32);
constexpr size_t kEntriesPerPart = kImageChunkBytes / sizeof(Entry);

}  // namespace

const ChunkVersion* ImageVersions::Find(const ImageChunk& chunk) const {
  const auto found = versions_.find(chunk);
  return found == versions_.end() ? nullptr : &found->second;
}

uint64_t ImageVersions::Parts() const {
  return (versions_.size() + kEntriesPerPart - 1) / kEntriesPerPart;
}

std::vector<std::string> ImageVersions::Encode() const {
  std::vector<std::string> parts;
  size_t entries = 0;
  for (const auto& [chunk, version] : versions_) {
    if (entries++ % kEntriesPerPart == 0) parts.emplace_back();
    const Entry entry = {.table = chunk.table,
                         .kind = static_cast<uint16_t>(chunk.kind),
                         .place = version.place,
                         .number = chunk.number,
                         .lsn = version.lsn,
                         .hash = version.hash};
    parts.back().append(reinterpret_cast<const char*>(&entry), sizeof(entry));
  }
  return parts;
}

Status ImageVersions::Decode(std::string_view part) {
  if (part.size() % sizeof(Entry) != 0) {
    return Status::InvalidArgument(part.size(), " bytes are no entries of ", sizeof(Entry));
  }
  for (size_t at = 0; at < part.size(); at += sizeof(Entry)) {
    Entry entry;
    std::memcpy(&entry, part.data() + at, sizeof(entry));
    const ImageChunk chunk{entry.table, static_cast<ImageKind>(entry.kind), entry.number};
    if (entry.place > 1) return Status::InvalidArgument(NameOf(chunk), " in place ", entry.place);
    const ChunkVersion version{entry.place, entry.lsn, entry.hash};
    if (!versions_.emplace(chunk, version).second) {
      return Status::InvalidArgument(NameOf(chunk), " is there twice");
    }
  }
  return Status::Ok();
}

ColdChunkKey ImageVersions::KeyOf(const ImageChunk& chunk, uint16_t place) {
  const auto kind = static_cast<uint16_t>(chunk.kind);
  return {.table = chunk.table,
          .partition = 0,
          .kind = static_cast<uint16_t>(place == 0 ? kind : kind | kSecondPlace),
          .chunk = chunk.number};
}

}  // namespace geardb::engine
