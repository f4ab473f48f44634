// VisibleCounts: what of a set can be drawn with equal weights. A tree of counts, one leaf for each
// bucket of 256 leaf numbers, over the bits of a set without those that are hidden: the r-th in
// leaf order, exact over holes.
//
// Invariants: tree leaf b is the number of visible leaves in [256·b, 256·(b + 1)), but in a bulk.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/tree_view.h"
#include "index/hidden_leaves.h"
#include "index/membership.h"
#include "index/weight_tree.h"

namespace geardb::index {

/// Buckets of `leaf_count` leaves.
constexpr uint64_t BucketCount(uint64_t leaf_count) {
  return (leaf_count + kBucketLeaves - 1) / kBucketLeaves;
}

/// The leaves of a set that are not hidden. Trivially copyable, owns nothing.
class VisibleSet {
 public:
  VisibleSet(Membership set, HiddenView hidden) : set_(set), hidden_(hidden) {}

  bool Contains(uint64_t leaf) const { return set_.Contains(leaf) && !hidden_.Contains(leaf); }
  uint32_t CountBucket(uint64_t bucket) const {
    if (hidden_.count() == 0) return set_.CountBucket(bucket);
    return Membership::CountWords(Words(bucket).data());
  }
  /// The leaf of the `rank`-th visible leaf (from 0) of a bucket that has more than `rank`.
  uint64_t SelectInBucket(uint64_t bucket, uint32_t rank) const {
    if (hidden_.count() == 0) return set_.SelectInBucket(bucket, rank);
    return bucket * kBucketLeaves + Membership::SelectInWords(Words(bucket).data(), rank);
  }
  void PrefetchBucket(uint64_t bucket) const {
    set_.PrefetchBucket(bucket);
    if (hidden_.count() != 0) hidden_.bits().PrefetchBucket(bucket);
  }

 private:
  std::array<uint64_t, kBucketWords> Words(uint64_t bucket) const {
    std::array<uint64_t, kBucketWords> words;
    const uint64_t* set = set_.BucketWords(bucket);
    const uint64_t* hidden = hidden_.bits().BucketWords(bucket);
    for (size_t i = 0; i < kBucketWords; ++i) words[i] = set[i] & ~hidden[i];
    return words;
  }

  Membership set_;
  HiddenView hidden_;
};

/// The `rank`-th visible leaf in leaf order, rank < tree.total().
inline uint64_t SelectVisible(const TreeView& tree, const VisibleSet& set, uint64_t rank) {
  const TreeHit hit = tree.Descend(rank);
  return set.SelectInBucket(hit.leaf, static_cast<uint32_t>(hit.remainder));
}

/// Brings the counts of the buckets that the range or the leaves touch up to date.
void RecountBuckets(const VisibleSet& set, LeafRange range, WeightTree* tree);
void RecountBuckets(const VisibleSet& set, std::span<const uint64_t> leaves, WeightTree* tree);

}  // namespace geardb::index
