// The scale of the weights: items are drawn in proportion to priority^alpha however the priorities
// came, and however far apart they lie in time.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/priority_fixture.h"

namespace geardb {
namespace {

using testing::PriorityFixture;
using testing::Rows;
using testing::StepSpec;
using testing::WindowSpec;

/// As PriorityTable promises it.
constexpr double kWeightMin = 0x1p-40;
constexpr double kWeightMax = 0x1p64;

class PriorityTableScaleTest : public PriorityFixture {
 protected:
  /// Every item's probability is that of its weight among all, to the promised unit. Knows nothing
  /// of the scale.
  void ExpectProportional(const std::string& name) {
    const auto table = table_->priority_table(name);
    const double alpha = table->spec().alpha;
    const std::vector<RowId> items = table->Items();
    std::vector<double> weights;
    double sum = 0;
    double largest = 0;
    double drawable = 0;
    for (const RowId& item : items) {
      const auto raw = static_cast<double>(*table->Priority(item));
      weights.push_back(raw > 0 ? std::clamp(std::pow(raw, alpha), kWeightMin, kWeightMax) : 0);
      sum += weights.back();
      largest = std::max(largest, weights.back());
      drawable += raw > 0 ? 1 : 0;
    }
    if (drawable == 0) return;
    const double unit = std::max({sum / drawable / 255, largest * 0x1p-20, kWeightMin});
    const double off = drawable * unit / sum;
    for (size_t i = 0; i < items.size(); ++i) {
      const double expected = weights[i] / sum;
      const double probability = *table->Probability(items[i]);
      EXPECT_NEAR(probability, expected, 1.1 * (unit / sum + off * expected))
          << name << " (" << items[i].id << ", " << items[i].row << "), shift "
          << table->Stats().scale_shift;
    }
  }
  std::vector<double> Probabilities(const std::string& name) {
    std::vector<double> found;
    const auto table = table_->priority_table(name);
    for (const RowId& item : table->Items()) found.push_back(*table->Probability(item));
    return found;
  }
  /// Appends closed trajectories of one row, each with that score.
  void AppendScores(const std::vector<float>& scores) {
    for (const float score : scores) {
      const ColumnValue values[] = {{"score", TensorView::Scalar(score)}};
      ASSERT_OK(
          writer_->AppendSteps(Rows(0, 1).many(), {.end = End::kTerminated, .trajectory = values}));
    }
  }
  static PriorityTableSpec ColumnSpec(const std::string& name) {
    PriorityTableSpec spec = WindowSpec(name);
    spec.item = ItemKind::kTrajectory;
    spec.initial = InitialPriority::kColumn;
    spec.initial_priority_column = "score";
    return spec;
  }
};

TEST_F(PriorityTableScaleTest, NewItemsGetTheWholeMaximum) {
  CreateWith({WindowSpec("per")});
  Append(0, 100);
  std::vector<float> values(100, 0.01f);
  values[7] = 1e6f;
  ASSERT_OK(priority("per")->SetAll(values));
  values[7] = 0.01f;
  ASSERT_OK(priority("per")->SetAll(values));
  Append(100, 1);
  EXPECT_NEAR(*priority("per")->Probability({1, 100}), 1, 1e-5);
  ExpectProportional("per");
  Reopen();
  OpenAgain("steps");
  EXPECT_NEAR(*priority("per")->Probability({1, 100}), 1, 1e-5);
}

TEST_F(PriorityTableScaleTest, ALargeTableDoesNotFollowEveryUpdate) {
  CreateWith({WindowSpec("per")});
  Append(0, 8000);
  ASSERT_OK(priority("per")->SetAll(std::vector<float>{1e8f}));
  ASSERT_OK(priority("per")->SetAll(std::vector<float>{0.01f}));
  ExpectProportional("per");
  const auto rescales = [&] { return priority("per")->Stats().rescales; };
  const uint64_t before = rescales();
  // Each new item has the maximum, and none has it after the Set.
  for (int64_t row = 8000; row < 8600; ++row) {
    Append(row, 1);
    const RowId newest[] = {{1, row}};
    const float small[] = {0.01f};
    ASSERT_OK(priority("per")->Set(newest, small));
  }
  EXPECT_LE(rescales() - before, 5u);
  ASSERT_OK(priority("per")->SetAll(std::vector<float>{0.02f}));
  ExpectProportional("per");
}

// Not by Sets alone: what appends replace counts, too. And what the log says decides, not when the
// store was opened.
TEST_F(PriorityTableScaleTest, ALargeTableFollowsItsAppends) {
  TableSpec spec = StepSpec();
  spec.steps_max = 8000;
  spec.steps_per_page = 1;
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  const auto append = [&](int64_t rows, const std::vector<float>& values) {
    std::vector<float> all;
    for (int64_t i = 0; i < rows; ++i)
      all.push_back(values[static_cast<size_t>(i) % values.size()]);
    const InitialPriorities given[] = {{"per", all}};
    ASSERT_OK(writer_->AppendTrajectory(Rows(0, rows).many(),
                                        {.end = End::kTerminated, .priorities = given}));
  };
  const std::vector<float> small = {1e-4f, 1e-2f};
  const auto ratio = [&] {
    const TrajectoryId last = table_->Scan({}).back().id;
    return *priority("per")->Probability({last, 1}) / *priority("per")->Probability({last, 0});
  };
  for (int i = 0; i < 20; ++i) append(400, small);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    append(2, {1e9f});
    append(400, small);
    EXPECT_NEAR(ratio(), 1, 1e-3);
    for (int i = 0; i < 19; ++i) append(400, small);
    if (round == 2) {
      Reopen();
      OpenAgain("steps");
    }
    append(400, small);
    append(400, small);
    EXPECT_NEAR(ratio(), 100, 1);
  }
}

TEST_F(PriorityTableScaleTest, StaysWhileALargeItemIsThere) {
  CreateWith({WindowSpec("per")});
  Append(0, 100);
  ASSERT_OK(priority("per")->SetAll(std::vector<float>{1e6f}));
  ASSERT_OK(priority("per")->SetAll(std::vector<float>{0.01f}));
  const auto rescales = [&] { return priority("per")->Stats().rescales; };
  Append(100, 1);
  const uint64_t before = rescales();
  for (int64_t row = 101; row < 150; ++row) {
    Append(row, 1);
    const RowId one_before[] = {{1, row - 1}};
    const float small[] = {0.01f};
    ASSERT_OK(priority("per")->Set(one_before, small));
  }
  EXPECT_EQ(rescales(), before);
  ExpectProportional("per");
  const RowId last[] = {{1, 149}};
  const float small[] = {0.02f};
  ASSERT_OK(priority("per")->Set(last, small));
  EXPECT_EQ(rescales(), before + 1);
  ExpectProportional("per");
}

TEST_F(PriorityTableScaleTest, WhatReachesNoItemLeavesItAlone) {
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("per", {.after = 3}), ColumnSpec("whole")};
  Create(spec, {.lanes = 2});
  EXPECT_OK(priority("per")->SetAll(std::vector<float>{1e20f}));  // Of no items.
  AppendScores({1, 2, 7});
  Append(0, 6);
  const RowId items[] = {{4, 0}, {4, 1}, {4, 2}};
  const float values[] = {1, 1.001f, 1.0015f};
  ASSERT_OK(priority("per")->Set(items, values));
  const std::vector<double> before = Probabilities("per");
  const std::vector<double> whole_before = Probabilities("whole");
  const float huge[] = {1e20f};
  const InitialPriorities given[] = {{"per", huge}};
  const ColumnValue score[] = {{"score", TensorView::Scalar(huge[0])}};
  ASSERT_OK(writer_->AppendSteps(Rows(0, 1).many(),
                                 {.lane = 1, .trajectory = score, .priorities = given}));
  const RowId gone[] = {{4, 5}, {99, 0}};
  const float two[] = {1e20f, 1e20f};
  ASSERT_OK(priority("per")->Set(gone, two));
  EXPECT_EQ(Probabilities("per"), before);
  EXPECT_EQ(Probabilities("whole"), whole_before);
  EXPECT_EQ(priority("per")->Stats().rescales, 0u);
  EXPECT_EQ(priority("whole")->Stats().rescales, 0u);
  EXPECT_EQ(priority("per")->MaxPriority(), 1.0015f);
}

