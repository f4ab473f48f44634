#include "engine/internal/slabs.h"

#include <bit>

#include "base/check.h"
#include "base/page_view.h"

namespace geardb::engine {

uint64_t FramesIn(uint64_t slabs, uint64_t frame_bytes) {
  if (frame_bytes > kSlabBytes) return slabs / SlabsFor(1, frame_bytes);
  return slabs * (kSlabBytes / frame_bytes);
}

uint64_t SlabsFor(uint64_t frames, uint64_t frame_bytes) {
  if (frame_bytes > kSlabBytes) return frames * ((frame_bytes - 1) / kSlabBytes + 1);
  const uint64_t per_slab = kSlabBytes / frame_bytes;
  return frames / per_slab + (frames % per_slab > 0 ? 1 : 0);
}

SlabSet::SlabSet(uint32_t end) : words_((uint64_t{end} + 63) / 64, ~uint64_t{0}), count_(end) {
  if (end % 64 != 0) words_.back() = (uint64_t{1} << (end % 64)) - 1;
}

void SlabSet::Put(uint32_t number) {
  GEARDB_CHECK(!Has(number));
  words_[number / 64] |= uint64_t{1} << (number % 64);
  ++count_;
}

void SlabSet::Take(uint32_t number) {
  words_[number / 64] &= ~(uint64_t{1} << (number % 64));
  --count_;
}

std::optional<uint32_t> SlabSet::TakeLowest() {
  for (uint32_t word = 0; word < words_.size(); ++word) {
    if (words_[word] == 0) continue;
    const uint32_t number = word * 64 + static_cast<uint32_t>(std::countr_zero(words_[word]));
    Take(number);
    return number;
  }
  return std::nullopt;
}

std::optional<uint32_t> SlabSet::TakeHighestRun(uint32_t length) {
  uint32_t found = 0;
  for (auto number = static_cast<uint32_t>(words_.size() * 64); number > 0;) {
    if (number % 64 == 0 && words_[number / 64 - 1] == 0) {
      found = 0;
      number -= 64;
      continue;
    }
    --number;
    found = Has(number) ? found + 1 : 0;
    if (found < length) continue;
    for (uint32_t taken = number; taken < number + length; ++taken) Take(taken);
    return number;
  }
  return std::nullopt;
}

}  // namespace geardb::engine
