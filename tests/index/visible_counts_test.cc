#include "index/visible_counts.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

TEST(VisibleCountsTest, RanksMatchASetWithHolesAndHiddenLeaves) {
  constexpr uint64_t kLeaves = 20'000;
  const TreeShape shape = TreeShape::ForCapacity(BucketCount(kLeaves));
  const auto memory = TestMemory();
  std::vector<uint64_t> parts = {4096, Membership::Bytes(kLeaves), Membership::Bytes(kLeaves)};
  for (const uint64_t bytes : WeightTree::PartBytes(shape)) parts.push_back(bytes);
  auto made = memory->Reserve("owner", parts);
  ASSERT_OK(made);
  Region region = std::move(made).value();
  ASSERT_OK(region.Commit(0, 4096));
  ASSERT_OK(region.Commit(1, Membership::Bytes(kLeaves)));
  auto* header = reinterpret_cast<HiddenHeader*>(region.base());
  header->offset = region.part_offset(2);
  auto* counts = reinterpret_cast<WeightTreeCounts*>(region.base() + 1024);
  HiddenLeaves hidden(&region, 2, header);
  WeightTree tree(shape, &region, 3, counts);
  ASSERT_OK(tree.Reserve(BucketCount(kLeaves)));
  Membership bits(region.part_base(1));
  const VisibleSet visible(bits, hidden.view());

  std::mt19937_64 random(3);
  std::set<uint64_t> expected;
  std::set<uint64_t> concealed;
  for (int step = 0; step < 60; ++step) {
    if (step == 10) {
      ASSERT_OK(hidden.ReserveBits(kLeaves));
    }
    const uint64_t begin = random() % kLeaves;
    const LeafRange range{begin, std::min(kLeaves, begin + 1 + random() % 700)};
    bits.SetRange(range);
    for (uint64_t leaf = range.begin; leaf < range.end; ++leaf) expected.insert(leaf);
    RecountBuckets(visible, range, &tree);
    std::vector<uint64_t> leaves(step < 10 ? 0 : random() % 500);
    for (uint64_t& leaf : leaves) {
      leaf = random() % kLeaves;
      if (random() % 2 == 0) {
        hidden.Set(leaf);
        concealed.insert(leaf);
      } else {
        bits.Clear(leaf);
        expected.erase(leaf);
      }
    }
    RecountBuckets(visible, leaves, &tree);
    uint64_t rank = 0;
    for (const uint64_t leaf : expected) {
      ASSERT_EQ(visible.Contains(leaf), !concealed.contains(leaf));
      if (concealed.contains(leaf)) continue;
      ASSERT_EQ(SelectVisible(tree.view(), visible, rank++), leaf);
    }
    ASSERT_EQ(tree.total(), rank);
  }
}

}  // namespace
}  // namespace geardb::index
