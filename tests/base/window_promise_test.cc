// What a priority table promises of its windows: sides that shift beside sides that are required,
// by a rule, by an open episode or by a trimmed head. Small episodes are tried with every pair of
// rules.
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "base/window.h"

namespace geardb {
namespace {

using Rows = std::vector<int64_t>;
constexpr EdgeRule kAllRules[] = {EdgeRule::kRequire, EdgeRule::kClip, EdgeRule::kPad,
                                  EdgeRule::kRepeat, EdgeRule::kShift};
constexpr int64_t kBegin = 10;

Rows Anchors(const WindowRule& rule, const Episode& episode) {
  Rows anchors;
  for (int64_t a = episode.begin - 3; a < episode.rows_end + 3; ++a) {
    if (IsAnchor(rule, episode, a)) anchors.push_back(a);
  }
  return anchors;
}

/// Where the windows of all anchors stand.
Rows Places(const WindowRule& rule, const Episode& episode) {
  Rows places;
  for (const int64_t a : Anchors(rule, episode)) {
    places.push_back(PlaceWindow(rule, episode, a).anchor);
  }
  return places;
}

WindowRule Rule(EdgeRule left, EdgeRule right, Extent extent = {3, 2, 2}) {
  WindowRule rule;
  rule.extent = extent;
  rule.left = left;
  rule.right = right;
  return rule;
}

/// Rows kBegin, kBegin + 1, …
Episode Open(int64_t rows) {
  return {.begin = kBegin, .steps_end = kBegin + rows, .rows_end = kBegin + rows, .open = true};
}
Episode Ended(int64_t rows) {
  return {.begin = kBegin, .steps_end = kBegin + rows, .rows_end = kBegin + rows};
}
Episode EndedWithFinalRow(int64_t steps) {
  return {.begin = kBegin, .steps_end = kBegin + steps, .rows_end = kBegin + steps + 1};
}

// ---- By hand: the extent {3, 2, 2} is 7 rows.

TEST(WindowPromiseTest, AnOpenEpisodeShowsNoPartOfAWindowThatShifts) {
  for (const EdgeRule right : kAllRules) {
    const WindowRule rule = Rule(EdgeRule::kShift, right);
    for (int64_t rows = 1; rows < 7; ++rows) EXPECT_EQ(Anchors(rule, Open(rows)), Rows{});
    // All at once, and all at row 13; then one by one.
    EXPECT_EQ(Anchors(rule, Open(7)), (Rows{10, 11, 12, 13}));
    EXPECT_EQ(Places(rule, Open(7)), (Rows{13, 13, 13, 13}));
    EXPECT_EQ(Anchors(rule, Open(8)), (Rows{10, 11, 12, 13, 14}));
    EXPECT_EQ(Places(rule, Open(8)), (Rows{13, 13, 13, 13, 14}));
  }
}

TEST(WindowPromiseTest, TheRightSideOfAnOpenEpisodeDoesNotShift) {
  const WindowRule rule = Rule(EdgeRule::kClip, EdgeRule::kShift);
  EXPECT_EQ(Anchors(rule, Open(6)), (Rows{10, 11, 12}));
  EXPECT_EQ(Places(rule, Open(6)), (Rows{10, 11, 12}));
  EXPECT_EQ(Places(rule, Ended(6)), (Rows{10, 11, 12, 12, 12, 12}));
}

TEST(WindowPromiseTest, BesideARequiredSideAShiftedWindowIsWhole) {
  const WindowRule left = Rule(EdgeRule::kShift, EdgeRule::kRequire);
  const WindowRule right = Rule(EdgeRule::kRequire, EdgeRule::kShift);
  for (int64_t rows = 1; rows < 7; ++rows) {
    EXPECT_EQ(Anchors(left, Ended(rows)), Rows{});
    EXPECT_EQ(Anchors(right, Ended(rows)), Rows{});
  }
  EXPECT_EQ(Anchors(left, Ended(7)), (Rows{10, 11, 12, 13}));
  EXPECT_EQ(Places(left, Ended(7)), (Rows{13, 13, 13, 13}));
  EXPECT_EQ(Anchors(right, Ended(7)), (Rows{13, 14, 15, 16}));
  EXPECT_EQ(Places(right, Ended(7)), (Rows{13, 13, 13, 13}));
  EXPECT_EQ(Anchors(right, EndedWithFinalRow(5)), Rows{});
  EXPECT_EQ(Anchors(right, EndedWithFinalRow(6)), (Rows{13, 14, 15}));
}

TEST(WindowPromiseTest, BesideATrimmedHeadAShiftedWindowIsWhole) {
  const WindowRule right = Rule(EdgeRule::kClip, EdgeRule::kShift);
  Episode headless = Ended(6);
  EXPECT_EQ(Anchors(right, headless), (Rows{10, 11, 12, 13, 14, 15}));
  headless.head_missing = true;
  EXPECT_EQ(Anchors(right, headless), Rows{});
  headless.begin = 9;  // Seven rows.
  EXPECT_EQ(Anchors(right, headless), (Rows{12, 13, 14, 15}));
  EXPECT_EQ(Places(right, headless), (Rows{12, 12, 12, 12}));
  // What was trimmed cannot be moved away from.
  EXPECT_EQ(Anchors(Rule(EdgeRule::kShift, EdgeRule::kClip), headless), (Rows{12, 13, 14, 15}));
}

TEST(WindowPromiseTest, WhereBothSidesShiftAShortEpisodeIsShownFromItsBegin) {
  const WindowRule rule = Rule(EdgeRule::kShift, EdgeRule::kShift);
  EXPECT_EQ(Places(rule, Ended(5)), (Rows{13, 13, 13, 13, 13}));
  EXPECT_EQ(PlaceWindow(rule, Ended(5), 10).steps, 2);
  EXPECT_EQ(PlaceWindow(rule, Ended(4), 10).steps, 1);
  EXPECT_EQ(Places(rule, Ended(2)), (Rows{11, 11}));  // No row 13: the last step.
  EXPECT_EQ(Places(rule, Ended(9)), (Rows{13, 13, 13, 13, 14, 15, 15, 15, 15}));
}

// ---- Every pair of rules, small extents, short episodes.

class EveryRuleTest : public ::testing::Test {
 protected:
  template <typename Check>
  static void ForEachRule(const Check& check) {
    for (const EdgeRule left : kAllRules) {
      for (const EdgeRule right : kAllRules) {
        for (int64_t sizes = 0; sizes < 36; ++sizes) {
          WindowRule rule = Rule(left, right, {sizes % 4, 1 + sizes / 4 % 3, sizes / 12});
          for (const int64_t stride : {1, 2}) {
            rule.stride = stride;
            std::ostringstream trace;
            trace << "extent " << rule.extent.before << " " << rule.extent.length << " "
                  << rule.extent.after << ", stride " << stride << ", left "
                  << static_cast<int>(left) << ", right " << static_cast<int>(right);
            SCOPED_TRACE(trace.str());
            check(rule);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
  /// What may follow on an open episode of `rows` rows: more rows, or an end.
  static std::vector<Episode> After(int64_t rows) {
    std::vector<Episode> after = {
        Open(rows + 1),  Open(rows + 3),          Ended(rows),
        Ended(rows + 2), EndedWithFinalRow(rows), EndedWithFinalRow(rows + 1)};
    if (rows > 1) after.push_back(EndedWithFinalRow(rows - 1));  // A cut.
    return after;
  }
  static constexpr int64_t kRowsMax = 12;
};

TEST_F(EveryRuleTest, RequiredSidesAreThere) {
  ForEachRule([](const WindowRule& rule) {
    const Extent& extent = rule.extent;
    for (int64_t rows = 1; rows <= kRowsMax; ++rows) {
      for (Episode episode : {Open(rows), Ended(rows), EndedWithFinalRow(rows)}) {
        for (const bool headless : {false, true}) {
          episode.head_missing = headless;
          for (const int64_t a : Anchors(rule, episode)) {
            const PlacedWindow window = PlaceWindow(rule, episode, a);
            const int64_t end = window.anchor + extent.length;
            ASSERT_GE(window.anchor, episode.begin);
            ASSERT_EQ(window.steps, std::min(extent.length, episode.steps_end - window.anchor));
            ASSERT_GE(window.steps, 1);
            const bool left = rule.left == EdgeRule::kRequire || headless;
            const bool right = rule.right == EdgeRule::kRequire || episode.open;
            const bool shifts = (rule.left == EdgeRule::kShift && !left) ||
                                (rule.right == EdgeRule::kShift && !right);
            const bool left_there = window.anchor - extent.before >= episode.begin;
            const bool right_there =
                end <= episode.steps_end && end + extent.after <= episode.rows_end;
            ASSERT_TRUE(left_there || !left) << a << " of " << rows;
            ASSERT_TRUE(right_there || !right) << a << " of " << rows;
            ASSERT_TRUE((left_there && right_there) || !shifts || !(left || right));
          }
        }
      }
    }
  });
}

TEST_F(EveryRuleTest, AnItemOfAnOpenEpisodeShowsTheSameRowsWhateverFollows) {
  ForEachRule([](const WindowRule& rule) {
    for (int64_t rows = 1; rows <= kRowsMax; ++rows) {
      for (const Episode& after : After(rows)) {
        for (const int64_t a : Anchors(rule, Open(rows))) {
          if (!IsAnchor(rule, after, a)) {
            // A cut may take the last step from it.
            ASSERT_LT(after.steps_end, kBegin + rows) << a << " of " << rows;
            continue;
          }
          const PlacedWindow now = PlaceWindow(rule, Open(rows), a);
          const PlacedWindow then = PlaceWindow(rule, after, a);
          if (after.steps_end < kBegin + rows) continue;
          ASSERT_EQ(now.anchor, then.anchor) << a << " of " << rows;
          ASSERT_EQ(now.steps, then.steps) << a << " of " << rows;
        }
      }
    }
  });
}

TEST_F(EveryRuleTest, RowsBeforeFirstRowStandingAtStayWhatTheyAre) {
  ForEachRule([](const WindowRule& rule) {
    const int64_t promise = rule.extent.length + rule.extent.after;
    for (int64_t rows = 1; rows <= kRowsMax; ++rows) {
      for (const bool headless : {false, true}) {
        Episode before = Open(rows);
        before.head_missing = headless;
        for (Episode after : After(rows)) {
          after.head_missing = headless;
          // Without an end, the window at the last complete place stays complete.
          const int64_t standing = before.rows_end - promise + (after.open ? 1 : 0);
          const int64_t first = FirstRowStandingAt(rule, after, standing);
          for (int64_t a = kBegin; a < first; ++a) {
            ASSERT_EQ(IsAnchor(rule, before, a), IsAnchor(rule, after, a)) << a << " of " << rows;
          }
        }
      }
    }
  });
}

TEST_F(EveryRuleTest, ATrimTakesOnlyAnchorsNearItAndMovesNone) {
  ForEachRule([](const WindowRule& rule) {
    const Extent& extent = rule.extent;
    const int64_t right_reach = rule.right == EdgeRule::kShift ? extent.length + extent.after : 0;
    for (int64_t rows = 2; rows <= kRowsMax; ++rows) {
      for (const Episode& before : {Open(rows), Ended(rows), EndedWithFinalRow(rows)}) {
        for (int64_t cut = 1; cut < rows; ++cut) {
          Episode after = before;
          after.begin += cut;
          after.head_missing = true;
          for (int64_t a = after.begin; a < after.steps_end; ++a) {
            const bool was = IsAnchor(rule, before, a);
            const bool is = IsAnchor(rule, after, a);
            ASSERT_TRUE(was || !is) << a << " of " << rows << " without " << cut;
            ASSERT_TRUE(was == is || a <= after.begin + extent.before + right_reach);
            if (!is) continue;
            ASSERT_EQ(PlaceWindow(rule, before, a).anchor, PlaceWindow(rule, after, a).anchor);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace geardb
