// What batches show at the edges of what samplers may ask for.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class BatchEdgesTest : public testing::StoreTest {
 protected:
  void MakeUniform(TableSpec spec, Extent extent = {}) {
    spec.priority_tables = {testing::WindowSpec("all", extent)};
    spec.priority_tables[0].selector = SelectorKind::kUniform;
    Create(spec);
  }
};

// Those of the first part's table were shown for all.
TEST_F(BatchEdgesTest, PartsShowTheDefaultsOfTheirTables) {
  std::vector<SamplerPart> parts;
  for (const double unset : {3.0, 7.0}) {
    const Column goal = {
        .name = "goal", .shape = {32}, .kind = ColumnKind::kPerTrajectory, .default_value = unset};
    MakeUniform({.name = unset == 3 ? "three" : "seven", .columns = {{.name = "x"}, goal}});
    const std::vector<float> rows(5, static_cast<float>(unset));
    ASSERT_OK(writer_->AppendTrajectory({{"x", TensorView::Of(std::span<const float>(rows))}},
                                        {.end = End::kTerminated}));
    ASSERT_OK_AND_ASSIGN(const auto all, table_->OpenPriorityTable("all"));
    parts.push_back({.priority_table = all, .share = ShareKind::kFixed, .count = 4});
  }
  ASSERT_OK_AND_ASSIGN(
      const auto sampler,
      database_->NewSampler(parts, {.batch = 8, .views = {{.column = "x"}, {.column = "goal"}}}));
  ASSERT_OK_AND_ASSIGN(const auto batch, sampler->Next());
  const auto x = batch["x"].values<float>();
  const auto goal = batch["goal"].values<float>();
  for (size_t i = 0; i < goal.size(); ++i) EXPECT_EQ(goal[i], x[i / 32]) << i;
}

// The oldest row of a stack there lay beyond what a number holds, and was taken.
TEST_F(BatchEdgesTest, RowsOfAListAreNearTheAnchor) {
  MakeUniform({.name = "t", .columns = {{.name = "x"}}});
  for (const int64_t row : {std::numeric_limits<int64_t>::min(),
                            std::numeric_limits<int64_t>::max(), int64_t{1} << 40}) {
    View view = {.column = "x", .stack = 3};
    view.rows.list = {row};
    EXPECT_STATUS(kInvalidArgument, priority("all")->NewSampler({.batch = 1, .views = {view}}),
                  "relative to the anchor");
  }
  PriorityTableSpec whole = {.name = "whole"};
  whole.item = ItemKind::kTrajectory;
  whole.selector = SelectorKind::kUniform;
  ASSERT_OK(table_->CreatePriorityTable(whole));
  for (const bool of_stride : {false, true}) {
    View view = {.column = "x", .stack = 2};
    view.rows.count = 1;
    (of_stride ? view.rows.stride : view.rows.begin) = std::numeric_limits<int64_t>::min();
    EXPECT_STATUS(kInvalidArgument, priority("whole")->NewSampler({.batch = 1, .views = {view}}),
                  "sizes below");
  }
}

// Each entry counted as one row, which few of them had.
TEST_F(BatchEdgesTest, LargeRowsThatMostStepsLackFitTheBudget) {
  constexpr int64_t kRow = 64 << 10;
  options_.budgets.batch_bytes = 16 << 20;
  Reopen();
  MakeUniform(
      {.name = "t",
       .columns =
           {{.name = "x"},
            {.name = "image", .dtype = DType::kU8, .shape = {kRow}, .kind = ColumnKind::kRagged}}},
      {.length = 64});
  const std::vector<float> x(64, 1.0f);
  const std::vector<uint8_t> image(kRow, 9);
  std::vector<uint64_t> offsets(65, 1);
  offsets[0] = 0;  // The first step has one.
  ASSERT_OK(writer_->AppendTrajectory(
      {{"x", TensorView::Of(std::span<const float>(x))},
       {"image", TensorView(image.data(), DType::kU8, Shape({1, kRow})), offsets}},
      {.end = End::kTerminated}));
  ASSERT_OK_AND_ASSIGN(const auto sampler,
                       priority("all")->NewSampler({.batch = 32, .views = {{.column = "image"}}}));
  ASSERT_OK_AND_ASSIGN(const auto batch, sampler->Next());
  EXPECT_EQ(batch["image"].values<uint8_t>().size() % static_cast<size_t>(kRow), 0u);
}

}  // namespace
}  // namespace geardb
