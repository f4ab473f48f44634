// concurrent: index/index_memory.h

#include "index/index_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"
#include "tests/testing/named_number.h"

namespace geardb::index {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

TEST(IndexMemoryTest, BudgetOfZeroIsRefused) {
  EXPECT_STATUS(kInvalidArgument, IndexMemory::Create({.budget_bytes = 0}), "budget of 0");
}

TEST(IndexMemoryTest, AddressSpaceFollowsTheBudget) {
  auto memory = IndexMemory::Create({.budget_bytes = 5000});
  ASSERT_OK(memory);
  EXPECT_EQ(memory.value()->reserve_bytes(), 5000u * 1024);
}

TEST(IndexMemoryTest, PartsArePageAlignedAndApart) {
  const auto memory = TestMemory();
  ASSERT_OK_AND_ASSIGN(Region a, memory->Reserve("a", {1, 5000, 4096}));
  ASSERT_OK_AND_ASSIGN(Region b, memory->Reserve("b", {10}));
  EXPECT_EQ(a.part_count(), 3u);
  EXPECT_EQ(a.part_offset(0), 0u);
  EXPECT_EQ(a.part_offset(1), 4096u);
  EXPECT_EQ(a.part_offset(2), 4096u + 8192u);
  EXPECT_EQ(a.base(), memory->base() + a.offset());
  EXPECT_GE(b.offset(), a.offset() + 4096 + 8192 + 4096);
  EXPECT_EQ(memory->used_bytes(), 0u);
}

TEST(IndexMemoryTest, CommitsAreChargedInSteps) {
  const auto memory = TestMemory();
  ASSERT_OK_AND_ASSIGN(Region region, memory->Reserve("a", {64 * kMiB, 5000}));
  ASSERT_OK(region.Commit(0, 1));
  EXPECT_EQ(memory->used_bytes(), 4 * kKiB);
  ASSERT_OK(region.Commit(0, 64 * kKiB));
  EXPECT_EQ(memory->used_bytes(), 64 * kKiB);
  ASSERT_OK(region.Commit(0, 64 * kKiB + 1));
  EXPECT_EQ(memory->used_bytes(), 128 * kKiB);
  ASSERT_OK(region.Commit(0, kMiB + 1));
  EXPECT_EQ(memory->used_bytes(), 2 * kMiB);
  ASSERT_OK(region.Commit(0, 5));  // Less than there is.
  EXPECT_EQ(memory->used_bytes(), 2 * kMiB);
  ASSERT_OK(region.Commit(1, 5000));  // A part smaller than a step costs its pages.
  EXPECT_EQ(memory->used_bytes(), 2 * kMiB + 8192);
  EXPECT_EQ(region.committed_bytes(0), 2 * kMiB);
  EXPECT_EQ(region.committed_bytes(), memory->used_bytes());
}

TEST(IndexMemoryTest, FullBudgetIsNamedAndNothingChanges) {
  const auto memory = TestMemory(kMiB);
  ASSERT_OK_AND_ASSIGN(Region region, memory->Reserve("replay/per", {64 * kMiB}));
  ASSERT_OK(region.Commit(0, 900 * kKiB));
  const uint64_t used = memory->used_bytes();
  const Status status = region.Commit(0, 3 * kMiB);
  EXPECT_STATUS(kResourceExhausted, status, "'replay/per'");
  EXPECT_STATUS(kResourceExhausted, status, "budget_bytes = 1048576 is too small");
  EXPECT_STATUS(kResourceExhausted, status, std::to_string(used) + " are used, and it asks");
  EXPECT_EQ(memory->used_bytes(), used);
  EXPECT_EQ(region.committed_bytes(), used);
  EXPECT_OK(region.Commit(0, kMiB));  // Exactly the budget fits.
  EXPECT_EQ(memory->used_bytes(), kMiB);
}

/// The number behind "it takes ".
uint64_t RaiseTo(const Status& status) {
  const auto named = testing::NumberBehind("it takes ", status);
  EXPECT_TRUE(named) << status;
  return named.value_or(1);
}

TEST(IndexMemoryTest, TheBudgetThatIsAskedForIsEnough) {
  const auto ask = [](uint64_t budget) {
    auto memory = IndexMemory::Create({.budget_bytes = budget}).value();
    auto first = memory->Reserve("first", {48 * kMiB});
    if (!first.ok()) return first.status();
    auto second = memory->Reserve("second", {700 * kMiB});
    return second.ok() ? second->Commit(0, 3 * kMiB) : second.status();
  };
  const Status space = ask(64 * kKiB);
  EXPECT_STATUS(kResourceExhausted, space, "is too small for 'second': it takes 1048576 at least");
  ASSERT_EQ(RaiseTo(space), kMiB);
  const Status charge = ask(RaiseTo(space));
  EXPECT_STATUS(kResourceExhausted, charge, "0 are used, and it asks for 3145728 more");
  EXPECT_OK(ask(RaiseTo(charge)));
}

TEST(IndexMemoryTest, PartsEndWhereTheyWereLaidOut) {
  const auto memory = TestMemory();
  ASSERT_OK_AND_ASSIGN(Region region, memory->Reserve("a", {8192}));
  EXPECT_STATUS(kResourceExhausted, region.Commit(0, 8193), "laid out for 8192");
}

TEST(IndexMemoryTest, AddressSpaceEnds) {
  auto memory = IndexMemory::Create({.reserve_bytes = kMiB, .name = "narrow"});
  ASSERT_OK(memory);
  ASSERT_OK_AND_ASSIGN(Region a, memory.value()->Reserve("a", {kMiB - 4096}));
  EXPECT_STATUS(kResourceExhausted, memory.value()->Reserve("b", {8192}), "for 'b'");
  EXPECT_OK(memory.value()->Reserve("c", {4096}));
}

TEST(IndexMemoryTest, ReleasedBytesComeBackZeroAndUncharged) {
  auto memory = IndexMemory::Create({.budget_bytes = 8 * kMiB, .reserve_bytes = 4 * kMiB});
  ASSERT_OK(memory);
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK_AND_ASSIGN(Region region, memory.value()->Reserve("a", {4 * kMiB}));
    ASSERT_OK(region.Commit(0, 4 * kMiB));
    for (uint64_t i = 0; i < 4 * kMiB; i += 1000) {
      ASSERT_EQ(region.base()[i], std::byte{0}) << "round " << round << " byte " << i;
    }
    std::memset(region.base(), 0xFF, 4 * kMiB);
    region = Region();
    EXPECT_EQ(memory.value()->used_bytes(), 0u);
    struct stat file {};
    ASSERT_EQ(fstat(memory.value()->fd(), &file), 0);
    EXPECT_EQ(file.st_blocks, 0);  // The hole is punched.
  }
}

