// Batches that were drawn ahead of a Configure that makes their priority table a queue.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/engine/rate_limit_fixture.h"

namespace geardb {
namespace {

using QueueConfigureTest = testing::RateLimitFixture;

// Its rows were counted, and name no items: as many waited for ever.
TEST_F(QueueConfigureTest, WhatWasDrawnBeforeItWasAQueueTakesNoPlacesInIt) {
  CreateLimited(Limited({}, SelectorKind::kFifo));
  ASSERT_OK(TryAppend(0, 10));
  auto sampler = Sample(2, 1);
  ASSERT_OK(NextNow(sampler.get()));
  ASSERT_OK(
      priority("limited")->Configure({.limiter = {.kind = LimiterKind::kQueue, .capacity = 100}}));
  ASSERT_OK(NextNow(sampler.get()));  // Drawn ahead.
  std::map<Item, int> times;
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, NextNow(sampler.get()));
    for (const Item& item : ItemsOf(batch)) ++times[item];
  }
  EXPECT_EQ(times.size(), 10u);
  EXPECT_STATUS(kDeadlineExceeded, NextNow(sampler.get()), "queue of capacity 100");
}

// Each of its rows took a place, though an item waits in a queue once.
TEST_F(QueueConfigureTest, ItemsDrawnTwiceBeforeItWasAQueueTakeOnePlaceInIt) {
  CreateLimited(Limited({}, SelectorKind::kUniform, 100));
  ASSERT_OK(TryAppend(0, 6));
  auto sampler = Sample(6, 1);
  ASSERT_OK(NextNow(sampler.get()));
  ASSERT_OK(
      priority("limited")->Configure({.limiter = {.kind = LimiterKind::kQueue, .capacity = 100}}));
  ASSERT_OK_AND_ASSIGN(const Batch ahead, NextNow(sampler.get()));
  std::set<Item> shown;
  for (const Item& item : ItemsOf(ahead)) shown.insert(item);
  ASSERT_LT(shown.size(), 6u);  // As the seed has it.
  sampler = Sample(1);
  while (shown.size() < 6) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, NextNow(sampler.get()));
    EXPECT_TRUE(shown.insert(ItemsOf(batch)[0]).second);
  }
  EXPECT_STATUS(kDeadlineExceeded, NextNow(sampler.get()), "0 items wait");
}

// It took one place, which the first batch to go gave back: others drew it beside the second.
TEST_F(QueueConfigureTest, AnItemThatTwoBatchesHoldIsHeldUntilBothAreGone) {
  CreateLimited(Limited({}, SelectorKind::kFifo, 4));
  ASSERT_OK(TryAppend(0, 3));
  auto first = Sample(1, 1);
  auto second = Sample(1, 1);
  for (Sampler* const sampler : {first.get(), second.get()}) ASSERT_OK(NextNow(sampler));
  ASSERT_OK(
      priority("limited")->Configure({.limiter = {.kind = LimiterKind::kQueue, .capacity = 100}}));
  first.reset();
  auto third = Sample(1);
  for (const int64_t row : {1, 2}) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, NextNow(third.get()));
    EXPECT_EQ(ItemsOf(batch)[0].second, row);
  }
  EXPECT_STATUS(kDeadlineExceeded, NextNow(third.get()), "");
  ASSERT_OK_AND_ASSIGN(const Batch ahead, NextNow(second.get()));
  EXPECT_EQ(ItemsOf(ahead)[0].second, 0);
  EXPECT_STATUS(kDeadlineExceeded, NextNow(second.get()), "0 items wait");
}

// And is drawn again where neither is handed over.
TEST_F(QueueConfigureTest, AnItemThatTwoBatchesHeldIsDrawnOnceBothAreGone) {
  CreateLimited(Limited({}, SelectorKind::kFifo, 4));
  ASSERT_OK(TryAppend(0, 1));
  auto first = Sample(1, 1);
  auto second = Sample(1, 1);
  for (Sampler* const sampler : {first.get(), second.get()}) ASSERT_OK(NextNow(sampler));
  ASSERT_OK(
      priority("limited")->Configure({.limiter = {.kind = LimiterKind::kQueue, .capacity = 100}}));
  auto third = Sample(1);
  first.reset();
  EXPECT_STATUS(kDeadlineExceeded, NextNow(third.get()), "");
  second.reset();
  EXPECT_OK(NextNow(third.get()));
  EXPECT_STATUS(kDeadlineExceeded, NextNow(third.get()), "0 items wait");
}

}  // namespace
}  // namespace geardb
