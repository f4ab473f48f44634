// The model by itself: examples worked out by hand from engine/README.md, "Windows".
#include "tests/conformance/window_model.h"

#include <gtest/gtest.h>

#include <cstring>

namespace geardb::conformance {
namespace {

using Numbers = std::vector<int>;

Bytes Byte(int value) { return {static_cast<std::byte>(value)}; }

Bytes Float(float value) {
  Bytes bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

/// A scalar column of which zero is what nobody wrote.
ModelColumn Zeros(DType dtype, bool in_final_row) {
  return {dtype, 1, in_final_row, false, false, Bytes(DTypeBytes(dtype), std::byte{0})};
}

/// Trajectories of table columns {u8 that is the row's number + 100, f32 reward, u8 life loss}; the
/// rewards are 1, 2, 4, ... so that a sum says which rows are in it.
class WindowModelTest : public ::testing::Test {
 protected:
  void Make(bool final_row, bool stream) {
    model_.emplace(
        ModelTable{{Zeros(DType::kU8, true), Zeros(DType::kF32, false), Zeros(DType::kU8, false)},
                   final_row,
                   stream});
  }

  /// Appends `count` rows to trajectory 1; a final row shows 99.
  void Append(int count, End end = End::kGo) {
    std::vector<std::vector<Bytes>> rows;
    for (int i = 0; i < count; ++i, ++row_) {
      rows.push_back({Byte(100 + row_), Float(static_cast<float>(1 << row_)), Byte(row_ == lost_)});
    }
    const size_t before = Stored();
    model_->Append(1, rows, end, {Byte(99), Float(77), Byte(1)});
    row_ += static_cast<int>(Stored() - before) - count;
  }

  size_t Stored() const {
    const auto found = model_->trajectories().find(1);
    if (found == model_->trajectories().end()) return 0;
    return static_cast<size_t>(found->second.rows_end());
  }

  Numbers Anchors(const ModelRule& rule) const {
    Numbers anchors;
    for (const ModelItem& item : model_->Items(rule)) anchors.push_back(static_cast<int>(item.row));
    return anchors;
  }

  static ModelView Rows(std::vector<int64_t> rows) {
    return ModelView{.column = 0, .rows = std::move(rows), .pad = Byte(0)};
  }

  Numbers Show(const ModelRule& rule, int64_t anchor, const ModelView& view) const {
    Numbers values;
    for (const std::byte b : model_->Show(rule, ModelItem{1, anchor}, view, nullptr).bytes) {
      values.push_back(static_cast<int>(b));
    }
    return values;
  }

  ShownNStep Look(const ModelRule& rule, int64_t anchor, const ModelNStep& n_step) const {
    return model_->ShowNStep(rule, ModelItem{1, anchor}, n_step);
  }

  std::optional<WindowModel> model_;
  int row_ = 0;
  int lost_ = -1;
};

TEST_F(WindowModelTest, FinalRowIsStoredAndIsNoAnchor) {
  Make(true, false);
  Append(3, End::kTerminated);
  EXPECT_EQ(Stored(), 4u);
  EXPECT_EQ(model_->trajectories().at(1).steps_end(), 3);
  const ModelRule rule{.after = 1};
  EXPECT_EQ(Anchors(rule), (Numbers{0, 1, 2}));
  EXPECT_EQ(Show(rule, 2, Rows({0, 1})), (Numbers{102, 99}));
  const ModelView reward{.column = 1, .rows = {1}, .pad = Float(0)};
  EXPECT_EQ(model_->Show(rule, {1, 2}, reward, nullptr).bytes, Float(0));
}

TEST_F(WindowModelTest, CutMakesTheLastRowTheFinalRow) {
  Make(true, false);
  Append(3);
  EXPECT_EQ(Anchors({}), (Numbers{0, 1, 2}));
  EXPECT_TRUE(model_->Cut(1));
  EXPECT_EQ(Anchors({}), (Numbers{0, 1}));
  const ShownView shown = model_->Show({.after = 1}, {1, 1}, Rows({0, 1}), nullptr);
  EXPECT_EQ(shown.end, (std::vector<uint8_t>{0, 3}));
}

TEST_F(WindowModelTest, CutOfASingleRowLeavesNothing) {
  Make(true, false);
  Append(1);
  EXPECT_FALSE(model_->Cut(1));
  EXPECT_TRUE(model_->trajectories().empty());
}

TEST_F(WindowModelTest, TruncatedRowWithoutFinalRowIsShownAndIsNoAnchor) {
  Make(false, false);
  Append(4, End::kTruncated);
  EXPECT_EQ(Anchors({}), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(Anchors({.after = 1}), (Numbers{0, 1, 2}));
  EXPECT_EQ(Show({.after = 1}, 2, Rows({0, 1})), (Numbers{102, 103}));
}

TEST_F(WindowModelTest, TerminatedRowWithoutFinalRowIsAnAnchor) {
  Make(false, false);
  Append(4, End::kTerminated);
  EXPECT_EQ(Anchors({.after = 1}), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(Show({.after = 1}, 3, Rows({0, 1})), (Numbers{103}));
}

TEST_F(WindowModelTest, OpenTrajectoryRequiresItsRightSide) {
  Make(true, false);
  Append(6);
  EXPECT_EQ(Anchors({.length = 3, .right = Side::kPad}), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(Anchors({.length = 3, .after = 2}), (Numbers{0, 1}));
  Append(1, End::kTerminated);
  EXPECT_EQ(Anchors({.length = 3, .after = 2}), (Numbers{0, 1, 2, 3, 4, 5, 6}));
}

TEST_F(WindowModelTest, RequiredSidesMakeFewerAnchors) {
  Make(true, false);
  Append(6, End::kTerminated);
  const ModelRule rule{
      .before = 2, .length = 2, .after = 1, .left = Side::kRequire, .right = Side::kRequire};
  EXPECT_EQ(Anchors(rule), (Numbers{2, 3, 4}));
}

TEST_F(WindowModelTest, AfterNeedsAFinalRowWhereRequired) {
  Make(false, false);
  Append(6, End::kTerminated);
  EXPECT_EQ(Anchors({.length = 2, .after = 1, .right = Side::kRequire}), (Numbers{0, 1, 2, 3}));
}

TEST_F(WindowModelTest, StridesCountFromRowZeroOrFromTheLastStep) {
  Make(true, false);
  Append(6);
  EXPECT_EQ(Anchors({.stride = 4}), (Numbers{0, 4}));
  EXPECT_EQ(Anchors({.stride = 4, .stride_from_end = true}), Numbers{});
  Append(1, End::kTerminated);
  EXPECT_EQ(Anchors({.stride = 4, .stride_from_end = true}), (Numbers{2, 6}));
}

TEST_F(WindowModelTest, TrimmedHeadIsRequired) {
  Make(true, false);
  Append(6, End::kTerminated);
  model_->Trim(1, 2);
  EXPECT_EQ(Anchors({.before = 2}), (Numbers{4, 5}));
  EXPECT_EQ(Anchors({.stride = 3}), (Numbers{3}));
}

TEST_F(WindowModelTest, ClippedEntriesAreLeftOut) {
  Make(true, false);
  Append(4, End::kTerminated);
  const ModelRule rule{.before = 2, .length = 3, .left = Side::kClip};
  EXPECT_EQ(Show(rule, 0, Rows({-2, -1, 0, 1})), (Numbers{100, 101}));
  EXPECT_EQ(Show(rule, 3, Rows({0, 1, 2})), (Numbers{103}));
  EXPECT_EQ(model_->Length(rule, {1, 3}), 1);
}

TEST_F(WindowModelTest, PaddedAndRepeatedEntriesKeepTheirPlace) {
  Make(true, false);
  Append(3, End::kTerminated);
  ModelRule rule{.before = 2, .length = 2, .left = Side::kPad, .right = Side::kPad};
  EXPECT_EQ(Show(rule, 0, Rows({-2, -1, 0, 1})), (Numbers{0, 0, 100, 101}));
  EXPECT_EQ(Show(rule, 2, Rows({-1, 0, 1})), (Numbers{101, 102, 0}));
  rule.left = rule.right = Side::kRepeat;
  EXPECT_EQ(Show(rule, 0, Rows({-2, -1, 0, 1})), (Numbers{100, 100, 100, 101}));
  const ShownView shown = model_->Show(rule, {1, 2}, Rows({-2, 0, 1}), nullptr);
  EXPECT_EQ(shown.valid, (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(shown.learn, (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_EQ(shown.is_first, (std::vector<uint8_t>{1, 0, 0}));
  EXPECT_EQ(shown.end, (std::vector<uint8_t>{0, 1, 1}));
}

TEST_F(WindowModelTest, MasksOfPaddingAreZero) {
  Make(true, false);
  Append(2, End::kTerminated);
  const ModelRule rule{.before = 1, .left = Side::kPad};
  const ShownView shown = model_->Show(rule, {1, 0}, Rows({-1, 0}), nullptr);
  EXPECT_EQ(shown.valid, (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(shown.is_first, (std::vector<uint8_t>{0, 1}));
}

TEST_F(WindowModelTest, ShiftedWindowsMoveInward) {
  Make(true, false);
  Append(6, End::kTerminated);
  const ModelRule right{.length = 3, .after = 1, .right = Side::kShift};
  EXPECT_EQ(Show(right, 5, Rows({0, 1, 2, 3})), (Numbers{103, 104, 105, 99}));
  const ModelRule left{.before = 2, .length = 1, .left = Side::kShift};
  EXPECT_EQ(Show(left, 0, Rows({-2, -1, 0})), (Numbers{100, 101, 102}));
  const ModelRule too_long{.length = 9, .right = Side::kShift};
  EXPECT_EQ(Show(too_long, 4, Rows({0, 1, 2, 3, 4, 5, 6, 7, 8})),
            (Numbers{100, 101, 102, 103, 104, 105}));
  EXPECT_EQ(model_->Length(too_long, {1, 4}), 6);
}

TEST_F(WindowModelTest, ShiftedWindowsAreWholeWhereTheOtherSideIsRequired) {
  const ModelRule left{
      .before = 3, .length = 2, .after = 2, .left = Side::kShift, .right = Side::kClip};
  ModelRule with_right = left;
  with_right.right = Side::kRequire;
  const ModelRule right{
      .before = 3, .length = 2, .after = 2, .left = Side::kRequire, .right = Side::kShift};
  Make(false, false);
  Append(6);
  EXPECT_EQ(Anchors(left), Numbers{});
  Append(1);
  EXPECT_EQ(Anchors(left), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(Show(left, 1, Rows({-3, 3})), (Numbers{100, 106}));
  Append(1, End::kTerminated);
  EXPECT_EQ(Anchors(left), (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(Anchors(with_right), (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(Anchors(right), (Numbers{3, 4, 5, 6, 7}));
  model_->Trim(1, 1);
  EXPECT_EQ(Anchors(left), (Numbers{4, 5, 6, 7}));
  EXPECT_EQ(Anchors(right), (Numbers{4, 5, 6, 7}));
  model_->Trim(1, 2);
  EXPECT_EQ(Anchors(with_right), Numbers{});
  EXPECT_EQ(Anchors(right), Numbers{});
}

TEST_F(WindowModelTest, LeftShiftStopsAtTheLastStep) {
  Make(true, false);
  Append(2, End::kTerminated);
  const ModelRule rule{.before = 5, .left = Side::kShift};
  EXPECT_EQ(Show(rule, 0, Rows({-1, 0})), (Numbers{100, 101}));
}

TEST_F(WindowModelTest, WhatFollowsTheLastStepMovesUp) {
  Make(true, false);
  Append(3, End::kTerminated);
  const ModelRule rule{.length = 5, .after = 2, .right = Side::kClip};
  EXPECT_EQ(Show(rule, 0, Rows({0, 1, 2, 3, 4})), (Numbers{100, 101, 102}));
  EXPECT_EQ(Show(rule, 0, Rows({1, 2, 3, 4, 5})), (Numbers{101, 102, 99}));
  ModelRule padded = rule;
  padded.right = Side::kRepeat;
  EXPECT_EQ(Show(padded, 1, Rows({0, 1, 2})), (Numbers{101, 102, 102}));
}

TEST_F(WindowModelTest, ItemLengthNamesTheLengthPartAndMore) {
  Make(true, false);
  Append(5, End::kTerminated);
  const ModelRule rule{.length = 2, .after = 1};
  ModelView view{.column = 0, .item_length = true, .plus = 1, .pad = Byte(0)};
  EXPECT_EQ(Show(rule, 3, view), (Numbers{103, 104, 99}));
  view.begin = 1;
  view.plus = 0;
  EXPECT_EQ(Show(rule, 0, view), (Numbers{101, 102}));
}

TEST_F(WindowModelTest, StackShowsOlderRowsOnAnAxis) {
  Make(true, false);
  Append(4, End::kTerminated);
  ModelRule rule{.before = 2, .left = Side::kRepeat};
  ModelView view = Rows({0});
  view.stack = 3;
  EXPECT_EQ(Show(rule, 3, view), (Numbers{101, 102, 103}));
  EXPECT_EQ(Show(rule, 1, view), (Numbers{100, 100, 101}));
  rule.left = Side::kPad;
  EXPECT_EQ(Show(rule, 1, view), (Numbers{0, 100, 101}));
}

TEST_F(WindowModelTest, StackBeyondTheLastRowRepeatsItOrIsPadding) {
  Make(true, false);
  Append(4, End::kTerminated);
  ModelRule rule{.length = 4, .right = Side::kRepeat};
  ModelView view = Rows({2, 3});
  view.stack = 3;
  EXPECT_EQ(Show(rule, 2, view), (Numbers{101, 102, 103, 101, 102, 103}));
  rule.right = Side::kPad;
  EXPECT_EQ(Show(rule, 2, view), (Numbers{0, 0, 0, 0, 0, 0}));
  rule.right = Side::kClip;
  EXPECT_EQ(Show(rule, 2, view), Numbers{});
}

TEST_F(WindowModelTest, StreamWindowsStayInTheirEpisode) {
  Make(true, true);
  Append(2, End::kTerminated);  // Rows 0, 1 and the final row 2.
  Append(3);                    // Rows 3, 4, 5.
  const ModelRule rule{.before = 1, .length = 2, .after = 1};
  EXPECT_EQ(Anchors(rule), (Numbers{0, 1, 3}));
  EXPECT_EQ(Show(rule, 1, Rows({-1, 0, 1, 2})), (Numbers{100, 101, 99}));
  EXPECT_EQ(Show(rule, 3, Rows({-1, 0, 1, 2})), (Numbers{103, 103, 104, 105}));
  EXPECT_EQ(model_->Show(rule, {1, 3}, Rows({0, 1}), nullptr).is_first,
            (std::vector<uint8_t>{1, 0}));
}

TEST_F(WindowModelTest, CrossingWindowsShowFinalRowsAndDoNotLearnThem) {
  Make(true, true);
  Append(2, End::kTerminated);
  Append(3);
  const ModelRule rule{.length = 3, .cross_ends = true};
  EXPECT_EQ(Anchors(rule), (Numbers{0, 1, 3}));
  const ShownView shown = model_->Show(rule, {1, 1}, Rows({0, 1, 2}), nullptr);
  EXPECT_EQ(shown.bytes, (Bytes{std::byte{101}, std::byte{99}, std::byte{103}}));
  EXPECT_EQ(shown.learn, (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(shown.is_first, (std::vector<uint8_t>{0, 0, 1}));
  EXPECT_EQ(shown.end, (std::vector<uint8_t>{1, 1, 0}));
}

TEST_F(WindowModelTest, CrossingWindowsAreOpenUntilTheStreamIsClosed) {
  Make(false, true);
  Append(4, End::kTerminated);
  const ModelRule rule{.length = 3, .cross_ends = true};
  EXPECT_EQ(Anchors(rule), (Numbers{0, 1}));
  EXPECT_TRUE(model_->Cut(1));
  EXPECT_EQ(Anchors(rule), (Numbers{0, 1, 2, 3}));
}

TEST_F(WindowModelTest, EpisodeOfAStreamEndsWithItsLastRow) {
  Make(true, true);
  Append(4, End::kTruncated);
  EXPECT_EQ(Anchors({.length = 3}), (Numbers{0, 1, 2, 3}));
}

TEST_F(WindowModelTest, NStepSumsUpToTheEnd) {
  Make(true, false);
  Append(4, End::kTerminated);  // Rewards 1 2 4 8.
  const ModelRule rule{.after = 2};
  const ModelNStep n_step{.reward = 1, .n = 2, .gamma = 0.5f};
  ShownNStep look = Look(rule, 1, n_step);
  EXPECT_EQ(look.returns, (std::vector<float>{2 + 2}));
  EXPECT_EQ(look.discounts, (std::vector<float>{0.25f}));
  EXPECT_EQ(look.masks, (std::vector<float>{1}));
  EXPECT_EQ(look.bootstrap_rows, (std::vector<int64_t>{3}));
  look = Look(rule, 3, n_step);
  EXPECT_EQ(look.returns, (std::vector<float>{8}));
  EXPECT_EQ(look.discounts, (std::vector<float>{0.5f}));
  EXPECT_EQ(look.masks, (std::vector<float>{0}));
  EXPECT_EQ(look.bootstrap_rows, (std::vector<int64_t>{4}));
}

TEST_F(WindowModelTest, NStepBootstrapsFromTheRowThatPlaysTheFinalRow) {
  Make(false, false);
  Append(4, End::kTruncated);
  const ShownNStep look = Look({.after = 3}, 1, {.reward = 1, .n = 3, .gamma = 1.0f});
  EXPECT_EQ(look.returns, (std::vector<float>{2 + 4}));
  EXPECT_EQ(look.masks, (std::vector<float>{1}));
  EXPECT_EQ(look.bootstrap_rows, (std::vector<int64_t>{3}));
}

TEST_F(WindowModelTest, NStepWithoutANextRowBootstrapsFromTheLast) {
  Make(false, false);
  Append(4, End::kTerminated);
  const ShownNStep look = Look({.after = 3}, 2, {.reward = 1, .n = 3, .gamma = 1.0f});
  EXPECT_EQ(look.returns, (std::vector<float>{4 + 8}));
  EXPECT_EQ(look.masks, (std::vector<float>{0}));
  EXPECT_EQ(look.bootstrap_rows, (std::vector<int64_t>{3}));
}

TEST_F(WindowModelTest, NStepStopsWhereALifeIsLost) {
  Make(true, false);
  lost_ = 1;
  Append(4, End::kTerminated);
  const ModelNStep n_step{.reward = 1, .n = 3, .gamma = 1.0f, .life_loss = 2};
  const ShownNStep look = Look({.after = 3}, 0, n_step);
  EXPECT_EQ(look.returns, (std::vector<float>{1 + 2}));
  EXPECT_EQ(look.masks, (std::vector<float>{0}));
  EXPECT_EQ(look.bootstrap_rows, (std::vector<int64_t>{2}));
}

TEST_F(WindowModelTest, NStepOfACrossingWindowStaysInItsEpisode) {
  Make(false, true);
  Append(2, End::kTruncated);  // Rewards 1 2.
  Append(3);                   // Rewards 4 8 16.
  const ModelNStep n_step{.reward = 1, .n = 3, .gamma = 1.0f, .every_row = true};
  const ModelRule with_next{.length = 3, .after = 1, .cross_ends = true};
  EXPECT_EQ(Look(with_next, 0, n_step).returns, (std::vector<float>{1, 0, 4 + 8 + 16}));
  EXPECT_EQ(Look(with_next, 0, n_step).bootstrap_rows, (std::vector<int64_t>{1, 1, 4}));
  const ModelRule without{.length = 3, .cross_ends = true};
  EXPECT_EQ(Look(without, 0, n_step).returns, (std::vector<float>{1 + 2, 2, 4 + 8 + 16}));
  EXPECT_EQ(Look(without, 0, n_step).bootstrap_rows, (std::vector<int64_t>{1, 1, 4}));
}

TEST_F(WindowModelTest, TrajectoriesAreItemsOnceTheyAreClosed) {
  Make(true, false);
  const ModelRule rule{.trajectories = true};
  Append(3);
  EXPECT_EQ(Anchors(rule), Numbers{});
  model_->SetState(1, ModelState::kOrphaned);
  EXPECT_EQ(Anchors(rule), Numbers{});
  Append(1, End::kTerminated);
  EXPECT_EQ(Anchors(rule), (Numbers{0}));
  EXPECT_EQ(model_->Length(rule, {1, 0}), 4);
  model_->Trim(1, 1);
  EXPECT_EQ(Anchors(rule), (Numbers{1}));
  const ModelView view{.column = 0, .item_length = true, .plus = 1, .pad = Byte(0)};
  EXPECT_EQ(Show(rule, 1, view), (Numbers{101, 102, 103, 99}));
}

TEST_F(WindowModelTest, StreamsAreItemsOnceTheyAreClosed) {
  Make(true, true);
  const ModelRule rule{.trajectories = true};
  Append(2, End::kTerminated);
  model_->SetState(1, ModelState::kOrphaned);
  EXPECT_EQ(Anchors(rule), Numbers{});
  model_->Cut(1);
  EXPECT_EQ(Anchors(rule), (Numbers{0}));
}

TEST_F(WindowModelTest, ElementsBecomeFloats) {
  const uint16_t half = 0xC100;
  EXPECT_EQ(ElementAsFloat(DType::kF16, reinterpret_cast<const std::byte*>(&half)), -2.5f);
  const int64_t wide = -3;
  EXPECT_EQ(ElementAsFloat(DType::kI64, reinterpret_cast<const std::byte*>(&wide)), -3.0f);
  const uint8_t truth = 1;
  EXPECT_EQ(ElementAsFloat(DType::kBool, reinterpret_cast<const std::byte*>(&truth)), 1.0f);
}

}  // namespace
}  // namespace geardb::conformance
