// Updates of raw priorities, what becomes of them, and their scale.

#include "engine/priority_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/engine/priority_fixture.h"
#include "tests/testing/log_end.h"

namespace geardb {
namespace {

using testing::PriorityFixture;
using testing::Rows;
using testing::StepSpec;
using testing::WindowSpec;

constexpr float kInf = std::numeric_limits<float>::infinity();

class PriorityTableTest : public PriorityFixture {};

TEST_F(PriorityTableTest, SetByRowAndHandle) {
  CreateWith({WindowSpec("per")});
  AppendClosed(0, 6);
  const RowId rows[] = {{1, 1}, {1, 4}, {1, 9}, {7, 0}};
  const float values[] = {3, 0, 1, 1};
  const auto outcome = priority("per")->Set(rows, values);
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->applied, 2u);
  EXPECT_EQ(outcome->stale, 2u);
  EXPECT_EQ(RawPriorities("per"), (std::vector<float>{1, 3, 1, 1, 0, 1}));
  EXPECT_EQ(priority("per")->Count(), 6u);
  EXPECT_EQ(priority("per")->DrawableCount(), 5u);

  auto sampler = priority("per")->NewSampler({.batch = 32});
  ASSERT_OK(sampler);
  const auto batch = (*sampler)->Next();
  ASSERT_OK(batch);
  std::vector<float> updates;
  for (const int64_t anchor : batch->anchors()) {
    EXPECT_NE(anchor, 4);  // Undrawable.
    updates.push_back(static_cast<float>(10 + anchor));
  }
  const auto second = priority("per")->Set(batch->handles(), updates);
  ASSERT_OK(second);
  EXPECT_EQ(second->applied, 32u);
  for (const int64_t anchor : batch->anchors()) {
    EXPECT_EQ(*priority("per")->Priority({1, anchor}), static_cast<float>(10 + anchor));
  }
  EXPECT_OK(database_->Wait(Ticket{second->end_lsn}, Ack::kSync));
}

TEST_F(PriorityTableTest, NegativeRowsCountFromTheEnd) {
  CreateWith({WindowSpec("per")});
  AppendClosed(0, 6);
  const RowId rows[] = {{1, -1}, {1, -6}, {1, -7}};
  const float values[] = {3, 4, 5};
  const auto outcome = priority("per")->Set(rows, values);
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->applied, 2u);
  EXPECT_EQ(RawPriorities("per"), (std::vector<float>{4, 1, 1, 1, 1, 3}));
  EXPECT_EQ(*priority("per")->Priority({1, -1}), 3.0f);
}

TEST_F(PriorityTableTest, TheLastOfDuplicatesWins) {
  CreateWith({WindowSpec("per")});
  AppendClosed(0, 3);
  const RowId rows[] = {{1, 1}, {1, 2}, {1, 1}, {1, 1}};
  const float values[] = {8, 2, 0, 5};
  const auto outcome = priority("per")->Set(rows, values);
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->applied, 4u);
  EXPECT_EQ(RawPriorities("per"), (std::vector<float>{1, 5, 2}));
}

TEST_F(PriorityTableTest, SetAllOfNoItemsTakesNoPriorities) {
  CreateWith({WindowSpec("per")});
  const auto outcome = priority("per")->SetAll({});
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->applied, 0u);
  EXPECT_EQ(outcome->end_lsn, 0u);
  const float one[] = {1};
  EXPECT_OK(priority("per")->SetAll(one));
  const float two[] = {1, 2};
  EXPECT_STATUS(kFailedPrecondition, priority("per")->SetAll(two), "0 items; 2 priorities");
  AppendClosed(0, 3);
  EXPECT_STATUS(kFailedPrecondition, priority("per")->SetAll({}), "3 items; 0 priorities");
}

