#include "index/membership.h"

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

uint64_t Membership::Count(LeafRange range) const {
  uint64_t count = 0;
  ForEachWord(range, [&](uint64_t word, uint64_t mask) {
    count += static_cast<uint64_t>(std::popcount(mask & words_[word]));
  });
  return count;
}

uint32_t Membership::CountBucket(uint64_t bucket) const {
  const uint64_t* words = words_ + bucket * (kBucketLeaves / 64);
  return static_cast<uint32_t>(std::popcount(words[0]) + std::popcount(words[1]) +
                               std::popcount(words[2]) + std::popcount(words[3]));
}

uint64_t Membership::SelectInBucket(uint64_t bucket, uint32_t rank) const {
  uint64_t word = bucket * (kBucketLeaves / 64);
  uint32_t here = static_cast<uint32_t>(std::popcount(words_[word]));
  for (int step = 0; step < 3 && rank >= here; ++step) {
    rank -= here;
    ++word;
    here = static_cast<uint32_t>(std::popcount(words_[word]));
  }
  // Halve the word six times, going to the half that holds the rank-th set bit.
  uint64_t bits = words_[word];
  uint32_t position = 0;
  for (uint32_t width = 32; width > 0; width /= 2) {
    const uint64_t low = bits & ((uint64_t{1} << width) - 1);
    const uint32_t in_low = static_cast<uint32_t>(std::popcount(low));
    if (rank >= in_low) {
      rank -= in_low;
      position += width;
      bits >>= width;
    } else {
      bits = low;
    }
  }
  return word * 64 + position;
}

}  // namespace geardb::index
