// Items that wait for what their priority table requires.
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class PriorityTableRequiredTest : public testing::StoreTest {
 protected:
  void CreateWaiting(std::vector<std::string> required) {
    TableSpec spec = testing::StepSpec(true);
    spec.groups = {{.name = "late", .late = true},
                   {.name = "later", .late = true},
                   {.name = "cache", .late = true, .is_volatile = true}};
    spec.columns.push_back({.name = "target", .group = "late"});
    spec.columns.push_back({.name = "advantage", .group = "later"});
    spec.columns.push_back({.name = "cache", .group = "cache"});
    spec.priority_tables = {testing::WindowSpec("pairs", {.before = 0, .length = 2, .after = 1}),
                            testing::WindowSpec("whole")};
    spec.priority_tables[1].item = ItemKind::kTrajectory;
    for (PriorityTableSpec& priority : spec.priority_tables) priority.required = required;
    Create(spec);
  }
  void Fill(std::string_view column, TrajectoryId id, int64_t first, int64_t count) {
    const std::vector<float> values(static_cast<size_t>(count), 1);
    const ColumnValue value{column, TensorView::Of(std::span<const float>(values))};
    const RowSpan span{id, first, count};
    ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
  }
  std::vector<int64_t> Rows(const char* name) {
    std::vector<int64_t> rows;
    for (const RowId& item : priority(name)->Items()) rows.push_back(item.row);
    return rows;
  }
};