TEST_F(PriorityTableTest, SetAllFollowsIdAndRow) {
  CreateWith({WindowSpec("per")});
  AppendClosed(0, 3);
  AppendClosed(0, 6);
  const TrajectoryId ids[] = {1};
  ASSERT_OK(table_->Remove(ids));
  AppendClosed(0, 5);  // Takes the page and the slot that were freed: leaves are not in order.
  std::vector<float> values;
  for (int i = 0; i < 11; ++i) values.push_back(static_cast<float>(i));
  const auto outcome = priority("per")->SetAll(values);
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->applied, 11u);
  EXPECT_EQ(RawPriorities("per"), values);
  const auto items = priority("per")->Items();
  EXPECT_EQ(items.front(), (RowId{2, 0}));
  EXPECT_EQ(items.back(), (RowId{3, 4}));
  const float one[] = {2};
  ASSERT_OK(priority("per")->SetAll(one));
  EXPECT_EQ(RawPriorities("per"), std::vector<float>(11, 2.0f));
  EXPECT_STATUS(kFailedPrecondition, priority("per")->SetAll(std::span(values).first(7)),
                "11 items; 7 priorities");
  EXPECT_STATUS(kFailedPrecondition, priority("per")->SetAll({}), "11 items; 0 priorities");
  EXPECT_EQ(RawPriorities("per"), std::vector<float>(11, 2.0f));
}

TEST_F(PriorityTableTest, WrongPrioritiesAreRefusedBeforeAnythingChanges) {
  CreateWith({WindowSpec("per")});
  AppendClosed(0, 3);
  const RowId rows[] = {{1, 0}, {1, 1}, {1, 2}};
  const ItemHandle handles[3] = {};
  for (const float bad : {std::nanf(""), kInf, -kInf, -1e-30f}) {
    const float values[] = {9, bad, -5};
    EXPECT_STATUS(kInvalidArgument, priority("per")->Set(rows, values), "priority 1 is");
    EXPECT_STATUS(kInvalidArgument, priority("per")->Set(handles, values), "priority 1 is");
    EXPECT_STATUS(kInvalidArgument, priority("per")->SetAll(values), "priority 1 is");
  }
  const float two[] = {1, 2};
  EXPECT_STATUS(kInvalidArgument, priority("per")->Set(rows, two), "2 priorities for 3 items");
  EXPECT_EQ(RawPriorities("per"), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(priority("per")->MaxPriority(), 1.0f);
  EXPECT_EQ(priority("per")->Stats().updates_applied, 0u);
}

TEST_F(PriorityTableTest, EmptyUpdatesDoNothing) {
  CreateWith({WindowSpec("per")});
  const auto outcome = priority("per")->Set(std::span<const RowId>(), {});
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->applied + outcome->stale, 0u);
}

TEST_F(PriorityTableTest, HandlesOfWhatWasRemovedAreStale) {
  for (const ItemKind kind : {ItemKind::kWindow, ItemKind::kTrajectory}) {
    SCOPED_TRACE(static_cast<int>(kind));
    OpenEmpty();
    PriorityTableSpec spec = WindowSpec("per");
    spec.item = kind;
    CreateWith({spec});
    AppendClosed(0, 4);
    auto sampler = priority("per")->NewSampler({.batch = 4});
    const auto batch = (*sampler)->Next();
    ASSERT_OK(batch);
    const TrajectoryId ids[] = {1};
    ASSERT_OK(table_->Remove(ids));
    const float values[] = {9, 9, 9, 9};
    auto outcome = priority("per")->Set(batch->handles(), values);
    ASSERT_OK(outcome);
    EXPECT_EQ(outcome->stale, 4u);
    // Another trajectory takes the page and the slot: still not what the handles name.
    AppendClosed(10, 4);
    outcome = priority("per")->Set(batch->handles(), values);
    ASSERT_OK(outcome);
    EXPECT_EQ(outcome->applied, 0u);
    EXPECT_EQ(outcome->stale, 4u);
    for (const float value : RawPriorities("per")) EXPECT_EQ(value, 1.0f);
    EXPECT_EQ(priority("per")->MaxPriority(), 1.0f);
    EXPECT_EQ(priority("per")->Stats().updates_stale, 8u);
  }
}

TEST_F(PriorityTableTest, MadeUpHandlesAreStale) {
  CreateWith({WindowSpec("per")});
  AppendClosed(0, 4);
  const ItemHandle handles[] = {
      {0, 0, 0}, {UINT64_MAX, 1, 1}, {uint64_t{1} << 40, 1, 1}, {0, UINT32_MAX, 1}, {3, 0, 1}};
  const float values[] = {9, 9, 9, 9, 9};
  const auto outcome = priority("per")->Set(handles, values);
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->stale, 5u);
  EXPECT_EQ(priority("per")->MaxPriority(), 1.0f);
}

