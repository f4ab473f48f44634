#include "engine/internal/eviction.h"

#include <gtest/gtest.h>

#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class EvictionChoiceTest : public testing::StoreTest {
 protected:
  void CreateBounded(uint64_t trajectories, uint64_t steps, uint64_t pages = 0) {
    TableSpec spec = testing::StepSpec();
    spec.trajectories_max = trajectories;
    spec.steps_max = steps;
    Create(spec, {.lanes = 2});
    if (pages > 0) {
      spec.name = "pages";
      spec.bytes_max = pages * FrameBytes();
      Create(spec, {.lanes = 2});
    }
    core_ = testing::CoreOf(*database_);
    plan_ = core_->FindTable(spec.name)->plan.get();
  }
  uint64_t FrameBytes() {
    return testing::CoreOf(*database_)->FindTable("steps")->layout().page_bytes();
  }
  void TearDown() override {
    core_.reset();
    Close();
  }
  Eviction Choose(const Growth& growth) {
    const WaitPublished wait = [](Lsn) { return Status::Ok(); };
    Eviction eviction;
    status_ = EvictionChoice(plan_, wait).Choose(growth, &eviction);
    return eviction;
  }

  std::shared_ptr<DatabaseCore> core_;
  TablePlan* plan_ = nullptr;
  Status status_;
};

TEST_F(EvictionChoiceTest, NothingLeavesThePlanBeforeItIsTaken) {
  CreateBounded(0, 20);
  AppendClosed(0, 8);
  AppendClosed(0, 8);
  MutexLock lock(&core_->commit);
  const Eviction eviction = Choose({.rows = 6});
  ASSERT_OK(status_);
  ASSERT_EQ(eviction.removed.size(), 1u);
  EXPECT_EQ(eviction.removed[0].id(), 1u);
  EXPECT_TRUE(eviction.trimmed.empty());
  EXPECT_EQ(plan_->rows(), 16u);
  EXPECT_TRUE(plan_->Over({.rows = 6}));
  EXPECT_EQ(Choose({.rows = 6}).removed.size(), 1u);
  plan_->Take(eviction);
  EXPECT_EQ(plan_->rows(), 8u);
  EXPECT_FALSE(plan_->Over({.rows = 12}));
}

TEST_F(EvictionChoiceTest, OpenTrajectoriesLoseWholePages) {
  CreateBounded(0, 20);
  Append(0, 18);
  MutexLock lock(&core_->commit);
  const Eviction eviction = Choose({.rows = 5});
  ASSERT_OK(status_);
  EXPECT_TRUE(eviction.removed.empty());
  ASSERT_EQ(eviction.trimmed.size(), 1u);
  EXPECT_EQ(eviction.trimmed[0].first_row(), 4u);
  plan_->Take(eviction);
  EXPECT_EQ(plan_->rows(), 14u);
}

TEST_F(EvictionChoiceTest, ThenRowsDownToOneOfEachAndATrajectoryIsNamedOnce) {
  CreateBounded(0, 20);
  Append(0, 10);
  Append(0, 10, End::kGo, 1);
  MutexLock lock(&core_->commit);
  const Eviction eviction = Choose({.rows = 18});
  ASSERT_OK(status_);
  ASSERT_EQ(eviction.trimmed.size(), 2u);
  EXPECT_EQ(eviction.trimmed[0].first_row(), 9u);
  EXPECT_EQ(eviction.trimmed[1].first_row(), 9u);
  plan_->Take(eviction);
  EXPECT_EQ(plan_->rows(), 2u);
  EXPECT_EQ(Choose({.rows = 19}).size(), 0u);
  EXPECT_STATUS(kResourceExhausted, status_, "steps_max must be 21 or more");
}

TEST_F(EvictionChoiceTest, HeadsGiveEvenlyHoweverManyPagesTheyHad) {
  CreateBounded(0, 40);
  Append(0, 28);
  Append(0, 8, End::kGo, 1);
  MutexLock lock(&core_->commit);
  // All pages but the last of each, and then two rows of each of those.
  const Eviction eviction = Choose({.rows = 36});
  ASSERT_OK(status_);
  ASSERT_EQ(eviction.trimmed.size(), 2u);
  EXPECT_EQ(eviction.trimmed[0].first_row(), 26u);
  EXPECT_EQ(eviction.trimmed[1].first_row(), 6u);
}

TEST_F(EvictionChoiceTest, PagesAreCountedAsThePlanCountsThem) {
  CreateBounded(0, 0, 6);
  AppendClosed(0, 7);  // Two pages.
  Append(0, 13);       // Four.
  MutexLock lock(&core_->commit);
  for (uint64_t pages = 1; pages <= 5; ++pages) {
    const Eviction eviction = Choose({.pages = pages});
    ASSERT_OK(status_) << pages;
    EXPECT_EQ(eviction.removed.size(), 1u);
    EXPECT_EQ(eviction.trimmed.size(), pages > 2 ? 1u : 0u);
    if (pages > 2) {
      EXPECT_EQ(eviction.trimmed[0].first_row(), 4 * (pages - 2));
    }
  }
  Choose({.pages = 6});
  EXPECT_STATUS(kResourceExhausted, status_, "'pages' is full");
  plan_->Take(Choose({.pages = 5}));
  EXPECT_FALSE(plan_->Over({.pages = 5}));
  EXPECT_TRUE(plan_->Over({.pages = 6}));
}

TEST_F(EvictionChoiceTest, WhatGoesAheadIsSplitOff) {
  CreateBounded(8, 0);
  for (int t = 0; t < 8; ++t) AppendClosed(0, 1);
  MutexLock lock(&core_->commit);
  Eviction eviction = Choose({.trajectories = 6});
  ASSERT_EQ(eviction.removed.size(), 6u);
  const Eviction first = eviction.Split(4);
  EXPECT_EQ(first.removed.size(), 4u);
  EXPECT_EQ(first.removed[3].id(), 4u);
  plan_->Take(first);
  EXPECT_TRUE(plan_->Over({.trajectories = 6}));
  plan_->Take(eviction);
  EXPECT_FALSE(plan_->Over({.trajectories = 6}));
  EXPECT_EQ(eviction.Split(9).size(), 2u);
  EXPECT_EQ(eviction.size(), 0u);
}

}  // namespace
}  // namespace geardb::engine