TEST_F(PriorityTableRequiredTest, AWindowWaitsUntilItsStepsAreFilled) {
  CreateWaiting({"late"});
  const TrajectoryId id = AppendClosed(0, 5);  // Steps 0 … 4, final row 5.
  EXPECT_EQ(priority("pairs")->Count(), 0u);
  Fill("target", id, 0, 2);
  EXPECT_EQ(Rows("pairs"), std::vector<int64_t>{}) << "row 2 is promised after rows 0 and 1";
  Fill("target", id, 2, 1);
  EXPECT_EQ(Rows("pairs"), std::vector<int64_t>{0});
  EXPECT_EQ(priority("whole")->Count(), 0u);
  Fill("target", id, 3, 2);  // All steps: a final row is not waited for.
  EXPECT_EQ(Rows("pairs"), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(priority("whole")->Count(), 1u);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Rows("pairs"), (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST_F(PriorityTableRequiredTest, AllThatIsRequiredIsWaitedFor) {
  CreateWaiting({"late", "version", "later"});
  EXPECT_EQ(priority("pairs")->WhyBlocked().samples.reason,
            "no item can be drawn: it has no items; items come once they have 'late', 'version', "
            "'later'");
  const TrajectoryId id = AppendClosed(0, 3);
  EXPECT_EQ(priority("pairs")->WhyBlocked().samples.reason,
            "no item can be drawn: it has no items: none of 4 rows is one (a window is over 3); "
            "items come once "
            "they have 'late', 'version', 'later'");
  Fill("target", id, 0, 3);
  Fill("advantage", id, 0, 3);
  EXPECT_EQ(priority("pairs")->Count(), 0u);
  const uint32_t version = 4;
  const ColumnValue column{"version", TensorView::Scalar(version)};
  ASSERT_OK(table_->SetColumns(id, {&column, 1}));
  EXPECT_EQ(Rows("pairs"), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(priority("whole")->Count(), 1u);
}

// A table of which either could be meant was refused by the open behind its next image, and its
// items came before they were there.
TEST_F(PriorityTableRequiredTest, NoNameIsThatOfAGroupAndOfAColumn) {
  CreateWaiting({"late", "score"});
  const Column column{.name = "late", .kind = ColumnKind::kPerTrajectory};
  EXPECT_STATUS(kInvalidArgument, table_->AddColumns({&column, 1}),
                "requires 'late', which would be a column group and a per-trajectory column");
  const Column step{.name = "other", .group = "score"};
  const ColumnGroup group{.name = "score"};
  EXPECT_STATUS(kInvalidArgument, table_->AddColumns({&step, 1}, {&group, 1}),
                "requires 'score', which would be a column group");
  TableSpec both = table_->spec();
  both.name = "both";
  both.columns.push_back(column);
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(both), "requires 'late'");
  // Not required, it may be both.
  both.priority_tables.clear();
  ASSERT_OK_AND_ASSIGN(const auto table, database_->CreateTable(both));
  EXPECT_STATUS(kInvalidArgument,
                table->CreatePriorityTable({.name = "waits", .required = {"late"}}),
                "requires 'late'");
}

TEST_F(PriorityTableRequiredTest, AColumnSetByAnAppendMakesEarlierRowsDrawable) {
  CreateWaiting({"score"});
  Append(0, 4);
  EXPECT_EQ(priority("pairs")->Count(), 0u);
  const testing::Rows rows(4, 1);
  const float score = 1;
  const ColumnValue column{"score", TensorView::Scalar(score)};
  ASSERT_OK(writer_->Append(rows.one(), {.trajectory = {&column, 1}}));
  EXPECT_EQ(Rows("pairs"), (std::vector<int64_t>{0, 1, 2})) << "full windows of what is open";
}

TEST_F(PriorityTableRequiredTest, ItemsBeginWithTheirInitialPriorities) {
  TableSpec spec = testing::StepSpec();
  spec.groups = {{.name = "late", .late = true}};
  spec.columns.push_back({.name = "target", .group = "late"});
  for (const char* name : {"max", "constant", "column"}) {
    spec.priority_tables.push_back(testing::WindowSpec(name));
    spec.priority_tables.back().required = {"late"};
  }
  spec.priority_tables[1].initial = InitialPriority::kConstant;
  spec.priority_tables[1].initial_priority_value = 0.25f;
  spec.priority_tables[2].initial = InitialPriority::kColumn;
  spec.priority_tables[2].initial_priority_column = "score";
  Create(spec);
  const TrajectoryId first = AppendClosed(0, 1);
  const TrajectoryId second = AppendClosed(5, 1);
  Fill("target", first, 0, 1);
  const float large = 9;
  const RowId item{first, 0};
  ASSERT_OK(priority("max")->Set({&item, 1}, {&large, 1}));
  const float score = 3;
  const ColumnValue column{"score", TensorView::Scalar(score)};
  ASSERT_OK(table_->SetColumns(second, {&column, 1}));
  Fill("target", second, 0, 1);
  const auto check = [&] {
    EXPECT_EQ(*priority("max")->Priority({second, 0}), 9);
    EXPECT_EQ(*priority("constant")->Priority({second, 0}), 0.25f);
    EXPECT_EQ(*priority("column")->Priority({first, 0}), 0);
    EXPECT_EQ(*priority("column")->Priority({second, 0}), 3);
  };
  check();
  Reopen();
  OpenAgain("steps");
  check();
}

TEST_F(PriorityTableRequiredTest, ASamplerIsWokenByAPatch) {
  CreateWaiting({"late"});
  const TrajectoryId id = AppendClosed(0, 3);
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("pairs")->NewSampler({.batch = 2}));
  EXPECT_STATUS(kDeadlineExceeded, sampler->Next(Deadline::Now()), "nothing to draw");
  Fill("target", id, 0, 3);
  ASSERT_OK(sampler->Next(Deadline::Now()));
}

TEST_F(PriorityTableRequiredTest, AnAppendCannotGiveTheirPriorities) {
  CreateWaiting({"late"});
  const testing::Rows rows(0, 3);
  const float value = 2;
  const InitialPriorities given{"pairs", {&value, 1}};
  EXPECT_STATUS(kInvalidArgument, writer_->AppendSteps(rows.many(), {.priorities = {&given, 1}}),
                "cannot give their initial priorities");
}

TEST_F(PriorityTableRequiredTest, APriorityTableThatComesLaterFindsWhatIsReady) {
  CreateWaiting({"late"});
  const TrajectoryId id = AppendClosed(0, 5);
  AppendClosed(10, 5);
  Fill("target", id, 0, 4);
  PriorityTableSpec spec = testing::WindowSpec("single");
  spec.required = {"late"};
  ASSERT_OK(table_->CreatePriorityTable(spec));
  EXPECT_EQ(Rows("single"), (std::vector<int64_t>{0, 1, 2, 3}));
}

// A promised final row is not waited for while it is the last one, nor when others follow it.
TEST_F(PriorityTableRequiredTest, WhatFollowsChangesNothingOfWhatIsWaitedFor) {
  TableSpec spec = testing::StepSpec(true);
  spec.stream = true;
  spec.groups = {{.name = "late", .late = true}};
  spec.columns.push_back({.name = "target", .group = "late"});
  PriorityTableSpec before = testing::WindowSpec("before", {.before = 0, .length = 3, .after = 1});
  before.window.cross_ends = true;
  before.required = {"late"};
  spec.priority_tables = {before};
  Create(spec);
  const TrajectoryId id = Append(0, 3, End::kTerminated).id;  // Final row 3.
  Fill("target", id, 0, 3);
  EXPECT_EQ(Rows("before"), std::vector<int64_t>{0});
  Append(3, 5);
  PriorityTableSpec after = before;
  after.name = "after";
  ASSERT_OK(table_->CreatePriorityTable(after));
  EXPECT_EQ(Rows("before"), std::vector<int64_t>{0});
  EXPECT_EQ(Rows("after"), std::vector<int64_t>{0});
}

TEST_F(PriorityTableRequiredTest, WrongNamesAreRefused) {
  CreateWaiting({});
  const auto check = [&](std::vector<std::string> required, const char* why) {
    PriorityTableSpec spec = testing::WindowSpec("other");
    spec.required = std::move(required);
    EXPECT_STATUS(kInvalidArgument, table_->CreatePriorityTable(spec), why);
  };
  check({"none"}, "'none', which is no late column group");
  check({"reward"}, "'reward', which is no late column group and no per-trajectory column");
  check({"cache"}, "'cache', which is volatile");
  check({"late", "late"}, "'late' twice");
}

}  // namespace
}  // namespace geardb
