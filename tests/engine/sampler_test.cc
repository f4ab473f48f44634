// What a batch shows of the items that were drawn.

#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/engine/sampler_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::SamplerFixture;
using testing::StepSpec;
using testing::WindowSpec;

class SamplerTest : public SamplerFixture {};

TEST_F(SamplerTest, BatchesSayWhatTheyHold) {
  CreateWith(Window({.before = 0, .length = 2, .after = 1}, EdgeRule::kClip, EdgeRule::kClip),
             true);
  AppendClosed(0, 5);
  Append(100, 4);
  auto sampler = Sample({.batch = 16, .views = {{.column = "action"}}});
  const auto batch = sampler->Next();
  ASSERT_OK(batch);
  EXPECT_EQ(batch->size(), 16);
  EXPECT_EQ(batch->draw_number(), 0u);
  EXPECT_EQ(batch->lsn(), database_->Stats().log_published == 0 ? 0 : batch->lsn());
  EXPECT_EQ(batch->Find("action")->shape, Shape({16, 2}));
  for (size_t i = 0; i < 16; ++i) {
    const TrajectoryId id = batch->trajectory_ids()[i];
    const int64_t anchor = batch->anchors()[i];
    EXPECT_EQ(Values<int32_t>(*batch, "action")[2 * i],
              static_cast<int32_t>((id == 2 ? 100 : 0) + anchor));
    EXPECT_EQ(batch->lengths()[i], id == 1 && anchor == 4 ? 1 : 2);
    EXPECT_EQ(batch->handles()[i].length, static_cast<uint32_t>(batch->lengths()[i]));
    EXPECT_EQ(batch->trajectory_lengths()[i], id == 1 ? 5 : 4);
    EXPECT_EQ(batch->trajectory_ends()[i], id == 1 ? End::kTerminated : End::kGo);
    EXPECT_EQ(batch->times_sampled()[i], 0u);
    EXPECT_EQ(batch->sources()[i], 0u);
    EXPECT_DOUBLE_EQ(batch->probabilities()[i], 1.0 / 7);
    EXPECT_EQ(batch->weights()[i], 1.0f);
  }
}

TEST_F(SamplerTest, OneRowHasNoAxisOfItsOwn) {
  CreateWith(Window({.before = 1, .length = 1, .after = 1}, EdgeRule::kRepeat, EdgeRule::kClip),
             true);
  AppendClosed(0, 5);
  const auto batch = DrawOne(
      {1, 2}, {.views = {{.column = "obs"},
                         {.column = "obs", .name = "next", .rows = {.begin = 1}},
                         {.column = "obs", .name = "list", .rows = {.list = {-1}}},
                         {.column = "obs", .name = "three", .rows = {.begin = -1, .count = 3}}}});
  ASSERT_OK(batch);
  EXPECT_EQ(batch->Find("obs")->shape, Shape({1, 2}));
  EXPECT_EQ(batch->Find("next")->shape, Shape({1, 2}));
  EXPECT_EQ(batch->Find("list")->shape, Shape({1, 2}));
  EXPECT_EQ(batch->Find("three")->shape, Shape({1, 3, 2}));
  EXPECT_EQ(Values<float>(*batch, "obs"), (std::vector<float>{2, 2.5f}));
  EXPECT_EQ(Values<float>(*batch, "next"), (std::vector<float>{3, 3.5f}));
  EXPECT_EQ(Values<float>(*batch, "list"), (std::vector<float>{1, 1.5f}));
  EXPECT_EQ(Values<float>(*batch, "three"), (std::vector<float>{1, 1.5f, 2, 2.5f, 3, 3.5f}));
}

TEST_F(SamplerTest, OutputsAreFoundByName) {
  CreateWith(WindowSpec("per"));
  AppendClosed(0, 5);
  const auto batch = DrawOne({1, 0}, {.views = {{.column = "obs"}, {.column = "version"}}});
  ASSERT_OK(batch);
  EXPECT_EQ(batch->OutputNames(), (std::vector<std::string_view>{"obs", "version"}));
  EXPECT_STATUS(kNotFound, batch->Find("action"), "no output 'action'; it has obs, version");
  EXPECT_STATUS(kNotFound, batch->ViewLengths("action"), "'action'");
  EXPECT_EQ((*batch)["action"].bytes, nullptr);
}

