// The chunks of an image: how they are named, and how their bytes are written and read. An *image*
// is the index of a database as of one LSN: all that its tables know but the bytes of pages. It is
// loaded in place of the log before that LSN; engine/FORMAT.md, "Images", has the bytes.
//
// A chunk begins with a header that says which one it is and of which image, so that chunks of
// different images are not mixed. Checksums are the store's that holds the chunks. Behind it are
// little-endian arrays without gaps, or a FlatBuffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/image_generated.h"

namespace geardb::engine {

/// What a chunk holds. On disk: frozen.
enum class ImageKind : uint16_t {
  kDatabase = 1,      ///< Its tables: one chunk, of table 0.
  kTags = 2,          ///< Of table 0.
  kTable = 3,         ///< A table's head: one chunk.
  kTrajectories = 4,  ///< Chunk k: slots from k times as many as a chunk has.
  kPages = 5,         ///< Likewise, LPNs.
  kItems = 6,         ///< Of priority table k >> 32: likewise, leaves.
  kDrawGroups = 7,    ///< Of priority table k >> 32, where it draws groups: likewise, groups.
};

/// Names a chunk of an image.
struct ImageChunk {
  TableId table = 0;  ///< 0: of the database.
  ImageKind kind = ImageKind::kDatabase;
  uint64_t number = 0;

  auto operator<=>(const ImageChunk&) const = default;
};

/// "chunk 3 of the pages of table 7 in the index image".
std::string NameOf(const ImageChunk& chunk);

/// Takes a chunk; what it returns ends the saving when it is no OK.
using ImageSink = std::function<Status(const ImageChunk&, std::span<const std::byte>)>;
/// The bytes of a chunk, or why there are none.
using ImageSource = std::function<Result<std::string>(const ImageChunk&)>;

/// A chunk's header: where in it is the LSN of its image, and its bytes.
inline constexpr size_t kImageChunkLsnOffset = 16;
inline constexpr size_t kImageChunkHeaderBytes = 24;
/// What a chunk comes to, about. What is larger leaves more behind in the process's heap than it
/// is: malloc keeps, in each thread's arena, twice the largest that was freed.
inline constexpr uint64_t kImageChunkBytes = uint64_t{64} << 10;

/// Corruption that names the chunk.
template <typename... Parts>
Status BadChunk(const ImageChunk& chunk, const Parts&... why) {
  return Status::Corruption(NameOf(chunk), ": ", why...);
}

/// Collects the bytes of one chunk.
class ChunkWriter {
 public:
  ChunkWriter(const ImageChunk& chunk, Lsn lsn);

  template <typename T>
  void Put(T value) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(value));
  }
  /// `count` values, `of(i)` the i-th.
  template <typename T, typename Of>
  void PutArray(size_t count, Of of) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    const size_t begin = bytes_.size();
    bytes_.resize(begin + count * sizeof(T));
    for (size_t i = 0; i < count; ++i) {
      const T value = of(i);
      std::memcpy(&bytes_[begin + i * sizeof(T)], &value, sizeof(T));
    }
  }
  void PutBytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  Status GiveTo(const ImageSink& sink) const { return sink(chunk_, bytes_); }

 private:
  const ImageChunk chunk_;
  std::vector<std::byte> bytes_;
};

/// Values in a chunk, at any address; valid as long as the chunk's reader.
template <typename T>
class ChunkArray {
 public:
  ChunkArray() = default;
  ChunkArray(const std::byte* bytes, size_t size) : bytes_(bytes), size_(size) {}
  size_t size() const { return size_; }
  T operator[](size_t i) const {
    T value;
    std::memcpy(&value, bytes_ + i * sizeof(T), sizeof(T));
    return value;
  }

 private:
  const std::byte* bytes_ = nullptr;
  size_t size_ = 0;
};

/// Reads the bytes of one chunk from the beginning on. What lies beyond the end is empty, and
/// remembered: CheckEnd must be OK before anything read is looked at.
class ChunkReader {
 public:
  /// Asks for the chunk. Corruption where it is not this one, or of another image; what the source
  /// says where there is none (NotFound is Corruption, too: an image has all its chunks).
  static Result<ChunkReader> Open(const ImageSource& source, const ImageChunk& chunk, Lsn lsn);

  /// 0 beyond the end.
  template <typename T>
  T Get() {
    const ChunkArray<T> one = Array<T>(1);
    return one.size() == 1 ? one[0] : T{};
  }
  template <typename T>
  ChunkArray<T> Array(size_t count) {
    const std::span<const std::byte> bytes = Bytes(sizeof(T), count);
    return {bytes.data(), bytes.size() / sizeof(T)};
  }
  /// `count` times `size` bytes.
  std::span<const std::byte> Bytes(uint64_t size, uint64_t count = 1);
  /// All that is left.
  std::span<const std::byte> Rest() { return Bytes(left()); }
  uint64_t left() const { return bytes_.size() - at_; }
  /// All that is left, as a FlatBuffer in `words`. Corruption where it is none.
  template <typename Root>
  Result<const Root*> FlatBuffer(std::vector<uint64_t>* words) {
    const std::span<const std::byte> bytes = Rest();
    words->resize((bytes.size() + 7) / 8);
    std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(*words)).begin());
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(words->data()), bytes.size());
    if (verifier.VerifyBuffer<Root>(nullptr)) return flatbuffers::GetRoot<Root>(words->data());
    return BadChunk(chunk_, "its ", bytes.size(), " bytes are no FlatBuffer");
  }
  /// kImageChunkBytes, of this chunk's version.
  uint64_t chunk_bytes() const { return chunk_bytes_; }

  /// Corruption unless all that was read is there, and nothing is behind it.
  Status CheckEnd() const;
  const ImageChunk& chunk() const { return chunk_; }

 private:
  ChunkReader(const ImageChunk& chunk, std::string bytes)
      : chunk_(chunk), bytes_(std::move(bytes)) {}

  ImageChunk chunk_;
  std::string bytes_;
  uint64_t chunk_bytes_ = kImageChunkBytes;
  uint64_t at_ = 0;
  bool short_ = false;
};

}  // namespace geardb::engine
