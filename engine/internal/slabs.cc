#include "engine/internal/slabs.h"

#include <algorithm>
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

bool FitsParts(uint64_t frame_bytes) {
  return frame_bytes <= kPartBytes && kPartBytes % frame_bytes <= kPartBytes / 4;
}

uint64_t RoomFor(uint64_t frames, uint64_t frame_bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 56;
  if (!FitsParts(frame_bytes)) {
    const uint64_t run = SlabsFor(1, frame_bytes);
    if (frames > kMost / kSlabBytes / run) return kMost;
    return SlabsFor(frames, frame_bytes) * kSlabBytes;
  }
  const uint64_t per_slab = kSlabBytes / frame_bytes;
  const uint64_t per_part = kPartBytes / frame_bytes;
  if (frames / per_slab >= kMost / kSlabBytes) return kMost;
  const uint64_t in_parts = (frames % per_slab + per_part - 1) / per_part * kPartBytes;
  return frames / per_slab * kSlabBytes + std::min(in_parts, kSlabBytes);
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

std::vector<uint32_t> SharedSlabs::slabs() const {
  std::vector<uint32_t> slabs;
  for (const auto& [slab, free] : free_) slabs.push_back(slab);
  return slabs;
}

void SharedSlabs::Add(uint32_t slab) {
  GEARDB_CHECK(free_.emplace(slab, uint8_t{0xFF}).second);
  by_free_[kPartsPerSlab].insert(slab);
  free_count_ += kPartsPerSlab;
}

std::optional<uint32_t> SharedSlabs::Take() {
  for (size_t count = 1; count <= kPartsPerSlab; ++count) {
    if (by_free_[count].empty()) continue;
    const uint32_t slab = *by_free_[count].begin();
    uint8_t& free = free_.at(slab);
    const auto bit = static_cast<uint32_t>(std::countr_zero(free));
    free = static_cast<uint8_t>(free & (free - 1));
    by_free_[count - 1].insert(by_free_[count].extract(slab));
    --free_count_;
    return slab * kPartsPerSlab + bit;
  }
  return std::nullopt;
}

bool SharedSlabs::Put(uint32_t part) {
  const uint32_t slab = part / kPartsPerSlab;
  const auto found = free_.find(slab);
  const auto bit = static_cast<uint8_t>(1u << part % kPartsPerSlab);
  GEARDB_CHECK(found != free_.end() && (found->second & bit) == 0);
  const auto count = static_cast<size_t>(std::popcount(found->second));
  found->second = static_cast<uint8_t>(found->second | bit);
  by_free_[count + 1].insert(by_free_[count].extract(slab));
  ++free_count_;
  if (count + 1 < kPartsPerSlab) return false;
  by_free_[kPartsPerSlab].erase(slab);
  free_.erase(found);
  free_count_ -= kPartsPerSlab;
  return true;
}

}  // namespace geardb::engine
