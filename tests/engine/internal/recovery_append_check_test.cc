#include "engine/internal/recovery_append_check.h"

#include <algorithm>
#include <cmath>

#include "engine/internal/episode.h"
#include "tests/engine/internal/recovery_fixture.h"

namespace geardb::engine {
namespace {

/// Trajectory 1 is open with 3 rows: slot 0, generation 11, one page: LPN 0, generation 21.
class AppendCheckTest : public RecoveryFixture {
 protected:
  void SetUp() override {
    CreateSteps();
    ASSERT_OK(Feed(Begins(1, 0, 3)));
  }
  /// One row more for trajectory 1.
  static AppendParts GoesOn() {
    return {.rows = {fb::Rows(0, 11, 3, 1, 0, false, false)},
            .pieces = {fb::PieceRows(192, 0, 21, 3, 1, 0)}};
  }
  /// Rows 3 to 6 of trajectory 1: the last of its page, and three of a new one.
  static AppendParts TakesAPage(Lpn lpn) {
    return {
        .rows = {fb::Rows(0, 11, 3, 4, 0, false, false)},
        .pages = {fb::NewPage(lpn, 31)},
        .pieces = {fb::PieceRows(192, 0, 21, 3, 1, 0), fb::PieceRows(kNoLsn, lpn, 31, 0, 3, 0)}};
  }
};

TEST_F(AppendCheckTest, WhatFollowsTheStateIsTakenUp) {
  EXPECT_OK(Feed(GoesOn()));
  EXPECT_OK(Feed(Begins(2, 1, 4)));
  EXPECT_EQ(RowsNow(), 8u);
  AppendParts replaces = Begins(3, 0, 2);
  replaces.removed = {fb::Removed(1, 0, 11)};
  EXPECT_OK(Feed(replaces));
  EXPECT_EQ(RowsNow(), 6u);
}

TEST_F(AppendCheckTest, NoMoreLeaveByHandThanLeave) {
  AppendParts replaces = Begins(3, 0, 2);
  replaces.removed = {fb::Removed(1, 0, 11)};
  replaces.by_hand = 2;
  ExpectRefused(replaces, "an append removes 1 trajectories, 2 of them by hand");
  replaces.by_hand = 1;
  EXPECT_OK(Feed(replaces));
  AppendParts none = Begins(4, 1, 2);
  none.by_hand = 1;
  ExpectRefused(none, "an append removes 0 trajectories, 1 of them by hand");
}

// ---- Pages.

TEST_F(AppendCheckTest, APageIsNotTakenTwice) {
  ExpectRefused(TakesAPage(0), "LPN 0, which is in use");
  AppendParts both = Begins(2, 1, 4);
  const AppendParts other = Begins(3, 2, 4);
  both.opened.push_back(other.opened[0]);
  both.rows.push_back(other.rows[0]);
  both.pages.push_back(both.pages[0]);
  both.pieces.emplace_back(kNoLsn, 1, 22, 0, 4, 0);
  ExpectRefused(both, "two of its pages take one LPN");
  EXPECT_OK(Feed(TakesAPage(1)));
}

TEST_F(AppendCheckTest, APageThatLeavesMayBeTakenOnlyIfItDoes) {
  AppendParts parts = Begins(2, 1, 2);
  parts.pages = {fb::NewPage(0, 22)};
  parts.pieces = {fb::PieceRows(kNoLsn, 0, 22, 0, 2, 0)};
  parts.removed = {fb::Removed(1, 0, 12)};  // Another generation: it stays.
  ExpectRefused(parts, "LPN 0, which is in use");
  parts.trimmed = {fb::Trimmed(2, 0, 11)};  // Its page stays.
  ExpectRefused(parts, "LPN 0, which is in use");
  parts.removed = {fb::Removed(1, 0, 11)};
  EXPECT_OK(Feed(parts));
}

TEST_F(AppendCheckTest, ATrimFreesThePagesBelow) {
  ASSERT_OK(Feed(TakesAPage(1)));
  AppendParts parts = Begins(2, 1, 2);
  parts.pages = {fb::NewPage(0, 22)};
  parts.pieces = {fb::PieceRows(kNoLsn, 0, 22, 0, 2, 0)};
  parts.trimmed = {fb::Trimmed(3, 0, 11)};
  ExpectRefused(parts, "LPN 0, which is in use");
  parts.trimmed = {fb::Trimmed(4, 0, 11)};
  EXPECT_OK(Feed(parts));
  EXPECT_EQ(RowsNow(), 5u);
}

TEST_F(AppendCheckTest, NumbersBeyondWhatTheTableNeedsAreRefused) {
  // Memory for all numbers below would have to be there.
  ExpectRefused(TakesAPage(2), "2 LPNs are enough");
  ExpectRefused(TakesAPage(kNoLpn), "2 LPNs are enough");
  ExpectRefused(Begins(2, 2, 1), "2 slots are enough");
  ExpectRefused(Begins(2, kNoSlot, 1), "2 slots are enough");
}

TEST_F(AppendCheckTest, AnOpenTrajectoryIsContinuedInItsOwnPage) {
  AppendParts parts = GoesOn();
  parts.pieces = {fb::PieceRows(192, 1, 21, 3, 1, 0)};
  ExpectRefused(parts, "the page with LPN 1");
  parts.pieces = {fb::PieceRows(192, 0, 20, 3, 1, 0)};
  ExpectRefused(parts, "piece 0 is for");
  parts.pieces = {fb::PieceRows(192, 0, 21, 2, 1, 0)};
  ExpectRefused(parts, "1 rows from 2");
  parts.pieces = {fb::PieceRows(192, 0, 21, 3, 1, 1)};
  ExpectRefused(parts, "piece 0 is for");
}

TEST_F(AppendCheckTest, PagesAndPiecesAreThoseOfTheRows) {
  AppendParts parts = TakesAPage(1);
  parts.pages.clear();
  ExpectRefused(parts, "without their pages");
  parts = TakesAPage(1);
  parts.pieces.pop_back();
  ExpectRefused(parts, "without their pieces");
  parts = TakesAPage(1);
  parts.piece_bytes = {16};
  ExpectRefused(parts, "without their pieces");
  parts.piece_bytes = {16, 47};
  ExpectRefused(parts, "has 47 bytes; its 3 rows take 48");
  parts = GoesOn();
  parts.pages = {fb::NewPage(1, 31)};
  ExpectRefused(parts, "make 0 pages and 1 pieces; it names 1");
  parts = GoesOn();
  parts.piece_bytes = {16, 16};
  ExpectRefused(parts, "has 2 pieces");
  parts = TakesAPage(1);
  parts.pages = {fb::NewPage(1, 0)};
  ExpectRefused(parts, "no generation");
}

TEST_F(AppendCheckTest, ADamagedPieceMayHaveAnySize) {
  AppendParts parts = GoesOn();
  parts.damaged = true;
  parts.piece_bytes = {0};
  EXPECT_OK(Feed(parts));
  EXPECT_EQ(RowsNow(), 4u);
}

// ---- Trajectories.

TEST_F(AppendCheckTest, ASlotIsNotTakenTwice) {
  ExpectRefused(Begins(2, 0, 1), "slot 0, which is taken");
  AppendParts parts = Begins(2, 0, 1);
  parts.removed = {fb::Removed(1, 0, 10)};  // Another generation: it stays.
  ExpectRefused(parts, "slot 0, which is taken");
  parts = Begins(2, 1, 1);
  parts.opened.emplace_back(3, 0, 1, 13, 1, 0);
  ExpectRefused(parts, "two trajectories begin in slot 1");
}

TEST_F(AppendCheckTest, IdsAndGenerationsAreNewOnes) {
  AppendParts parts = Begins(2, 1, 1);
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, kIdsEnd, UINT64_MAX}) {
    parts.opened = {fb::Opened(id, 0, 1, 12, 1, 0)};
    ExpectRefused(parts, "a trajectory begins with id ");
  }
  parts.opened = {fb::Opened(2, 0, 1, 0, 1, 0)};
  ExpectRefused(parts, "no generation");
}

