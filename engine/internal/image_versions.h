// Which version of each chunk the image in a cold store has. The store keeps a chunk in one of two
// places by turns; a chunk that is as it was in the image before stays where it is. So an image
// costs what has changed, not what there is.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/internal/cold_keys.h"
#include "engine/internal/image_chunk.h"

namespace geardb::engine {

/// Where a chunk of an image is.
struct ChunkVersion {
  uint16_t place = 0;  ///< 0 or 1.
  Lsn lsn = 0;         ///< Of the image that it was written with.
  uint64_t hash = 0;   ///< Of its bytes, as they are stored.

  friend bool operator==(const ChunkVersion&, const ChunkVersion&) = default;
};

/// The chunks of one image.
class ImageVersions {
 public:
  /// Null where the image has no such chunk.
  const ChunkVersion* Find(const ImageChunk& chunk) const;
  void Set(const ImageChunk& chunk, const ChunkVersion& version) { versions_[chunk] = version; }
  const std::map<ImageChunk, ChunkVersion>& all() const { return versions_; }

  /// Parts of about 64 KiB (engine/FORMAT.md, "Images in the cold store").
  std::vector<std::string> Encode() const;
  /// How many.
  uint64_t Parts() const;
  /// Takes over what a part says; InvalidArgument with what is wrong with it.
  Status Decode(std::string_view part);

  /// The key of a chunk in one of its places.
  static ColdChunkKey KeyOf(const ImageChunk& chunk, uint16_t place);

 private:
  std::map<ImageChunk, ChunkVersion> versions_;
};

}  // namespace geardb::engine