TEST(IndexMemoryTest, ReleasedRangesGrowTogetherAgain) {
  auto memory = IndexMemory::Create({.reserve_bytes = 12288});
  ASSERT_OK(memory);
  for (const std::vector<int>& order :
       std::vector<std::vector<int>>{{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}}) {
    std::vector<Region> regions;
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK_AND_ASSIGN(Region region, memory.value()->Reserve("a", {4096}));
      regions.push_back(std::move(region));
    }
    for (const int i : order) regions[static_cast<size_t>(i)] = Region();
    EXPECT_OK(memory.value()->Reserve("all", {12288}));
  }
}

TEST(IndexMemoryTest, WhatGrowsBeyondHugePagesKeepsItsBytes) {
  const auto memory = IndexMemory::Create({.budget_bytes = 32 * kMiB}).value();
  for (int round = 0; round < 2; ++round) {
    auto region = memory->Reserve("grows", {4 * kKiB, 16 * kMiB}).value();
    for (uint64_t bytes = kMiB / 2; bytes <= 16 * kMiB; bytes += 700'000) {
      const uint64_t before = region.committed_bytes(1);
      ASSERT_OK(region.Commit(1, bytes));
      for (uint64_t at = before; at < region.committed_bytes(1); at += 4096) {
        EXPECT_EQ(region.part_base(1)[at], std::byte{0}) << at;
      }
      region.part_base(1)[bytes - 1] = std::byte{2};
    }
    for (uint64_t bytes = kMiB / 2; bytes <= 16 * kMiB; bytes += 700'000) {
      EXPECT_EQ(region.part_base(1)[bytes - 1], std::byte{2});
    }
  }
}

