#include "engine/internal/image_chunk.h"

namespace geardb::engine {
namespace {

/// Of the layout of all chunks: a later one is not read. An image has one.
constexpr uint16_t kImageVersion = 2;
/// In version 1 chunks came to a MiB.
constexpr uint64_t kFirstChunkBytes = uint64_t{1} << 20;

std::string_view NameOf(ImageKind kind) {
  switch (kind) {
    case ImageKind::kDatabase:
      return "the database's head";
    case ImageKind::kTags:
      return "the tags";
    case ImageKind::kTable:
      return "the head";
    case ImageKind::kTrajectories:
      return "the trajectories";
    case ImageKind::kPages:
      return "the pages";
    case ImageKind::kDrawGroups:
      return "draw groups";
    case ImageKind::kItems:
      return "the items";
  }
  return "an unknown kind";
}

}  // namespace

std::string NameOf(const ImageChunk& chunk) {
  std::string name = "chunk " + std::to_string(chunk.number & UINT32_MAX) + " of ";
  name += NameOf(chunk.kind);
  if (chunk.kind == ImageKind::kItems || chunk.kind == ImageKind::kDrawGroups) {
    name += " of priority table " + std::to_string(chunk.number >> 32);
  }
  if (chunk.table != 0) name += " of table " + std::to_string(chunk.table);
  return name + " in the index image";
}

ChunkWriter::ChunkWriter(const ImageChunk& chunk, Lsn lsn) : chunk_(chunk) {
  Put(kImageVersion);
  Put(static_cast<uint16_t>(chunk.kind));
  Put(chunk.table);
  Put(chunk.number);
  Put(lsn);
}

Result<ChunkReader> ChunkReader::Open(const ImageSource& source, const ImageChunk& chunk, Lsn lsn) {
  Result<std::string> bytes = source(chunk);
  if (!bytes.ok()) {
    if (bytes.status().code() != StatusCode::kNotFound) return bytes.status();
    return BadChunk(chunk, "it is missing: ", bytes.status().message());
  }
  ChunkReader reader(chunk, std::move(*bytes));
  const auto version = reader.Get<uint16_t>();
  const ImageChunk found{.table = 0, .kind = static_cast<ImageKind>(reader.Get<uint16_t>())};
  const auto table = reader.Get<uint32_t>();
  const auto number = reader.Get<uint64_t>();
  const auto image = reader.Get<uint64_t>();
  if (reader.short_) return BadChunk(chunk, "it has ", reader.bytes_.size(), " bytes");
  if (version == 0 || version > kImageVersion) {
    return Status::Unsupported("written by another GearDB: ", engine::NameOf(chunk),
                               " has version ", version, "; this one reads versions up to ",
                               kImageVersion);
  }
  if (version == 1) reader.chunk_bytes_ = kFirstChunkBytes;
  if (found.kind != chunk.kind || table != chunk.table || number != chunk.number) {
    return BadChunk(
        chunk, "its place has ",
        engine::NameOf(ImageChunk{.table = table, .kind = found.kind, .number = number}));
  }
  if (image != lsn) {
    return BadChunk(chunk, "it is of the image as of LSN ", image, ", not ", lsn);
  }
  return reader;
}

std::span<const std::byte> ChunkReader::Bytes(uint64_t size, uint64_t count) {
  if (short_ || (size > 0 && count > left() / size)) {
    short_ = true;
    return {};
  }
  const auto bytes = std::as_bytes(std::span(bytes_)).subspan(at_, size * count);
  at_ += size * count;
  return bytes;
}

Status ChunkReader::CheckEnd() const {
  if (!short_ && left() == 0) return Status::Ok();
  if (short_) return BadChunk(chunk_, "its ", bytes_.size(), " bytes end too early");
  return BadChunk(chunk_, left(), " bytes follow its end");
}

}  // namespace geardb::engine
