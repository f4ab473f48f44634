#include "index/weight_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "index/tree_descent.h"
#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

/// A tree with its region and counts.
class Tree {
 public:
  Tree(IndexMemory* memory, uint64_t capacity, uint64_t leaf_count) {
    const TreeShape shape = TreeShape::ForCapacity(capacity);
    std::vector<uint64_t> parts = {4096};
    for (const uint64_t bytes : WeightTree::PartBytes(shape)) parts.push_back(bytes);
    region_ = memory->Reserve("tree", parts).value();
    GEARDB_CHECK(region_.Commit(0, 4096).ok());
    tree_ = WeightTree(shape, &region_, 1, reinterpret_cast<WeightTreeCounts*>(region_.base()));
    GEARDB_CHECK(tree_.Reserve(leaf_count).ok());
  }
  WeightTree* operator->() { return &tree_; }
  WeightTree& operator*() { return tree_; }

 private:
  Region region_;
  WeightTree tree_;
};

/// The naive definition of a draw.
TreeHit Scan(const std::vector<uint32_t>& weights, uint64_t point) {
  uint64_t leaf = 0;
  while (point >= weights[leaf]) point -= weights[leaf++];
  return TreeHit{leaf, weights[leaf], point};
}

bool Same(const TreeHit& a, const TreeHit& b) {
  return a.leaf == b.leaf && a.weight == b.weight && a.remainder == b.remainder;
}

void ExpectMatches(WeightTree& tree, const std::vector<uint32_t>& weights) {
  uint64_t total = 0;
  uint64_t nonzero = 0;
  uint32_t smallest = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    ASSERT_EQ(tree.leaf(i), weights[i]) << "leaf " << i;
    total += weights[i];
    if (weights[i] == 0) continue;
    ++nonzero;
    smallest = smallest == 0 ? weights[i] : std::min(smallest, weights[i]);
  }
  ASSERT_EQ(tree.total(), total);
  ASSERT_EQ(tree.nonzero(), nonzero);
  ASSERT_EQ(tree.Smallest(), smallest);
  const TreeView& view = tree.view();
  uint64_t nodes = weights.size();
  for (int level = 1; level < view.shape.level_count; ++level) {
    const uint64_t below = nodes;
    nodes = (nodes + kTreeFanOut - 1) / kTreeFanOut;
    for (uint64_t node = 0; node < nodes; ++node) {
      uint64_t sum = 0;
      for (uint64_t i = node * kTreeFanOut; i < std::min(below, (node + 1) * kTreeFanOut); ++i) {
        sum += level == 1 ? view.leaves()[i] : view.nodes(level - 1)[i];
      }
      ASSERT_EQ(view.nodes(level)[node], sum) << "level " << level << " node " << node;
    }
  }
  std::vector<std::pair<uint64_t, uint32_t>> walked;
  ForEachNonzero(view, 0, weights.size(),
                 [&](uint64_t leaf, uint32_t weight) { walked.emplace_back(leaf, weight); });
  std::vector<std::pair<uint64_t, uint32_t>> expected;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] != 0) expected.emplace_back(i, weights[i]);
  }
  ASSERT_EQ(walked, expected);
}

void ExpectDrawsMatch(WeightTree& tree, const std::vector<uint32_t>& weights,
                      std::mt19937_64* random) {
  const uint64_t total = tree.total();
  if (total == 0) return;
  std::vector<uint64_t> points = {0, total - 1, total / 2};
  for (int i = 0; i < 300; ++i) points.push_back((*random)() % total);
  std::vector<TreeHit> hits(points.size());
  DescendBatch(tree.view(), points, hits);
  for (size_t i = 0; i < points.size(); ++i) {
    const TreeHit expected = Scan(weights, points[i]);
    ASSERT_TRUE(Same(hits[i], expected)) << "point " << points[i] << " of " << total;
    ASSERT_TRUE(Same(tree.view().Descend(points[i]), expected));
  }
}

uint32_t RandomWeight(std::mt19937_64* random) {
  switch ((*random)() % 4) {
    case 0:
      return 0;
    case 1:
      return static_cast<uint32_t>((*random)() % 4);
    case 2:
      return UINT32_MAX;
    default:
      return static_cast<uint32_t>((*random)());
  }
}

