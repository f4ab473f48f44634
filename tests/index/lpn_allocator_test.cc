#include "index/lpn_allocator.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

LpnAllocator MakeAllocator(IndexMemory* memory, uint64_t capacity, uint64_t reserved) {
  auto allocator = LpnAllocator::Create(memory, "lpns", capacity);
  GEARDB_CHECK(allocator.ok() && allocator->Reserve(reserved).ok());
  return std::move(allocator).value();
}

TEST(LpnAllocatorTest, PagesTakeTheLowestFreeNumber) {
  const auto memory = TestMemory();
  LpnAllocator allocator = MakeAllocator(memory.get(), 1000, 1000);
  for (uint32_t i = 0; i < 200; ++i) EXPECT_EQ(allocator.Allocate(), i);
  EXPECT_TRUE(allocator.Free(150));
  EXPECT_TRUE(allocator.Free(3));
  EXPECT_TRUE(allocator.Free(64));
  EXPECT_EQ(allocator.Allocate(), 3u);
  EXPECT_EQ(allocator.Allocate(), 64u);
  EXPECT_EQ(allocator.Allocate(), 150u);
  EXPECT_EQ(allocator.Allocate(), 200u);
  EXPECT_EQ(allocator.used(), 201u);
  EXPECT_EQ(allocator.high_water(), 201u);
}

TEST(LpnAllocatorTest, NoTwoPagesOrSlotsShareANumberInRandomUse) {
  for (const uint64_t capacity : {1u, 63u, 64u, 65u, 4096u, 4097u, 10000u}) {
    SCOPED_TRACE(capacity);
    const auto memory = TestMemory();
    LpnAllocator allocator = MakeAllocator(memory.get(), capacity, capacity);
    std::mt19937_64 random(capacity);
    std::set<uint32_t> used;
    std::set<uint32_t> free;
    for (uint32_t i = 0; i < capacity; ++i) free.insert(i);
    uint64_t high_water = 0;
    for (uint64_t step = 0; step < 20'000; ++step) {
      // Phases of filling and of emptying, so that full words of all levels come and go.
      const bool filling = (step / (capacity + 1)) % 2 == 0;
      const uint32_t any = static_cast<uint32_t>(random() % capacity);
      const uint64_t dice = random() % 10;
      if (dice == 0) {
        ASSERT_EQ(allocator.AllocateSpecific(any), !used.contains(any));
        used.insert(any);
        free.erase(any);
        high_water = std::max<uint64_t>(high_water, any + 1);
      } else if ((dice < 7) == filling) {
        const uint32_t expected = free.empty() ? LpnAllocator::kNone : *free.begin();
        ASSERT_EQ(allocator.LowestFree(), expected);
        ASSERT_EQ(allocator.Allocate(), expected);
        if (expected == LpnAllocator::kNone) continue;
        used.insert(expected);
        free.erase(expected);
        high_water = std::max<uint64_t>(high_water, expected + 1);
      } else {
        ASSERT_EQ(allocator.Free(any), used.contains(any));
        used.erase(any);
        free.insert(any);
      }
      ASSERT_EQ(allocator.InUse(any), used.contains(any));
      ASSERT_EQ(allocator.used(), used.size());
      ASSERT_EQ(allocator.high_water(), high_water);
    }
  }
}

TEST(LpnAllocatorTest, CountForIsEnoughAndNotMore) {
  const auto memory = TestMemory();
  LpnAllocator allocator = MakeAllocator(memory.get(), 1000, 100);
  for (int i = 0; i < 60; ++i) allocator.Allocate();
  for (uint32_t i = 0; i < 20; ++i) allocator.Free(i * 2);
  EXPECT_EQ(allocator.CountFor(20), 60u);
  EXPECT_EQ(allocator.CountFor(25), 65u);
  for (int i = 0; i < 25; ++i) EXPECT_LT(allocator.Allocate(), 65u);
  EXPECT_EQ(allocator.high_water(), 65u);
}

TEST(LpnAllocatorTest, NumbersBeyondTheReservedAreNotGiven) {
  const auto memory = TestMemory();
  LpnAllocator allocator = MakeAllocator(memory.get(), uint64_t{1} << 31, 64);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(allocator.Allocate(), i);
  EXPECT_EQ(allocator.Allocate(), LpnAllocator::kNone);
  EXPECT_FALSE(allocator.AllocateSpecific(64));
  EXPECT_FALSE(allocator.Free(64));
  EXPECT_FALSE(allocator.InUse(64));
  ASSERT_OK(allocator.Reserve(70));
  for (uint32_t i = 64; i < 70; ++i) EXPECT_EQ(allocator.Allocate(), i);
  EXPECT_EQ(allocator.Allocate(), LpnAllocator::kNone);
}

TEST(LpnAllocatorTest, FreeTwiceIsRefused) {
  const auto memory = TestMemory();
  LpnAllocator allocator = MakeAllocator(memory.get(), 10, 10);
  allocator.Allocate();
  EXPECT_TRUE(allocator.Free(0));
  EXPECT_FALSE(allocator.Free(0));
  EXPECT_EQ(allocator.used(), 0u);
}

TEST(LpnAllocatorTest, CapacityIsNamed) {
  const auto memory = TestMemory();
  EXPECT_STATUS(kInvalidArgument, LpnAllocator::Create(memory.get(), "lpns", 0), "'lpns'");
  EXPECT_STATUS(kInvalidArgument, LpnAllocator::Create(memory.get(), "lpns", UINT32_MAX), "'lpns'");
  LpnAllocator allocator = MakeAllocator(memory.get(), 10, 10);
  EXPECT_STATUS(kResourceExhausted, allocator.Reserve(11), "end at 10");
}

}  // namespace
}  // namespace geardb::index
