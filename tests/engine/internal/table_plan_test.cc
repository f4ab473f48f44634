#include "engine/internal/table_plan.h"

#include <gtest/gtest.h>

#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class TablePlanTest : public testing::StoreTest {
 protected:
  void CreateBounded(uint64_t trajectories, uint64_t steps) {
    TableSpec spec = testing::StepSpec();
    spec.trajectories_max = trajectories;
    spec.steps_max = steps;
    Create(spec, {.lanes = 2});
    core_ = testing::CoreOf(*database_);
    plan_ = core_->FindTable("steps")->plan.get();
  }
  void TearDown() override {
    core_.reset();
    Close();
  }
  Eviction Evict(const Growth& growth, size_t entries_max = 100) {
    Eviction eviction;
    status_ = plan_->Evict(
        growth, entries_max, [](Lsn) { return Status::Ok(); }, &eviction);
    return eviction;
  }

  std::shared_ptr<DatabaseCore> core_;
  TablePlan* plan_ = nullptr;
  Status status_;
};

TEST_F(TablePlanTest, GrowthIsMeasuredAgainstEveryBound) {
  CreateBounded(3, 20);
  AppendClosed(0, 8);
  MutexLock lock(&core_->commit);
  EXPECT_FALSE(plan_->Over({.rows = 12, .pages = 3, .trajectories = 2}));
  EXPECT_TRUE(plan_->Over({.rows = 13}));
  EXPECT_TRUE(plan_->Over({.trajectories = 3}));
  EXPECT_EQ(plan_->rows(), 8u);
}

TEST_F(TablePlanTest, WhatLeavesIsOutOfThePlanAtOnce) {
  CreateBounded(0, 20);
  AppendClosed(0, 8);
  AppendClosed(0, 8);
  MutexLock lock(&core_->commit);
  const Eviction eviction = Evict({.rows = 6});
  ASSERT_OK(status_);
  ASSERT_EQ(eviction.removed.size(), 1u);
  EXPECT_EQ(eviction.removed[0].id(), 1u);
  EXPECT_TRUE(eviction.trimmed.empty());
  EXPECT_EQ(plan_->rows(), 8u);
  EXPECT_FALSE(plan_->Over({.rows = 12}));
}

TEST_F(TablePlanTest, OpenTrajectoriesLoseWholePages) {
  CreateBounded(0, 20);
  Append(0, 18);
  MutexLock lock(&core_->commit);
  const Eviction eviction = Evict({.rows = 5});
  ASSERT_OK(status_);
  EXPECT_TRUE(eviction.removed.empty());
  ASSERT_EQ(eviction.trimmed.size(), 1u);
  EXPECT_EQ(eviction.trimmed[0].first_row(), 4u);
  EXPECT_EQ(plan_->rows(), 14u);
}

TEST_F(TablePlanTest, ARecordTakesSoManyEntriesAndNoMore) {
  CreateBounded(8, 0);
  for (int t = 0; t < 8; ++t) AppendClosed(0, 1);
  MutexLock lock(&core_->commit);
  EXPECT_EQ(Evict({.trajectories = 6}, 4).removed.size(), 4u);
  EXPECT_TRUE(plan_->Over({.trajectories = 6}));
  EXPECT_EQ(Evict({.trajectories = 6}, 4).removed.size(), 2u);
  EXPECT_FALSE(plan_->Over({.trajectories = 6}));
}

TEST_F(TablePlanTest, NumbersComeLowestFirst) {
  CreateBounded(0, 0);
  for (int t = 0; t < 3; ++t) AppendClosed(0, 4);
  const TrajectoryId ids[] = {2};
  ASSERT_OK(table_->Remove(ids));
  MutexLock lock(&core_->commit);
  ASSERT_OK(plan_->AdmitNumbers({.rows = 8, .pages = 2, .trajectories = 2}));
  const uint32_t generation = plan_->TakeGeneration();
  EXPECT_GT(generation, 6u);  // Each slot and each page had one of its own.
  EXPECT_EQ(plan_->TakeSlot(nullptr, generation), 1u);
  EXPECT_EQ(plan_->TakePage(plan_->TakeGeneration()), 1u);
  EXPECT_EQ(plan_->TakePage(plan_->TakeGeneration()), 3u);
  EXPECT_EQ(plan_->TakeId(), 4u);
}

TEST_F(TablePlanTest, IdsArePromisedInRanges) {
  CreateBounded(0, 0);
  MutexLock lock(&core_->commit);
  EXPECT_TRUE(plan_->HasIds({.trajectories = 1000}));
  EXPECT_FALSE(plan_->HasIds({.trajectories = plan_->ids_end}));
  EXPECT_FALSE(plan_->HasIds({.pages = plan_->generations_end}));
}

}  // namespace
}  // namespace geardb::engine