TEST(WeightTreeTest, LayoutIsFrozen) {
  const TreeShape one = TreeShape::ForCapacity(1);
  EXPECT_EQ(one.level_count, 2);
  EXPECT_EQ(one.level_offset[1], 4096u);
  EXPECT_EQ(one.bytes, 8192u);
  const TreeShape many = TreeShape::ForCapacity(1'000'000);
  EXPECT_EQ(many.level_count, 5);
  EXPECT_EQ(many.level_offset[1], 4'001'792u);
  EXPECT_EQ(many.level_offset[2], 4'255'744u);
  EXPECT_EQ(many.level_offset[3], 4'263'936u);
  EXPECT_EQ(many.level_offset[4], 4'268'032u);
  EXPECT_EQ(many.bytes, 4'272'128u);
  EXPECT_EQ(TreeShape::ForCapacity(uint64_t{1} << 35).level_count, 8);
}

TEST(WeightTreeTest, RandomOperationsMatchAnArray) {
  const auto memory = TestMemory();
  for (const uint64_t capacity : {1u, 2u, 31u, 32u, 33u, 1023u, 1024u, 1025u, 3000u, 32769u}) {
    SCOPED_TRACE(capacity);
    std::mt19937_64 random(capacity);
    Tree tree(memory.get(), capacity, capacity);
    std::vector<uint32_t> weights(capacity, 0);
    for (int step = 0; step < 40; ++step) {
      const uint64_t begin = random() % capacity;
      const uint64_t end = begin + random() % (capacity - begin + 1);
      switch (random() % 5) {
        case 0: {
          weights[begin] = RandomWeight(&random);
          tree->Set(begin, weights[begin]);
          break;
        }
        case 1: {
          const uint32_t weight = RandomWeight(&random);
          std::fill(weights.begin() + static_cast<int64_t>(begin),
                    weights.begin() + static_cast<int64_t>(end), weight);
          tree->SetRange(begin, end, weight);
          break;
        }
        case 2: {
          std::vector<uint32_t> run(end - begin);
          for (uint32_t& weight : run) weight = RandomWeight(&random);
          std::copy(run.begin(), run.end(), weights.begin() + static_cast<int64_t>(begin));
          tree->SetRun(begin, run);
          break;
        }
        default: {
          std::vector<uint64_t> leaves(random() % 700);
          std::vector<uint32_t> values(leaves.size());
          for (size_t i = 0; i < leaves.size(); ++i) {
            leaves[i] = random() % capacity;
            values[i] = RandomWeight(&random);
            weights[leaves[i]] = values[i];
          }
          tree->Set(leaves, values);
        }
      }
      if (step % 4 == 3 || capacity < 2000) ExpectMatches(*tree, weights);
      ExpectDrawsMatch(*tree, weights, &random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(WeightTreeTest, LastOfEqualLeavesWins) {
  const auto memory = TestMemory();
  Tree tree(memory.get(), 100, 100);
  tree->Set(std::vector<uint64_t>{7, 3, 7, 7, 3}, std::vector<uint32_t>{1, 2, 30, 4, 50});
  EXPECT_EQ(tree->leaf(7), 4u);
  EXPECT_EQ(tree->leaf(3), 50u);
  EXPECT_EQ(tree->total(), 54u);
  EXPECT_EQ(tree->nonzero(), 2u);
}

TEST(WeightTreeTest, LastOfEqualLeavesWinsOverChunks) {
  const auto memory = TestMemory();
  Tree tree(memory.get(), 10, 10);
  std::vector<uint64_t> leaves(1000, 5);
  std::vector<uint32_t> weights(1000);
  std::iota(weights.begin(), weights.end(), 1);
  tree->Set(leaves, weights);
  EXPECT_EQ(tree->leaf(5), 1000u);
  EXPECT_EQ(tree->total(), 1000u);
}

TEST(WeightTreeTest, BulkGivesTheSameBytes) {
  const auto memory = TestMemory();
  constexpr uint64_t kLeaves = 40'000;
  std::mt19937_64 random(9);
  Tree plain(memory.get(), kLeaves, kLeaves);
  Tree bulk(memory.get(), kLeaves, kLeaves);
  std::vector<uint32_t> weights(kLeaves);
  bulk->BeginBulk();
  for (int step = 0; step < 30; ++step) {
    std::vector<uint64_t> leaves(500);
    std::vector<uint32_t> values(500);
    for (size_t i = 0; i < leaves.size(); ++i) {
      leaves[i] = random() % kLeaves;
      values[i] = RandomWeight(&random);
      weights[leaves[i]] = values[i];
    }
    plain->Set(leaves, values);
    bulk->Set(leaves, values);
  }
  bulk->SetRange(100, 5000, 77);
  plain->SetRange(100, 5000, 77);
  std::fill(weights.begin() + 100, weights.begin() + 5000, 77u);
  bulk->EndBulk();
  ExpectMatches(*plain, weights);
  ExpectMatches(*bulk, weights);
}

TEST(WeightTreeTest, CapacityDoesNotChangeDraws) {
  const auto memory = TestMemory();
  std::mt19937_64 random(3);
  std::vector<uint32_t> weights(5000);
  for (uint32_t& weight : weights) weight = RandomWeight(&random);
  Tree tight(memory.get(), 5000, 5000);
  Tree wide(memory.get(), uint64_t{1} << 33, 10);
  tight->SetRun(0, weights);
  wide->SetRun(0, std::span(weights).first(10));
  ASSERT_OK(wide->Reserve(5000));
  wide->SetRun(10, std::span(weights).subspan(10));
  EXPECT_EQ(tight->total(), wide->total());
  std::vector<uint64_t> points(2000);
  for (uint64_t& point : points) point = random() % tight->total();
  std::vector<TreeHit> a(points.size());
  std::vector<TreeHit> b(points.size());
  DescendBatch(tight->view(), points, a);
  DescendBatch(wide->view(), points, b);
  for (size_t i = 0; i < points.size(); ++i) ASSERT_TRUE(Same(a[i], b[i]));
}

TEST(WeightTreeTest, LeavesStayWhereTheyAreAsTheTreeGrows) {
  const auto memory = TestMemory();
  Tree tree(memory.get(), uint64_t{1} << 33, 1);
  const uint32_t* first = tree->view().leaves();
  tree->Set(0, 9);
  uint64_t expected = 9;
  for (uint64_t count = 2; count <= uint64_t{1} << 22; count *= 8) {
    ASSERT_OK(tree->Reserve(count));
    tree->Set(count - 1, 1);
    ++expected;
    EXPECT_EQ(tree->total(), expected);
    EXPECT_EQ(tree->view().leaves(), first);
  }
  EXPECT_EQ(tree->view().Descend(expected - 1).leaf, (uint64_t{1} << 22) - 1);
}

TEST(WeightTreeTest, ReserveBeyondTheBudgetFailsAndKeepsTheTree) {
  const auto memory = TestMemory(uint64_t{4} << 20);
  Tree tree(memory.get(), uint64_t{1} << 30, 100);
  tree->SetRange(0, 100, 3);
  EXPECT_STATUS(kResourceExhausted, tree->Reserve(uint64_t{1} << 24), "'tree'");
  EXPECT_EQ(tree->leaf_count(), 100u);
  EXPECT_EQ(tree->total(), 300u);
}

TEST(WeightTreeTest, SmallestIsFoundAgainAfterItLeft) {
  const auto memory = TestMemory();
  Tree tree(memory.get(), 5000, 5000);
  EXPECT_EQ(tree->Smallest(), 0u);
  tree->SetRange(0, 5000, 10);
  tree->Set(17, 4);
  tree->Set(1800, 4);
  EXPECT_EQ(tree->Smallest(), 4u);
  tree->Set(17, 0);
  EXPECT_EQ(tree->Smallest(), 4u);
  tree->Set(1800, 12);
  EXPECT_EQ(tree->Smallest(), 10u);
  tree->SetRange(0, 5000, 0);
  EXPECT_EQ(tree->Smallest(), 0u);
  tree->Set(3, 9);
  EXPECT_EQ(tree->Smallest(), 9u);
}

TEST(WeightTreeTest, SumsBeyond32BitsAreExact) {
  const auto memory = TestMemory();
  constexpr uint64_t kLeaves = 100'000;
  Tree tree(memory.get(), kLeaves, kLeaves);
  tree->SetRange(0, kLeaves, UINT32_MAX);
  EXPECT_EQ(tree->total(), kLeaves * UINT32_MAX);
  EXPECT_EQ(tree->view().Descend(tree->total() - 1).leaf, kLeaves - 1);
  EXPECT_EQ(tree->view().Descend(uint64_t{12345} * UINT32_MAX).leaf, 12345u);
  EXPECT_EQ(tree->view().Descend(uint64_t{12345} * UINT32_MAX - 1).leaf, 12344u);
}

}  // namespace
}  // namespace geardb::index
