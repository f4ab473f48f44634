#include "index/leaf_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/index/memory_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb::index {
namespace {

TEST(LeafSetTest, RandomProgramsHoldWhatAPlainSetHolds) {
  constexpr uint64_t kLeaves = 3000;
  const auto memory = TestMemory();
  ASSERT_OK_AND_ASSIGN(const auto deleted, LeafSet::Create(memory.get(), "gone", 1 << 20));
  ASSERT_OK(deleted->Reserve(kLeaves));
  std::set<uint64_t> model;
  std::mt19937_64 random(7);
  for (int step = 0; step < 4000; ++step) {
    const uint64_t begin = random() % kLeaves;
    const uint64_t end = std::min(begin + random() % 300, kLeaves);
    if (random() % 8 != 0) {
      EXPECT_EQ(deleted->Add(begin), model.insert(begin).second);
    } else {
      deleted->Forget({begin, end});
      model.erase(model.lower_bound(begin), model.lower_bound(end));
    }
    ASSERT_EQ(deleted->count(), model.size());
    ASSERT_EQ(deleted->Contains(begin), model.contains(begin));
    const auto there = std::distance(model.lower_bound(begin), model.lower_bound(end));
    ASSERT_EQ(deleted->Count({begin, end}), static_cast<uint64_t>(there));
    ASSERT_EQ(deleted->members().Count({begin, end}), static_cast<uint64_t>(there));
  }
}

TEST(LeafSetTest, WhatDoesNotFitTheBudgetChangesNothing) {
  const auto memory = TestMemory(uint64_t{64} << 10);
  ASSERT_OK_AND_ASSIGN(const auto deleted,
                       LeafSet::Create(memory.get(), "gone", uint64_t{1} << 33));
  ASSERT_OK(deleted->Reserve(1000));
  EXPECT_TRUE(deleted->Add(999));
  EXPECT_STATUS(kResourceExhausted, deleted->Reserve(uint64_t{1} << 32), "'gone'");
  EXPECT_EQ(deleted->reserved(), 1000u);
  EXPECT_TRUE(deleted->Contains(999));
  deleted->Forget({0, UINT64_MAX});
  EXPECT_EQ(deleted->count(), 0u);
  EXPECT_STATUS(kInvalidArgument, LeafSet::Create(memory.get(), "none", 0), "0 leaves");
}

TEST(LeafSetTest, LeavesBeyondTheThirtySecondBitAreLeaves) {
  const auto memory = TestMemory(uint64_t{1} << 30);
  ASSERT_OK_AND_ASSIGN(const auto deleted,
                       LeafSet::Create(memory.get(), "gone", uint64_t{1} << 33));
  constexpr uint64_t kFar = (uint64_t{1} << 32) + 5;
  ASSERT_OK(deleted->Reserve(kFar + 1));
  EXPECT_TRUE(deleted->Add(kFar));
  EXPECT_FALSE(deleted->Contains(5));
  EXPECT_EQ(deleted->Count({0, kFar + 1}), 1u);
  EXPECT_EQ(deleted->Count({0, kFar}), 0u);
}

}  // namespace
}  // namespace geardb::index
