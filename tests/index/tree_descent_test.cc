#include "index/tree_descent.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace geardb::index {
namespace {

/// A tree of its own memory, all levels summed.
struct OwnTree {
  explicit OwnTree(const std::vector<uint32_t>& weights) {
    view.shape = TreeShape::ForCapacity(weights.size());
    memory.resize(view.shape.bytes / sizeof(uint64_t));
    view.base = reinterpret_cast<std::byte*>(memory.data());
    for (size_t i = 0; i < weights.size(); ++i) view.leaves()[i] = weights[i];
    for (int level = 1; level < view.shape.level_count; ++level) {
      for (uint64_t i = 0; i < view.shape.level_entries[level - 1]; ++i) {
        view.nodes(level)[i / kTreeFanOut] +=
            level == 1 ? view.leaves()[i] : view.nodes(level - 1)[i];
      }
    }
  }
  std::vector<uint64_t> memory;
  TreeView view;
};

/// Every end of every leaf, and random points: what the two descents and TreeView::Descend say.
void ExpectSame(const OwnTree& tree, std::mt19937_64* random) {
  const uint64_t total = tree.view.total();
  if (total == 0) return;
  std::vector<uint64_t> points;
  uint64_t begin = 0;
  for (uint64_t leaf = 0; leaf < tree.view.shape.leaf_capacity; ++leaf) {
    const uint32_t weight = tree.view.leaves()[leaf];
    if (weight > 0) points.insert(points.end(), {begin, begin + weight - 1});
    begin += weight;
  }
  for (int i = 0; i < 200; ++i) points.push_back((*random)() % total);
  std::vector<TreeHit> wide(points.size());
  std::vector<TreeHit> plain(points.size());
  DescendBatch(tree.view, points, wide);
  internal::DescendBatchPlain(tree.view, points, plain);
  for (size_t i = 0; i < points.size(); ++i) {
    const TreeHit expected = tree.view.Descend(points[i]);
    for (const TreeHit& hit : {wide[i], plain[i]}) {
      ASSERT_EQ(hit.leaf, expected.leaf) << "point " << points[i] << " of " << total;
      ASSERT_EQ(hit.weight, expected.weight);
      ASSERT_EQ(hit.remainder, expected.remainder);
    }
  }
}

TEST(TreeDescentTest, BothDescentsAgreeWithTheViewOnEveryEdge) {
  std::mt19937_64 random(1);
  for (const uint64_t count : {1u, 31u, 32u, 33u, 255u, 1024u, 1025u, 5000u, 40'000u}) {
    for (const uint32_t keep_one_in : {1u, 3u, 50u}) {
      std::vector<uint32_t> weights(count);
      for (uint32_t& weight : weights) {
        weight = random() % keep_one_in == 0 ? static_cast<uint32_t>(random() >> 34) : 0;
      }
      ExpectSame(OwnTree(weights), &random);
    }
  }
}

TEST(TreeDescentTest, SumsBeyondTheSignBitAreComparedAsUnsigned) {
  // Not weights that leaves could have, but sums that nodes may hold.
  std::mt19937_64 random(2);
  OwnTree tree(std::vector<uint32_t>(kTreeFanOut * kTreeFanOut, 0));
  uint64_t* const nodes = tree.view.nodes(1);
  for (uint64_t node = 0; node < kTreeFanOut; ++node) nodes[node] = uint64_t{3} << 57;
  for (uint64_t leaf = 0; leaf < kTreeFanOut * kTreeFanOut; ++leaf) {
    tree.view.leaves()[leaf] = UINT32_MAX;
  }
  tree.view.nodes(2)[0] = (uint64_t{3} << 57) * 31 + 1;
  std::vector<uint64_t> points;
  for (uint64_t node = 0; node < kTreeFanOut; ++node) {
    points.push_back(nodes[0] * node);
    if (node > 0) points.push_back(nodes[0] * node - 1);
  }
  std::vector<TreeHit> hits(points.size());
  DescendBatch(tree.view, points, hits);
  for (size_t i = 0; i < points.size(); ++i) {
    const TreeHit expected = tree.view.Descend(points[i]);
    EXPECT_EQ(hits[i].leaf / kTreeFanOut, expected.leaf / kTreeFanOut) << points[i];
  }
}

}  // namespace
}  // namespace geardb::index