TEST_F(PriorityTableTest, ProbabilitiesStayExactWhenPrioritiesGrow) {
  CreateWith({WindowSpec("per")});
  AppendClosed(0, 20);
  std::map<int64_t, double> weights;
  for (int64_t row = 0; row < 20; ++row) weights[row] = 1;
  ExpectProbabilities("per", weights);
  for (const float value : {10.0f, 1e3f, 1e6f, 3e8f}) {
    const RowId rows[] = {{1, 3}, {1, 4}};
    const float values[] = {value, value / 3};
    ASSERT_OK(priority("per")->Set(rows, values));
    weights[3] = value;
    weights[4] = static_cast<double>(value / 3);
    ExpectProbabilities("per", weights);
  }
  EXPECT_GE(priority("per")->Stats().rescales, 1u);
}

TEST_F(PriorityTableTest, OneUpdateToSmallPrioritiesTellsThemApart) {
  PriorityTableSpec spec = WindowSpec("per");
  spec.alpha = 1;
  CreateWith({spec});
  Append(0, 100);
  for (const float peak : {1e12f, 1e8f, 1e6f}) {
    for (const float unit : {1.0f, 0.001f}) {
      SCOPED_TRACE(peak);
      SCOPED_TRACE(unit);
      const float high[] = {peak};
      ASSERT_OK(priority("per")->SetAll(high));
      std::vector<float> values(100);
      for (size_t i = 0; i < values.size(); ++i) values[i] = unit * static_cast<float>(1 + i % 10);
      ASSERT_OK(priority("per")->SetAll(values));
      for (int64_t row = 0; row < 100; ++row) {
        EXPECT_NEAR(*priority("per")->Probability({1, row}),
                    static_cast<double>(1 + row % 10) / 550, 1e-5);
      }
    }
  }
  const std::vector<RowId> items = priority("per")->Items();
  const std::vector<float> tiny(100, 1e-9f);
  ASSERT_OK(priority("per")->Set(std::span(items).first(99), std::span(tiny).first(99)));
  ASSERT_OK(priority("per")->Set(std::span(items).subspan(99), std::span(tiny).first(1)));
  EXPECT_NEAR(*priority("per")->Probability({1, 7}), 0.01, 1e-5);
}

TEST_F(PriorityTableTest, ProbabilitiesStayExactWhenPrioritiesFade) {
  CreateWith({WindowSpec("per")});
  AppendClosed(0, 20);
  std::map<int64_t, double> weights;
  for (int round = 1; round <= 8; ++round) {
    std::vector<float> values;
    for (int64_t row = 0; row < 20; ++row) {
      values.push_back(static_cast<float>(row + 1) * std::pow(0.1f, static_cast<float>(round)));
      weights[row] = static_cast<double>(values.back());
    }
    ASSERT_OK(priority("per")->SetAll(values));
    ExpectProbabilities("per", weights);
  }
  EXPECT_GE(priority("per")->Stats().rescales, 1u);
}

TEST_F(PriorityTableTest, InitialPrioritiesMayNeedAnotherScale) {
  PriorityTableSpec constant = WindowSpec("constant");
  constant.initial = InitialPriority::kConstant;
  constant.initial_priority_value = 1e9f;
  PriorityTableSpec column = WindowSpec("column");
  column.initial = InitialPriority::kColumn;
  column.initial_priority_column = "score";
  CreateWith({constant, column, WindowSpec("given")});
  const float score = 2e9f;
  const ColumnValue values[] = {{"score", TensorView::Scalar(score)}};
  const float given_values[] = {1, 4e9f};
  const InitialPriorities given[] = {{"given", given_values}};
  const Rows rows(0, 2);
  ASSERT_OK(writer_->AppendSteps(rows.many(), {.trajectory = values, .priorities = given}));
  const RowId row[] = {{1, 1}};
  const float half[] = {5e8f};
  ASSERT_OK(priority("constant")->Set(row, half));
  ASSERT_OK(priority("column")->Set(row, half));
  ExpectProbabilities("constant", {{0, 1e9f}, {1, 5e8f}});
  ExpectProbabilities("column", {{0, 2e9f}, {1, 5e8f}});
  ExpectProbabilities("given", {{0, 1}, {1, 4e9f}});
}

