// Raw priorities: those that items begin with, updates, scales, and what is refused.

#include "engine/priority_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "tests/testing/fault_env.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Random;
using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

constexpr float kInf = std::numeric_limits<float>::infinity();

class PriorityTableTest : public StoreTest {
 protected:
  void CreateWith(std::vector<PriorityTableSpec> priorities, bool final_row = false) {
    TableSpec spec = StepSpec(final_row);
    spec.priority_tables = std::move(priorities);
    Create(spec);
  }
  Status AppendWith(int64_t count, End end, const std::vector<InitialPriorities>& priorities) {
    const Rows rows(0, count);
    const Rows last(count, 1);
    AppendOptions options{.end = end, .priorities = priorities};
    if (table_->spec().final_row && end != End::kGo && end != End::kCut) {
      options.final = last.final_row();
    }
    return writer_->AppendSteps(rows.many(), options).status();
  }
  std::vector<float> RawPriorities(const std::string& name) {
    std::vector<float> values;
    PriorityTable* table = priority(name);
    for (const RowId& item : table->Items()) values.push_back(*table->Priority(item));
    return values;
  }
  /// Every item's probability is w / Σw to the quantisation: q = w 2^s, halves rounded up, at
  /// least 1.
  void ExpectProbabilities(const std::string& name, const std::map<int64_t, double>& weights) {
    PriorityTable* table = priority(name);
    const double scale = std::exp2(table->Stats().scale_shift);
    double total = 0;
    const auto quantised = [&](double w) {
      return w > 0 ? std::max(1.0, std::floor(w * scale + 0.5)) : 0.0;
    };
    for (const auto& [row, w] : weights) total += quantised(w);
    for (const auto& [row, w] : weights) {
      const auto probability = table->Probability({1, row});
      ASSERT_OK(probability);
      // A weight that lies between two steps may be rounded either way: p^1 is no exact p.
      const double step = 1.5 / total;
      EXPECT_NEAR(*probability, quantised(w) / total, step) << "row " << row;
      // And the quantisation itself is fine.
      EXPECT_NEAR(quantised(w) / scale, w, 1 / scale);
    }
  }
};

TEST_F(PriorityTableTest, NewItemsGetTheMaximum) {
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

TEST_F(PriorityTableTest, ConstantsAndColumnsAreInitialPriorities) {
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

TEST_F(PriorityTableTest, EachLaneTakesItsOwnColumn) {
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

TEST_F(PriorityTableTest, GivenPrioritiesGoToItemsInOrder) {
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

TEST_F(PriorityTableTest, GivenPrioritiesOfLanesFollowLaneAndRow) {
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

TEST_F(PriorityTableTest, AWrongNumberNamesTheRightOneAndChangesNothing) {
  CreateWith({WindowSpec("next", {.before = 0, .length = 1, .after = 1})});
  const float many[] = {1, 2, 50};
  EXPECT_STATUS(kInvalidArgument, AppendWith(3, End::kGo, {{"next", many}}),
                "'next': 3 initial priorities for 2 items");
  EXPECT_EQ(table_->Count(), 0u);
  EXPECT_EQ(priority("next")->MaxPriority(), 1.0f);
  Append(0, 3);
  EXPECT_EQ(RawPriorities("next"), (std::vector<float>{1, 1}));
}

TEST_F(PriorityTableTest, WrongGivenPrioritiesAreRefused) {
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

TEST_F(PriorityTableTest, ARefusedAppendDoesNotRaiseTheMaximum) {
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

TEST_F(PriorityTableTest, PredictedNumberOfItemsIsTheNumberThatAppears) {
  // The error of a wrong number names the number expected: whatever the rule, it is what appears.
  Random random(11);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
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
  EXPECT_STATUS(kInvalidArgument, priority("per")->SetAll({}), "no priorities");
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

}  // namespace
}  // namespace geardb