TEST_F(AppendCheckTest, ATrajectoryBeginsWithRows) {
  AppendParts parts = GoesOn();
  parts.opened = {fb::Opened(2, 0, 1, 12, 1, 0)};
  ExpectRefused(parts, "1 trajectories begin, 0 of them with rows");
  parts = Begins(2, 1, 1);
  parts.rows = {fb::Rows(1, 13, 0, 1, 0, false, false)};
  ExpectRefused(parts, "rows of generation 13 for slot 1, which has 12");
}

TEST_F(AppendCheckTest, RowsFollowALivingOpenTrajectory) {
  AppendParts parts = GoesOn();
  parts.rows = {fb::Rows(0, 11, 2, 1, 0, false, false)};
  ExpectRefused(parts, "which ends at row 3");
  parts.rows = {fb::Rows(0, 12, 3, 1, 0, false, false)};
  ExpectRefused(parts, "not there, in slot 0");
  parts.rows = {fb::Rows(1u << 31, 11, 3, 1, 0, false, false)};
  ExpectRefused(parts, "not there, in slot 2147483648");
  parts = GoesOn();
  parts.removed = {fb::Removed(1, 0, 11)};
  ExpectRefused(parts, "not there, in slot 0");
  parts.removed.clear();
  parts.rows.push_back(parts.rows[0]);
  parts.pieces.push_back(parts.pieces[0]);
  ExpectRefused(parts, "rows come twice");
  parts.rows.clear();
  ExpectRefused(parts, "without rows");

  parts = GoesOn();
  parts.rows = {fb::Rows(0, 11, 3, 1, static_cast<uint8_t>(End::kTerminated), false, true)};
  ASSERT_OK(Feed(parts));
  parts = TakesAPage(1);
  parts.rows = {fb::Rows(0, 11, 4, 4, 0, false, false)};
  parts.pieces = {fb::PieceRows(kNoLsn, 1, 31, 0, 4, 0)};
  ExpectRefused(parts, "which no writer has open");
}

