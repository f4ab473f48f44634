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
  std::shared_ptr<DatabaseCore> core_;
  TablePlan* plan_ = nullptr;
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

// A call that took the range's last number, and no more, once turned for ever: it was told that it
// needed more, and then that more had been promised.
TEST_F(TablePlanTest, ARangeIsUsedToItsEnd) {
  CreateBounded(0, 0);
  for (uint64_t left = 0; left < 8; ++left) {
    {
      MutexLock lock(&core_->commit);
      plan_->next_generation = plan_->generations_end - left;
      plan_->next_id = plan_->ids_end - left / 2;
    }
    AppendClosed(0, 8);
    MutexLock lock(&core_->commit);
    EXPECT_LE(plan_->next_generation, plan_->generations_end) << left;
    EXPECT_LE(plan_->next_id, plan_->ids_end) << left;
  }
}

// More is promised before a range ends, so that the call that comes to its end does not wait.
TEST_F(TablePlanTest, MoreIsPromisedAhead) {
  TableSpec spec = testing::StepSpec();
  Create(spec, {.admission_timeout_ms = 0});
  core_ = testing::CoreOf(*database_);
  plan_ = core_->FindTable("steps")->plan.get();
  {
    MutexLock lock(&core_->commit);
    EXPECT_LT(plan_->promised_ids_end, plan_->ids_end);
    plan_->next_id = plan_->ids_end - 100;
    plan_->next_generation = plan_->generations_end - 100;
  }
  AppendClosed(0, 8);
  ASSERT_OK(database_->Sync());
  {
    MutexLock lock(&core_->commit);
    EXPECT_GT(plan_->promised_ids_end, plan_->ids_end);
    EXPECT_GT(plan_->promised_generations_end, plan_->generations_end);
    plan_->next_id = plan_->ids_end;
    plan_->next_generation = plan_->generations_end;
  }
  AppendClosed(0, 8);
  MutexLock lock(&core_->commit);
  EXPECT_EQ(plan_->ids_end, plan_->promised_ids_end);
}

}  // namespace
}  // namespace geardb::engine
