// What a batch shows of windows at the edges of their episodes: shifted ones, stacks, packed ones.

#include <gtest/gtest.h>

#include "tests/engine/sampler_fixture.h"

namespace geardb {
namespace {

using testing::Count;
using testing::SamplerFixture;

class SamplerWindowsTest : public SamplerFixture {};

TEST_F(SamplerWindowsTest, NStepOfAShiftedWindowHasAllItsRewards) {
  CreateWith(Window({.before = 3, .length = 2, .after = 2}, EdgeRule::kShift, EdgeRule::kClip));
  Append(1, 5);  // Rewards 1/4 … 5/4.
  const SamplerOptions options{.views = {{.column = "action", .rows = {.begin = -3, .count = 7}}},
                               .n_step = NStep{.reward_column = "reward", .n = 3, .gamma = 0.5},
                               .timeout_ms = 0};
  auto early = Sample(options);
  EXPECT_STATUS(kDeadlineExceeded, early->Next(), "");
  Append(6, 2);
  for (int grown = 0; grown < 3; ++grown) {
    for (int64_t row = 0; row < 4; ++row) {
      const auto batch = DrawOne({1, row}, options);
      ASSERT_OK(batch);
      EXPECT_EQ(batch->lengths()[0], 2);
      EXPECT_EQ(Values<int32_t>(*batch, "action"), Count(1, 7));
      // Rows 3, 4 and 5.
      EXPECT_EQ(Values<float>(*batch, "nstep.return")[0], (4 + 5 * 0.5f + 6 * 0.25f) / 4);
      EXPECT_EQ(Values<float>(*batch, "nstep.discount")[0], 0.125f);
      EXPECT_EQ(Values<int64_t>(*batch, "nstep.bootstrap_row")[0], 6);
      EXPECT_EQ(Values<float>(*batch, "nstep.mask")[0], 1.0f);
    }
    Append(8 + grown, 1, grown == 1 ? End::kTerminated : End::kGo);
  }
}

TEST_F(SamplerWindowsTest, ARepeatedRowShowsItsOwnStack) {
  CreateWith(Window({.before = 3, .length = 3, .after = 0}, EdgeRule::kRepeat, EdgeRule::kRepeat));
  AppendClosed(0, 5);
  const SamplerOptions options{
      .views = {{.column = "action", .rows = {.begin = 0, .count = 3}, .stack = 4},
                {.column = "action", .name = "single", .rows = {.list = {2}}, .stack = 4}}};
  auto batch = DrawOne({1, 4}, options);
  ASSERT_OK(batch);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(Values<int32_t>(*batch, "single"), (Ints{1, 2, 3, 4}));
  batch = DrawOne({1, 3}, options);
  ASSERT_OK(batch);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{0, 1, 2, 3, 1, 2, 3, 4, 1, 2, 3, 4}));
  // On the left the stack of row 0 is row 0 alone.
  batch = DrawOne({1, 0}, options);
  ASSERT_OK(batch);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2}));
}

TEST_F(SamplerWindowsTest, ARepeatedRowOnTheLeftStacksTheFirstRow) {
  CreateWith(Window({.before = 3, .length = 1, .after = 0}, EdgeRule::kRepeat, EdgeRule::kRepeat));
  AppendClosed(0, 5);
  const auto batch = DrawOne(
      {1, 1}, {.views = {{.column = "action", .rows = {.begin = -2, .count = 3}, .stack = 2}}});
  ASSERT_OK(batch);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{0, 0, 0, 0, 0, 1}));
}

TEST_F(SamplerWindowsTest, StacksOfShiftedWindowsCountFromTheirPlace) {
  CreateWith(Window({.before = 2, .length = 2, .after = 0}, EdgeRule::kPad, EdgeRule::kShift));
  AppendClosed(0, 5);
  const SamplerOptions options{.views = {{.column = "action", .stack = 3, .pad_value = -1}}};
  auto batch = DrawOne({1, 4}, options);
  ASSERT_OK(batch);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{1, 2, 3, 2, 3, 4}));
  batch = DrawOne({1, 0}, options);
  ASSERT_OK(batch);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{-1, -1, 0, -1, 0, 1}));
}

TEST_F(SamplerWindowsTest, PackedEntriesAreCountedForLongExtents) {
  // A million rows are promised, five are there.
  constexpr int64_t kLong = int64_t{1} << 20;
  CreateWith(
      Window({.before = kLong, .length = kLong, .after = 0}, EdgeRule::kClip, EdgeRule::kClip));
  AppendClosed(0, 5);
  const ViewRows all{.begin = -kLong, .count = 2 * kLong};
  const ViewRows every_other{.begin = kLong - 2, .count = kLong - 1, .stride = -2};
  const auto batch = DrawOne(
      {1, 2}, {.views = {{.column = "action", .rows = all, .masks = true},
                         {.column = "action", .name = "odd", .rows = every_other},
                         {.column = "action", .name = "list", .rows = {.list = {-3, 1, 9}}}},
               .layout = BatchLayout::kPacked});
  ASSERT_OK(batch);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), Count(0, 5));
  EXPECT_EQ(Values<int32_t>(*batch, "odd"), (Ints{4, 2, 0}));
  EXPECT_EQ(Values<int32_t>(*batch, "list"), Ints{3});
  EXPECT_EQ(batch->Find("action.learn")->shape, Shape({5}));
}

TEST_F(SamplerWindowsTest, ASingleRowHasNEntriesPaddedAndAsManyAsThereArePacked) {
  CreateWith(Window({.before = 0, .length = 1, .after = 1}, EdgeRule::kClip, EdgeRule::kClip));
  AppendClosed(0, 1);
  SamplerOptions options{.views = {{.column = "action", .rows = {.list = {1}}, .pad_value = -1}}};
  auto batch = DrawOne({1, 0}, options);
  ASSERT_OK(batch);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), Ints{-1});
  options.layout = BatchLayout::kPacked;
  batch = DrawOne({1, 0}, options);
  ASSERT_OK(batch);
  EXPECT_EQ(batch->Find("action")->shape, Shape({0}));
}

}  // namespace
}  // namespace geardb
