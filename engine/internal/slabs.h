// Slabs, of which an arena hands out frames: how many frames take, and which are free.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace geardb::engine {

/// How many frames of one size so many slabs hold: a frame larger than a slab takes several.
uint64_t FramesIn(uint64_t slabs, uint64_t frame_bytes);
/// How many slabs hold so many frames of one size.
uint64_t SlabsFor(uint64_t frames, uint64_t frame_bytes);

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

}  // namespace geardb::engine