TEST_F(PriorityTableScaleTest, SmallInitialPrioritiesAreToldApart) {
  PriorityTableSpec constant = WindowSpec("constant");
  constant.initial = InitialPriority::kConstant;
  constant.initial_priority_value = 1e-7f;
  CreateWith({WindowSpec("given"), constant, ColumnSpec("column")});
  const float small[] = {1e-8f, 2e-8f, 7e-8f};
  const InitialPriorities given[] = {{"given", small}, {"constant", small}};
  ASSERT_OK(writer_->AppendSteps(Rows(0, 3).many(), {.priorities = given}));
  EXPECT_NEAR(*priority("given")->Probability({1, 2}), 0.7, 1e-4);
  Append(3, 1);
  EXPECT_NEAR(*priority("constant")->Probability({1, 3}), 0.5, 1e-4);
  ASSERT_OK(writer_->Cut());
  AppendScores({1e-6f, 2e-6f, 7e-6f});
  EXPECT_NEAR(*priority("column")->Probability({4, 0}), 0.7, 1e-4);
  ASSERT_OK(table_->CreatePriorityTable(ColumnSpec("later")));
  EXPECT_NEAR(*priority("later")->Probability({4, 0}), 0.7, 1e-4);
  for (const char* name : {"given", "constant", "column", "later"}) ExpectProportional(name);
}