TEST(IndexMemoryTest, WhatTakesAnothersPlaceNeedsNoRoomForBoth) {
  const auto memory = TestMemory(20 * kKiB);
  ASSERT_OK_AND_ASSIGN(Region old, memory->Reserve("old", {16 * kKiB}));
  ASSERT_OK_AND_ASSIGN(Region grown, memory->Reserve("grown", {32 * kKiB}));
  // None where there was none, and one that is not larger.
  Region none;
  ASSERT_OK(old.CommitInPlaceOf(&none, 0, 8 * kKiB));
  EXPECT_STATUS(kResourceExhausted, grown.Commit(0, 16 * kKiB), "'grown'");
  EXPECT_STATUS(kResourceExhausted, grown.CommitInPlaceOf(&old, 0, 24 * kKiB), "'grown'");
  EXPECT_TRUE(old.valid());
  EXPECT_EQ(memory->used_bytes(), 8 * kKiB);
  ASSERT_OK(grown.CommitInPlaceOf(&old, 0, 16 * kKiB));
  EXPECT_FALSE(old.valid());
  EXPECT_EQ(memory->used_bytes(), 16 * kKiB);
  EXPECT_EQ(grown.committed_bytes(), 16 * kKiB);
  ASSERT_OK_AND_ASSIGN(Region small, memory->Reserve("small", {4 * kKiB}));
  ASSERT_OK(small.CommitInPlaceOf(&grown, 0, 1));
  EXPECT_EQ(memory->used_bytes(), 4 * kKiB);
  small = Region();
  EXPECT_EQ(memory->used_bytes(), 0u);
}

TEST(IndexMemoryTest, MovedRegionKeepsItsBytes) {
  const auto memory = TestMemory();
  ASSERT_OK_AND_ASSIGN(Region a, memory->Reserve("a", {4096}));
  ASSERT_OK(a.Commit(0, 4096));
  a.base()[5] = std::byte{7};
  Region b = std::move(a);
  EXPECT_EQ(b.base()[5], std::byte{7});
  EXPECT_EQ(memory->used_bytes(), 4096u);
  b = Region();
  EXPECT_EQ(memory->used_bytes(), 0u);
}

TEST(IndexMemoryTest, SecondMappingOfTheFileShowsTheSameBytes) {
  auto memory = IndexMemory::Create({.reserve_bytes = kMiB});
  ASSERT_OK(memory);
  ASSERT_OK_AND_ASSIGN(Region region, memory.value()->Reserve("a", {8192, 4096}));
  ASSERT_OK(region.Commit(1, 100));
  region.part_base(1)[3] = std::byte{9};
  void* other = mmap(nullptr, kMiB, PROT_READ, MAP_SHARED, memory.value()->fd(), 0);
  ASSERT_NE(other, MAP_FAILED);
  EXPECT_NE(other, memory.value()->base());
  EXPECT_EQ(static_cast<std::byte*>(other)[region.offset() + region.part_offset(1) + 3],
            std::byte{9});
  munmap(other, kMiB);
}

TEST(IndexMemoryConcurrentTest, BudgetHoldsAmongThreads) {
  constexpr uint64_t kBudget = 40 * kMiB;
  const auto memory = TestMemory(kBudget);
  std::vector<std::thread> threads;
  std::vector<std::vector<Region>> kept(4);
  for (size_t t = 0; t < kept.size(); ++t) {
    threads.emplace_back([&memory, &regions = kept[t]] {
      for (int i = 0; i < 200; ++i) {
        auto region = memory->Reserve("thread", {kMiB});
        GEARDB_CHECK(region.ok());
        if (!region->Commit(0, 64 * kKiB * static_cast<uint64_t>(1 + i % 16)).ok()) continue;
        GEARDB_CHECK(memory->used_bytes() <= kBudget);
        if (i % 3 == 0) regions.push_back(std::move(region).value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t sum = 0;
  for (const auto& regions : kept) {
    for (const Region& region : regions) sum += region.committed_bytes();
  }
  EXPECT_EQ(memory->used_bytes(), sum);
  EXPECT_LE(sum, kBudget);
  kept.clear();
  EXPECT_EQ(memory->used_bytes(), 0u);
}

}  // namespace
}  // namespace geardb::index