TEST_F(SamplerTest, ClipShortensWindowsAndMovesRowsToTheFront) {
  CreateWith(Window({.before = 2, .length = 3, .after = 0}, EdgeRule::kClip, EdgeRule::kClip));
  AppendClosed(0, 6);
  const SamplerOptions options{
      .views = {
          {.column = "action", .rows = {.begin = -2, .count = 5}, .pad_value = -7, .masks = true}}};
  auto batch = DrawOne({1, 1}, options);
  ASSERT_OK(batch);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{0, 1, 2, 3, -7}));
  EXPECT_EQ((*batch->ViewLengths("action"))[0], 4);
  EXPECT_EQ(Values<bool>(*batch, "action.valid"), (Bools{true, true, true, true, false}));
  EXPECT_EQ(Values<bool>(*batch, "action.learn"), (Bools{false, true, true, true, false}));
  EXPECT_EQ(Values<bool>(*batch, "action.is_first"), (Bools{true, false, false, false, false}));
  batch = DrawOne({1, 4}, options);
  ASSERT_OK(batch);
  EXPECT_EQ(batch->lengths()[0], 2);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{2, 3, 4, 5, -7}));
  EXPECT_EQ(Values<uint8_t>(*batch, "action.end"), (std::vector<uint8_t>{0, 0, 0, 1, 0}));
}

TEST_F(SamplerTest, PadKeepsTheAnchorInItsPlace) {
  CreateWith(Window({.before = 2, .length = 3, .after = 0}, EdgeRule::kPad, EdgeRule::kPad));
  AppendClosed(0, 6);
  const SamplerOptions options{
      .views = {
          {.column = "action", .rows = {.begin = -2, .count = 5}, .pad_value = -7, .masks = true}}};
  auto batch = DrawOne({1, 1}, options);
  ASSERT_OK(batch);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{-7, 0, 1, 2, 3}));
  EXPECT_EQ(Values<bool>(*batch, "action.valid"), (Bools{false, true, true, true, true}));
  EXPECT_EQ(Values<bool>(*batch, "action.learn"), (Bools{false, false, true, true, true}));
  EXPECT_EQ((*batch->ViewLengths("action"))[0], 5);
  batch = DrawOne({1, 5}, options);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{3, 4, 5, -7, -7}));
  EXPECT_EQ(batch->lengths()[0], 1);
}

TEST_F(SamplerTest, RepeatShowsTheEdgeRowAgain) {
  CreateWith(Window({.before = 2, .length = 3, .after = 0}, EdgeRule::kRepeat, EdgeRule::kRepeat));
  AppendClosed(0, 6);
  const SamplerOptions options{
      .views = {{.column = "action", .rows = {.begin = -2, .count = 5}, .masks = true}}};
  auto batch = DrawOne({1, 0}, options);
  ASSERT_OK(batch);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{0, 0, 0, 1, 2}));
  EXPECT_EQ(Values<bool>(*batch, "action.learn"), (Bools{false, false, true, true, true}));
  batch = DrawOne({1, 5}, options);
  EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{3, 4, 5, 5, 5}));
  EXPECT_EQ(Values<bool>(*batch, "action.valid"), Bools(5, true));
  EXPECT_EQ(Values<bool>(*batch, "action.learn"), (Bools{false, false, true, false, false}));
}

TEST_F(SamplerTest, ShiftMovesTheWindowInward) {
  CreateWith(Window({.before = 1, .length = 3, .after = 1}, EdgeRule::kShift, EdgeRule::kShift));
  AppendClosed(0, 6);
  const SamplerOptions options{.views = {{.column = "action", .rows = {.begin = -1, .count = 5}}}};
  for (const auto& [anchor, first] :
       std::map<int64_t, int32_t>{{0, 0}, {1, 0}, {2, 1}, {3, 1}, {5, 1}}) {
    const auto batch = DrawOne({1, anchor}, options);
    ASSERT_OK(batch);
    EXPECT_EQ(Values<int32_t>(*batch, "action"), testing::Count(first, 5)) << anchor;
    EXPECT_EQ(batch->anchors()[0], anchor);  // The item is still the row that was drawn.
    EXPECT_EQ(batch->lengths()[0], 3);
  }
}

