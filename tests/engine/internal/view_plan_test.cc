#include "engine/internal/view_plan.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class ViewPlanTest : public ::testing::Test {
 protected:
  Result<CompiledView> Compile(const View& view, const Extent& extent,
                               std::optional<NStep> n_step = {}) {
    const TableLayout layout(testing::StepSpec(), 1);
    SamplerOptions options;
    options.views = {view};
    options.n_step = std::move(n_step);
    auto plan = CompileViews(layout, testing::WindowSpec("per", extent), options);
    if (!plan.ok()) return plan.status();
    return plan->views[0];
  }
};

TEST_F(ViewPlanTest, SizesFollowTheColumn) {
  const auto view = Compile({.column = "obs"}, {.length = 3});
  ASSERT_OK(view);
  EXPECT_EQ(view->name, "obs");
  EXPECT_EQ(view->row_bytes, 8u);
  EXPECT_EQ(view->out_row_bytes, 8u);
  EXPECT_EQ(view->delivered, DType::kF32);
  EXPECT_FALSE(view->drop_axis);
  EXPECT_TRUE(view->contiguous());
  const auto floats = Compile({.column = "action", .to_f32 = true}, {.length = 3});
  EXPECT_EQ(floats->delivered, DType::kF32);
  EXPECT_EQ(floats->convert, GatherConvert::kToF32);
  const auto same = Compile({.column = "reward", .to_f32 = true}, {.length = 3});
  EXPECT_EQ(same->convert, GatherConvert::kCopy);
}

TEST_F(ViewPlanTest, RowsAreCountedFromTheirDescription) {
  auto view = Compile({.column = "obs", .rows = {.begin = -1, .plus = 2}}, {1, 3, 1});
  ASSERT_OK(view);
  EXPECT_EQ(view->RowCount(3), 5);
  EXPECT_EQ(view->Relative(0), -1);
  EXPECT_EQ(view->Relative(4), 3);
  EXPECT_EQ(view->Over(3), 1);
  view = Compile({.column = "obs", .rows = {.begin = 3, .count = 3, .stride = -2}}, {1, 3, 1});
  ASSERT_OK(view);
  EXPECT_EQ(view->Relative(2), -1);
  EXPECT_EQ(view->Over(3), 1);
  EXPECT_FALSE(view->contiguous());
  view = Compile({.column = "obs", .rows = {.list = {0, 3, 1}}}, {1, 3, 1});
  ASSERT_OK(view);
  EXPECT_EQ(view->RowCount(3), 3);
  EXPECT_EQ(view->Relative(1), 3);
  EXPECT_EQ(view->Over(3), 1);
}

TEST_F(ViewPlanTest, NStepTakesPerStepColumns) {
  const Extent extent = {.length = 2};
  const char* per_trajectory =
      "n_step: column 'score' of table 'steps' is per trajectory; a per-step column is needed";
  for (const NStep& n_step : {NStep{.reward_column = "score"},
                              NStep{.reward_column = "reward", .discount_column = "score"},
                              NStep{.reward_column = "reward", .life_loss_column = "score"}}) {
    EXPECT_STATUS(kInvalidArgument, Compile({.column = "obs"}, extent, n_step), per_trajectory);
  }
  EXPECT_STATUS(kNotFound, Compile({.column = "obs"}, extent, NStep{.reward_column = "none"}),
                "n_step: table 'steps' has no column 'none'; it has obs");
  EXPECT_OK(Compile({.column = "obs"}, extent, NStep{.reward_column = "reward"}));
}

TEST_F(ViewPlanTest, OneRowDropsItsAxis) {
  EXPECT_TRUE(Compile({.column = "obs"}, {.length = 1})->drop_axis);
  EXPECT_TRUE(Compile({.column = "obs", .rows = {.count = 1}}, {.length = 3})->drop_axis);
  EXPECT_TRUE(Compile({.column = "obs", .rows = {.list = {2}}}, {.length = 3})->drop_axis);
  EXPECT_FALSE(Compile({.column = "obs", .rows = {.plus = 1}}, {0, 1, 1})->drop_axis);
  const NStep one{.reward_column = "reward", .n = 1};
  NStep every = one;
  every.every_row = true;
  const View bootstrap{.column = "obs", .rows = {.bootstrap = true}};
  EXPECT_TRUE(Compile(bootstrap, {0, 3, 1}, one)->drop_axis);
  EXPECT_FALSE(Compile(bootstrap, {0, 3, 1}, every)->drop_axis);
}

TEST_F(ViewPlanTest, EverythingMustLieInTheExtent) {
  const Extent extent{2, 3, 1};
  EXPECT_OK(Compile({.column = "obs", .rows = {.begin = -2, .count = 6}}, extent));
  EXPECT_FALSE(Compile({.column = "obs", .rows = {.begin = -3, .count = 6}}, extent).ok());
  EXPECT_FALSE(Compile({.column = "obs", .rows = {.begin = -2, .count = 7}}, extent).ok());
  EXPECT_OK(Compile({.column = "obs", .stack = 3}, extent));
  EXPECT_FALSE(Compile({.column = "obs", .stack = 4}, extent).ok());
}

TEST_F(ViewPlanTest, PerTrajectoryColumnsIgnoreRows) {
  const auto view = Compile({.column = "version", .rows = {.begin = -99}}, {});
  ASSERT_OK(view);
  EXPECT_TRUE(view->per_trajectory);
}

TEST_F(ViewPlanTest, PerTrajectoryColumnsHaveNoStacksAndNoMasks) {
  EXPECT_STATUS(kInvalidArgument, Compile({.column = "version", .masks = true}, {}),
                "view 'version' of priority table 'per' has stack 1 and masks on");
  EXPECT_STATUS(kInvalidArgument, Compile({.column = "version", .name = "v", .stack = 4}, {}),
                "view 'v' of priority table 'per' has stack 4");
}

TEST_F(ViewPlanTest, StacksOfRepeatedRowsLieInTheExtent) {
  PriorityTableSpec spec = testing::WindowSpec("per", {1, 4, 0});
  spec.window.right = EdgeRule::kRepeat;
  const TableLayout layout(testing::StepSpec(), 1);
  const auto compile = [&](const ViewRows& rows, int64_t stack) {
    SamplerOptions options;
    options.views = {View{.column = "obs", .rows = rows, .stack = stack}};
    return CompileViews(layout, spec, options).status();
  };
  EXPECT_OK(compile({}, 2));
  EXPECT_STATUS(kInvalidArgument, compile({.list = {2}}, 3), "stacks 3 rows and repeats");
  spec.window.right = EdgeRule::kClip;
  EXPECT_OK(compile({.list = {2}}, 3));
  spec.item = ItemKind::kTrajectory;
  EXPECT_OK(compile({.list = {1000}}, 1));
  EXPECT_STATUS(kInvalidArgument, compile({.list = {INT64_MAX}}, 1),
                "shows row 9223372036854775807");
}

TEST_F(ViewPlanTest, StackedBootstrapRowsNeedRowsBeforeTheAnchor) {
  const View view = {.column = "obs", .rows = {.bootstrap = true}, .stack = 2};
  const NStep n_step = {.reward_column = "reward", .n = 1};
  EXPECT_STATUS(kInvalidArgument, Compile(view, {0, 2, 1}, n_step), "stacks 2 rows");
  EXPECT_OK(Compile(view, {1, 2, 1}, n_step));
}

}  // namespace
}  // namespace geardb::engine
