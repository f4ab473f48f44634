// What leaves a full table: the oldest, the same after a reopen, and nothing for a call that is
// refused.
#include <gtest/gtest.h>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

class EvictionTest : public StoreTest {
 protected:
  std::vector<TrajectoryId> Ids() const {
    std::vector<TrajectoryId> ids;
    for (const TrajectoryRecord& record : table_->Scan({})) ids.push_back(record.id);
    return ids;
  }
  Result<Appended> TryAppend(int64_t rows, AppendOptions options = {.end = End::kTerminated}) {
    return writer_->AppendSteps(Rows(100, rows).many(), options);
  }
  /// A new store whose records have 16 KiB: 800 of its 1,000 trajectories do not fit one.
  void FillWithSingleSteps() {
    options_.ring_bytes = 64 << 10;
    options_.segment_bytes = 128 << 10;
    OpenEmpty();
    TableSpec spec = StepSpec();
    spec.steps_per_page = 64;
    spec.steps_max = 1000;
    Create(spec);
    for (int t = 0; t < 1000; ++t) AppendClosed(t, 1);
  }
};

// One append that takes the place of several pages of one open trajectory.
TEST_F(EvictionTest, PagesTrimmedTogetherAreCountedOnce) {
  TableSpec spec = StepSpec();
  spec.stream = true;
  spec.steps_max = 64;
  Create(spec);
  for (int call = 0; call < 50; ++call) {
    Append(call * 20, 20);
    ASSERT_LE(table_->StepCount(), 64u) << "after call " << call;
    ASSERT_GT(table_->StepCount(), call > 3 ? 64u - 8 : 0u) << "after call " << call;
  }
}

TEST_F(EvictionTest, ACallThatCanNeverFitTakesNothingFromOpenTrajectories) {
  TableSpec spec = StepSpec();
  spec.steps_max = 10;
  Create(spec);
  Append(0, 10);
  EXPECT_STATUS(kResourceExhausted, TryAppend(10, {}), "steps_max must be 11 or more");
  EXPECT_EQ(Numbers(1), testing::Count(0, 10));
  Append(10, 9);
  EXPECT_EQ(Numbers(1), testing::Count(9, 10));
}

TEST_F(EvictionTest, NorFromClosedOnes) {
  TableSpec spec = StepSpec();
  spec.steps_max = 50;
  Create(spec, {.lanes = 16});
  for (uint32_t lane = 1; lane < 16; ++lane) Append(0, 1, End::kGo, lane);
  for (int closed = 0; closed < 7; ++closed) AppendClosed(0, 5);
  EXPECT_STATUS(kResourceExhausted, TryAppend(40), "15 trajectories are open");
  EXPECT_EQ(table_->Count(), 22u);
  EXPECT_EQ(table_->StepCount(), 50u);
  ASSERT_OK(TryAppend(35));
  EXPECT_EQ(table_->Count(), 16u);
}

TEST_F(EvictionTest, NorWhenLanesNeedMorePlacesThanMayLeave) {
  TableSpec spec = StepSpec();
  spec.trajectories_max = 3;
  Create(spec, {.lanes = 4});
  AppendClosed(0, 2);
  Append(0, 1, End::kGo, 0);
  Append(0, 1, End::kGo, 1);
  EXPECT_STATUS(kResourceExhausted, writer_->AppendLanes(Rows(0, 4).many(), {}), "is full");
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{1, 2, 3}));
}

TEST_F(EvictionTest, AWrongNumberOfPrioritiesTakesNothing) {
  TableSpec spec = StepSpec();
  spec.trajectories_max = 3;
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  for (int t = 0; t < 3; ++t) AppendClosed(0, 4);
  const float values[] = {1, 2, 3};
  const InitialPriorities priorities[] = {{"per", values}};
  EXPECT_STATUS(kInvalidArgument, TryAppend(4, {.end = End::kTerminated, .priorities = priorities}),
                "for 4 items");
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{1, 2, 3}));
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{1, 2, 3}));
}

// A ring of 32 KiB: a record names 42 trajectories that leave.
TEST_F(EvictionTest, MoreThanOneRecordNamesLeavesWhollyOrNotAtAll) {
  options_.ring_bytes = 32 << 10;
  options_.segment_bytes = 64 << 10;
  OpenEmpty();
  TableSpec spec = StepSpec();
  spec.steps_max = 200;
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  for (int t = 0; t < 200; ++t) AppendClosed(t, 1);
  const float values[] = {1, 2, 3};
  const InitialPriorities priorities[] = {{"per", values}};
  EXPECT_STATUS(kInvalidArgument,
                TryAppend(150, {.end = End::kTerminated, .priorities = priorities}), "items");
  EXPECT_EQ(table_->Count(), 200u);
  AppendClosed(1000, 150);
  EXPECT_EQ(table_->Count(), 51u);
  EXPECT_EQ(Ids().front(), 151u);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), 51u);
  EXPECT_EQ(Ids().front(), 151u);
  EXPECT_EQ(priority("per")->Count(), 200u);
}

