#include "base/types.h"

#include <gtest/gtest.h>

namespace geardb {
namespace {

TEST(FrameRefTest, HoldsArenaAndOffset) {
  constexpr uint64_t kOffsetMax = (uint64_t{1} << 56) - 1;
  for (const uint64_t offset : {uint64_t{0}, uint64_t{128}, kOffsetMax}) {
    for (const int arena : {0, 1, 254}) {
      const FrameRef ref = FrameRef::Make(static_cast<uint8_t>(arena), offset);
      EXPECT_TRUE(ref.valid());
      EXPECT_EQ(ref.arena(), arena);
      EXPECT_EQ(ref.offset(), offset);
    }
  }
}

TEST(FrameRefTest, DefaultIsNoFrame) {
  EXPECT_FALSE(FrameRef{}.valid());
  EXPECT_NE(FrameRef{}, FrameRef::Make(0, 0));
}

TEST(AlignTest, RoundsToMultiples) {
  EXPECT_EQ(AlignUp(0, 64), 0u);
  EXPECT_EQ(AlignUp(1, 64), 64u);
  EXPECT_EQ(AlignUp(64, 64), 64u);
  EXPECT_EQ(AlignDown(63, 64), 0u);
  EXPECT_EQ(AlignDown(64, 64), 64u);
  EXPECT_EQ(AlignDown(UINT64_MAX, 4096), UINT64_MAX - 4095);
}

TEST(ItemHandleTest, EqualWhenAllOfItIs) {
  const ItemHandle handle{.leaf = 3, .generation = 4, .length = 5};
  EXPECT_EQ(handle, (ItemHandle{3, 4, 5}));
  EXPECT_NE(handle, (ItemHandle{2, 4, 5}));
  EXPECT_NE(handle, (ItemHandle{3, 3, 5}));
}

}  // namespace
}  // namespace geardb
