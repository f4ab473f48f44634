// Slabs, of which an arena hands out frames: how many frames take, and which are free. Where there
// are more pools than slabs for them, pools take parts of slabs that they share.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace geardb::engine {

/// How many frames of one size so many slabs hold: a frame larger than a slab takes several.
uint64_t FramesIn(uint64_t slabs, uint64_t frame_bytes);
/// How many slabs hold so many frames of one size.
uint64_t SlabsFor(uint64_t frames, uint64_t frame_bytes);

/// Slabs that pools share are in parts of this size, numbered through all slabs.
inline constexpr uint64_t kPartBytes = uint64_t{256} << 10;
inline constexpr uint32_t kPartsPerSlab = 8;

/// Whether frames of that size may lie in parts: where these leave at most a quarter of one unused.
bool FitsParts(uint64_t frame_bytes);
/// The bytes that so many frames of one size take at least: of whole slabs, but for the last, which
/// may be in parts. At most 2^56.
uint64_t RoomFor(uint64_t frames, uint64_t frame_bytes);

/// Free slabs, by number. Not thread-safe.
class SlabSet {
 public:
  /// All below `end` are free.
  explicit SlabSet(uint32_t end);

  uint32_t count() const { return count_; }
  /// Gives back one that is not free.
  void Put(uint32_t number);
  /// Takes the lowest; nothing where none is free.
  std::optional<uint32_t> TakeLowest();
  /// Takes `length` (not 0) side by side, the highest such, and returns the first of them; nothing
  /// where there are none.
  std::optional<uint32_t> TakeHighestRun(uint32_t length);

 private:
  bool Has(uint32_t number) const { return (words_[number / 64] >> (number % 64) & 1) != 0; }
  void Take(uint32_t number);

  std::vector<uint64_t> words_;
  uint32_t count_ = 0;
};

/// Slabs in parts, and which parts are free. Not thread-safe.
class SharedSlabs {
 public:
  /// By number.
  std::vector<uint32_t> slabs() const;
  /// A slab of which nothing is used.
  void Add(uint32_t slab);
  /// Takes a part of the slab that has fewest free, so that others may become free.
  std::optional<uint32_t> Take();
  /// Gives back a part. Whether nothing of its slab is used any more, which is not shared then.
  bool Put(uint32_t part);
  uint64_t free_count() const { return free_count_; }

 private:
  std::map<uint32_t, uint8_t> free_;                           // By slab: a bit for each part.
  std::array<std::set<uint32_t>, kPartsPerSlab + 1> by_free_;  // Slabs, by how many are free.
  uint64_t free_count_ = 0;
};

}  // namespace geardb::engine