TEST_F(SamplerTest, RequireLeavesOutWhatReachesOver) {
  CreateWith(Window({.before = 1, .length = 3, .after = 1}, EdgeRule::kRequire, EdgeRule::kRequire),
             true);
  AppendClosed(0, 6);
  EXPECT_EQ(priority("per")->Items(), (std::vector<RowId>{{1, 1}, {1, 2}, {1, 3}}));
}

TEST_F(SamplerTest, ViewsOfOneColumnShareNothingButTheWindow) {
  CreateWith(Window({.before = 0, .length = 4, .after = 1}, EdgeRule::kClip, EdgeRule::kClip),
             true);
  AppendClosed(0, 6);
  const auto batch = DrawOne(
      {1, 3},
      {.views = {{.column = "obs", .masks = true},
                 {.column = "obs", .name = "next", .rows = {.begin = 1}, .masks = true},
                 {.column = "obs", .name = "all", .rows = {.plus = 1}, .masks = true},
                 {.column = "obs", .name = "back", .rows = {.begin = 3, .count = 4, .stride = -1}},
                 {.column = "obs", .name = "some", .rows = {.list = {2, 0, 0}}}}});
  ASSERT_OK(batch);
  const auto firsts = [&](std::string_view name) {
    std::vector<float> values;
    const auto all = Values<float>(*batch, name);
    for (size_t i = 0; i < all.size(); i += 2) values.push_back(all[i]);
    return values;
  };
  // Three steps are left; row 6 is the final row.
  EXPECT_EQ(batch->lengths()[0], 3);
  EXPECT_EQ(firsts("obs"), (std::vector<float>{3, 4, 5, 0}));
  EXPECT_EQ(firsts("next"), (std::vector<float>{4, 5, 6, 0}));
  EXPECT_EQ(firsts("all"), (std::vector<float>{3, 4, 5, 6, 0}));
  EXPECT_EQ(firsts("some"), (std::vector<float>{5, 3, 3}));
  EXPECT_EQ((*batch->ViewLengths("next"))[0], 3);
  EXPECT_EQ((*batch->ViewLengths("all"))[0], 4);
  EXPECT_EQ(Values<bool>(*batch, "all.learn"), (Bools{true, true, true, false, false}));
  EXPECT_EQ(Values<bool>(*batch, "next.learn"), (Bools{true, true, false, false}));
  EXPECT_EQ(Values<uint8_t>(*batch, "all.end"), (std::vector<uint8_t>{0, 0, 1, 1, 0}));
}

TEST_F(SamplerTest, PackedBatchesHaveOffsets) {
  CreateWith(Window({.before = 0, .length = 4, .after = 0}, EdgeRule::kClip, EdgeRule::kClip));
  AppendClosed(0, 6);
  DrawOnly({{1, 1}, {1, 4}, {1, 5}});
  auto sampler = Sample({.batch = 32,
                         .views = {{.column = "action", .masks = true}, {.column = "version"}},
                         .layout = BatchLayout::kPacked});
  const auto batch = sampler->Next();
  ASSERT_OK(batch);
  const auto offsets = batch->CuSeqlens("action");
  ASSERT_OK(offsets);
  ASSERT_EQ(offsets->size(), 33u);
  EXPECT_EQ((*offsets)[0], 0);
  const auto actions = Values<int32_t>(*batch, "action");
  EXPECT_EQ(static_cast<int64_t>(actions.size()), (*offsets)[32]);
  for (size_t i = 0; i < 32; ++i) {
    const int64_t length = (*offsets)[i + 1] - (*offsets)[i];
    EXPECT_EQ(length, batch->lengths()[i]);
    EXPECT_EQ(length, (*batch->ViewLengths("action"))[i]);
    EXPECT_EQ(length, std::min<int64_t>(4, 6 - batch->anchors()[i]));
    for (int64_t k = 0; k < length; ++k) {
      EXPECT_EQ(actions[static_cast<size_t>((*offsets)[i] + k)], batch->anchors()[i] + k);
    }
  }
  EXPECT_EQ(Values<bool>(*batch, "action.learn"), Bools(actions.size(), true));
  EXPECT_EQ(batch->Find("version")->shape, Shape({32}));
}

