// Which rows an append, an end or a trim makes drawable, and which it takes away.
#include "engine/internal/anchors.h"

#include <gtest/gtest.h>

#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class AnchorsTest : public testing::StoreTest {
 protected:
  void CreateWith(const WindowRule& rule, bool stream = false, bool final_row = false) {
    TableSpec spec = testing::StepSpec(final_row);
    spec.stream = stream;
    PriorityTableSpec per = testing::WindowSpec("per");
    per.window = rule;
    spec.priority_tables = {per};
    Create(spec);
  }
  /// The rows of trajectory 1 that can be drawn.
  std::vector<int64_t> Anchors() {
    std::vector<int64_t> rows;
    for (const RowId& item : priority("per")->Items()) rows.push_back(item.row);
    return rows;
  }
  using Rows = std::vector<int64_t>;
};

TEST_F(AnchorsTest, RowsBecomeAnchorsWhenTheirRightSideIsThere) {
  CreateWith({.extent = {.before = 0, .length = 2, .after = 1}});
  Append(0, 2);
  EXPECT_EQ(Anchors(), Rows{});
  Append(2, 1);
  EXPECT_EQ(Anchors(), Rows{0});
  Append(3, 4);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3, 4}));
  Append(7, 1, End::kTerminated);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3, 4, 5, 6, 7}));  // The right side clips now.
}

TEST_F(AnchorsTest, WindowsThatShiftToTheRightAreCompleteTogether) {
  CreateWith({.extent = {.before = 3, .length = 2, .after = 2}, .left = EdgeRule::kShift});
  Append(0, 5);
  EXPECT_EQ(Anchors(), Rows{});
  Append(5, 1);
  EXPECT_EQ(Anchors(), Rows{});
  Append(6, 1);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3}));
  Append(7, 1);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3, 4}));
  Append(8, 1, End::kTerminated);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(AnchorsTest, AnEndMakesAnchorsOfAnEpisodeThatIsShorterThanAShiftedWindow) {
  CreateWith({.extent = {.before = 3, .length = 2, .after = 2}, .left = EdgeRule::kShift}, true);
  Append(0, 5);
  EXPECT_EQ(Anchors(), Rows{});
  Append(5, 1, End::kTerminated);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3, 4, 5}));
  Append(0, 6);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3, 4, 5}));
  Append(6, 1);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  ASSERT_OK(writer_->Cut());
  // The cut row plays the final row.
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST_F(AnchorsTest, ACutTakesAllAnchorsBackThatStandAtItsRow) {
  CreateWith({.extent = {.before = 3, .length = 2, .after = 0},
              .left = EdgeRule::kShift,
              .right = EdgeRule::kRequire},
             false, true);
  Append(0, 5);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3}));
  ASSERT_OK(writer_->Cut());  // Row 4 is the final row: no second step after row 3.
  EXPECT_EQ(Anchors(), Rows{});
}

TEST_F(AnchorsTest, ATrimTakesThoseThatCanNoLongerShiftAwayFromTheEnd) {
  CreateWith({.extent = {.before = 2, .length = 3, .after = 0}, .right = EdgeRule::kShift});
  Append(0, 10, End::kTerminated);
  EXPECT_EQ(Anchors().size(), 10u);
  ASSERT_OK(table_->Truncate(1, 5));  // Five rows are left: one whole window, at row 7.
  EXPECT_EQ(Anchors(), (Rows{7, 8, 9}));
  ASSERT_OK(table_->Truncate(1, 6));
  EXPECT_EQ(Anchors(), Rows{});
}

TEST_F(AnchorsTest, ShiftedAnchorsAreCountedForThePrioritiesOfTheirAppend) {
  CreateWith({.extent = {.before = 2, .length = 1, .after = 1}, .left = EdgeRule::kShift}, true);
  Append(0, 2, End::kTerminated);
  Append(2, 3);
  const testing::Rows rows(5, 1);
  const float three[] = {3, 4, 5};
  const InitialPriorities given{.priority_table = "per", .values = three};
  ASSERT_OK(writer_->AppendSteps(rows.many(), {.priorities = {&given, 1}}));
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3, 4}));
  for (int64_t row = 2; row < 5; ++row) {
    ASSERT_OK_AND_ASSIGN(const float initial, priority("per")->Priority({1, row}));
    EXPECT_EQ(initial, static_cast<float>(row + 1));
  }
}

TEST_F(AnchorsTest, AReopenGoesOnWithWindowsThatShift) {
  CreateWith({.extent = {.before = 3, .length = 2, .after = 2}, .left = EdgeRule::kShift}, true);
  Append(0, 4, End::kTerminated);
  Append(0, 6);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3}));
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3}));
  ASSERT_OK(writer_->Resume(1, 0));
  Append(6, 1);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3, 4, 5, 6, 7}));
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(AnchorsTest, ATruncatedEndTakesItsLastRowAway) {
  CreateWith({.extent = {.before = 0, .length = 1, .after = 1}});
  Append(0, 4, End::kTruncated);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2}));
}