TEST_F(PriorityTableTest, AnAppendOfAWrongCountLeavesTheScaleAlone) {
  CreateWith({WindowSpec("per")});
  Append(0, 3);
  const uint64_t end = database_->Stats().log_end;
  const float too_many[] = {1e9f, 1e9f, 1e9f};
  const InitialPriorities given[] = {{"per", too_many}};
  const Rows rows(3, 2);
  EXPECT_STATUS(kInvalidArgument, writer_->AppendSteps(rows.many(), {.priorities = given}),
                "3 initial priorities for 2 items");
  EXPECT_EQ(priority("per")->Stats().rescales, 0u);
  testing::ExpectNothingWritten(*database_, end);
  // As many of them do.
  const InitialPriorities two[] = {{"per", std::span(too_many).first(2)}};
  ASSERT_OK(writer_->AppendSteps(rows.many(), {.priorities = two}));
  EXPECT_EQ(priority("per")->Stats().rescales, 1u);
}

TEST_F(PriorityTableTest, CutsMakeItemsWithTheirInitialPriority) {
  PriorityTableSpec column = WindowSpec("column");
  column.initial = InitialPriority::kColumn;
  column.initial_priority_column = "score";
  column.window.extent.length = 2;
  PriorityTableSpec whole = column;
  whole.name = "whole";
  whole.item = ItemKind::kTrajectory;
  CreateWith({column, whole});
  Append(0, 3);
  const float score = 3e9f;
  const ColumnValue values[] = {{"score", TensorView::Scalar(score)}};
  ASSERT_OK(table_->SetColumns(1, values));
  ASSERT_OK(writer_->Cut());
  EXPECT_EQ(RawPriorities("column"), (std::vector<float>{0, 0, 3e9f}));
  EXPECT_EQ(RawPriorities("whole"), std::vector<float>{3e9f});
  const RowId row[] = {{1, 0}};
  const float half[] = {1.5e9f};
  ASSERT_OK(priority("column")->Set(row, half));
  ExpectProbabilities("column", {{0, 1.5e9f}, {1, 0}, {2, 3e9f}});
}

TEST_F(PriorityTableTest, AlphaMakesWeights) {
  PriorityTableSpec spec = WindowSpec("per");
  spec.alpha = 0.5;
  CreateWith({spec});
  AppendClosed(0, 3);
  const float values[] = {1, 4, 9};
  ASSERT_OK(priority("per")->SetAll(values));
  ExpectProbabilities("per", {{0, 1}, {1, 2}, {2, 3}});
  EXPECT_EQ(RawPriorities("per"), (std::vector<float>{1, 4, 9}));
}

TEST_F(PriorityTableTest, UniformTablesKnowTheirItems) {
  PriorityTableSpec spec = WindowSpec("uniform");
  spec.selector = SelectorKind::kUniform;
  CreateWith({spec});
  AppendClosed(0, 5);
  EXPECT_EQ(priority("uniform")->Count(), 5u);
  EXPECT_EQ(*priority("uniform")->Probability({1, 2}), 0.2);
  EXPECT_STATUS(kNotFound, priority("uniform")->Probability({1, 5}), "row 5 of trajectory 1");
  EXPECT_STATUS(kNotFound, priority("uniform")->Priority({2, 0}), "trajectory 2");
}

TEST_F(PriorityTableTest, TablesAddedLaterHoldWhatIsStored) {
  CreateWith({}, true);
  AppendClosed(0, 5);
  Append(10, 3);
  const float score = 6;
  const ColumnValue values[] = {{"score", TensorView::Scalar(score)}};
  ASSERT_OK(table_->SetColumns(1, values));
  PriorityTableSpec column = WindowSpec("column", {.before = 0, .length = 1, .after = 1});
  column.initial = InitialPriority::kColumn;
  column.initial_priority_column = "score";
  ASSERT_OK(table_->CreatePriorityTable(column));
  EXPECT_EQ(RawPriorities("column"), (std::vector<float>{6, 6, 6, 6, 6, 0, 0}));
  PriorityTableSpec whole = WindowSpec("whole");
  whole.item = ItemKind::kTrajectory;
  ASSERT_OK(table_->CreatePriorityTable(whole));
  EXPECT_EQ(priority("whole")->Items(), (std::vector<RowId>{{1, 0}}));
  EXPECT_STATUS(kAlreadyExists, table_->CreatePriorityTable(whole), "'whole'");
  column.name = "bad name";
  EXPECT_STATUS(kInvalidArgument, table_->CreatePriorityTable(column), "bad name");
  EXPECT_STATUS(kNotFound, table_->OpenPriorityTable("none"), "it has column, whole");
  // Later rows reach it, and so do updates.
  Append(13, 1);
  EXPECT_EQ(priority("column")->Count(), 8u);
}

