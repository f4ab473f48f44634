// Values of any length in records of their own size: with those of other tables, in parts, and for
// trajectories that are there.
#include <gtest/gtest.h>

#include "tests/engine/values_fixture.h"

namespace geardb {
namespace {

using testing::Bytes;
using testing::ModelStep;
using testing::ValueRowsOf;
using testing::ValuesSpec;

class WriteCompanionsTest : public testing::StoreTest {
 protected:
  Bytes Prompt(TrajectoryId id, const Table& table) const {
    const std::string_view column = "prompt";
    const auto rows = table.Read(id, {&column, 1}, {});
    EXPECT_OK(rows);
    if (!rows.ok()) return {};
    const auto prompt = (*rows)[0].view().values<uint8_t>();
    return Bytes(prompt.begin(), prompt.end());
  }
  static Bytes Many(size_t count, uint8_t seed) {
    Bytes bytes(count);
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(seed + i * 31 + (i >> 9));
    return bytes;
  }
  static ColumnValue Of(const Bytes& prompt) {
    return {"prompt", TensorView::Of(std::span<const uint8_t>(prompt))};
  }
};

TEST_F(WriteCompanionsTest, ABatchHasThemOfSeveralTables) {
  Create(ValuesSpec(false));
  TableSpec spec = ValuesSpec(false);
  spec.name = "other";
  ASSERT_OK_AND_ASSIGN(const auto other, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(const auto writer, other->NewWriter({.lanes = 2}));
  const ValueRowsOf rows({{.text = {1, 2}}, {.text = {3}}}, 0, false);
  const Bytes first = Many(700, 1), second = Many(90, 2);
  const std::vector<ColumnValue> one = {Of(first)}, two = {Of(second)};
  WriteBatch batch;
  batch.AppendSteps(writer_.get(), rows.values(), {.trajectory = one});
  batch.AppendSteps(writer.get(), rows.values(), {.lane = 0, .trajectory = two});
  batch.AppendSteps(writer.get(), rows.values(), {.lane = 1, .end = End::kTerminated});
  ASSERT_OK_AND_ASSIGN(const WriteOutcome outcome, database_->Write(batch));
  ASSERT_EQ(outcome.operations.size(), 3u);
  const TrajectoryId a = outcome.operations[0].appended[0].id;
  const TrajectoryId b = outcome.operations[1].appended[0].id;
  writer_.reset();
  const auto check = [&](const Table& left, const Table& right) {
    EXPECT_EQ(Prompt(a, left), first);
    EXPECT_EQ(Prompt(b, right), second);
    EXPECT_EQ(Prompt(outcome.operations[2].appended[0].id, right), Bytes());
  };
  check(*table_, *other);
  WriteBatch wrong;
  wrong.AppendSteps(writer.get(), rows.values(), {.lane = 1});
  wrong.Remove(other, std::vector<TrajectoryId>{UINT64_MAX / 4});
  EXPECT_STATUS(kNotFound, database_->Write(wrong), "operation 1");
  check(*table_, *other);
}

TEST_F(WriteCompanionsTest, AValueLargerThanARecordGoesInParts) {
  // Of a ring of 1 MiB, a quarter.
  TableSpec spec = ValuesSpec(false);
  spec.columns[1].expected_rows = spec.columns[5].expected_rows = 1 << 20;
  Create(spec);
  const Bytes large = Many(3 << 20, 5), larger = Many(5 << 20, 6);
  const ValueRowsOf rows({{.text = Many(400'000, 7)}}, 0, true);
  const std::vector<ColumnValue> prompt = {Of(large)};
  ASSERT_OK_AND_ASSIGN(
      const Appended appended,
      writer_->Append(rows.values(), {.end = End::kTerminated, .trajectory = prompt}));
  EXPECT_EQ(Prompt(appended.id, *table_), large);
  ASSERT_OK(table_->SetColumns(appended.id, std::vector<ColumnValue>{Of(larger)}));
  EXPECT_EQ(Prompt(appended.id, *table_), larger);
  writer_.reset();
  Reopen();
  OpenAgain("values");
  EXPECT_EQ(Prompt(appended.id, *table_), larger);
  const std::string_view column = "text";
  ASSERT_OK_AND_ASSIGN(const auto text, table_->Read(appended.id, {&column, 1}, {}));
  const auto read = text[0].view().values<uint8_t>();
  EXPECT_EQ(Bytes(read.begin(), read.end()), Many(400'000, 7));
}

TEST_F(WriteCompanionsTest, WhatIsSetIsReplacedAndEmptied) {
  Create(ValuesSpec(false));
  const ValueRowsOf rows({ModelStep()}, 0, true);
  ASSERT_OK_AND_ASSIGN(const Appended appended, writer_->Append(rows.values()));
  for (const size_t count : std::vector<size_t>{100, 0, 1, 100'000, 0, 7}) {
    const Bytes prompt = Many(count, static_cast<uint8_t>(count));
    ASSERT_OK(table_->SetColumns(appended.id, std::vector<ColumnValue>{Of(prompt)}));
    EXPECT_EQ(Prompt(appended.id, *table_), prompt);
  }
  const Bytes prompt = Many(9, 9);
  const std::vector<ColumnValue> values = {Of(prompt)};
  ASSERT_OK(writer_->Append(rows.values(), {.trajectory = values}));
  EXPECT_EQ(Prompt(appended.id, *table_), prompt);
  EXPECT_EQ(table_->Stats().pages, 1u);
  EXPECT_STATUS(kNotFound, table_->SetColumns(appended.id + 1, values), "has no trajectory");
  const std::vector<ColumnValue> twice = {Of(prompt), Of(prompt)};
  EXPECT_STATUS(kInvalidArgument, table_->SetColumns(appended.id, twice), "given twice");
}

TEST_F(WriteCompanionsTest, ItemsWaitForABlob) {
  TableSpec spec = ValuesSpec(false);
  spec.priority_tables[1].required = {"prompt", "goal"};
  Create(spec);
  const ValueRowsOf rows({ModelStep()}, 0, true);
  ASSERT_OK_AND_ASSIGN(const Appended appended,
                       writer_->Append(rows.values(), {.end = End::kTerminated}));
  EXPECT_EQ(priority("whole")->Stats().items, 0u);
  const Bytes prompt = {1};
  ASSERT_OK(table_->SetColumns(appended.id, std::vector<ColumnValue>{Of(prompt)}));
  EXPECT_EQ(priority("whole")->Stats().items, 0u);
  const std::vector<float> goal(testing::kGoal);
  ASSERT_OK(table_->SetColumns(
      appended.id,
      std::vector<ColumnValue>{{"goal", TensorView::Of(std::span<const float>(goal))}}));
  EXPECT_EQ(priority("whole")->Stats().items, 1u);
  ASSERT_OK_AND_ASSIGN(const Filter set, Filter::Parse("isset(prompt)"));
  ASSERT_OK_AND_ASSIGN(const uint64_t count, table_->Count(set));
  EXPECT_EQ(count, 1u);
  ASSERT_OK_AND_ASSIGN(const Filter wrong, Filter::Parse("prompt > 1"));
  EXPECT_STATUS(kInvalidArgument, table_->Check(wrong), "'prompt' is a blob");
}

// Each value is small enough; the record has 32 bits for the rows of a call. Nothing is read.
TEST_F(WriteCompanionsTest, MoreRowsOfValuesThanACallTakesAreRefused) {
  options_.budgets.frames_bytes = uint64_t{16} << 30;
  Reopen();
  Create(ValuesSpec(false));
  constexpr int64_t kEach = 1'500'000'000;
  const std::vector<int64_t> rows = {1, 2, 3};
  const std::vector<uint64_t> offsets = {0, kEach, 2 * kEach, 3 * kEach};
  const std::vector<uint64_t> none = {0, 0, 0, 0};
  const std::vector<ColumnValue> values = {
      {"row", TensorView::Of(std::span<const int64_t>(rows))},
      {"text", TensorView(rows.data(), DType::kU8, Shape({3 * kEach})), offsets},
      {"rgb", TensorView(nullptr, DType::kU8, Shape({0, 3})), none},
      {"big", TensorView(nullptr, DType::kU8, Shape({0, testing::kBigRow})), none}};
  EXPECT_STATUS(kInvalidArgument, writer_->AppendSteps(values), "a call with 4500000000 rows");
  EXPECT_EQ(table_->Count(), 0u);
}

TEST_F(WriteCompanionsTest, WhatDoesNotFitIsRefusedWhole) {
  TableSpec spec = ValuesSpec(false);
  spec.bytes_max = 1 << 20;
  Create(spec);
  const ValueRowsOf rows({ModelStep()}, 0, true);
  const Bytes large = Many(2 << 20, 1);
  const std::vector<ColumnValue> prompt = {Of(large)};
  EXPECT_STATUS(kInvalidArgument, writer_->Append(rows.values(), {.trajectory = prompt}), "bytes");
  EXPECT_EQ(table_->Count(), 0u);
  ASSERT_OK(writer_->Append(rows.values()));
  EXPECT_EQ(table_->Count(), 1u);
}

}  // namespace
}  // namespace geardb
