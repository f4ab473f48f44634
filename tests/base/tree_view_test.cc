// The weight tree's layout and descent, against a plain scan over the leaves.
#include "base/tree_view.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/philox.h"

namespace geardb {
namespace {

// A tree whose nodes are summed from its leaves by the plainest loop.
class SummedTree {
 public:
  explicit SummedTree(const std::vector<uint32_t>& weights)
      : shape_(TreeShape::ForCapacity(weights.size())), words_(shape_.bytes / 8, 0) {
    view_ = TreeView{reinterpret_cast<std::byte*>(words_.data()), shape_};
    for (size_t i = 0; i < weights.size(); ++i) view_.leaves()[i] = weights[i];
    for (int level = 1; level < shape_.level_count; ++level) {
      for (uint64_t i = 0; i < shape_.level_entries[level - 1]; ++i) {
        view_.nodes(level)[i / kTreeFanOut] +=
            level == 1 ? view_.leaves()[i] : view_.nodes(level - 1)[i];
      }
    }
  }
  const TreeView& view() const { return view_; }

 private:
  TreeShape shape_;
  std::vector<uint64_t> words_;
  TreeView view_;
};

TreeHit ScanFor(const std::vector<uint32_t>& weights, uint64_t point) {
  uint64_t leaf = 0;
  while (point >= weights[leaf]) point -= weights[leaf++];
  return TreeHit{leaf, weights[leaf], point};
}

TEST(TreeShapeTest, LevelsShrinkByTheFanOutToOneRoot) {
  const TreeShape small = TreeShape::ForCapacity(1);
  EXPECT_EQ(small.level_count, 2);
  EXPECT_EQ(small.level_entries[0], 32u);
  EXPECT_EQ(small.level_offset[1], 4096u);
  EXPECT_EQ(TreeShape::ForCapacity(32).level_count, 2);
  EXPECT_EQ(TreeShape::ForCapacity(33).level_count, 3);
  EXPECT_EQ(TreeShape::ForCapacity(1024).level_count, 3);
  EXPECT_EQ(TreeShape::ForCapacity(1025).level_count, 4);
  EXPECT_EQ(TreeShape::ForCapacity(uint64_t{1} << 35).level_count, kTreeLevelsMax);
}

TEST(TreeShapeTest, LevelsDoNotOverlapAndBeginOnPages) {
  for (const uint64_t capacity :
       {1ull, 31ull, 32ull, 33ull, 1000ull, 1025ull, 100'000ull, 100'000'000ull, 1ull << 35}) {
    const TreeShape shape = TreeShape::ForCapacity(capacity);
    uint64_t end = 0;
    for (int level = 0; level < shape.level_count; ++level) {
      EXPECT_EQ(shape.level_offset[level] % 4096, 0u);
      EXPECT_GE(shape.level_offset[level], end);
      EXPECT_EQ(shape.level_entries[level] % kTreeFanOut, 0u);
      end = shape.level_offset[level] + shape.level_entries[level] * (level == 0 ? 4 : 8);
    }
    EXPECT_GE(shape.level_entries[0], capacity);
    EXPECT_GE(shape.bytes, end);
  }
}

TEST(TreeViewTest, DescentFindsWhatAScanFinds) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const uint64_t count = 1 + MulHi64(PhiloxRandom64(seed, 0, 0, PhiloxPurpose::kItem), 3000);
    std::vector<uint32_t> weights(count);
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t random =
          PhiloxRandom64(seed, 1, static_cast<uint32_t>(i), PhiloxPurpose::kItem);
      // Zeros and the largest weight are as common as the rest.
      weights[i] = random % 4 == 0   ? 0
                   : random % 4 == 1 ? UINT32_MAX
                                     : static_cast<uint32_t>(random >> 40);
      total += weights[i];
    }
    const SummedTree tree(weights);
    ASSERT_EQ(tree.view().total(), total);
    if (total == 0) continue;
    for (uint32_t draw = 0; draw < 50; ++draw) {
      uint64_t point = MulHi64(PhiloxRandom64(seed, 2, draw, PhiloxPurpose::kItem), total);
      if (draw == 0) point = 0;
      if (draw == 1) point = total - 1;
      const TreeHit expected = ScanFor(weights, point);
      const TreeHit hit = tree.view().Descend(point);
      ASSERT_EQ(hit.leaf, expected.leaf) << "seed " << seed << " point " << point;
      ASSERT_EQ(hit.weight, expected.weight);
      ASSERT_EQ(hit.remainder, expected.remainder);
    }
  }
}

TEST(TreeViewTest, EachUnitOfWeightIsHitOnce) {
  const std::vector<uint32_t> weights = {0, 3, 0, 1, 2};
  const SummedTree tree(weights);
  std::vector<uint32_t> hits(weights.size(), 0);
  for (uint64_t point = 0; point < tree.view().total(); ++point) {
    ++hits[tree.view().Descend(point).leaf];
  }
  EXPECT_EQ(hits, weights);
}

}  // namespace
}  // namespace geardb
