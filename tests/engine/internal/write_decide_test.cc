// What a batch waits for, what leaves for it, and what its record takes.
#include <thread>

#include "engine/internal/write_call.h"
#include "tests/engine/write_batch_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::WindowSpec;

using WriteDecideTest = WriteBatchTest;

TEST_F(WriteDecideTest, WhatItRemovesMakesRoomForWhatItAppends) {
  for (const Remover remover : {Remover::kNone, Remover::kFifo, Remover::kLifo}) {
    TableSpec spec = StepSpec();
    spec.name = "full" + std::to_string(static_cast<int>(remover));
    spec.trajectories_max = 3;
    spec.remover = remover;
    Create(spec);
    std::vector<TrajectoryId> ids;
    for (int i = 0; i < 3; ++i) ids.push_back(AppendClosed(10 * i, 2));
    const Rows rows(100, 2);
    WriteBatch batch;
    batch.Remove(table_, {&ids[1], 1});
    batch.AppendTrajectory(writer_.get(), rows.many(), {.end = End::kTerminated});
    ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, database_->Write(batch));
    std::vector<TrajectoryId> left;
    for (const TrajectoryRecord& record : table_->Scan({})) left.push_back(record.id);
    EXPECT_EQ(left, (std::vector{ids[0], ids[2], outcome.operations[1].appended[0].id}));
    // Without a removal something else leaves, or nothing may.
    WriteBatch more;
    more.AppendTrajectory(writer_.get(), rows.many(), {.end = End::kTerminated});
    if (remover == Remover::kNone) {
      ExpectRefused(StatusCode::kResourceExhausted, more, "operation 0: table 'full0'");
      continue;
    }
    ASSERT_OK(database_->Write(more));
    EXPECT_STATUS(kNotFound, table_->Find(remover == Remover::kFifo ? ids[0] : left[2]), "");
  }
}

// Its head was trimmed, too: past its end, and in place of another's, which the next open refused.
TEST_F(WriteDecideTest, HeadsOfWhatItRemovesAreNotTrimmed) {
  for (const bool behind_another : {false, true}) {
    TableSpec spec = StepSpec();
    spec.name = behind_another ? "behind" : "first";
    spec.steps_per_page = 8;
    spec.steps_max = behind_another ? 30 : 10;
    Create(spec, {.lanes = 3});
    if (behind_another) Append(0, 12, End::kGo, 1);
    const TrajectoryId gone = Append(100, behind_another ? 5 : 3, End::kGo, 0).id;
    if (!behind_another) Append(0, 3, End::kGo, 1);
    Append(200, behind_another ? 5 : 3, End::kGo, 2);
    const Rows rows(12, behind_another ? 25 : 5);
    WriteBatch batch;
    batch.Remove(table_, {&gone, 1});
    batch.AppendSteps(writer_.get(), rows.many(), {.lane = 1});
    ASSERT_OK(database_->Write(batch));
    EXPECT_LE(table_->Stats().steps, static_cast<uint64_t>(spec.steps_max));
    Append(205, 3, End::kGo, 2);
    EXPECT_LE(table_->Stats().steps, static_cast<uint64_t>(spec.steps_max));
    const uint64_t steps = table_->Stats().steps;
    writer_.reset();
    ReopenBoth();
    OpenAgain(spec.name, {.lanes = 3});
    EXPECT_EQ(table_->Stats().steps, steps);
  }
}

TEST_F(WriteDecideTest, LimitersAdmitItAsAWholeAndHoldNoPlaceMeanwhile) {
  TableSpec spec = StepSpec();
  spec.name = "queued";
  spec.priority_tables = {WindowSpec("queue")};
  spec.priority_tables[0].selector = SelectorKind::kFifo;
  spec.priority_tables[0].limiter = {.kind = LimiterKind::kQueue, .capacity = 4};
  Create(spec);
  AppendClosed(0, 3);
  const Rows two(10, 2), one(20, 1);
  WriteBatch batch;
  batch.AppendTrajectory(b_writer_.get(), two.many(), {.end = End::kCut});
  batch.AppendTrajectory(writer_.get(), two.many(), {.end = End::kTerminated});
  ExpectRefused(StatusCode::kDeadlineExceeded, batch,
                "operation 1: table 'queued': the append was never admitted");
  const auto queue = table_->priority_table("queue");
  std::thread waits([&] {
    const auto outcome = database_->Write(batch);
    EXPECT_OK(outcome);
  });
  while (queue->WhyBlocked().inserts.waiting == 0) std::this_thread::yield();
  // The place that is left is nobody's yet.
  ASSERT_OK_AND_ASSIGN(const auto other, table_->NewWriter({.admission_timeout_ms = 0}));
  EXPECT_OK(other->AppendTrajectory(one.many(), {.end = End::kTerminated}));
  ASSERT_OK_AND_ASSIGN(const auto sampler, queue->NewSampler({.batch = 2}));
  ASSERT_OK(sampler->Next());
  waits.join();
  EXPECT_EQ(queue->DrawableCount(), 4u);
  const Rows five(0, 5);
  WriteBatch never;
  never.AppendTrajectory(writer_.get(), five.many(), {.end = End::kTerminated});
  ExpectRefused(StatusCode::kInvalidArgument, never,
                "operation 0: table 'queued': priority table 'queue' never admits the call");
}

