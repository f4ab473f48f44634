// The edge rule, case by case, computed by hand. tests/conformance compares it with a model.
#include "base/window.h"

#include <gtest/gtest.h>

#include <vector>

namespace geardb {
namespace {

WindowRule Rule(Extent extent, EdgeRule left, EdgeRule right) {
  WindowRule rule;
  rule.extent = extent;
  rule.left = left;
  rule.right = right;
  return rule;
}

std::vector<int64_t> Anchors(const WindowRule& rule, const Episode& episode) {
  std::vector<int64_t> anchors;
  for (int64_t a = episode.begin - 3; a < episode.rows_end + 3; ++a) {
    if (IsAnchor(rule, episode, a)) anchors.push_back(a);
  }
  return anchors;
}

/// What a view of relative rows [from, to) shows: row numbers; -1 padding, 1000 + r a repetition.
std::vector<int64_t> Shown(const WindowRule& rule, const Episode& episode, int64_t anchor,
                           int64_t from, int64_t to) {
  const PlacedWindow window = PlaceWindow(rule, episode, anchor);
  const int64_t over = std::max<int64_t>(0, to - rule.extent.length);
  std::vector<int64_t> rows;
  for (int64_t j = from; j < to; ++j) {
    const Entry entry = ResolveEntry(rule, episode, window, over, j);
    if (entry.kind == EntryKind::kRow) rows.push_back(entry.row);
    if (entry.kind == EntryKind::kRepeat) rows.push_back(1000 + entry.row);
    if (entry.kind == EntryKind::kPad) rows.push_back(-1);
  }
  return rows;
}

using Rows = std::vector<int64_t>;
constexpr EdgeRule kAll[] = {EdgeRule::kRequire, EdgeRule::kClip, EdgeRule::kPad, EdgeRule::kRepeat,
                             EdgeRule::kShift};

// Rows 10 … 15 are steps, row 16 is a final row.
constexpr Episode kEnded{.begin = 10, .steps_end = 16, .rows_end = 17};
// Rows 10 … 15, going on.
constexpr Episode kOpen{.begin = 10, .steps_end = 16, .rows_end = 16, .open = true};
// As kEnded, with rows before 10 that were trimmed.
constexpr Episode kHeadless{.begin = 10, .steps_end = 16, .rows_end = 17, .head_missing = true};

TEST(WindowTest, RequiredSidesLeaveRowsOut) {
  const Extent extent{.before = 2, .length = 2, .after = 1};
  EXPECT_EQ(Anchors(Rule(extent, EdgeRule::kRequire, EdgeRule::kRequire), kEnded),
            (Rows{12, 13, 14}));
  EXPECT_EQ(Anchors(Rule(extent, EdgeRule::kRequire, EdgeRule::kClip), kEnded),
            (Rows{12, 13, 14, 15}));
  EXPECT_EQ(Anchors(Rule(extent, EdgeRule::kClip, EdgeRule::kRequire), kEnded),
            (Rows{10, 11, 12, 13, 14}));
}

TEST(WindowTest, OtherRulesTakeEveryStepOfAnEndedEpisode) {
  for (const EdgeRule left : kAll) {
    for (const EdgeRule right : kAll) {
      if (left == EdgeRule::kRequire || right == EdgeRule::kRequire) continue;
      EXPECT_EQ(Anchors(Rule({3, 4, 2}, left, right), kEnded), (Rows{10, 11, 12, 13, 14, 15}));
    }
  }
}

TEST(WindowTest, TheRightSideOfAnOpenEpisodeIsRequired) {
  for (const EdgeRule right : kAll) {
    EXPECT_EQ(Anchors(Rule({0, 1, 0}, EdgeRule::kClip, right), kOpen),
              (Rows{10, 11, 12, 13, 14, 15}));
    EXPECT_EQ(Anchors(Rule({0, 2, 1}, EdgeRule::kClip, right), kOpen), (Rows{10, 11, 12, 13}));
    EXPECT_EQ(Anchors(Rule({0, 9, 0}, EdgeRule::kClip, right), kOpen), Rows{});
  }
}

TEST(WindowTest, TheLeftSideOfATrimmedEpisodeIsRequired) {
  for (const EdgeRule left : kAll) {
    EXPECT_EQ(Anchors(Rule({2, 1, 0}, left, EdgeRule::kClip), kHeadless), (Rows{12, 13, 14, 15}));
    EXPECT_EQ(Anchors(Rule({0, 1, 0}, left, EdgeRule::kClip), kHeadless),
              (Rows{10, 11, 12, 13, 14, 15}));
  }
}

TEST(WindowTest, TheFinalRowCountsForAfterOnly) {
  // The length part must be steps: the final row is not one.
  EXPECT_EQ(Anchors(Rule({0, 2, 0}, EdgeRule::kClip, EdgeRule::kRequire), kEnded),
            (Rows{10, 11, 12, 13, 14}));
  EXPECT_EQ(Anchors(Rule({0, 1, 1}, EdgeRule::kClip, EdgeRule::kRequire), kEnded),
            (Rows{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(Anchors(Rule({0, 1, 2}, EdgeRule::kClip, EdgeRule::kRequire), kEnded),
            (Rows{10, 11, 12, 13, 14}));
}

TEST(WindowTest, StridesCountFromRowZeroOrFromTheEnd) {
  WindowRule rule = Rule({0, 1, 0}, EdgeRule::kClip, EdgeRule::kClip);
  rule.stride = 4;
  EXPECT_EQ(Anchors(rule, kEnded), (Rows{12}));  // Absolute rows: 8, 12, 16.
  rule.stride = 2;
  EXPECT_EQ(Anchors(rule, kEnded), (Rows{10, 12, 14}));
  rule.stride_from_end = true;
  EXPECT_EQ(Anchors(rule, kEnded), (Rows{11, 13, 15}));
  EXPECT_EQ(Anchors(rule, kOpen), Rows{});
}

TEST(WindowTest, ClipLeavesAwayWhatIsNotThere) {
  const WindowRule rule = Rule({2, 3, 1}, EdgeRule::kClip, EdgeRule::kClip);
  EXPECT_EQ(Shown(rule, kEnded, 10, -2, 4), (Rows{10, 11, 12, 13}));
  EXPECT_EQ(Shown(rule, kEnded, 11, -2, 4), (Rows{10, 11, 12, 13, 14}));
  EXPECT_EQ(Shown(rule, kEnded, 15, -2, 4), (Rows{13, 14, 15, 16}));
  EXPECT_EQ(PlaceWindow(rule, kEnded, 14).steps, 2);
}

TEST(WindowTest, WhatFollowsTheLastStepMovesUp) {
  // Two steps are left of three: the rows shown end with the row after them.
  const WindowRule rule = Rule({0, 3, 1}, EdgeRule::kClip, EdgeRule::kClip);
  EXPECT_EQ(Shown(rule, kEnded, 14, 0, 3), (Rows{14, 15}));
  EXPECT_EQ(Shown(rule, kEnded, 14, 1, 4), (Rows{15, 16}));
  EXPECT_EQ(Shown(rule, kEnded, 14, 0, 4), (Rows{14, 15, 16}));
  // In the middle a view of three steps ends before the row after them, too.
  EXPECT_EQ(Shown(rule, kEnded, 11, 0, 3), (Rows{11, 12, 13}));
}

TEST(WindowTest, PadKeepsPlaces) {
  const WindowRule rule = Rule({2, 3, 1}, EdgeRule::kPad, EdgeRule::kPad);
  EXPECT_EQ(Shown(rule, kEnded, 10, -2, 4), (Rows{-1, -1, 10, 11, 12, 13}));
  EXPECT_EQ(Shown(rule, kEnded, 15, -2, 4), (Rows{13, 14, 15, 16, -1, -1}));
}

TEST(WindowTest, RepeatShowsTheEdgeRow) {
  const WindowRule rule = Rule({2, 3, 1}, EdgeRule::kRepeat, EdgeRule::kRepeat);
  EXPECT_EQ(Shown(rule, kEnded, 10, -2, 4), (Rows{1010, 1010, 10, 11, 12, 13}));
  EXPECT_EQ(Shown(rule, kEnded, 15, -2, 3), (Rows{13, 14, 15, 1015, 1015}));
  EXPECT_EQ(Shown(rule, kEnded, 15, -2, 4), (Rows{13, 14, 15, 16, 1016, 1016}));
}

TEST(WindowTest, ShiftMovesTheAnchorInward) {
  const WindowRule rule = Rule({2, 3, 1}, EdgeRule::kShift, EdgeRule::kShift);
  EXPECT_EQ(PlaceWindow(rule, kEnded, 10).anchor, 12);
  EXPECT_EQ(PlaceWindow(rule, kEnded, 11).anchor, 12);
  EXPECT_EQ(PlaceWindow(rule, kEnded, 13).anchor, 13);
  EXPECT_EQ(PlaceWindow(rule, kEnded, 15).anchor, 13);
  EXPECT_EQ(Shown(rule, kEnded, 10, -2, 4), (Rows{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(Shown(rule, kEnded, 15, -2, 4), (Rows{11, 12, 13, 14, 15, 16}));
}

TEST(WindowTest, ShiftClipsWhatStillDoesNotFit) {
  constexpr Episode kShort{.begin = 10, .steps_end = 12, .rows_end = 13};
  const WindowRule right = Rule({0, 4, 0}, EdgeRule::kClip, EdgeRule::kShift);
  EXPECT_EQ(PlaceWindow(right, kShort, 11).anchor, 10);
  EXPECT_EQ(PlaceWindow(right, kShort, 11).steps, 2);
  EXPECT_EQ(Shown(right, kShort, 11, 0, 4), (Rows{10, 11}));
  const WindowRule left = Rule({5, 1, 0}, EdgeRule::kShift, EdgeRule::kClip);
  EXPECT_EQ(PlaceWindow(left, kShort, 10).anchor, 11);  // Not beyond the last step.
  EXPECT_EQ(Shown(left, kShort, 10, -5, 1), (Rows{10, 11}));
}

TEST(WindowTest, ASingleStepIsAWindowForEveryRule) {
  constexpr Episode kOne{.begin = 10, .steps_end = 11, .rows_end = 12};
  for (const EdgeRule left : kAll) {
    for (const EdgeRule right : kAll) {
      const WindowRule rule = Rule({0, 1, 1}, left, right);
      EXPECT_EQ(Anchors(rule, kOne), Rows{10});
      EXPECT_EQ(Shown(rule, kOne, 10, 0, 2), (Rows{10, 11}));
    }
  }
}

TEST(WindowTest, TheRuleCanBeAskedAtCompileTime) {
  constexpr WindowRule kRule{.extent = {.before = 0, .length = 2, .after = 0},
                             .right = EdgeRule::kRequire};
  static_assert(IsAnchor(kRule, kEnded, 14) && !IsAnchor(kRule, kEnded, 15));
  static_assert(PlaceWindow(kRule, kEnded, 14).steps == 2);
  static_assert(ResolveEntry(kRule, kEnded, {14, 2}, 0, 1).row == 15);
}

}  // namespace
}  // namespace geardb