TEST_F(AnchorsTest, ACutTakesAnAnchorBack) {
  CreateWith({.extent = {.before = 0, .length = 1, .after = 0}}, false, true);
  Append(0, 4);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2, 3}));
  ASSERT_OK(writer_->Cut());  // Row 3 is the final row.
  EXPECT_EQ(Anchors(), (Rows{0, 1, 2}));
}

TEST_F(AnchorsTest, ATrimTakesThoseThatReachOverIt) {
  CreateWith({.extent = {.before = 2, .length = 1, .after = 0}});
  Append(0, 10);
  EXPECT_EQ(Anchors().size(), 10u);  // The left side repeats.
  ASSERT_OK(table_->Truncate(1, 5));
  EXPECT_EQ(Anchors(), (Rows{7, 8, 9}));
  Append(10, 1);
  EXPECT_EQ(Anchors(), (Rows{7, 8, 9, 10}));
}

TEST_F(AnchorsTest, AnchorsFromTheEndAppearWithTheEnd) {
  CreateWith(
      {.extent = {.before = 0, .length = 1, .after = 0}, .stride = 3, .stride_from_end = true},
      true);
  Append(0, 5);
  EXPECT_EQ(Anchors(), Rows{});
  Append(5, 3, End::kTerminated);
  EXPECT_EQ(Anchors(), (Rows{1, 4, 7}));
  Append(0, 2, End::kTerminated);
  EXPECT_EQ(Anchors(), (Rows{1, 4, 7, 9}));
}

TEST_F(AnchorsTest, WindowsThatCrossEndsWaitForTheRowAfterAFinalRow) {
  CreateWith({.extent = {.before = 0, .length = 3, .after = 0}, .cross_ends = true}, true, true);
  Append(0, 2, End::kTerminated);  // Rows 0 and 1, final row 2: no third step.
  EXPECT_EQ(Anchors(), Rows{});
  Append(10, 1);  // Row 3.
  EXPECT_EQ(Anchors(), (Rows{0, 1}));
  Append(11, 2);
  EXPECT_EQ(Anchors(), (Rows{0, 1, 3}));  // Never the final row.
}

TEST_F(AnchorsTest, TrajectoriesAreItemsWhenTheyAreClosed) {
  TableSpec spec = testing::StepSpec();
  PriorityTableSpec whole = testing::WindowSpec("per");
  whole.item = ItemKind::kTrajectory;
  spec.priority_tables = {whole};
  Create(spec);
  Append(0, 5);
  EXPECT_EQ(priority("per")->Count(), 0u);
  ASSERT_OK(writer_->Cut());
  EXPECT_EQ(priority("per")->Items(), (std::vector<RowId>{{1, 0}}));
}

TEST_F(AnchorsTest, StreamsAreItemsWhenTheyAreClosed) {
  TableSpec spec = testing::StepSpec();
  spec.stream = true;
  PriorityTableSpec whole = testing::WindowSpec("per");
  whole.item = ItemKind::kTrajectory;
  spec.priority_tables = {whole};
  Create(spec);
  Append(0, 5, End::kTerminated);
  EXPECT_EQ(priority("per")->Count(), 0u);
  ASSERT_OK(writer_->Cut());
  EXPECT_EQ(priority("per")->Count(), 1u);
}

TEST_F(AnchorsTest, AStreamWithoutAStepIsNoItem) {
  TableSpec spec = testing::StepSpec(true);
  spec.stream = true;
  PriorityTableSpec whole = testing::WindowSpec("per");
  whole.item = ItemKind::kTrajectory;
  spec.priority_tables = {whole};
  Create(spec);
  Append(0, 1, End::kCut);  // A final row alone.
  Append(1, 1, End::kCut);
  ASSERT_OK(writer_->Cut());
  EXPECT_EQ(table_->StepCount(), 0u);
  EXPECT_EQ(priority("per")->Count(), 0u);
  Append(0, 3);  // Another one, whose last step leaves with a trim.
  Append(3, 1, End::kCut);
  Append(4, 1, End::kCut);
  ASSERT_OK(writer_->Cut());
  EXPECT_EQ(priority("per")->Items(), (std::vector<RowId>{{2, 0}}));
  ASSERT_OK(table_->Truncate(2, 3));
  EXPECT_EQ(priority("per")->Count(), 0u);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(priority("per")->Count(), 0u);
}

}  // namespace
}  // namespace geardb::engine