TEST_F(PriorityTableScaleTest, IsMovedForAppendsThatNobodyWaitsFor) {
  PriorityTableSpec spec = WindowSpec("per");
  spec.initial = InitialPriority::kConstant;
  spec.initial_priority_value = 1e-7f;
  TableSpec table = StepSpec();
  table.priority_tables = {spec};
  Create(table, {.ack = Ack::kMemory});
  for (int64_t row = 0; row < 20; ++row) Append(row, 1);
  const RowId items[] = {{1, 0}};
  const float twice[] = {2e-7f};
  ASSERT_OK(priority("per")->Set(items, twice));
  ExpectProportional("per");
}

TEST_F(PriorityTableScaleTest, IsRightAfterALargeItemHasGone) {
  CreateWith({ColumnSpec("whole")});
  AppendScores({1, 2, 1e15f});
  EXPECT_NEAR(*priority("whole")->Probability({3, 0}), 1, 1e-6);
  const TrajectoryId large[] = {3};
  ASSERT_OK(table_->Remove(large));
  EXPECT_NEAR(*priority("whole")->Probability({2, 0}), 2.0 / 3, 1e-4);
}

class RefusedScaleTest : public PriorityTableScaleTest {
 protected:
  /// A log of small records, and a table of bytes.
  void OpenSmall(uint64_t log_bytes_max, int64_t stride) {
    options_.ring_bytes = 32 << 10;
    options_.segment_bytes = 64 << 10;
    options_.log_bytes_max = log_bytes_max;
    options_.cold_tier = false;
    OpenEmpty();
    TableSpec spec = StepSpec();
    spec.columns = {{.name = "x", .dtype = DType::kU8}};
    spec.steps_per_page = 256;
    spec.priority_tables = {WindowSpec("per")};
    spec.priority_tables[0].window.stride = stride;
    Create(spec, {.admission_timeout_ms = 100});
  }
  Status AppendBytes(size_t rows, std::span<const InitialPriorities> given = {}) {
    const std::vector<uint8_t> bytes(rows);
    return writer_
        ->AppendTrajectory({{"x", TensorView::Of<uint8_t>(bytes)}},
                           {.end = End::kTerminated, .priorities = given})
        .status();
  }
};

TEST_F(RefusedScaleTest, ATooLargeSetAllLeavesItAlone) {
  OpenSmall(1 << 30, 1);
  for (int i = 0; i < 43; ++i) ASSERT_OK(AppendBytes(8192));
  const RowId one[] = {{1, 0}};
  const float more[] = {1.0015f};
  ASSERT_OK(priority("per")->Set(one, more));
  EXPECT_STATUS(kInvalidArgument,
                priority("per")->SetAll(std::vector<float>(priority("per")->Count(), 1e6f)),
                "are too many for one change");
  EXPECT_EQ(priority("per")->Stats().rescales, 0u);
}

