#include "engine/internal/recovery_check.h"

#include <cmath>

#include "tests/engine/internal/recovery_fixture.h"

namespace geardb::engine {
namespace {

/// Slot 0: trajectory 1, open, 3 rows. Slot 1: trajectory 2, closed with a final row, 3 rows.
class RecoveryCheckTest : public RecoveryFixture {
 protected:
  void SetUp() override {
    CreateSteps(/*final_row=*/true);
    ASSERT_OK(Feed(Begins(1, 0, 3)));
    AppendParts closed = Begins(2, 1, 3);
    closed.rows = {fb::Rows(1, 12, 0, 3, static_cast<uint8_t>(End::kTerminated), true, true)};
    ASSERT_OK(Feed(closed));
  }
  using RecoveryFixture::Feed;

  Status Close(uint8_t end, float priority = 1) {
    const fb::Ended ended(0, 11, end);
    const auto ended_offset = builder_.CreateVectorOfStructs(&ended, 1);
    const auto items = fb::CreateNewItems(builder_, 0, priority);
    const auto items_offset = builder_.CreateVector(&items, 1);
    return Feed(fb::Change::Close, fb::CreateClose(builder_, ended_offset, 0, items_offset));
  }
  Status Trim(Slot slot, uint32_t generation, uint64_t first_row) {
    const fb::Trimmed trimmed(first_row, slot, generation);
    const auto trimmed_offset = builder_.CreateVectorOfStructs(&trimmed, 1);
    return Feed(fb::Change::Remove, fb::CreateRemove(builder_, 0, trimmed_offset));
  }
  Status SetColumn(Slot slot, uint32_t column, size_t bytes) {
    const fb::ColumnSet set(slot, column);
    const auto sets = builder_.CreateVectorOfStructs(&set, 1);
    const auto values = builder_.CreateVector(std::vector<uint8_t>(bytes));
    return Feed(fb::Change::SetColumns, fb::CreateSetColumns(builder_, sets, values));
  }
  Status SetPriority(uint64_t leaf, uint32_t generation, float priority) {
    const fb::Item item(leaf, generation, priority);
    const auto items = builder_.CreateVectorOfStructs(&item, 1);
    return Feed(fb::Change::SetPriorities, fb::CreateSetPriorities(builder_, items));
  }
  Status SetInPieces(uint64_t count, std::vector<wal::PieceView> pieces) {
    const auto set = fb::CreateSetPriorities(builder_, 0, true, count);
    const auto operation =
        fb::CreateOperation(builder_, kSteps, 0, fb::Change::SetPriorities, set.Union());
    return FeedOperations({operation}, pieces);
  }
  Status SetAllInPieces(uint64_t count, std::vector<wal::PieceView> pieces) {
    const auto set = fb::CreateSetAll(builder_, 1, 0, true, count);
    const auto operation =
        fb::CreateOperation(builder_, kSteps, 0, fb::Change::SetAll, set.Union());
    return FeedOperations({operation}, pieces);
  }
};

TEST_F(RecoveryCheckTest, TheOperationsOfABatchFollowEachOther) {
  using Kind = fb::Change;
  const auto check = [](const std::vector<std::pair<Kind, TableId>>& kinds, size_t pieces) {
    flatbuffers::FlatBufferBuilder body;
    std::vector<flatbuffers::Offset<fb::Operation>> operations;
    for (const auto& [kind, table] : kinds) {
      flatbuffers::Offset<void> change;
      const fb::PieceRows piece;
      switch (kind) {
        case Kind::SetPriorities:
          // Table 9: with its items in pieces.
          change = fb::CreateSetPriorities(body, 0, table == 9).Union();
          break;
        case Kind::DeleteItems:
          change = fb::CreateDeleteItems(body).Union();
          break;
        case Kind::Remove:
          change = fb::CreateRemove(body).Union();
          break;
        case Kind::SetColumns:
          change = fb::CreateSetColumns(body).Union();
          break;
        case Kind::Append: {
          const auto named = body.CreateVectorOfStructs(&piece, 1);
          change = fb::CreateAppend(body, 0, 0, 0, 0, 0, named).Union();
          break;
        }
        case Kind::WriteTag:
          change = fb::CreateWriteTag(body).Union();
          break;
        default:
          change = fb::CreateAdopt(body).Union();
          break;
      }
      operations.push_back(fb::CreateOperation(body, table, 0, kind, change));
    }
    body.Finish(fb::CreateBody(body, body.CreateVector(operations)));
    return CheckOperations(*flatbuffers::GetRoot<fb::Body>(body.GetBufferPointer()), pieces);
  };
  EXPECT_OK(check({{Kind::SetPriorities, 1},
                   {Kind::SetPriorities, 1},
                   {Kind::DeleteItems, 1},
                   {Kind::SetColumns, 1},
                   {Kind::SetColumns, 1},
                   {Kind::Append, 1},
                   {Kind::Remove, 2},
                   {Kind::Append, 3},
                   {Kind::WriteTag, 0}},
                  2));
  const char* const wrong = "is none that follows the others of a batch";
  EXPECT_STATUS(kCorruption, check({{Kind::DeleteItems, 1}, {Kind::SetPriorities, 1}}, 0),
                "operation 1 of 2, SetPriorities, is none that follows");
  EXPECT_STATUS(kCorruption, check({{Kind::Append, 1}, {Kind::Remove, 1}}, 1), wrong);
  EXPECT_STATUS(kCorruption, check({{Kind::Append, 1}, {Kind::Append, 1}}, 2), wrong);
  EXPECT_STATUS(kCorruption, check({{Kind::SetColumns, 1}, {Kind::DeleteItems, 1}}, 0), wrong);
  EXPECT_STATUS(kCorruption, check({{Kind::Append, 1}, {Kind::Adopt, 1}}, 1), wrong);
  EXPECT_STATUS(kCorruption, check({{Kind::Remove, 1}, {Kind::DeleteItems, 2}}, 0), wrong);
  EXPECT_STATUS(kCorruption, check({{Kind::WriteTag, 0}, {Kind::WriteTag, 0}}, 0), wrong);
  EXPECT_STATUS(kCorruption, check({{Kind::DeleteItems, 1}, {Kind::SetPriorities, 9}}, 0), wrong);
  EXPECT_STATUS(kCorruption, check({{Kind::Append, 1}, {Kind::Append, 2}}, 3),
                "the operations of a batch name 2 pieces of 3");
  EXPECT_STATUS(kCorruption, check({{Kind::Append, 1}, {Kind::Append, 2}}, 1),
                "the operations of a batch name 2 pieces of 1");
}

TEST_F(RecoveryCheckTest, WithoutRowsATrajectoryEndsOnlyAsCut) {
  for (const int end : {0, 1, 2, 4, 255}) {
    EXPECT_STATUS(kCorruption, Close(static_cast<uint8_t>(end)), "not as cut");
  }
  EXPECT_STATUS(kCorruption, Close(3, std::nanf("")), "negative or not finite");
  EXPECT_OK(Close(3));
}

TEST_F(RecoveryCheckTest, ATrimLeavesRowsAndAnItemItsSteps) {
  EXPECT_STATUS(kCorruption, Trim(0, 11, 3), "rows up to 3 is trimmed to row 3");
  EXPECT_STATUS(kCorruption, Trim(0, 11, UINT64_MAX), "is trimmed to row");
  EXPECT_STATUS(kCorruption, Trim(1, 12, 2), "rows up to 2 is trimmed to row 2");
  EXPECT_EQ(RowsNow(), 6u);
  EXPECT_OK(Trim(0, 11, 2));
  EXPECT_OK(Trim(1, 12, 1));
  EXPECT_EQ(RowsNow(), 3u);
}

TEST_F(RecoveryCheckTest, WhatIsGoneAlreadyMayBeTrimmedAndRemoved) {
  EXPECT_OK(Trim(0, 12, 7));
  EXPECT_OK(Trim(kNoSlot, 1, 7));
  const fb::Removed removed(9, kNoSlot, 1);
  const auto offset = builder_.CreateVectorOfStructs(&removed, 1);
  EXPECT_OK(Feed(fb::Change::Remove, fb::CreateRemove(builder_, offset, 0)));
  EXPECT_EQ(RowsNow(), 6u);
}

TEST_F(RecoveryCheckTest, ColumnsAreSetOfTrajectoriesThatAreThere) {
  EXPECT_STATUS(kCorruption, SetColumn(2, 0, 4), "slot 2, which is free");
  EXPECT_STATUS(kCorruption, SetColumn(kNoSlot, 0, 4), "which is free");
  EXPECT_STATUS(kCorruption, SetColumn(0, 7, 4), "column 7 of 2");
  EXPECT_STATUS(kCorruption, SetColumn(0, 0, 3), "columns of 4 bytes are set with 3");
  EXPECT_OK(SetColumn(0, 0, 4));
}

TEST_F(RecoveryCheckTest, PrioritiesOfAnyLeafAreTakenUpIfTheyArePriorities) {
  EXPECT_STATUS(kCorruption, SetPriority(0, 21, -0.5f), "a priority is -0.5");
  EXPECT_STATUS(kCorruption, SetPriority(0, 21, HUGE_VALF), "not finite");
  EXPECT_OK(SetPriority(UINT64_MAX, 21, 2));
  EXPECT_OK(SetPriority(uint64_t{1} << 34, 21, 2));
  EXPECT_OK(SetPriority(0, 21, 2));
}

TEST_F(RecoveryCheckTest, PrioritiesInPiecesAreAsManyAsTheRecordSays) {
  EXPECT_OK(SetInPieces(3, Pieces({16, 32})));
  EXPECT_STATUS(kCorruption, SetInPieces(4, Pieces({16, 32})), "3 priorities for 4 items");
  EXPECT_STATUS(kCorruption, SetInPieces(3, Pieces({16, 31})), "no whole number");
  std::vector<wal::PieceView> twice = Pieces({16, 32});
  twice[1].offset = 0;
  EXPECT_STATUS(kCorruption, SetInPieces(3, twice), "piece 1 does not lie behind");
  const fb::Item items[2] = {fb::Item(0, 21, 2), fb::Item(1, 21, -2)};
  std::vector<wal::PieceView> negative = Pieces({32});
  negative[0].bytes = std::as_bytes(std::span(items));
  EXPECT_STATUS(kCorruption, SetInPieces(2, negative), "a priority is -2");
  EXPECT_OK(SetInPieces(3, Pieces({16, 32}, /*damaged=*/true)));
  EXPECT_EQ(feed_.recovery().damaged_priorities(), 3u);
}

TEST_F(RecoveryCheckTest, AllPrioritiesAreAsManyAsTheRecordSays) {
  EXPECT_OK(SetAllInPieces(5, Pieces({8, 12})));
  EXPECT_STATUS(kCorruption, SetAllInPieces(6, Pieces({8, 12})), "5 priorities for 6 items");
  EXPECT_STATUS(kCorruption, SetAllInPieces(5, Pieces({8, 11})), "no whole number");
  EXPECT_OK(SetAllInPieces(5, Pieces({8, 12}, /*damaged=*/true)));
  EXPECT_EQ(feed_.recovery().damaged_priorities(), 5u);
  const auto bad = fb::CreateSetAll(builder_, -1);
  EXPECT_STATUS(kCorruption, Feed(fb::Change::SetAll, bad), "a priority is -1");
  const auto values = builder_.CreateVector(std::vector<float>{1, std::nanf("")});
  const auto nan = fb::CreateSetAll(builder_, 1, values);
  EXPECT_STATUS(kCorruption, Feed(fb::Change::SetAll, nan), "not finite");
}

TEST_F(RecoveryCheckTest, NoByteOfTheLogIsNamedTwice) {
  // A small record could otherwise stand for any number of priorities.
  std::vector<wal::PieceView> pieces = Pieces({8, 12});
  pieces[1].offset = 4;
  EXPECT_STATUS(kCorruption, SetAllInPieces(5, pieces), "piece 1 does not lie behind");
  pieces[1].lsn = 0;
  EXPECT_STATUS(kCorruption, SetAllInPieces(5, pieces), "piece 1 does not lie behind");
  pieces[1].lsn = 2;
  EXPECT_OK(SetAllInPieces(5, pieces));
}

TEST_F(RecoveryCheckTest, AScaleIsOneOfThoseThereAre) {
  const auto rescale = [&](int shift) {
    return Feed(fb::Change::Rescale, fb::CreateRescale(builder_, shift));
  };
  EXPECT_STATUS(kCorruption, rescale(index::kShiftMin - 1), "the shift of weights is -33");
  EXPECT_STATUS(kCorruption, rescale(index::kShiftMax + 1), "the shift of weights is 41");
  EXPECT_OK(rescale(index::kShiftMax));
}

}  // namespace
}  // namespace geardb::engine
