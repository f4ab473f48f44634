// Episodes and rows of trajectories in a live table, found through pages and flags.
#include "engine/internal/episode.h"

#include <gtest/gtest.h>

#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

constexpr int64_t kFar = int64_t{1} << 40;

class EpisodeTest : public testing::StoreTest {
 protected:
  void CreateWith(bool stream, bool final_row) {
    TableSpec spec = testing::StepSpec(final_row);
    spec.stream = stream;
    Create(spec);
    state_ = testing::CoreOf(*database_)->FindTable("steps")->state.get();
  }
  const index::TrajectoryRecord& Record(TrajectoryId id) {
    return state_->trajectories().record(state_->trajectories().FindById(id));
  }
  Episode Find(TrajectoryId id, int64_t row, const WindowRule& rule = {}) {
    MutexLock lock(&state_->mutex);
    RowCursor cursor(*state_, Record(id));
    return FindEpisode(&cursor, rule, row, {kFar, kFar});
  }
  template <typename Ask>
  auto OfRow(TrajectoryId id, int64_t row, const Ask& ask) {
    MutexLock lock(&state_->mutex);
    RowCursor cursor(*state_, Record(id));
    return ask(&cursor, row);
  }
  static void ExpectEpisode(const Episode& found, const Episode& expected) {
    EXPECT_EQ(found.begin, expected.begin);
    EXPECT_EQ(found.steps_end, expected.steps_end);
    EXPECT_EQ(found.rows_end, expected.rows_end);
    EXPECT_EQ(found.head_missing, expected.head_missing);
    EXPECT_EQ(found.open, expected.open);
  }

  TableState* state_ = nullptr;
};

TEST_F(EpisodeTest, ATrajectoryIsOneEpisode) {
  CreateWith(false, true);
  AppendClosed(0, 6);
  Append(0, 5);
  ExpectEpisode(Find(1, 3), {.begin = 0, .steps_end = 6, .rows_end = 7});
  ExpectEpisode(Find(2, 3), {.begin = 0, .steps_end = 5, .rows_end = 5, .open = true});
  ASSERT_OK(table_->Truncate(1, 2));
  ExpectEpisode(Find(1, 3), {.begin = 2, .steps_end = 6, .rows_end = 7, .head_missing = true});
}

TEST_F(EpisodeTest, TheLastRowPlaysTheFinalRowWhereNextIsAskedFor) {
  CreateWith(false, false);
  AppendClosed(0, 6, End::kTruncated);
  AppendClosed(0, 6, End::kTerminated);
  WindowRule with_next;
  with_next.extent.after = 1;
  ExpectEpisode(Find(1, 3), {.begin = 0, .steps_end = 6, .rows_end = 6});
  ExpectEpisode(Find(1, 3, with_next), {.begin = 0, .steps_end = 5, .rows_end = 6});
  ExpectEpisode(Find(2, 3, with_next), {.begin = 0, .steps_end = 6, .rows_end = 6});
}

TEST_F(EpisodeTest, StreamsHaveOneEpisodeAfterAnother) {
  CreateWith(true, true);
  Append(0, 5, End::kTerminated);  // Rows 0 … 4, final row 5.
  Append(0, 3, End::kCut);         // Rows 6 … 8, the last of them the final row.
  Append(0, 4);                    // Rows 9 … 12.
  for (const int64_t row : {0, 3, 4}) {
    ExpectEpisode(Find(1, row), {.begin = 0, .steps_end = 5, .rows_end = 6});
  }
  for (const int64_t row : {6, 7}) {
    ExpectEpisode(Find(1, row), {.begin = 6, .steps_end = 8, .rows_end = 9});
  }
  for (const int64_t row : {9, 12}) {
    ExpectEpisode(Find(1, row), {.begin = 9, .steps_end = 13, .rows_end = 13, .open = true});
  }
  ASSERT_OK(table_->Truncate(1, 2));
  ExpectEpisode(Find(1, 3), {.begin = 2, .steps_end = 5, .rows_end = 6, .head_missing = true});
  ExpectEpisode(Find(1, 7), {.begin = 6, .steps_end = 8, .rows_end = 9});
  ASSERT_OK(table_->Truncate(1, 6));  // Exactly where an episode begins: nothing is missing.
  ExpectEpisode(Find(1, 7), {.begin = 6, .steps_end = 8, .rows_end = 9});
}