TEST_F(RefusedScaleTest, WhatHasNoRoomInTheLogLeavesItAlone) {
  OpenSmall(1 << 20, 64);
  Status status;
  while (status.ok()) status = AppendBytes(8192);
  EXPECT_STATUS(kResourceExhausted, status, "");
  const float huge[] = {1e20f};
  const InitialPriorities given[] = {{"per", huge}};
  EXPECT_STATUS(kResourceExhausted, AppendBytes(8192, given), "");
  EXPECT_STATUS(kResourceExhausted, AppendBytes(30'000, given), "");
  const std::vector<RowId> items = priority("per")->Items();
  const std::vector<float> all(items.size(), 1e20f);
  EXPECT_STATUS(kResourceExhausted, priority("per")->Set(items, all), "");
  EXPECT_STATUS(kResourceExhausted, priority("per")->SetAll(all), "");
  EXPECT_EQ(priority("per")->Stats().rescales, 0u);
}

/// Priorities of every magnitude, in every way that they can come; the probabilities are looked at
/// after every call.
class RandomScaleTest : public PriorityTableScaleTest,
                        public ::testing::WithParamInterface<uint64_t> {
 protected:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  float Raw(int exponent) {
    if (Below(20) == 0) return 0;
    return std::ldexp(1.0f + static_cast<float>(Below(4096)) / 4096,
                      exponent - static_cast<int>(Below(6)));
  }
  int Magnitude() {
    return Below(2) == 0 ? static_cast<int>(Below(120)) - 60 : static_cast<int>(Below(8)) - 4;
  }
  std::vector<float> Raws(size_t count) {
    const int exponent = Magnitude();
    std::vector<float> values(count);
    for (float& value : values) value = Raw(exponent);
    return values;
  }
  std::string AnyTable() {
    const std::vector<std::string> names = table_->PriorityTables();
    return names[Below(names.size())];
  }
  void AppendSome() {
    const auto lane = static_cast<uint32_t>(Below(3));
    const auto count = static_cast<int64_t>(1 + Below(6));
    const End end = Below(3) == 0 ? End::kTerminated : End::kGo;
    const std::vector<float> each = Raws(static_cast<size_t>(count));
    const std::vector<float> one = Raws(1);
    std::vector<InitialPriorities> given;
    if (Below(3) == 0) given.push_back({"max", each});
    if (Below(3) == 0) given.push_back({"after", one});
    const std::vector<float> score = Raws(1);
    std::vector<ColumnValue> values;
    if (Below(2) == 0) values.push_back({"score", TensorView::Scalar(score[0])});
    const auto appended =
        writer_->AppendSteps(Rows(0, count).many(),
                             {.lane = lane, .end = end, .trajectory = values, .priorities = given});
    // Of a lane whose trajectory was removed, the first is refused.
    if (!appended.ok()) {
      EXPECT_STATUS(kNotFound, appended, "was removed");
    }
  }
  void RefusedAppend() {
    const float too_many[] = {1e30f, 1e30f};
    const InitialPriorities given[] = {{"max", too_many}};
    EXPECT_FALSE(writer_->AppendSteps(Rows(0, 1).many(), {.priorities = given}).ok());
  }
  void SetSome(const std::string& name) {
    std::vector<RowId> items = table_->priority_table(name)->Items();
    if (items.empty()) return;
    std::vector<RowId> some;
    for (size_t i = 0; i < 1 + Below(2 * items.size()); ++i) {
      some.push_back(items[Below(items.size())]);
    }
    some.push_back({1'000'000, 0});
    ASSERT_OK(table_->priority_table(name)->Set(some, Raws(some.size())));
  }
  void RemoveSome() {
    const std::vector<RowId> items = table_->priority_table("max")->Items();
    if (items.empty()) return;
    const RowId item = items[Below(items.size())];
    const TrajectoryId id[] = {item.id};
    ASSERT_OK(Below(2) == 0 ? table_->Remove(id) : table_->Truncate(item.id, item.row));
  }

  std::mt19937_64 random_{GetParam()};
};

TEST_P(RandomScaleTest, ProbabilitiesAreProportionalAfterEveryCall) {
  PriorityTableSpec after = WindowSpec("after", {.after = 2});
  after.alpha = 2;
  after.initial = InitialPriority::kConstant;
  after.initial_priority_value = 1e-7f;
  PriorityTableSpec column = ColumnSpec("column");
  column.alpha = 0.6;
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("max"), after, column};
  Create(spec, {.lanes = 3});
  for (int step = 0; step < 200; ++step) {
    const uint64_t call = Below(12);
    SCOPED_TRACE(::testing::Message() << "step " << step << ", call " << call);
    const std::string name = AnyTable();
    if (call < 4) {
      AppendSome();
    } else if (call == 4) {
      RefusedAppend();
    } else if (call < 7) {
      SetSome(name);
    } else if (call == 7) {
      const size_t items = Below(2) == 0 ? table_->priority_table(name)->Count() : 1;
      ASSERT_OK(table_->priority_table(name)->SetAll(Raws(items)));
    } else if (call == 8) {
      RemoveSome();
    } else if (call == 9) {
      (void)writer_->Cut(static_cast<uint32_t>(Below(3))).ok();
    } else if (call == 10 && table_->PriorityTables().size() < 6) {
      PriorityTableSpec more = Below(2) == 0 ? ColumnSpec("") : WindowSpec("");
      more.name = "more" + std::to_string(step);
      ASSERT_OK(table_->CreatePriorityTable(more));
    } else if (call == 11) {
      std::vector<std::vector<double>> before;
      for (const std::string& each : table_->PriorityTables()) {
        before.push_back(Probabilities(each));
      }
      Reopen();
      OpenAgain("steps", {.lanes = 3});
      for (size_t i = 0; i < before.size(); ++i) {
        EXPECT_EQ(Probabilities(table_->PriorityTables()[i]), before[i]);
      }
    }
    for (const std::string& each : table_->PriorityTables()) ExpectProportional(each);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomScaleTest, ::testing::Range<uint64_t>(0, 8));

}  // namespace
}  // namespace geardb