TEST_F(SamplerTest, WholeTrajectoriesAreDelivered) {
  PriorityTableSpec spec = WindowSpec("per");
  spec.item = ItemKind::kTrajectory;
  CreateWith(spec, true);
  for (int64_t t = 1; t <= 4; ++t) AppendClosed(100 * t, 2 * t);
  Append(900, 3);  // Open: no item.
  for (const BatchLayout layout : {BatchLayout::kPadded, BatchLayout::kPacked}) {
    auto sampler =
        Sample({.batch = 16,
                .views = {{.column = "obs"}, {.column = "obs", .name = "all", .rows = {.plus = 1}}},
                .layout = layout});
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    int64_t longest = 0, total = 0;
    for (size_t i = 0; i < 16; ++i) {
      const auto t = static_cast<int64_t>(batch->trajectory_ids()[i]);
      EXPECT_EQ(batch->lengths()[i], 2 * t);
      EXPECT_EQ((*batch->ViewLengths("all"))[i], 2 * t + 1);
      EXPECT_EQ(batch->anchors()[i], 0);
      longest = std::max(longest, 2 * t);
      total += 2 * t;
    }
    if (layout == BatchLayout::kPadded) {
      EXPECT_EQ(batch->Find("obs")->shape, Shape({16, longest, 2}));
      EXPECT_EQ(batch->Find("all")->shape, Shape({16, longest + 1, 2}));
    } else {
      EXPECT_EQ(batch->Find("obs")->shape, Shape({total, 2}));
      EXPECT_EQ(batch->Find("all")->shape, Shape({total + 16, 2}));
    }
  }
}

TEST_F(SamplerTest, StacksShowOlderRows) {
  for (const EdgeRule left : {EdgeRule::kPad, EdgeRule::kRepeat, EdgeRule::kClip}) {
    SCOPED_TRACE(static_cast<int>(left));
    OpenEmpty();
    CreateWith(Window({.before = 2, .length = 2, .after = 0}, left, EdgeRule::kClip));
    AppendClosed(0, 6);
    const SamplerOptions options{.views = {{.column = "action", .stack = 3, .pad_value = -7}}};
    auto batch = DrawOne({1, 3}, options);
    ASSERT_OK(batch);
    EXPECT_EQ(batch->Find("action")->shape, Shape({1, 2, 3}));
    EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{1, 2, 3, 2, 3, 4}));
    batch = DrawOne({1, 0}, options);
    ASSERT_OK(batch);
    const int32_t edge = left == EdgeRule::kPad ? -7 : 0;
    EXPECT_EQ(Values<int32_t>(*batch, "action"), (Ints{edge, edge, 0, edge, 0, 1}));
  }
}

