#include "index/hidden_leaves.h"

#include <gtest/gtest.h>

#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

TEST(HiddenLeavesTest, BitsAreCommittedWhenAskedForAndGrowFromThenOn) {
  const auto memory = TestMemory(uint64_t{192} << 10);
  auto made = memory->Reserve("owner", {sizeof(HiddenHeader), Membership::Bytes(1 << 22)});
  ASSERT_OK(made);
  Region region = std::move(made).value();
  ASSERT_OK(region.Commit(0, sizeof(HiddenHeader)));
  auto* header = reinterpret_cast<HiddenHeader*>(region.base());
  header->offset = region.part_offset(1);
  HiddenLeaves hidden(&region, 1, header);
  ASSERT_OK(hidden.Grow(1 << 22));
  EXPECT_EQ(region.committed_bytes(1), 0u);
  EXPECT_FALSE(hidden.view().Contains(5));
  EXPECT_FALSE(hidden.Clear(5));
  hidden.Forget({0, 100});

  ASSERT_OK(hidden.ReserveBits(1000));
  EXPECT_TRUE(hidden.Set(5));
  EXPECT_FALSE(hidden.Set(5));
  EXPECT_TRUE(hidden.Set(999));
  EXPECT_EQ(hidden.view().count(), 2u);
  // A bitmap of 2^22 leaves is beyond the budget.
  EXPECT_STATUS(kResourceExhausted, hidden.Grow(1 << 22), "'owner'");
  ASSERT_OK(hidden.Grow(1 << 19));
  EXPECT_TRUE(hidden.Set((1 << 19) - 1));
  EXPECT_TRUE(hidden.view().Contains(5));
  hidden.Forget({0, 999});
  EXPECT_EQ(hidden.view().count(), 2u);
  EXPECT_FALSE(hidden.view().Contains(5));
  EXPECT_TRUE(hidden.Clear(999));
  EXPECT_TRUE(hidden.Clear((1 << 19) - 1));
  EXPECT_EQ(hidden.view().count(), 0u);
}

}  // namespace
}  // namespace geardb::index