TEST_F(AppendCheckTest, EndsAreThoseOfTheTable) {
  AppendParts parts = GoesOn();
  const auto rows = [](int end, bool has_final, bool closes) {
    return fb::Rows(0, 11, 3, 1, static_cast<uint8_t>(end), has_final, closes);
  };
  parts.rows = {rows(4, false, false)};  // Skip is no end.
  ExpectRefused(parts, "end as 4");
  parts.rows = {rows(255, false, true)};
  ExpectRefused(parts, "end as 255");
  parts.rows = {rows(0, false, true)};
  ExpectRefused(parts, "no such ends");
  parts.rows = {rows(1, false, false)};
  ExpectRefused(parts, "no such ends");
  parts.rows = {rows(1, true, true)};
  ExpectRefused(parts, "no such ends");
  parts.rows = {fb::Rows(0, 11, 3, 0, 0, false, false)};
  ExpectRefused(parts, "0 rows of slot 0 have no step");
  parts.rows = {rows(1, false, true)};
  EXPECT_OK(Feed(parts));
}

// ---- Columns and priorities.

TEST_F(AppendCheckTest, ColumnsAreSetWhereRowsAreAdded) {
  AppendParts parts = GoesOn();
  parts.sets = {fb::ColumnSet(0, 2)};
  parts.values.resize(4);
  ExpectRefused(parts, "column 2 of 2 is set");
  parts.sets = {fb::ColumnSet(1, 0)};
  ExpectRefused(parts, "slot 1, to which no rows are added");
  parts.sets = {fb::ColumnSet(0, 0), fb::ColumnSet(0, 1)};
  ExpectRefused(parts, "columns of 8 bytes are set with 4");
  parts.values.resize(8);
  EXPECT_OK(Feed(parts));
}

TEST_F(AppendCheckTest, PrioritiesAreNumbersOfPriorityTablesThatAreThere) {
  AppendParts parts = GoesOn();
  for (const float bad : {-1.0f, std::nanf(""), HUGE_VALF}) {
    parts.priorities = {bad};
    ExpectRefused(parts, "negative or not finite");
  }
  parts.priorities = {1, 2};
  ExpectRefused(parts, "2 priorities for 1 trajectories");
  parts.priorities = {1};
  parts.priority_table = 1;
  ExpectRefused(parts, "priority table 1 of 1");
  parts.priority_table = 0;
  EXPECT_OK(Feed(parts));
}

