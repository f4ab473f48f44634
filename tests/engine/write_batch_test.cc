// Write: changes of several tables together, refused whole or made whole.
#include "engine/write_batch.h"

#include <functional>

#include "tests/engine/write_batch_fixture.h"
#include "tests/testing/log_end.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::WindowSpec;

TEST_F(WriteBatchTest, AllKindsOfOperationsAreOneRecord) {
  const TrajectoryId old = AppendClosed(0, 5);
  const TrajectoryId kept = AppendClosed(10, 4);
  const Rows demo(100, 6), steps(200, 3), first(300, 1);
  const std::vector<ColumnValue> last = demo.final_row();
  WriteBatch batch;
  const RowId item[] = {{kept, 2}, {old, 1}, {99, 0}};
  const float priorities[] = {4, 9, 1};
  const RowId gone[] = {{kept, 0}};
  const TrajectoryId removed[] = {old};
  const std::byte blob[] = {std::byte{1}, std::byte{2}};
  EXPECT_EQ(batch.WriteTag("cut", blob), 0u);
  EXPECT_EQ(batch.AppendTrajectory(b_writer_.get(), demo.many(),
                                   {.end = End::kTerminated, .final = last}),
            1u);
  EXPECT_EQ(batch.Remove(table_, removed), 2u);
  EXPECT_EQ(batch.AppendSteps(writer_.get(), steps.many(), {.lane = 1}), 3u);
  EXPECT_EQ(batch.Set(per(), item, priorities), 4u);
  EXPECT_EQ(batch.Delete(per(), gone), 5u);
  EXPECT_EQ(batch.Append(writer_.get(), first.one(), {.lane = 2}), 6u);
  const float score = 2.5F;
  EXPECT_EQ(batch.SetColumns(table_, kept, {{"score", TensorView::Scalar(score)}}), 7u);
  EXPECT_EQ(batch.size(), 8u);
  const Lsn before = database_->Stats().log_end;
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, database_->Write(batch));
  ASSERT_EQ(outcome.operations.size(), 8u);
  const Appended demonstrated = outcome.operations[1].appended[0];
  EXPECT_EQ(demonstrated.rows, 6);
  EXPECT_EQ(demonstrated.end_lsn, outcome.end_lsn);
  EXPECT_EQ(outcome.operations[3].appended[0].id, writer_->open_trajectory(1));
  EXPECT_EQ(outcome.operations[6].appended[0].id, writer_->open_trajectory(2));
  EXPECT_EQ(outcome.operations[4].applied, 2u);
  EXPECT_EQ(outcome.operations[4].stale, 1u);
  EXPECT_EQ(outcome.operations[5].applied, 1u);
  ASSERT_OK_AND_ASSIGN(const Tag tag, database_->LastTag("cut"));
  EXPECT_EQ(tag.lsn, before) << "more than one record";
  EXPECT_EQ(tag.blob, std::vector<std::byte>(std::begin(blob), std::end(blob)));
  const std::string live = Dump();
  for (int opened = 0; opened < 2; ++opened) {
    EXPECT_STATUS(kNotFound, table_->Find(old), "");
    EXPECT_EQ(Numbers(outcome.operations[3].appended[0].id), testing::Count(200, 3));
    EXPECT_EQ(Numbers(outcome.operations[6].appended[0].id), testing::Count(300, 1));
    ASSERT_OK_AND_ASSIGN(const TrajectoryRecord found, b_->Find(demonstrated.id));
    EXPECT_EQ(found.rows_end, 7);
    EXPECT_EQ(*per()->Priority({kept, 2}), 4);
    EXPECT_EQ(Score(table_, kept), 2.5F);
    EXPECT_STATUS(kNotFound, per()->Priority({kept, 0}), "is no item");
    // The priority of what the batch removed counts: it was set before.
    EXPECT_EQ(per()->MaxPriority(), 9);
    EXPECT_EQ(*per()->Priority({outcome.operations[6].appended[0].id, 0}), opened == 0 ? 9 : 9);
    EXPECT_EQ(database_->LastTag("cut")->blob, tag.blob);
    ReopenBoth();
  }
}