TEST_F(EpisodeTest, CrossingEndsMakesOneEpisodeOfAStream) {
  CreateWith(true, true);
  WindowRule rule;
  rule.cross_ends = true;
  Append(0, 5, End::kTerminated);
  // While the last row is a final row, the steps end before it.
  ExpectEpisode(Find(1, 2, rule), {.begin = 0, .steps_end = 5, .rows_end = 6, .open = true});
  Append(0, 2);
  ExpectEpisode(Find(1, 2, rule), {.begin = 0, .steps_end = 8, .rows_end = 8, .open = true});
  ASSERT_OK(writer_->Cut());
  ExpectEpisode(Find(1, 2, rule), {.begin = 0, .steps_end = 7, .rows_end = 8});
}

TEST_F(EpisodeTest, AStreamClosedAfterATerminatedEpisodeKeepsItsLastStep) {
  CreateWith(true, false);
  WindowRule rule;
  rule.cross_ends = true;
  rule.extent.after = 1;
  Append(0, 5, End::kTerminated);
  ASSERT_OK(writer_->Cut());
  ExpectEpisode(Find(1, 2, rule), {.begin = 0, .steps_end = 5, .rows_end = 5});
}

TEST_F(EpisodeTest, RowsSayWhatTheyCarry) {
  const auto ends = [&](int64_t rows) {
    std::vector<int> found;
    for (int64_t row = 0; row < rows; ++row) {
      found.push_back(static_cast<int>(OfRow(1, row, EndOfRow)));
    }
    return found;
  };
  for (const bool stream : {false, true}) {
    SCOPED_TRACE(stream);
    OpenEmpty();
    CreateWith(stream, true);
    AppendClosed(0, 3, End::kTruncated);
    EXPECT_EQ(ends(4), (std::vector<int>{0, 0, 2, 2}));
    EXPECT_TRUE(OfRow(1, 0, IsFirstRow));
    EXPECT_FALSE(OfRow(1, 1, IsFirstRow));
    EXPECT_FALSE(OfRow(1, 2, IsFinalRow));
    EXPECT_TRUE(OfRow(1, 3, IsFinalRow));
    OpenEmpty();
    CreateWith(stream, true);
    AppendClosed(0, 4, End::kCut);
    EXPECT_EQ(ends(4), (std::vector<int>{0, 0, 0, 3}));
    EXPECT_TRUE(OfRow(1, 3, IsFinalRow));
  }
}

TEST_F(EpisodeTest, CursorsWalkBothWays) {
  CreateWith(false, false);
  AppendClosed(0, 50);
  MutexLock lock(&state_->mutex);
  RowCursor cursor(*state_, Record(1));
  for (const int64_t row : {0, 1, 4, 8, 7, 49, 3, 20, 24, 23, 0}) {
    const Lpn lpn = cursor.PageOf(row);
    EXPECT_EQ(state_->pages().page(lpn).page_number, row / 4);
    EXPECT_EQ(cursor.LeafOf(row), uint64_t{lpn} * 4 + static_cast<uint64_t>(row % 4));
  }
}

TEST_F(EpisodeTest, ReachCoversWhatPlacingNeeds) {
  WindowRule rule;
  rule.extent = {.before = 3, .length = 4, .after = 2};
  EXPECT_GE(PlacementReach(rule).left, 3);
  EXPECT_GE(PlacementReach(rule).right, 6);
  rule.right = EdgeRule::kShift;
  EXPECT_GE(PlacementReach(rule).left, 9);
  rule.left = EdgeRule::kShift;
  EXPECT_GE(PlacementReach(rule).right, 9);
}

TEST_F(EpisodeTest, TrajectoriesAsItemsAreWholeAndMayHaveANextRow) {
  CreateWith(false, true);
  AppendClosed(0, 6);
  MutexLock lock(&state_->mutex);
  const WindowRule rule = TrajectoryRule(*state_, Record(1));
  EXPECT_EQ(rule.extent.length, 6);
  EXPECT_EQ(rule.extent.after, 1);
  ExpectEpisode(TrajectoryEpisode(*state_, Record(1)), {.begin = 0, .steps_end = 6, .rows_end = 7});
}

}  // namespace
}  // namespace geardb::engine
