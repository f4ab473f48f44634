// Membership: one bit per leaf number, saying whether that leaf is an item of a priority table.
// A view over bytes: bit b of word w stands for leaf 64·w + b. Zeroed bytes are an empty set.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace geardb::index {

/// Leaves [begin, end).
struct LeafRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  constexpr uint64_t size() const { return end > begin ? end - begin : 0; }
  friend bool operator==(const LeafRange&, const LeafRange&) = default;
};

/// Leaf numbers that the uniform selector counts together.
inline constexpr uint64_t kBucketLeaves = 256;
inline constexpr uint32_t kBucketShift = 8;
inline constexpr uint64_t kBucketWords = kBucketLeaves / 64;

/// A view of the bits, copied by value; owns nothing. Leaves given to it lie in committed memory,
/// whose size is a multiple of a bucket (32 bytes). A reader must be ordered against writers.
class Membership {
 public:
  Membership() = default;
  explicit Membership(std::byte* bytes) : words_(reinterpret_cast<uint64_t*>(bytes)) {}
  /// Bytes for `leaf_count` leaves, whole buckets.
  static constexpr uint64_t Bytes(uint64_t leaf_count) {
    return (leaf_count + kBucketLeaves - 1) / kBucketLeaves * (kBucketLeaves / 8);
  }

  bool Contains(uint64_t leaf) const { return (words_[leaf / 64] >> (leaf % 64)) & 1; }
  void Prefetch(uint64_t leaf) const { __builtin_prefetch(words_ + leaf / 64); }

  /// Sets or clears one bit; returns whether it changed.
  bool Set(uint64_t leaf);
  bool Clear(uint64_t leaf);
  /// Sets or clears a range; returns how many bits changed.
  uint64_t SetRange(LeafRange range);
  uint64_t ClearRange(LeafRange range);
  /// Makes the bits of leaves [0, leaf_count), in whole buckets, those of `other`.
  void CopyFrom(const Membership& other, uint64_t leaf_count);

  /// Set bits in the range, or in bucket `bucket`.
  uint64_t Count(LeafRange range) const;
  uint32_t CountBucket(uint64_t bucket) const;
  /// The leaf of the `rank`-th set bit (from 0) of a bucket that has more than `rank`.
  uint64_t SelectInBucket(uint64_t bucket, uint32_t rank) const;
  void PrefetchBucket(uint64_t bucket) const { __builtin_prefetch(words_ + bucket * kBucketWords); }
  /// The kBucketWords words of a bucket; and the same for words that lie elsewhere.
  const uint64_t* BucketWords(uint64_t bucket) const { return words_ + bucket * kBucketWords; }
  static uint32_t CountWords(const uint64_t* words);
  static uint32_t SelectInWords(const uint64_t* words, uint32_t rank);

  /// Calls `visit(leaf)` for the set bits of the range, in order. `visit` may clear bits already
  /// visited, no others.
  template <typename Visit>
  void ForEach(LeafRange range, Visit visit) const {
    ForEachWord(range, [&](uint64_t word, uint64_t mask) {
      for (uint64_t bits = words_[word] & mask; bits != 0; bits &= bits - 1) {
        visit(word * 64 + static_cast<uint64_t>(std::countr_zero(bits)));
      }
    });
  }

 private:
  /// Calls `visit(word, mask of the range's bits in it)`.
  template <typename Visit>
  static void ForEachWord(LeafRange range, Visit visit) {
    if (range.begin >= range.end) return;
    const uint64_t first = range.begin / 64;
    const uint64_t last = (range.end - 1) / 64;
    for (uint64_t word = first; word <= last; ++word) {
      uint64_t mask = ~uint64_t{0};
      if (word == first) mask &= ~uint64_t{0} << (range.begin % 64);
      if (word == last) mask &= ~uint64_t{0} >> (63 - (range.end - 1) % 64);
      visit(word, mask);
    }
  }

  uint64_t* words_ = nullptr;
};

}  // namespace geardb::index
