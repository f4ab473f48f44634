// The raw priorities that items begin with.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/engine/priority_fixture.h"
#include "tests/testing/fault_env.h"

namespace geardb {
namespace {

using testing::PriorityFixture;
using testing::Random;
using testing::Rows;
using testing::StepSpec;
using testing::WindowSpec;

constexpr float kInf = std::numeric_limits<float>::infinity();

class PriorityTableInitialTest : public PriorityFixture {};

TEST_F(PriorityTableInitialTest, NewItemsGetTheMaximum) {
  CreateWith({WindowSpec("per")});
  Append(0, 3);
  EXPECT_EQ(RawPriorities("per"), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(priority("per")->MaxPriority(), 1.0f);
  const RowId rows[] = {{1, 0}, {1, 1}};
  const float values[] = {5, 0.5f};
  ASSERT_OK(priority("per")->Set(rows, values));
  EXPECT_EQ(priority("per")->MaxPriority(), 5.0f);
  Append(3, 2);
  EXPECT_EQ(RawPriorities("per"), (std::vector<float>{5, 0.5f, 1, 5, 5}));
  // The maximum is of all that were ever applied: it does not fall.
  const float one[] = {0.1f};
  ASSERT_OK(priority("per")->SetAll(one));
  EXPECT_EQ(priority("per")->MaxPriority(), 5.0f);
  Append(5, 1);
  EXPECT_EQ(RawPriorities("per").back(), 5.0f);
}

TEST_F(PriorityTableInitialTest, AColumnWithOtherValuesGivesNoPriorities) {
  CreateWith({});
  for (const float score : {5.0f, -2.0f}) {
    const ColumnValue values[] = {{"score", TensorView::Scalar(score)}};
    ASSERT_OK(
        writer_->AppendSteps(Rows(0, 2).many(), {.end = End::kTerminated, .trajectory = values}));
  }
  PriorityTableSpec column = WindowSpec("column");
  column.initial = InitialPriority::kColumn;
  column.initial_priority_column = "score";
  EXPECT_STATUS(kInvalidArgument, table_->CreatePriorityTable(column), "is -2 for trajectory 2");
  EXPECT_EQ(table_->priority_table("column"), nullptr);
  const TrajectoryId second[] = {2};
  ASSERT_OK(table_->Remove(second));
  ASSERT_OK(table_->CreatePriorityTable(column));
  EXPECT_EQ(RawPriorities("column"), (std::vector<float>{5, 5}));
}

TEST_F(PriorityTableInitialTest, ConstantsAndColumnsAreInitialPriorities) {
  PriorityTableSpec constant = WindowSpec("constant");
  constant.initial = InitialPriority::kConstant;
  constant.initial_priority_value = 0.25f;
  PriorityTableSpec column = WindowSpec("column");
  column.initial = InitialPriority::kColumn;
  column.initial_priority_column = "score";
  CreateWith({constant, column});
  Append(0, 1);  // The column is still zero.
  const float score = 7;
  const ColumnValue values[] = {{"score", TensorView::Scalar(score)}};
  const Rows rows(1, 2);
  ASSERT_OK(writer_->AppendSteps(rows.many(), {.trajectory = values}));
  Append(3, 1);
  const float later = 9;
  const ColumnValue later_values[] = {{"score", TensorView::Scalar(later)}};
  ASSERT_OK(table_->SetColumns(1, later_values));
  Append(4, 1);
  EXPECT_EQ(RawPriorities("constant"), std::vector<float>(5, 0.25f));
  EXPECT_EQ(RawPriorities("column"), (std::vector<float>{0, 7, 7, 7, 9}));
  EXPECT_EQ(priority("column")->DrawableCount(), 4u);
}

TEST_F(PriorityTableInitialTest, AColumnThatIsAPriorityIsCheckedAsOne) {
  PriorityTableSpec column = WindowSpec("column");
  column.initial = InitialPriority::kColumn;
  column.initial_priority_column = "score";
  CreateWith({column});
  const Rows rows(0, 1);
  for (const float bad : {-3.0f, kInf, std::nanf("")}) {
    const ColumnValue values[] = {{"score", TensorView::Scalar(bad)}};
    EXPECT_STATUS(kInvalidArgument, writer_->AppendSteps(rows.many(), {.trajectory = values}),
                  "column 'score' is the initial priority of 'column' and is ");
  }
  EXPECT_EQ(table_->Count(), 0u);
  const float good = 2;
  const ColumnValue values[] = {{"score", TensorView::Scalar(good)}};
  ASSERT_OK(writer_->AppendSteps(rows.many(), {.trajectory = values}));
  const ColumnValue worse[] = {{"score", TensorView::Scalar(kInf)}};
  EXPECT_STATUS(kInvalidArgument, table_->SetColumns(1, worse), "column 'score'");
  Append(1, 1);
  EXPECT_EQ(RawPriorities("column"), (std::vector<float>{2, 2}));
}

TEST_F(PriorityTableInitialTest, EachLaneTakesItsOwnColumn) {
  TableSpec spec = StepSpec();
  PriorityTableSpec column = WindowSpec("column");
  column.initial = InitialPriority::kColumn;
  column.initial_priority_column = "score";
  spec.priority_tables = {column};
  Create(spec, {.lanes = 3});
  const float scores[3] = {3, 2, 1};
  const ColumnValue trajectory[] = {{"score", TensorView::Of(std::span<const float>(scores))}};
  const Rows rows(0, 3);
  ASSERT_OK(writer_->AppendLanes(rows.many(), {.trajectory = trajectory}));
  EXPECT_EQ(RawPriorities("column"), (std::vector<float>{3, 2, 1}));
}

TEST_F(PriorityTableInitialTest, GivenPrioritiesGoToItemsInOrder) {
  CreateWith({WindowSpec("step"), WindowSpec("next", {.before = 0, .length = 1, .after = 1}),
              WindowSpec("other")});
  const float three[] = {1, 2, 3};
  const float two[] = {0.5f, 4};
  ASSERT_OK(AppendWith(3, End::kGo, {{"step", three}, {"next", two}}));
  EXPECT_EQ(RawPriorities("step"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(RawPriorities("next"), (std::vector<float>{0.5f, 4}));
  EXPECT_EQ(RawPriorities("other"), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(priority("step")->MaxPriority(), 3.0f);
  // One for all.
  const float one[] = {9};
  ASSERT_OK(AppendWith(2, End::kGo, {{"step", one}}));
  EXPECT_EQ(RawPriorities("step"), (std::vector<float>{1, 2, 3, 9, 9}));
  EXPECT_EQ(RawPriorities("next"), (std::vector<float>{0.5f, 4, 4, 4}));
}

TEST_F(PriorityTableInitialTest, GivenPrioritiesOfLanesFollowLaneAndRow) {
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("next", {.before = 0, .length = 1, .after = 1})};
  Create(spec, {.lanes = 3});
  const Rows rows(0, 3);
  ASSERT_OK(writer_->AppendLanes(rows.many(), {}));
  const End ends[3] = {End::kGo, End::kSkip, End::kTerminated};
  const float values[] = {2, 3, 4};  // (1, 0); (3, 0) and (3, 1), which will have no next row.
  const InitialPriorities given[] = {{"next", values}};
  ASSERT_OK(writer_->AppendLanes(rows.many(), {.ends = ends, .priorities = given}));
  EXPECT_EQ(RawPriorities("next"), (std::vector<float>{2, 3, 4}));
}

TEST_F(PriorityTableInitialTest, AWrongNumberNamesTheRightOneAndChangesNothing) {
  CreateWith({WindowSpec("next", {.before = 0, .length = 1, .after = 1})});
  const float many[] = {1, 2, 50};
  EXPECT_STATUS(kInvalidArgument, AppendWith(3, End::kGo, {{"next", many}}),
                "'next': 3 initial priorities for 2 items");
  EXPECT_EQ(table_->Count(), 0u);
  EXPECT_EQ(priority("next")->MaxPriority(), 1.0f);
  Append(0, 3);
  EXPECT_EQ(RawPriorities("next"), (std::vector<float>{1, 1}));
}

TEST_F(PriorityTableInitialTest, WrongGivenPrioritiesAreRefused) {
  CreateWith({WindowSpec("per")});
  for (const float bad : {-1.0f, kInf, std::nanf("")}) {
    const float values[] = {1, bad};
    EXPECT_STATUS(kInvalidArgument, AppendWith(2, End::kGo, {{"per", values}}),
                  "initial priority 1 is");
  }
  const float good[] = {1, 2};
  EXPECT_STATUS(kNotFound, AppendWith(2, End::kGo, {{"pear", good}}), "priority table 'pear'");
  EXPECT_STATUS(kInvalidArgument, AppendWith(2, End::kGo, {{"per", {}}}), "'per'");
  EXPECT_STATUS(kInvalidArgument, AppendWith(2, End::kGo, {{"per", good}, {"per", good}}),
                "given twice");
  EXPECT_EQ(table_->Count(), 0u);
  EXPECT_EQ(priority("per")->Count(), 0u);
}

TEST_F(PriorityTableInitialTest, ARefusedAppendDoesNotRaiseTheMaximum) {
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("per")};
  spec.steps_max = 8;
  spec.remover = Remover::kNone;
  Create(spec, {.admission_timeout_ms = 0});
  AppendClosed(0, 8);
  const float high[] = {100};
  EXPECT_STATUS(kResourceExhausted, AppendWith(1, End::kGo, {{"per", high}}), "full");
  const TrajectoryId ids[] = {1};
  ASSERT_OK(table_->Remove(ids));
  Append(0, 1);
  EXPECT_EQ(RawPriorities("per"), std::vector<float>{1});
}

TEST_F(PriorityTableInitialTest, ItemsAreCountedAfterWhatTheCallEvicts) {
  struct Case {
    uint64_t steps_max;
    size_t items;  // That the second call makes drawable.
    size_t left;   // Of those before it.
  };
  // Rows 0 to 7, then 8 to 15. Rows 7 to 14 become drawable; with room for 9 only row 7 stays of
  // the first, and rows 7 and 8 lack a row on their left.
  for (const Case& test : {Case{9, 6, 0}, Case{12, 8, 1}}) {
    SCOPED_TRACE(test.steps_max);
    OpenEmpty();
    TableSpec spec = StepSpec();
    spec.stream = true;
    spec.steps_max = test.steps_max;
    spec.priority_tables = {WindowSpec("next", {.before = 2, .length = 1, .after = 1})};
    spec.priority_tables[0].window.left = EdgeRule::kRequire;
    Create(spec);
    Append(0, 8);
    std::vector<float> each;
    for (size_t i = 0; i < test.items; ++i) each.push_back(10 + static_cast<float>(i));
    ASSERT_OK(AppendWith(8, End::kGo, {{"next", each}}));
    std::vector<float> expected(test.left, 1.0f);
    expected.insert(expected.end(), each.begin(), each.end());
    EXPECT_EQ(RawPriorities("next"), expected);
    const std::vector<float> many(9);
    EXPECT_STATUS(kInvalidArgument, AppendWith(8, End::kGo, {{"next", many}}),
                  "9 initial priorities for " + std::to_string(test.items) + " items");
    // Nothing has left for the refused call.
    EXPECT_EQ(table_->Stats().steps, test.steps_max);
    Reopen();
    OpenAgain(spec.name);
    EXPECT_EQ(table_->Stats().steps, test.steps_max);
  }
}

TEST_F(PriorityTableInitialTest, PredictedNumberOfItemsIsTheNumberThatAppears) {
  // The error of a wrong number names the number expected: whatever the rule, it is what appears.
  Random random(11);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    if (round % 10 == 0) OpenEmpty();
    TableSpec spec = StepSpec(random.OneIn(2));
    spec.name = "t" + std::to_string(round);
    spec.stream = random.OneIn(2);
    for (int p = 0; p < 6; ++p) {
      PriorityTableSpec rule = WindowSpec("p" + std::to_string(p));
      rule.window.extent = {static_cast<int64_t>(random.Below(3)),
                            static_cast<int64_t>(1 + random.Below(3)),
                            static_cast<int64_t>(random.Below(3))};
      rule.window.stride = static_cast<int64_t>(1 + random.Below(3));
      rule.window.stride_from_end = random.OneIn(3);
      rule.window.left = static_cast<EdgeRule>(random.Below(5));
      rule.window.right = static_cast<EdgeRule>(random.Below(5));
      rule.window.cross_ends = spec.stream && random.OneIn(2);
      if (p == 5) rule.item = ItemKind::kTrajectory;
      spec.priority_tables.push_back(rule);
    }
    Create(spec);
    const std::vector<float> far_too_many(1000, 1.0f);
    for (int call = 0; call < 15; ++call) {
      const auto count = static_cast<int64_t>(1 + random.Below(6));
      const End end = random.OneIn(2) ? End::kGo : static_cast<End>(1 + random.Below(3));
      if (end == End::kCut && count == 1) continue;  // May leave nothing.
      std::vector<std::vector<RowId>> before;
      std::vector<std::vector<float>> given(6);
      std::vector<InitialPriorities> priorities;
      for (int p = 0; p < 6; ++p) {
        const std::string name = "p" + std::to_string(p);
        before.push_back(priority(name)->Items());
        const Status refused = AppendWith(count, end, {{name, far_too_many}});
        ASSERT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused;
        const std::string text(refused.message());
        const size_t at = text.find("priorities for ");
        ASSERT_NE(at, std::string::npos) << text;
        const int expected = std::stoi(text.substr(at + 15));
        for (int i = 0; i < expected; ++i) {
          given[static_cast<size_t>(p)].push_back(static_cast<float>(100 * call + i));
        }
      }
      for (size_t p = 0; p < 6; ++p) {
        if (!given[p].empty()) priorities.push_back({spec.priority_tables[p].name, given[p]});
      }
      ASSERT_OK(AppendWith(count, end, priorities));
      for (size_t p = 0; p < 6; ++p) {
        PriorityTable* table = priority(spec.priority_tables[p].name);
        std::vector<float> found;
        for (const RowId& item : table->Items()) {
          if (std::find(before[p].begin(), before[p].end(), item) == before[p].end()) {
            found.push_back(*table->Priority(item));
          }
        }
        const WindowRule& rule = spec.priority_tables[p].window;
        ASSERT_EQ(found, given[p])
            << "call " << call << ": " << count << " rows, end " << static_cast<int>(end)
            << "; final_row " << spec.final_row << ", stream " << spec.stream << "; item "
            << static_cast<int>(spec.priority_tables[p].item) << ", before " << rule.extent.before
            << ", length " << rule.extent.length << ", after " << rule.extent.after << ", stride "
            << rule.stride << (rule.stride_from_end ? " from the end" : "") << ", left "
            << static_cast<int>(rule.left) << ", right " << static_cast<int>(rule.right)
            << ", cross_ends " << rule.cross_ends;
      }
    }
  }
}

}  // namespace
}  // namespace geardb