// A batch for which more left was refused.
TEST_F(EvictionTest, NorDoesABatchNeedOneRecord) {
  for (const bool removes : {false, true}) {
    FillWithSingleSteps();
    const Rows rows(5000, 800);
    const TrajectoryId by_hand[] = {900, 901};
    WriteBatch batch;
    if (removes) batch.Remove(table_, by_hand);
    batch.AppendSteps(writer_.get(), rows.many(), {.end = End::kTerminated});
    ASSERT_OK(database_->Write(batch));
    const auto check = [&] {
      const std::vector<TrajectoryId> ids = Ids();
      ASSERT_EQ(ids.size(), 201u);
      EXPECT_EQ(ids.front(), removes ? 799u : 801u);
      EXPECT_EQ(ids.back(), 1001u);
      EXPECT_EQ(Numbers(1001), testing::Count(5000, 800));
      EXPECT_EQ(table_->Find(900).ok(), !removes);
    };
    check();
    Reopen();
    OpenAgain("steps");
    check();
  }
}

// One that went ahead of the record which sets its column was no more when that was replayed.
TEST_F(EvictionTest, WhatABatchSetsColumnsOfLeavesWithIt) {
  FillWithSingleSteps();
  const Rows rows(5000, 800);
  const float score = 3;
  WriteBatch batch;
  for (const TrajectoryId id : {5u, 700u, 950u}) {
    batch.SetColumns(table_, id, {{"score", TensorView::Scalar(score)}});
  }
  batch.AppendSteps(writer_.get(), rows.many(), {.end = End::kTerminated});
  ASSERT_OK(database_->Write(batch));
  for (const bool again : {false, true}) {
    if (again) {
      Reopen();
      OpenAgain("steps");
    }
    EXPECT_EQ(table_->Count(), 201u);
    EXPECT_EQ(Ids().front(), 801u);
    ASSERT_OK_AND_ASSIGN(const auto scores, table_->Statistics("score"));
    EXPECT_EQ(scores.max, 3);
  }
}

class EvictionOrderTest : public EvictionTest, public ::testing::WithParamInterface<bool> {
 protected:
  void CreateFour() {
    TableSpec spec = StepSpec();
    spec.trajectories_max = 4;
    Create(spec, {.lanes = 2});
  }
  /// Who has left once another trajectory has come, live or after a reopen.
  std::vector<TrajectoryId> IdsAfterOneMore() {
    if (GetParam()) {
      Reopen();
      OpenAgain("steps");
    } else {
      writer_ = std::move(*table_->NewWriter({}));
    }
    AppendClosed(0, 1);
    return Ids();
  }
};

TEST_P(EvictionOrderTest, ClosedByOneRecordTheFirstOpenedLeavesFirst) {
  CreateFour();
  Append(0, 1, End::kGo, 1);
  Append(0, 1, End::kGo, 0);
  const std::vector<End> ends = {End::kTerminated, End::kTerminated};
  ASSERT_OK(writer_->AppendLanes(Rows(0, 2).many(), {.ends = ends}));
  AppendClosed(0, 1);
  AppendClosed(0, 1);
  EXPECT_EQ(IdsAfterOneMore(), (std::vector<TrajectoryId>{2, 3, 4, 5}));
}

TEST_P(EvictionOrderTest, ColumnsThatAreSetDoNotMakeAnOrphanYounger) {
  CreateFour();
  for (int row = 0; row < 5; ++row) {
    Append(row, 1, End::kGo, 0);
    Append(row, 1, End::kGo, 1);
  }
  writer_ = std::move(*table_->NewWriter({}));
  AppendClosed(0, 1);
  AppendClosed(0, 1);
  const uint32_t version = 3;
  const ColumnValue value{"version", TensorView::Scalar(version)};
  ASSERT_OK(table_->SetColumns(1, {&value, 1}));
  EXPECT_EQ(IdsAfterOneMore(), (std::vector<TrajectoryId>{2, 3, 4, 5}));
}

TEST_P(EvictionOrderTest, NorDoRowsThatAreTruncated) {
  CreateFour();
  Append(0, 5, End::kGo, 0);
  Append(0, 5, End::kGo, 1);
  writer_ = std::move(*table_->NewWriter({}));
  AppendClosed(0, 1);
  AppendClosed(0, 1);
  ASSERT_OK(table_->Truncate(1, 2));
  EXPECT_EQ(IdsAfterOneMore(), (std::vector<TrajectoryId>{2, 3, 4, 5}));
}

TEST_P(EvictionOrderTest, AWriterThatLeavesCountsWhenItLeaves) {
  CreateFour();
  Append(0, 1, End::kGo, 0);
  AppendClosed(0, 1);  // On the same lane: it closes trajectory 1.
  Append(0, 1, End::kGo, 1);
  auto other = table_->NewWriter({});
  ASSERT_OK(other);
  ASSERT_OK((*other)->AppendSteps(Rows(0, 1).many(), {.end = End::kTerminated}));
  writer_.reset();  // Leaves 2, after 3 was closed.
  ASSERT_OK((*other)->AppendSteps(Rows(0, 1).many(), {.end = End::kTerminated}));
  ASSERT_OK((*other)->AppendSteps(Rows(0, 1).many(), {.end = End::kTerminated}));
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{2, 3, 4, 5}));
  other->reset();
  EXPECT_EQ(IdsAfterOneMore(), (std::vector<TrajectoryId>{2, 4, 5, 6}));
}

INSTANTIATE_TEST_SUITE_P(LiveAndReopened, EvictionOrderTest, ::testing::Bool(),
                         [](const auto& chosen) { return chosen.param ? "Reopened" : "Live"; });

}  // namespace
}  // namespace geardb