TEST_F(SamplerTest, NStepReturnsStopAtTheEnd) {
  CreateWith(Window({.before = 0, .length = 1, .after = 3}, EdgeRule::kClip, EdgeRule::kClip),
             true);
  const TrajectoryId terminated = AppendClosed(4, 5);
  const TrajectoryId truncated = AppendClosed(4, 5, End::kTruncated);
  const SamplerOptions options{
      .views = {{.column = "obs", .name = "bootstrap", .rows = {.bootstrap = true}}},
      .n_step = NStep{.reward_column = "reward", .n = 3, .gamma = 0.5}};
  auto batch = DrawOne({terminated, 1}, options);
  ASSERT_OK(batch);
  // Rewards are 1, 1.25, 1.5, 1.75, 2.
  EXPECT_EQ(Values<float>(*batch, "nstep.return")[0], 1.25f + 1.5f / 2 + 1.75f / 4);
  EXPECT_EQ(Values<float>(*batch, "nstep.discount")[0], 0.125f);
  EXPECT_EQ(Values<int64_t>(*batch, "nstep.bootstrap_row")[0], 4);
  EXPECT_EQ(Values<float>(*batch, "nstep.mask")[0], 1.0f);
  EXPECT_EQ(Values<float>(*batch, "bootstrap"), (std::vector<float>{8, 8.5f}));
  for (const TrajectoryId id : {terminated, truncated}) {
    batch = DrawOne({id, 3}, options);
    ASSERT_OK(batch);
    EXPECT_EQ(Values<float>(*batch, "nstep.return")[0], 1.75f + 1.0f);
    EXPECT_EQ(Values<float>(*batch, "nstep.discount")[0], 0.25f);
    EXPECT_EQ(Values<int64_t>(*batch, "nstep.bootstrap_row")[0], 5);
    EXPECT_EQ(Values<float>(*batch, "nstep.mask")[0], id == terminated ? 0.0f : 1.0f);
    EXPECT_EQ(Values<float>(*batch, "bootstrap"), (std::vector<float>{9, 9.5f}));
    EXPECT_EQ(batch->Find("bootstrap")->shape, Shape({1, 2}));
  }
}

TEST_F(SamplerTest, NStepForEveryRowHasAnAxis) {
  CreateWith(Window({.before = 0, .length = 3, .after = 2}, EdgeRule::kClip, EdgeRule::kClip),
             true);
  AppendClosed(4, 5);
  const SamplerOptions options{
      .views = {{.column = "obs", .name = "bootstrap", .rows = {.bootstrap = true}}},
      .n_step = NStep{.reward_column = "reward", .n = 2, .gamma = 0.5, .every_row = true}};
  const auto batch = DrawOne({1, 3}, options);
  ASSERT_OK(batch);
  EXPECT_EQ(batch->Find("nstep.return")->shape, Shape({1, 3}));
  EXPECT_EQ(Values<float>(*batch, "nstep.return"), (std::vector<float>{1.75f + 1, 2, 0}));
  EXPECT_EQ(Values<int64_t>(*batch, "nstep.bootstrap_row"), (std::vector<int64_t>{5, 5, 0}));
  EXPECT_EQ(batch->Find("bootstrap")->shape, Shape({1, 3, 2}));
  EXPECT_EQ((*batch->ViewLengths("bootstrap"))[0], 2);
}

TEST_F(SamplerTest, ValuesAreDeliveredAsFloats) {
  TableSpec spec;
  spec.name = "types";
  spec.columns = {{.name = "u8", .dtype = DType::kU8, .shape = {3}},
                  {.name = "flag", .dtype = DType::kBool},
                  {.name = "half", .dtype = DType::kF16},
                  {.name = "level", .dtype = DType::kI64, .kind = ColumnKind::kPerTrajectory}};
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  const uint8_t pixels[3] = {0, 128, 255};
  const bool flag = true;
  const Float16 half{0x3E00};  // 1.5
  const int64_t level = -4;
  const ColumnValue trajectory[] = {{"level", TensorView::Scalar(level)}};
  ASSERT_OK(writer_->Append({{"u8", TensorView::Of(std::span<const uint8_t>(pixels))},
                             {"flag", TensorView::Scalar(flag)},
                             {"half", TensorView::Scalar(half)}},
                            {.end = End::kTerminated, .trajectory = trajectory}));
  auto sampler = Sample({.batch = 1,
                         .views = {{.column = "u8", .to_f32 = true},
                                   {.column = "flag", .to_f32 = true},
                                   {.column = "half", .to_f32 = true},
                                   {.column = "level", .to_f32 = true},
                                   {.column = "u8", .name = "raw"}}});
  const auto batch = sampler->Next();
  ASSERT_OK(batch);
  EXPECT_EQ(Values<float>(*batch, "u8"), (std::vector<float>{0, 128, 255}));
  EXPECT_EQ(Values<float>(*batch, "flag"), std::vector<float>{1});
  EXPECT_EQ(Values<float>(*batch, "half"), std::vector<float>{1.5f});
  EXPECT_EQ(Values<float>(*batch, "level"), std::vector<float>{-4});
  EXPECT_EQ(Values<uint8_t>(*batch, "raw"), (std::vector<uint8_t>{0, 128, 255}));
}