TEST_F(WriteBatchTest, NothingIsLoggedForNothing) {
  const Lsn end = database_->Stats().log_end;
  WriteBatch batch;
  ASSERT_OK_AND_ASSIGN(WriteOutcome outcome, database_->Write(batch));
  EXPECT_EQ(outcome.end_lsn, 0u);
  const Rows row(0, 1);
  const RowId none[] = {{5, 5}};
  const float value[] = {1};
  batch.AppendTrajectory(b_writer_.get(), row.many(), {.end = End::kCut});  // Its only row.
  batch.Set(per(), none, value);
  batch.Delete(per(), none);
  batch.Remove(table_, {});
  ASSERT_OK_AND_ASSIGN(outcome, database_->Write(batch));
  EXPECT_EQ(outcome.end_lsn, 0u);
  EXPECT_EQ(outcome.operations[0].appended[0].id, 0u);
  EXPECT_EQ(outcome.operations[1].stale, 1u);
  EXPECT_EQ(outcome.operations[2].stale, 1u);
  testing::ExpectNothingWritten(*database_, end);
  batch.Clear();
  EXPECT_EQ(batch.size(), 0u);
}

TEST_F(WriteBatchTest, NullPointersAreRefused) {
  const TrajectoryId id = AppendClosed(0, 3);
  const Rows one(0, 1);
  const RowId row[] = {{id, 0}};
  const ItemHandle handle[] = {{}};
  const float value[] = {1};
  using Add = std::function<size_t(WriteBatch*)>;
  const std::pair<const char*, Add> calls[] = {
      {"no writer", [&](WriteBatch* b) { return b->Append(nullptr, one.one()); }},
      {"no writer", [&](WriteBatch* b) { return b->AppendSteps(nullptr, one.many()); }},
      {"no writer",
       [&](WriteBatch* b) {
         return b->AppendTrajectory(nullptr, one.many(), {.end = End::kTerminated});
       }},
      {"no writer", [&](WriteBatch* b) { return b->AppendLanes(nullptr, one.many()); }},
      {"no priority table", [&](WriteBatch* b) { return b->Set(nullptr, row, value); }},
      {"no priority table", [&](WriteBatch* b) { return b->Set(nullptr, handle, value); }},
      {"no priority table", [&](WriteBatch* b) { return b->Delete(nullptr, row); }},
      {"no priority table", [&](WriteBatch* b) { return b->Delete(nullptr, handle); }},
      {"no table",
       [&](WriteBatch* b) {
         return b->Remove(nullptr, {&id, 1});
       }},
      {"no table", [&](WriteBatch* b) { return b->Remove(nullptr, {}); }},
      {"no table", [&](WriteBatch* b) { return b->SetColumns(nullptr, id, {}); }}};
  for (const auto& [text, add] : calls) {
    WriteBatch batch;
    batch.Remove(table_, {&id, 1});
    ASSERT_EQ(add(&batch), 1u);
    ExpectRefused(StatusCode::kInvalidArgument, batch,
                  "operation 1: " + std::string(text) + " is given");
  }
}

TEST_F(WriteBatchTest, DeletedItemsTakeTheirTrajectoriesAlongWhereTheTableSaysSo) {
  TableSpec spec = StepSpec();
  spec.name = "once";
  spec.priority_tables = {WindowSpec("only")};
  spec.priority_tables[0].remove_when_exhausted = true;
  Create(spec);
  const TrajectoryId id = AppendClosed(0, 2);
  const RowId both[] = {{id, 0}, {id, 1}};
  WriteBatch batch;
  batch.Delete(table_->priority_table("only"), both);
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, database_->Write(batch));
  EXPECT_EQ(outcome.operations[0].applied, 2u);
  EXPECT_STATUS(kNotFound, table_->Find(id), "");
}

