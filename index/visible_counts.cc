#include "index/visible_counts.h"

#include <algorithm>

#include "index/limits.h"

namespace geardb::index {
void RecountBuckets(const VisibleSet& set, LeafRange range, WeightTree* tree) {
  if (range.size() == 0) return;
  std::array<uint32_t, kChunk> counts;
  const uint64_t end = BucketCount(range.end);
  for (uint64_t bucket = range.begin / kBucketLeaves; bucket < end;) {
    const uint64_t first = bucket;
    for (; bucket < end && bucket - first < kChunk; ++bucket) {
      counts[bucket - first] = set.CountBucket(bucket);
    }
    tree->SetRun(first, std::span(counts).first(bucket - first));
  }
}

void RecountBuckets(const VisibleSet& set, std::span<const uint64_t> leaves, WeightTree* tree) {
  std::array<uint64_t, kChunk> buckets;
  std::array<uint32_t, kChunk> counts;
  for (size_t start = 0; start < leaves.size(); start += kChunk) {
    const size_t count = std::min(kChunk, leaves.size() - start);
    for (size_t i = 0; i < count; ++i) buckets[i] = leaves[start + i] / kBucketLeaves;
    for (size_t i = 0; i < count; ++i) counts[i] = set.CountBucket(buckets[i]);
    tree->Set(std::span(buckets).first(count), std::span(counts).first(count));
  }
}

}  // namespace geardb::index