TEST_F(SamplerTest, WeightsAreDividedByTheMaximumThatIsChosen) {
  CreateWith(WindowSpec("per"));
  AppendClosed(0, 4);
  // P = 0, 1/8, 2/8, 5/8 of 3 drawable items; a batch of one hardly has the smallest.
  const std::vector<float> priorities = {0, 1, 2, 5};
  ASSERT_OK(priority("per")->SetAll(priorities));
  for (const auto maximum : {WeightMaximum::kBatch, WeightMaximum::kTable, WeightMaximum::kNone}) {
    auto sampler = Sample({.batch = 1, .beta = 0.5, .weight_maximum = maximum});
    for (int draw = 0; draw < 20; ++draw) {
      const auto batch = sampler->Next();
      ASSERT_OK(batch);
      const double p = priorities[static_cast<size_t>(batch->anchors()[0])] / 8.0;
      const double weight = std::pow(3 * p, -0.5);
      const double most = maximum == WeightMaximum::kBatch   ? weight
                          : maximum == WeightMaximum::kTable ? std::pow(3.0 / 8, -0.5)
                                                             : 1.0;
      EXPECT_NEAR(batch->weights()[0], weight / most, 1e-5);
    }
  }
  EXPECT_STATUS(kInvalidArgument,
                priority("per")->NewSampler({.weight_maximum = static_cast<WeightMaximum>(3)}),
                "weight_maximum 3");
}

TEST_F(SamplerTest, BetaAndDrawNumbersHaveBounds) {
  CreateWith(WindowSpec("per"));
  auto sampler = Sample({.beta = 0.5});
  for (const double beta : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_STATUS(kInvalidArgument, sampler->set_beta(beta), "beta");
  }
  EXPECT_EQ(sampler->options().beta, 0.5);
  EXPECT_STATUS(kInvalidArgument, priority("per")->NewSampler({.restart_draw = UINT64_MAX}),
                "restarts at draw 18446744073709551615");
}

TEST_F(SamplerTest, PerTrajectoryColumnsComeOncePerItem) {
  CreateWith(Window({.before = 0, .length = 3, .after = 0}, EdgeRule::kClip, EdgeRule::kClip));
  for (uint32_t t = 1; t <= 3; ++t) {
    const Rows rows(0, 5);
    const uint32_t version = 10 * t;
    const ColumnValue trajectory[] = {{"version", TensorView::Scalar(version)}};
    ASSERT_OK(writer_->AppendTrajectory(rows.many(),
                                        {.end = End::kTerminated, .trajectory = trajectory}));
  }
  auto sampler = Sample({.batch = 20, .views = {{.column = "version"}, {.column = "action"}}});
  const auto batch = sampler->Next();
  ASSERT_OK(batch);
  EXPECT_EQ(batch->Find("version")->shape, Shape({20}));
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(Values<uint32_t>(*batch, "version")[i], 10 * batch->trajectory_ids()[i]);
  }
}

TEST_F(SamplerTest, ImportanceWeightsFollowTheirFormula) {
  CreateWith(WindowSpec("per"));
  AppendClosed(0, 8);
  const std::vector<float> priorities = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_OK(priority("per")->SetAll(priorities));
  auto sampler = Sample({.batch = 64, .beta = 0.5});
  for (const double beta : {0.5, 1.0}) {
    ASSERT_OK(sampler->set_beta(beta));
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    double most = 0;
    for (const double p : batch->probabilities()) most = std::max(most, std::pow(8 * p, -beta));
    for (size_t i = 0; i < 64; ++i) {
      const double p = batch->probabilities()[i];
      EXPECT_NEAR(p, static_cast<double>(batch->anchors()[i] + 1) / 36, 1e-5);
      EXPECT_NEAR(batch->weights()[i], std::pow(8 * p, -beta) / most, 1e-6);
    }
  }
}

