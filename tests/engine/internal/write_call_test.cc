// What a batch is refused for, by its operation's index.
#include "engine/internal/write_call.h"

#include <cmath>

#include "tests/engine/write_batch_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;

using WriteCallTest = WriteBatchTest;

TEST_F(WriteCallTest, AWrongOperationIsNamedAndNothingChanges) {
  const TrajectoryId there = AppendClosed(0, 3);
  ASSERT_OK(writer_->AppendSteps(Rows(0, 2).many(), {.lane = 2}));
  const Rows rows(10, 2);
  const auto good = [&](WriteBatch* batch) {
    batch->AppendTrajectory(b_writer_.get(), rows.many(), {.end = End::kCut});
  };
  {
    WriteBatch batch;
    good(&batch);
    batch.AppendSteps(writer_.get(), {{"obs", TensorView()}});
    ExpectRefused(StatusCode::kInvalidArgument, batch, "operation 1: table 'a': column 'obs'");
  }
  {
    WriteBatch batch;
    good(&batch);
    const TrajectoryId ids[] = {there, 77};
    batch.Remove(table_, ids);
    ExpectRefused(StatusCode::kNotFound, batch, "operation 1: table 'a' has no trajectory 77");
  }
  {
    WriteBatch batch;
    const TrajectoryId ids[] = {writer_->open_trajectory(2)};
    batch.Remove(table_, ids);
    batch.AppendSteps(writer_.get(), rows.many(), {.lane = 2});
    ExpectRefused(StatusCode::kInvalidArgument, batch,
                  "operation 0: table 'a': trajectory " + std::to_string(ids[0]) +
                      " is removed, and lane 2 appends to it");
  }
  {
    WriteBatch batch;
    good(&batch);
    const RowId item[] = {{there, 0}};
    const float nan[] = {std::nanf("")};
    batch.Set(per(), item, nan);
    ExpectRefused(StatusCode::kInvalidArgument, batch,
                  "operation 1: priority table 'per': priority 0 is nan");
  }
}

TEST_F(WriteCallTest, WhatDoesNotGoTogetherIsRefused) {
  const Rows rows(10, 2);
  const auto good = [&](WriteBatch* batch) {
    batch->AppendTrajectory(b_writer_.get(), rows.many(), {.end = End::kCut});
  };
  {
    WriteBatch batch;
    good(&batch);
    good(&batch);
    ExpectRefused(StatusCode::kInvalidArgument, batch,
                  "operation 1: table 'b': lane 0 comes twice in one batch");
  }
  {
    ASSERT_OK_AND_ASSIGN(const auto other, b_->NewWriter({}));
    WriteBatch batch;
    good(&batch);
    batch.AppendTrajectory(other.get(), rows.many(), {.end = End::kCut});
    ExpectRefused(StatusCode::kInvalidArgument, batch,
                  "operation 1: table 'b': another writer than that of operation 0");
  }
  {
    WriteBatch batch;
    good(&batch);
    batch.WriteTag("one", {});
    batch.WriteTag("two", {});
    ExpectRefused(StatusCode::kInvalidArgument, batch, "operation 2: a second tag");
  }
  {
    WriteBatch batch;
    batch.WriteTag("", {});
    ExpectRefused(StatusCode::kInvalidArgument, batch, "operation 0: a tag's name has 0 bytes");
  }
  {
    const testing::TempDir elsewhere;
    ASSERT_OK_AND_ASSIGN(auto other, Database::Open(elsewhere.path(), testing::SmallOptions()));
    WriteBatch batch;
    good(&batch);
    ASSERT_OK_AND_ASSIGN(const auto foreign, other->CreateTable(StepSpec()));
    const TrajectoryId ids[] = {1};
    batch.Remove(foreign, ids);
    ExpectRefused(StatusCode::kInvalidArgument, batch, "operation 1: the table is of database '");
  }
  WriteBatch batch;
  good(&batch);
  EXPECT_OK(database_->Write(batch));
  EXPECT_OK(database_->Write(batch)) << "it can be written again";
  ASSERT_OK(database_->DropTable("b"));
  ExpectRefused(StatusCode::kCancelled, batch, "operation 0: table 'b' was dropped");
}

TEST_F(WriteCallTest, ClosedAndReadOnlyDatabasesRefuseIt) {
  const Rows rows(0, 2);
  WriteBatch batch;
  batch.AppendTrajectory(writer_.get(), rows.many(), {.end = End::kTerminated});
  ASSERT_OK(database_->Close());
  EXPECT_STATUS(kCancelled, database_->Write(batch), "is closed");
  EXPECT_STATUS(kCancelled, database_->Write(WriteBatch()), "is closed");
}

}  // namespace
}  // namespace geardb