TEST_F(WriteDecideTest, RowsGoAheadInPartsAndTheRestMustFitARecord) {
  const uint64_t record_max = testing::CoreOf(*database_)->log->record_bytes_max();
  // Of 16 bytes a row: several records of rows in each of two tables.
  const auto count = static_cast<int64_t>(record_max / 32);
  const Rows many(0, count), last(count, 1);
  WriteBatch batch;
  batch.AppendSteps(b_writer_.get(), many.many(), {.lane = 1});
  batch.AppendSteps(writer_.get(), many.many(), {.lane = 2});
  batch.WriteTag("large", {});
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, database_->Write(batch));
  ASSERT_OK(writer_->Append(last.one(), {.lane = 2}));
  const TrajectoryId ids[] = {outcome.operations[0].appended[0].id,
                              outcome.operations[1].appended[0].id};
  for (int opened = 0; opened < 3; ++opened) {
    EXPECT_EQ(Numbers(ids[1]), testing::Count(0, static_cast<int32_t>(count) + 1));
    EXPECT_EQ(b_->Find(ids[0])->rows_end, count);
    EXPECT_OK(database_->LastTag("large"));
    if (opened == 1) testing::DropFrames(*database_);
    if (opened != 1) ReopenBoth();
  }
  // Items are in the record itself.
  const std::vector<RowId> rows(record_max / 16 + 1, RowId{ids[1], 0});
  const std::vector<float> values(rows.size(), 2.0f);
  WriteBatch large;
  large.Set(per(), rows, values);
  ExpectRefused(StatusCode::kInvalidArgument, large, "a batch of 1 operations needs a log record");
  WriteBatch fits;
  fits.Set(per(), std::span(rows).first(rows.size() - 200),
           std::span(values).first(values.size() - 200));
  EXPECT_OK(database_->Write(fits));
}

TEST_F(WriteDecideTest, WeightsBeyondTheScaleMoveItFirst) {
  const TrajectoryId id = AppendClosed(0, 4);
  const RowId item[] = {{id, 1}};
  const float huge[] = {1e30f};
  const Rows rows(0, 2);
  const InitialPriorities given[] = {{"demos", huge}};
  WriteBatch batch;
  batch.Set(per(), item, huge);
  batch.AppendTrajectory(b_writer_.get(), rows.many(), {.end = End::kCut, .priorities = given});
  ASSERT_OK(database_->Write(batch));
  EXPECT_GT(*per()->Probability({id, 1}), 0.99);
  EXPECT_EQ(per()->MaxPriority(), 1e30f);
  EXPECT_EQ(demos()->MaxPriority(), 1e30f);
  EXPECT_FALSE(per()->Stats().scale_shift > 0);
  const std::string live = Dump();
  ReopenBoth();
  EXPECT_EQ(per()->MaxPriority(), 1e30f);
  EXPECT_GT(*per()->Probability({id, 1}), 0.99);
}

TEST_F(WriteDecideTest, LanesOfOneTableMayHavePrioritiesOfTheirOwn) {
  ASSERT_OK(writer_->AppendSteps(Rows(0, 2).many(), {.lane = 2}));
  const Rows one(10, 3), two(20, 2), three(30, 1);
  const float each[] = {1, 2, 3};
  const float all[] = {7};
  const InitialPriorities of_one[] = {{"per", each}};
  const InitialPriorities of_three[] = {{"pairs", all}};
  WriteBatch batch;
  batch.AppendTrajectory(writer_.get(), one.many(),
                         {.lane = 0, .end = End::kTerminated, .priorities = of_one});
  batch.AppendTrajectory(writer_.get(), two.many(), {.lane = 1, .end = End::kTruncated});
  batch.Append(writer_.get(), three.one(), {.lane = 2, .priorities = of_three});
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, database_->Write(batch));
  const auto id = [&](size_t i) { return outcome.operations[i].appended[0].id; };
  const auto expect = [&] {
    for (int64_t row = 0; row < 3; ++row) {
      EXPECT_EQ(*per()->Priority({id(0), row}), static_cast<float>(row + 1));
    }
    EXPECT_EQ(*per()->Priority({id(1), 0}), 1);
    EXPECT_EQ(*per()->Priority({id(2), 2}), 1);
    EXPECT_EQ(*priority("pairs")->Priority({id(0), 0}), 1);
    EXPECT_EQ(*priority("pairs")->Priority({id(2), 1}), 7);
    EXPECT_EQ(per()->MaxPriority(), 3);
  };
  expect();
  ReopenBoth();
  expect();
  ASSERT_OK(writer_->Append(three.one(), {.lane = 2}));  // There are ids after that.
  const float wrong[] = {1, 2};
  const InitialPriorities of_two[] = {{"per", wrong}};
  WriteBatch bad;
  bad.AppendTrajectory(writer_.get(), two.many(), {.lane = 1, .end = End::kTruncated});
  bad.AppendTrajectory(writer_.get(), one.many(),
                       {.lane = 0, .end = End::kTerminated, .priorities = of_two});
  ExpectRefused(StatusCode::kInvalidArgument, bad,
                "operation 1: priority table 'per': 2 initial priorities for 3 items");
}

}  // namespace
}  // namespace geardb