TEST_F(SamplerTest, AStridedTableDrawsItsRowsOnly) {
  PriorityTableSpec spec =
      Window({.before = 0, .length = 2, .after = 0}, EdgeRule::kClip, EdgeRule::kClip);
  spec.window.stride = 3;
  CreateWith(spec);
  AppendClosed(0, 8);
  EXPECT_EQ(priority("per")->Items(), (std::vector<RowId>{{1, 0}, {1, 3}, {1, 6}}));
  OpenEmpty();
  spec.window.stride_from_end = true;
  CreateWith(spec);
  Append(0, 8);
  EXPECT_EQ(priority("per")->Count(), 0u);
  ASSERT_OK(writer_->Cut());
  EXPECT_EQ(priority("per")->Items(), (std::vector<RowId>{{1, 1}, {1, 4}, {1, 7}}));
}

TEST_F(SamplerTest, WrongOptionsAreRefusedByName) {
  CreateWith(WindowSpec("per", {.before = 1, .length = 2, .after = 1}));
  const auto refused = [&](const SamplerOptions& options, StatusCode code, const char* part) {
    const auto sampler = priority("per")->NewSampler(options);
    EXPECT_TRUE(testing::HasStatus(code, sampler.status(), part)) << part;
  };
  const StatusCode wrong = StatusCode::kInvalidArgument;
  for (const int64_t batch : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
    refused({.batch = batch}, wrong, "has batch");
  }
  for (const int64_t depth : {-1, 1 << 20}) refused({.prefetch = depth}, wrong, "prefetch");
  for (const double beta : {-0.5, std::nan(""), HUGE_VAL}) refused({.beta = beta}, wrong, "beta");
  refused({.layout = static_cast<BatchLayout>(2)}, wrong, "layout 2");
  refused({.timeout_ms = -1}, wrong, "timeout_ms -1");
  EXPECT_OK(priority("per")->NewSampler({.timeout_ms = 0}));
  refused({.views = {{.column = "nothing"}}}, StatusCode::kNotFound, "no column 'nothing'");
  const auto view = [&](ViewRows rows, int64_t stack, const char* part) {
    refused({.views = {{.column = "obs", .name = "v", .rows = rows, .stack = stack}}}, wrong, part);
    refused({.views = {{.column = "obs", .name = "v", .rows = rows, .stack = stack}}}, wrong,
            "view 'v' of priority table 'per'");
  };
  view({.begin = -2}, 1, "promises rows -1 to 2");
  view({.begin = 2}, 1, "shows rows");
  view({.count = 0}, 1, "count 0");
  view({.count = -5}, 1, "count -5");
  view({.plus = -1}, 1, "plus -1");
  view({.stride = 0}, 1, "stride 0");
  view({.stride = 3}, 1, "promises");
  view({.list = {0, 3}}, 1, "promises");
  view({.list = {INT64_MIN}}, 1, "relative to the anchor; at most");
  view({}, 0, "stack 0");
  view({}, 3, "promises");
  view({.bootstrap = true}, 1, "no n_step");
  refused({.views = {{.column = "obs"}, {.column = "action", .name = "obs"}}}, wrong,
          "two outputs are named 'obs'");
  refused({.views = {{.column = "obs", .masks = true}, {.column = "action", .name = "obs.valid"}}},
          wrong, "two outputs are named 'obs.valid'");
  refused({.n_step = NStep{.reward_column = "nothing"}}, StatusCode::kNotFound, "'nothing'");
  refused({.n_step = NStep{.reward_column = "obs"}}, wrong, "'obs'");
  refused({.n_step = NStep{.reward_column = "reward", .n = 0}}, wrong, "n 0");
  refused({.n_step = NStep{.reward_column = "reward", .n = 3}}, wrong, "promises 2");
  refused({.n_step = NStep{.reward_column = "reward", .n = 2, .every_row = true}}, wrong,
          "promises 1");
  refused({.n_step = NStep{.reward_column = "reward", .gamma = std::nan("")}}, wrong, "gamma");
  EXPECT_OK(priority("per")->NewSampler({.n_step = NStep{.reward_column = "reward", .n = 2}}));
}

}  // namespace
}  // namespace geardb
