#include "engine/internal/slabs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/page_view.h"
#include "tests/testing/fault_env.h"

namespace geardb::engine {
namespace {

TEST(SlabsTest, FramesAndTheirSlabs) {
  struct Case {
    uint64_t frame_bytes, slabs, frames;
  };
  for (const Case& one :
       {Case{kSlabBytes, 5, 5}, Case{kSlabBytes / 2, 5, 10}, Case{kSlabBytes / 2 + 128, 5, 5},
        Case{kSlabBytes + 128, 5, 2}, Case{3 * kSlabBytes, 5, 1}, Case{6 * kSlabBytes, 5, 0}}) {
    EXPECT_EQ(FramesIn(one.slabs, one.frame_bytes), one.frames) << one.frame_bytes;
  }
  EXPECT_EQ(SlabsFor(0, 128), 0u);
  EXPECT_EQ(SlabsFor(1, 128), 1u);
  EXPECT_EQ(SlabsFor(kSlabBytes / 128, 128), 1u);
  EXPECT_EQ(SlabsFor(kSlabBytes / 128 + 1, 128), 2u);
  EXPECT_EQ(SlabsFor(3, 2 * kSlabBytes + 128), 9u);
}

TEST(SlabsTest, AnEmptySetHasNothing) {
  SlabSet slabs(0);
  EXPECT_EQ(slabs.count(), 0u);
  EXPECT_EQ(slabs.TakeLowest(), std::nullopt);
  EXPECT_EQ(slabs.TakeHighestRun(1), std::nullopt);
}

TEST(SlabsTest, RunsOfManySizes) {
  SlabSet slabs(200);
  EXPECT_EQ(slabs.TakeHighestRun(130), 70u);
  EXPECT_EQ(slabs.TakeHighestRun(71), std::nullopt);
  EXPECT_EQ(slabs.TakeHighestRun(70), 0u);
  EXPECT_EQ(slabs.count(), 0u);
}

// Against a set of numbers.
TEST(SlabsTest, AgreesWithASetOfNumbers) {
  testing::Random random(1);
  for (const uint32_t end : {1u, 63u, 64u, 65u, 300u}) {
    SCOPED_TRACE(end);
    SlabSet slabs(end);
    std::set<uint32_t> expected;
    for (uint32_t i = 0; i < end; ++i) expected.insert(i);
    for (int step = 0; step < 3000; ++step) {
      if (random.OneIn(3)) {
        const auto number = static_cast<uint32_t>(random.Below(end));
        if (expected.insert(number).second) slabs.Put(number);
      } else if (random.OneIn(2)) {
        const std::optional<uint32_t> taken = slabs.TakeLowest();
        ASSERT_EQ(taken.has_value(), !expected.empty());
        if (!taken) continue;
        ASSERT_EQ(expected.extract(expected.begin()).value(), *taken);
      } else {
        const auto length = static_cast<uint32_t>(1 + random.Below(4));
        std::optional<uint32_t> highest;
        for (uint32_t first = 0; first + length <= end; ++first) {
          bool whole = true;
          for (uint32_t i = first; i < first + length; ++i) whole &= expected.contains(i);
          if (whole) highest = first;
        }
        ASSERT_EQ(slabs.TakeHighestRun(length), highest);
        for (uint32_t i = 0; highest && i < length; ++i) expected.erase(*highest + i);
      }
      ASSERT_EQ(slabs.count(), expected.size());
    }
  }
}

TEST(SlabsTest, RoomIsOfSlabsAndAtLastOfParts) {
  EXPECT_EQ(RoomFor(0, 64 << 10), 0u);
  EXPECT_EQ(RoomFor(1, 64 << 10), kPartBytes);
  EXPECT_EQ(RoomFor(4, 64 << 10), kPartBytes);
  EXPECT_EQ(RoomFor(5, 64 << 10), 2 * kPartBytes);
  EXPECT_EQ(RoomFor(32, 64 << 10), kSlabBytes);
  EXPECT_EQ(RoomFor(33, 64 << 10), kSlabBytes + kPartBytes);
  // 21 to a slab, and 2 to a part.
  EXPECT_EQ(RoomFor(20, 96 << 10), kSlabBytes);
  EXPECT_EQ(RoomFor(1, 512 << 10), kSlabBytes);
  EXPECT_EQ(RoomFor(2, 3 * kSlabBytes), 6 * kSlabBytes);
  for (const uint64_t frame_bytes : {uint64_t{128}, kPartBytes, kSlabBytes, 9 * kSlabBytes}) {
    EXPECT_EQ(RoomFor(UINT64_MAX, frame_bytes), uint64_t{1} << 56) << frame_bytes;
  }
}

TEST(SlabsTest, PartsOfTheFullestSlabGoFirst) {
  SharedSlabs shared;
  EXPECT_EQ(shared.Take(), std::nullopt);
  shared.Add(7);
  shared.Add(3);
  EXPECT_EQ(shared.free_count(), 16u);
  EXPECT_EQ(shared.Take(), 24u);  // Of equals the lower.
  EXPECT_EQ(shared.Take(), 25u);
  EXPECT_FALSE(shared.Put(24));
  EXPECT_EQ(shared.Take(), 24u);
  for (uint32_t part = 26; part < 32; ++part) EXPECT_EQ(shared.Take(), part);
  EXPECT_EQ(shared.Take(), 56u);
  EXPECT_EQ(shared.slabs(), (std::vector<uint32_t>{3, 7}));
  EXPECT_TRUE(shared.Put(56));
  EXPECT_EQ(shared.slabs(), std::vector<uint32_t>{3});
  EXPECT_EQ(shared.free_count(), 0u);
}

}  // namespace
}  // namespace geardb::engine
