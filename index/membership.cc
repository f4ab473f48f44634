#include "index/membership.h"

#include <cstring>

namespace geardb::index {

bool Membership::Set(uint64_t leaf) {
  const uint64_t bit = uint64_t{1} << (leaf % 64);
  const bool changed = (words_[leaf / 64] & bit) == 0;
  words_[leaf / 64] |= bit;
  return changed;
}

bool Membership::Clear(uint64_t leaf) {
  const uint64_t bit = uint64_t{1} << (leaf % 64);
  const bool changed = (words_[leaf / 64] & bit) != 0;
  words_[leaf / 64] &= ~bit;
  return changed;
}

uint64_t Membership::SetRange(LeafRange range) {
  uint64_t changed = 0;
  ForEachWord(range, [&](uint64_t word, uint64_t mask) {
    changed += static_cast<uint64_t>(std::popcount(mask & ~words_[word]));
    words_[word] |= mask;
  });
  return changed;
}

uint64_t Membership::ClearRange(LeafRange range) {
  uint64_t changed = 0;
  ForEachWord(range, [&](uint64_t word, uint64_t mask) {
    changed += static_cast<uint64_t>(std::popcount(mask & words_[word]));
    words_[word] &= ~mask;
  });
  return changed;
}

void Membership::CopyFrom(const Membership& other, uint64_t leaf_count) {
  if (leaf_count > 0) std::memcpy(words_, other.words_, Bytes(leaf_count));
}

uint64_t Membership::Count(LeafRange range) const {
  uint64_t count = 0;
  ForEachWord(range, [&](uint64_t word, uint64_t mask) {
    count += static_cast<uint64_t>(std::popcount(mask & words_[word]));
  });
  return count;
}

uint32_t Membership::CountBucket(uint64_t bucket) const { return CountWords(BucketWords(bucket)); }

uint32_t Membership::CountWords(const uint64_t* words) {
  return static_cast<uint32_t>(std::popcount(words[0]) + std::popcount(words[1]) +
                               std::popcount(words[2]) + std::popcount(words[3]));
}

uint64_t Membership::SelectInBucket(uint64_t bucket, uint32_t rank) const {
  return bucket * kBucketLeaves + SelectInWords(BucketWords(bucket), rank);
}

uint32_t Membership::SelectInWords(const uint64_t* words, uint32_t rank) {
  // Random ranks make branches of all this unpredictable, so it counts instead.
  uint32_t begin[kBucketWords] = {};
  for (uint32_t i = 0; i + 1 < kBucketWords; ++i) {
    begin[i + 1] = begin[i] + static_cast<uint32_t>(std::popcount(words[i]));
  }
  const uint32_t word =
      (rank >= begin[1] ? 1u : 0u) + (rank >= begin[2] ? 1u : 0u) + (rank >= begin[3] ? 1u : 0u);
  rank -= begin[word];
  // Halve the word six times, going to the half that holds the rank-th set bit.
  uint64_t bits = words[word];
  uint32_t position = 0;
#pragma GCC unroll 6
  for (uint32_t width = 32; width > 0; width /= 2) {
    const uint64_t low = bits & ((uint64_t{1} << width) - 1);
    const uint32_t in_low = static_cast<uint32_t>(std::popcount(low));
    const uint32_t upper = rank >= in_low ? 1u : 0u;
    rank -= in_low & (0u - upper);
    position += width * upper;
    bits >>= width * upper;
  }
  return word * 64 + position;
}

}  // namespace geardb::index
