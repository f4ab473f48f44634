// What time does to trajectories: orphans that are closed, trajectories that expire; and writers
// that hand theirs over.
#include <gtest/gtest.h>

#include "tests/testing/hand_clock.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class TableTimeTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    options_.background = false;  // What a test does not do by hand does not happen.
    options_.clock = &clock_;
    Open();
  }
  void TearDown() override { Close(); }  // The clock goes first.
  void PassMs(int64_t ms) { clock_.now_us += ms * 1000; }
  void StepMs(int64_t ms) { clock_.stepped_us += ms * 1000; }
  TrajectoryState StateOf(TrajectoryId id) { return table_->Find(id)->state; }

  testing::HandClock clock_;
};

TEST_F(TableTimeTest, AWriterHandsItsTrajectoryToAnother) {
  Create(testing::StepSpec(), {.lanes = 2});
  const TrajectoryId id = Append(0, 5).id;
  ASSERT_OK_AND_ASSIGN(const TrajectoryId detached, writer_->Detach());
  EXPECT_EQ(detached, id);
  EXPECT_EQ(StateOf(id), TrajectoryState::kOrphaned);
  EXPECT_EQ(writer_->open_trajectory(), 0u);
  ASSERT_OK_AND_ASSIGN(const auto other, table_->NewWriter({}));
  ASSERT_OK(other->Resume(id));
  const testing::Rows rows(5, 2);
  ASSERT_OK_AND_ASSIGN(const Appended more,
                       other->AppendSteps(rows.many(), {.end = End::kTerminated}));
  EXPECT_EQ(more.id, id);
  EXPECT_EQ(more.first_row, 5);
  EXPECT_EQ(Numbers(id), testing::Count(0, 7));
  EXPECT_NE(Append(20, 1).id, id) << "the lane is free for another trajectory";
}

TEST_F(TableTimeTest, OnlyWhatIsOpenAndThereIsDetached) {
  Create(testing::StepSpec());
  EXPECT_STATUS(kFailedPrecondition, writer_->Detach(), "no open trajectory");
  EXPECT_STATUS(kInvalidArgument, writer_->Detach(7), "lane 7");
  const TrajectoryId id = Append(0, 5).id;
  ASSERT_OK(table_->Remove({&id, 1}));
  EXPECT_STATUS(kNotFound, writer_->Detach(), "was removed");
  EXPECT_STATUS(kFailedPrecondition, writer_->Detach(), "no open trajectory");
}

TEST_F(TableTimeTest, TheOldestOrphanIsClosedFirst) {
  TableSpec spec = testing::StepSpec();
  spec.priority_tables = {
      {.name = "fifo", .item = ItemKind::kTrajectory, .selector = SelectorKind::kFifo}};
  Create(spec, {.lanes = 3});
  const TrajectoryId gone = Append(0, 4).id;
  std::vector<TrajectoryId> ids = {Append(10, 4, End::kGo, 1).id};
  ASSERT_OK(table_->Remove({&gone, 1}));
  ids.push_back(Append(20, 4, End::kGo, 2).id);  // Where the first one was.
  ASSERT_OK(writer_->Detach(2));
  ASSERT_OK(writer_->Detach(1));
  EXPECT_EQ(*table_->CloseOrphans(), 2u);
  ASSERT_OK_AND_ASSIGN(const auto sampler,
                       priority("fifo")->NewSampler({.batch = 2, .views = {{.column = "action"}}}));
  ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
  const auto shown = batch.trajectory_ids();
  EXPECT_EQ(std::vector<TrajectoryId>(shown.begin(), shown.end()), ids);
}