// Of several trajectories and tables, with items that wait for these columns.
TEST_F(WriteBatchTest, ColumnsOfSeveralTrajectoriesAreSetTogether) {
  PriorityTableSpec scored = WindowSpec("scored");
  scored.required = {"score"};
  ASSERT_OK(table_->CreatePriorityTable(scored));
  const TrajectoryId first = AppendClosed(0, 3);
  const TrajectoryId second = AppendClosed(10, 2);
  ASSERT_OK_AND_ASSIGN(const Appended open, writer_->AppendSteps(Rows(20, 1).many()));
  const TrajectoryId of_b = [&] {
    const Rows rows(30, 1);
    const std::vector<ColumnValue> final = rows.final_row();
    return b_writer_->AppendTrajectory(rows.many(), {.end = End::kTerminated, .final = final})->id;
  }();
  const float scores[] = {1, 2, 3, 4};
  const uint32_t version = 7;
  WriteBatch batch;
  const auto fill = [&] {
    batch.Clear();
    batch.SetColumns(table_, first, {{"score", TensorView::Scalar(scores[0])}});
    batch.SetColumns(
        table_, second,
        {{"version", TensorView::Scalar(version)}, {"score", TensorView::Scalar(scores[1])}});
    batch.SetColumns(table_, open.id, {{"score", TensorView::Scalar(scores[2])}});
    batch.SetColumns(b_, of_b, {{"score", TensorView::Scalar(scores[3])}});
  };
  fill();
  batch.SetColumns(b_, of_b + 100, {});
  ExpectRefused(StatusCode::kNotFound, batch, "operation 4: table 'b' has no trajectory");
  EXPECT_EQ(table_->priority_table("scored")->Items().size(), 0u);
  fill();
  batch.SetColumns(b_, of_b, {});
  ExpectRefused(StatusCode::kInvalidArgument, batch,
                "operation 4: table 'b': columns of trajectory");
  fill();
  const uint64_t records = database_->Stats().log_records;
  ASSERT_OK(database_->Write(batch));
  EXPECT_EQ(database_->Stats().log_records, records + 1);
  // The writer goes on with what its trajectory has now.
  ASSERT_OK(writer_->AppendSteps(Rows(21, 1).many()));
  for (int opened = 0; opened < 2; ++opened) {
    EXPECT_EQ(Score(table_, first), 1);
    EXPECT_EQ(Score(table_, second), 2);
    EXPECT_EQ(Score(table_, open.id), 3);
    EXPECT_EQ(Score(b_, of_b), 4);
    EXPECT_EQ(table_->priority_table("scored")->Items().size(), 7u);
    ReopenBoth();
  }
}

TEST_F(WriteBatchTest, WhatABatchCannotSetIsNamed) {
  const TrajectoryId id = AppendClosed(0, 3);
  ASSERT_OK_AND_ASSIGN(const Appended open, writer_->AppendSteps(Rows(20, 1).many()));
  const Column blob{.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kBlob};
  ASSERT_OK(table_->AddColumns({&blob, 1}));
  const float score = 1;
  const Rows more(21, 1);
  const std::vector<ColumnValue> value = {{"score", TensorView::Scalar(score)}};
  WriteBatch batch;
  batch.SetColumns(table_, id, value);
  batch.Remove(table_, {&id, 1});
  ExpectRefused(StatusCode::kInvalidArgument, batch, "are set, and the batch removes it");
  batch.Clear();
  batch.AppendSteps(writer_.get(), more.many());
  batch.SetColumns(table_, open.id, value);
  ExpectRefused(StatusCode::kInvalidArgument, batch, "the batch appends to it");
  batch.Clear();
  batch.SetColumns(table_, id, {{"obs", TensorView::Scalar(score)}});
  ExpectRefused(StatusCode::kInvalidArgument, batch, "is per step");
  batch.Clear();
  const std::vector<uint8_t> text = {1, 2};
  batch.SetColumns(table_, id, {{"text", TensorView(text.data(), DType::kU8, Shape({2}))}});
  ExpectRefused(StatusCode::kInvalidArgument, batch, "column 'text' has values of any length");
}

}  // namespace
}  // namespace geardb