TEST_F(PriorityTableTest, LargeInitialPrioritiesOfStoredRowsAreExactToo) {
  CreateWith({});
  AppendClosed(0, 4);
  PriorityTableSpec constant = WindowSpec("constant");
  constant.initial = InitialPriority::kConstant;
  constant.initial_priority_value = 1e9f;
  ASSERT_OK(table_->CreatePriorityTable(constant));
  const RowId row[] = {{1, 1}};
  const float half[] = {5e8f};
  ASSERT_OK(priority("constant")->Set(row, half));
  ExpectProbabilities("constant", {{0, 1e9f}, {1, 5e8f}, {2, 1e9f}, {3, 1e9f}});
}

TEST_F(PriorityTableTest, LargeColumnsOfStoredTrajectoriesAreExactToo) {
  CreateWith({});
  for (const float score : {1e9f, 2e9f, 5e9f}) {
    const TrajectoryId id = AppendClosed(0, 1);
    const ColumnValue values[] = {{"score", TensorView::Scalar(score)}};
    ASSERT_OK(table_->SetColumns(id, values));
  }
  PriorityTableSpec column = WindowSpec("column");
  column.initial = InitialPriority::kColumn;
  column.initial_priority_column = "score";
  for (int open = 0; open < 2; ++open) {
    if (open == 0) {
      ASSERT_OK(table_->CreatePriorityTable(column));
    }
    EXPECT_NEAR(*priority("column")->Probability({1, 0}), 1.0 / 8, 1e-6);
    EXPECT_NEAR(*priority("column")->Probability({2, 0}), 2.0 / 8, 1e-6);
    EXPECT_NEAR(*priority("column")->Probability({3, 0}), 5.0 / 8, 1e-6);
    Reopen();
    OpenAgain("steps");
  }
}

TEST_F(PriorityTableTest, UpdatesOfManyItemsGoInSeveralRecords) {
  TableSpec spec = StepSpec();
  spec.steps_per_page = 256;
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  constexpr int64_t kItems = 60'000;  // 960 kB of items; a record takes 256 KiB.
  for (int64_t row = 0; row < kItems; row += 10'000) Append(row, 10'000);
  std::vector<RowId> rows;
  std::vector<float> values;
  for (int64_t row = 0; row < kItems; ++row) {
    rows.push_back({1, row});
    values.push_back(static_cast<float>(row % 100));
  }
  const auto outcome = priority("per")->Set(rows, values);
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->applied, static_cast<uint64_t>(kItems));
  EXPECT_EQ(*priority("per")->Priority({1, 59'999}), 99.0f);
  for (float& value : values) value += 1;
  ASSERT_OK(priority("per")->SetAll(values));
  EXPECT_EQ(*priority("per")->Priority({1, 59'999}), 100.0f);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(*priority("per")->Priority({1, 59'999}), 100.0f);
  EXPECT_EQ(*priority("per")->Priority({1, 100}), 1.0f);
  EXPECT_EQ(priority("per")->MaxPriority(), 100.0f);
}

// The weights get the scale of what comes before it is clear that it may come.
TEST_F(PriorityTableTest, WhatIsRefusedLeavesTheProbabilitiesAsTheyWere) {
  CreateWith({WindowSpec("per")});
  AppendClosed(0, 6);
  const std::vector<RowId> items = priority("per")->Items();
  std::vector<float> values(items.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  ASSERT_OK(priority("per")->SetAll(values));
  const auto probabilities = [&] {
    std::vector<double> found;
    for (const RowId& item : items) found.push_back(*priority("per")->Probability(item));
    return found;
  };
  const std::vector<double> before = probabilities();
  ASSERT_GT(before[1], 1.5 * before[0]);
  const std::vector<float> too_few(items.size() - 1, 1e30f);
  EXPECT_STATUS(kFailedPrecondition, priority("per")->SetAll(too_few), "priorities are given");
  const std::vector<double> after_set = probabilities();
  EXPECT_STATUS(kInvalidArgument,
                AppendWith(3, End::kTerminated,
                           {{.priority_table = "per", .values = std::span(too_few).first(2)}}),
                "2 initial priorities for 3 items");
  const std::vector<double> after_append = probabilities();
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(after_set[i], before[i], 1e-4 * before[i]) << i;
    EXPECT_NEAR(after_append[i], before[i], 1e-4 * before[i]) << i;
  }
}

}  // namespace
}  // namespace geardb