TEST_F(TableTimeTest, OrphansAreClosedAsCutWhenTheirTimeHasCome) {
  Create(testing::StepSpec(true), {.lanes = 3});
  const TrajectoryId first = Append(0, 4).id;
  const TrajectoryId second = Append(10, 4, End::kGo, 1).id;
  const TrajectoryId open = Append(20, 4, End::kGo, 2).id;
  ASSERT_OK(writer_->Detach(0));
  PassMs(600);
  ASSERT_OK(writer_->Detach(1));
  PassMs(399);
  EXPECT_EQ(*table_->CloseOrphans(1000), 0u);
  PassMs(1);
  EXPECT_EQ(*table_->CloseOrphans(1000), 1u);
  EXPECT_EQ(StateOf(first), TrajectoryState::kClosed);
  EXPECT_EQ(table_->Find(first)->end, End::kCut);
  EXPECT_EQ(table_->Find(first)->steps_end, 3) << "its last row is the final row";
  EXPECT_EQ(StateOf(second), TrajectoryState::kOrphaned);
  EXPECT_EQ(*table_->CloseOrphans(), 1u);
  EXPECT_EQ(StateOf(second), TrajectoryState::kClosed);
  EXPECT_EQ(StateOf(open), TrajectoryState::kOpen);
  EXPECT_STATUS(kInvalidArgument, table_->CloseOrphans(-1), "-1 ms");
}

TEST_F(TableTimeTest, AnOrphanOfACrashIsAsOldAsTheOpen) {
  Create(testing::StepSpec());
  const TrajectoryId id = Append(0, 4).id;
  Close();
  PassMs(100'000);
  Open();
  OpenAgain("steps");
  PassMs(999);
  EXPECT_EQ(*table_->CloseOrphans(1000), 0u);
  PassMs(1);
  EXPECT_EQ(*table_->CloseOrphans(1000), 1u);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(StateOf(id), TrajectoryState::kClosed);
}

TEST_F(TableTimeTest, WhatWasResumedCountsAnew) {
  Create(testing::StepSpec());
  const TrajectoryId id = Append(0, 4).id;
  ASSERT_OK(writer_->Detach());
  PassMs(900);
  ASSERT_OK(writer_->Resume(id));
  ASSERT_OK(writer_->Detach());
  PassMs(900);
  EXPECT_EQ(*table_->CloseOrphans(1000), 0u);
}

TEST_F(TableTimeTest, ClosedTrajectoriesExpire) {
  TableSpec spec = testing::StepSpec();
  spec.ttl_ms = 1000;
  Create(spec, {.lanes = 2});
  const TrajectoryId first = AppendClosed(0, 3);
  const TrajectoryId open = Append(10, 3, End::kGo, 1).id;
  PassMs(500);
  const TrajectoryId second = AppendClosed(20, 3);
  PassMs(500);
  EXPECT_EQ(*table_->RemoveExpired(), 0u);
  PassMs(1);
  EXPECT_EQ(*table_->RemoveExpired(), 1u);
  EXPECT_STATUS(kNotFound, table_->Find(first), "");
  EXPECT_OK(table_->Find(open));
  PassMs(1000);
  EXPECT_EQ(*table_->RemoveExpired(), 1u);
  EXPECT_STATUS(kNotFound, table_->Find(second), "");
  ASSERT_OK(writer_->Cut(1));
  EXPECT_EQ(*table_->RemoveExpired(), 1u);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), 0u);
}

TEST_F(TableTimeTest, WithoutATimeNothingExpires) {
  Create(testing::StepSpec());
  AppendClosed(0, 3);
  PassMs(1'000'000'000);
  EXPECT_EQ(*table_->RemoveExpired(), 0u);
}

TEST_F(TableTimeTest, TimesAreChecked) {
  TableSpec spec = testing::StepSpec();
  spec.ttl_ms = -1;
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec), "ttl_ms -1");
  spec.ttl_ms = 0;
  spec.orphan_timeout_ms = INT64_MAX;
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec), "orphan_timeout_ms");
  spec.orphan_timeout_ms = 50;
  ASSERT_OK(database_->CreateTable(spec));
  spec.orphan_timeout_ms = 60;
  EXPECT_STATUS(kFailedPrecondition, database_->OpenOrCreateTable(spec),
                "orphan_timeout_ms 50, not 60");
}

// Of a time of day that was set back by an hour, orphans stayed for an hour more.
TEST_F(TableTimeTest, AStepOfTheTimeOfDayLeavesTheTimesOfOrphansAlone) {
  Create(testing::StepSpec());
  Append(0, 5);
  ASSERT_OK(writer_->Detach());
  StepMs(3'600'000);
  EXPECT_EQ(*table_->CloseOrphans(1000), 0u);
  StepMs(-7'200'000);
  PassMs(1000);
  EXPECT_EQ(*table_->CloseOrphans(1000), 1u);
}

}  // namespace
}  // namespace geardb