TEST_F(AppendCheckTest, EntriesThatShareTheirPrioritiesAreBounded) {
  const auto items = fb::CreateNewItems(builder_, 0, 1);
  const std::vector<flatbuffers::Offset<fb::NewItems>> shared(2, items);
  const std::vector<fb::Rows> rows = GoesOn().rows;
  const std::vector<fb::PieceRows> pieces = GoesOn().pieces;
  const auto rows_offset = builder_.CreateVectorOfStructs(rows);
  const auto pieces_offset = builder_.CreateVectorOfStructs(pieces);
  const auto items_offset = builder_.CreateVector(shared);
  const auto append =
      fb::CreateAppend(builder_, 0, 0, 0, rows_offset, 0, pieces_offset, 0, 0, items_offset);
  const auto operation =
      fb::CreateOperation(builder_, kSteps, 0, fb::Change::Append, append.Union());
  EXPECT_STATUS(kCorruption, FeedOperations({operation}, Pieces({16})),
                "priorities for 2 priority tables of 1");
}

class FinalRowCheckTest : public RecoveryFixture {};

TEST_F(FinalRowCheckTest, AFinalRowIsNotAllThereIs) {
  CreateSteps(/*final_row=*/true);
  AppendParts parts = Begins(1, 0, 1);
  const auto terminated = static_cast<uint8_t>(End::kTerminated);
  parts.rows = {fb::Rows(0, 11, 0, 1, terminated, true, true)};
  ExpectRefused(parts, "1 rows of slot 0 have no step");
  parts.rows = {fb::Rows(0, 11, 0, 1, terminated, false, true)};
  ExpectRefused(parts, "without a final row");
  parts = Begins(1, 0, 2);
  parts.rows = {fb::Rows(0, 11, 0, 2, terminated, true, true)};
  EXPECT_OK(Feed(parts));
}

TEST_F(FinalRowCheckTest, FlagsComeFromTheRecordAndNotFromItsPieces) {
  // In the piece all rows say that their episode has terminated; the record says that they go on.
  CreateSteps(/*final_row=*/true, /*stream=*/true);
  row_bytes_ = kRowBytes + 1;
  std::vector<std::byte> bytes(4 * row_bytes_, std::byte{0});
  std::fill(bytes.begin() + 4 * kRowBytes, bytes.end(), std::byte{kRowFirst | kRowTerminated});
  const AppendParts parts = Begins(1, 0, 4);
  const auto opened = builder_.CreateVectorOfStructs(parts.opened);
  const auto rows = builder_.CreateVectorOfStructs(parts.rows);
  const auto pages = builder_.CreateVectorOfStructs(parts.pages);
  const auto pieces = builder_.CreateVectorOfStructs(parts.pieces);
  const auto append = fb::CreateAppend(builder_, 0, 0, opened, rows, pages, pieces);
  const auto operation =
      fb::CreateOperation(builder_, kSteps, 0, fb::Change::Append, append.Union());
  const wal::PieceView view{.lsn = 1, .bytes = bytes};
  ASSERT_OK(FeedOperations({operation}, {&view, 1}));
  const fb::Ended ended(0, 11, static_cast<uint8_t>(End::kCut));
  const auto ended_offset = builder_.CreateVectorOfStructs(&ended, 1);
  ASSERT_OK(RecoveryFixture::Feed(fb::Change::Close, fb::CreateClose(builder_, ended_offset)));
  ASSERT_OK(feed_.Finish());
  MutexLock lock(&steps().mutex);
  const index::TrajectoryRecord& record = steps().trajectories().record(0);
  RowCursor cursor(steps(), record);
  const WindowRule rule;
  EXPECT_EQ(FindEpisode(&cursor, rule, 0, {1, 4}).rows_end, 4);
  EXPECT_EQ(FindEpisode(&cursor, rule, 3, {1, 4}).rows_end, 4);
}

}  // namespace
}  // namespace geardb::engine
