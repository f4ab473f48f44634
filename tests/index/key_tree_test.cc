#include "index/key_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

struct OwnedTree {
  OwnedTree(IndexMemory* memory, uint64_t capacity)
      : shape(KeyTreeShape::ForCapacity(capacity)),
        region(memory->Reserve("keys", KeyTree::PartBytes(shape)).value()),
        tree(shape, &region, 0) {}

  KeyTreeShape shape;
  Region region;
  KeyTree tree;
};

void ExpectMatches(const KeyTree& tree, const std::map<uint64_t, uint64_t>& keys, uint64_t floor,
                   uint64_t skip, size_t rows) {
  std::vector<std::pair<uint64_t, uint64_t>> order;
  uint64_t best = 0;
  for (const auto& [leaf, key] : keys) {
    ASSERT_EQ(tree.key(leaf), key);
    if (key >= floor) order.emplace_back(key, leaf);
    best = std::max(best, key);
  }
  std::sort(order.rbegin(), order.rend());
  ASSERT_EQ(tree.view().best(), best);
  std::vector<uint64_t> leaves(rows, UINT64_MAX);
  const uint64_t written = tree.view().Best(floor, skip, leaves);
  ASSERT_EQ(written, std::min<uint64_t>(rows, order.size() - std::min(order.size(), skip)));
  for (size_t i = 0; i < rows; ++i) {
    ASSERT_EQ(leaves[i], i < written ? order[skip + i].second : UINT64_MAX) << "row " << i;
  }
}

TEST(KeyTreeTest, RandomOperationsMatchAMap) {
  for (const uint64_t capacity : {1u, 32u, 33u, 1024u, 1025u, 5000u}) {
    SCOPED_TRACE(capacity);
    const auto memory = TestMemory();
    OwnedTree owned(memory.get(), capacity);
    KeyTree& tree = owned.tree;
    ASSERT_OK(tree.Reserve(capacity));
    std::mt19937_64 random(capacity);
    std::map<uint64_t, uint64_t> keys;
    uint64_t unique = 0;
    // Keys differ by their lower half; the upper half is often equal.
    const auto new_key = [&] { return (random() % 5) << 40 | ++unique; };
    for (int step = 0; step < 300; ++step) {
      const uint64_t begin = random() % capacity;
      const uint64_t end = begin + 1 + random() % (capacity - begin);
      const bool bulk = random() % 10 == 0;
      if (bulk) tree.BeginBulk();
      switch (random() % 5) {
        case 0: {
          std::vector<uint64_t> run;
          for (uint64_t leaf = begin; leaf < end; ++leaf) {
            run.push_back(keys[leaf] = new_key());
          }
          tree.SetRun(begin, run);
          break;
        }
        case 1:
          tree.Clear({begin, end});
          keys.erase(keys.lower_bound(begin), keys.lower_bound(end));
          break;
        case 2:
          tree.Set(begin, 0);
          keys.erase(begin);
          break;
        default:
          for (int i = 0; i < 20; ++i) {
            const uint64_t leaf = random() % capacity;
            tree.Set(leaf, keys[leaf] = new_key());
          }
      }
      if (bulk) tree.EndBulk();
      const uint64_t floor = random() % 3 == 0 ? uint64_t{2} << 40 : 1;
      ExpectMatches(tree, keys, floor, random() % 2 == 0 ? 0 : random() % 40, random() % 100);
      if (HasFatalFailure()) return;
    }
    ExpectMatches(tree, keys, 1, 0, capacity + 1);
  }
}

TEST(KeyTreeTest, GrowsWhereItIs) {
  const auto memory = TestMemory();
  OwnedTree owned(memory.get(), uint64_t{1} << 32);
  KeyTree& tree = owned.tree;
  ASSERT_EQ(KeyTreeShape::ForCapacity(uint64_t{1} << 35).level_count, kTreeLevelsMax);
  ASSERT_OK(tree.Reserve(10));
  tree.Set(3, 7);
  EXPECT_EQ(tree.view().best(), 7u);
  ASSERT_OK(tree.Reserve(200'000));
  EXPECT_EQ(tree.key(3), 7u);
  tree.Set(199'999, 6);
  std::vector<uint64_t> leaves(3);
  EXPECT_EQ(tree.view().Best(1, 0, leaves), 2u);
  EXPECT_EQ(leaves[0], 3u);
  EXPECT_EQ(leaves[1], 199'999u);
  EXPECT_STATUS(kResourceExhausted, tree.Reserve(uint64_t{1} << 32), "'keys'");
  EXPECT_EQ(tree.view().Best(1, 0, leaves), 2u);
}

TEST(KeyTreeTest, NoKeysAreNoLeaves) {
  const auto memory = TestMemory();
  OwnedTree owned(memory.get(), 100);
  KeyTree& tree = owned.tree;
  ASSERT_OK(tree.Reserve(100));
  std::vector<uint64_t> leaves(3, 9);
  EXPECT_EQ(tree.view().Best(1, 0, leaves), 0u);
  EXPECT_EQ(tree.view().Best(1, 0, {}), 0u);
  tree.Set(99, UINT64_MAX);
  EXPECT_EQ(tree.view().Best(UINT64_MAX, 0, leaves), 1u);
  EXPECT_EQ(leaves, (std::vector<uint64_t>{99, 9, 9}));
  EXPECT_EQ(tree.view().Best(1, 1, leaves), 0u);
}

}  // namespace
}  // namespace geardb::index
