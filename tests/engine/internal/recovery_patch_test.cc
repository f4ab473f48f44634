// What the record of a patch may say at recovery.
#include <cstring>

#include "tests/engine/internal/recovery_fixture.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kTargetBytes = 4;

/// Table "steps" with "target" f32 in the late group 1 and "scratch" u8 in the volatile group 2.
/// Trajectory 1 is open with 4 rows in one page, trajectory 2 with 2 in another.
class RecoveryPatchTest : public RecoveryFixture {
 protected:
  void SetUp() override {
    RecoveryFixture::SetUp();
    TableSpec spec = testing::StepSpec();
    spec.groups = {{.name = "late", .late = true}, {.name = "scratch", .is_volatile = true}};
    spec.columns.push_back({.name = "target", .group = "late", .default_value = -1});
    spec.columns.push_back({.name = "scratch", .dtype = DType::kU8, .group = "scratch"});
    ASSERT_OK(CreateTable(spec));
    ASSERT_OK(RecoveryFixture::Feed(Begins(1, 0, 4)));
    ASSERT_OK(RecoveryFixture::Feed(Begins(2, 1, 2)));
  }

  struct Parts {
    std::vector<fb::Patched> patched;
    std::vector<fb::PieceRows> pieces;
    std::vector<uint64_t> sizes = {};  // Default: as the pieces say.
    bool damaged = false;
  };
  Status Feed(const Parts& parts) {
    const auto patched = builder_.CreateVectorOfStructs(parts.patched);
    const auto pieces = builder_.CreateVectorOfStructs(parts.pieces);
    const auto patch = fb::CreatePatch(builder_, patched, pieces);
    std::vector<uint64_t> sizes = parts.sizes;
    if (sizes.empty()) {
      for (const fb::PieceRows& piece : parts.pieces) {
        sizes.push_back(piece.count() * (piece.group() == 0 ? kRowBytes : kTargetBytes));
      }
    }
    return FeedOperations(
        {fb::CreateOperation(builder_, kSteps, 0, fb::Change::Patch, patch.Union())},
        Pieces(sizes, parts.damaged));
  }
  /// Fills 3 rows of trajectory 1.
  static Parts Fills() {
    return {.patched = {fb::Patched(3, 0, 11, 1)},
            .pieces = {fb::PieceRows(kNoLsn, 0, 21, 0, 3, 1)}};
  }
  void ExpectRefused(const Parts& parts, std::string_view why) {
    const Status status = Feed(parts);
    EXPECT_STATUS(kCorruption, status, why);
    EXPECT_STATUS(kCorruption, status, "the record at LSN ");
    MutexLock lock(&steps().mutex);
    EXPECT_EQ(steps().Filled(1, 0), 0u);
  }
};

TEST_F(RecoveryPatchTest, WhatFollowsTheStateIsTakenUp) {
  ASSERT_OK(Feed(Fills()));
  Parts both = {
      .patched = {fb::Patched(0, 0, 11, 0), fb::Patched(4, 0, 11, 1), fb::Patched(2, 1, 12, 1)},
      .pieces = {fb::PieceRows(kNoLsn, 0, 21, 0, 4, 0), fb::PieceRows(kNoLsn, 0, 21, 0, 4, 1),
                 fb::PieceRows(kNoLsn, 1, 22, 0, 2, 1)}};
  ASSERT_OK(Feed(both));
  MutexLock lock(&steps().mutex);
  EXPECT_EQ(steps().Filled(1, 0), 4u);
  EXPECT_EQ(steps().Filled(1, 1), 2u);
  // Of page 1 in group 1, two rows are zeros as its piece, the others hold the default.
  const std::byte* frame = feed_.core().arena->Resolve(steps().FrameOf(1, 1));
  float values[4];
  std::memcpy(values, frame, sizeof(values));
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(values[2], -1);
  EXPECT_EQ(values[3], -1);
}

TEST_F(RecoveryPatchTest, TrajectoriesAndGroupsMustBeThere) {
  Parts parts = Fills();
  parts.patched = {fb::Patched(3, 0, 10, 1)};
  ExpectRefused(parts, "in slot 0");
  parts.patched = {fb::Patched(3, 70, 11, 1)};
  ExpectRefused(parts, "in slot 70");
  parts.patched = {fb::Patched(3, 0, 11, 9)};
  ExpectRefused(parts, "column group 9");
  parts.patched = {fb::Patched(3, 0, 11, 2)};
  ExpectRefused(parts, "column group 2");  // It is volatile.
  parts.patched = {fb::Patched(5, 0, 11, 1)};
  ExpectRefused(parts, "up to row 5 of 4");
  parts.patched = {fb::Patched(3, 0, 11, 1), fb::Patched(3, 0, 11, 1)};
  ExpectRefused(parts, "not in order");
  parts.patched = {};
  ExpectRefused(parts, "which it does not name");
}

TEST_F(RecoveryPatchTest, PiecesAreWholePagesOfThem) {
  Parts parts = Fills();
  parts.pieces = {fb::PieceRows(kNoLsn, 0, 20, 0, 3, 1)};
  ExpectRefused(parts, "page 0, which is not there");
  parts.pieces = {fb::PieceRows(kNoLsn, 50, 21, 0, 3, 1)};
  ExpectRefused(parts, "page 50, which is not there");
  parts.pieces = {fb::PieceRows(kNoLsn, 1, 22, 0, 2, 1)};
  ExpectRefused(parts, "in group 1 of slot 1");
  parts.pieces = {fb::PieceRows(kNoLsn, 0, 21, 1, 2, 1)};
  ExpectRefused(parts, "2 rows from 1 of a page that has 3");
  parts.pieces = {fb::PieceRows(kNoLsn, 0, 21, 0, 2, 1)};
  ExpectRefused(parts, "2 rows from 0 of a page that has 3");
  parts.pieces = {fb::PieceRows(kNoLsn, 0, 21, 0, 4, 1)};
  ExpectRefused(parts, "4 rows from 0 of a page that has 3");
  parts = Fills();
  parts.sizes = {8};
  ExpectRefused(parts, "8 bytes; its 3 rows take 12");
  parts.sizes = {12, 12};
  ExpectRefused(parts, "names 1 pieces and has 2");
  parts = Fills();
  parts.pieces.push_back(parts.pieces[0]);
  ExpectRefused(parts, "writes a page twice");
}

TEST_F(RecoveryPatchTest, ADamagedPieceCostsItsTrajectory) {
  Parts parts = Fills();
  parts.damaged = true;
  ASSERT_OK(Feed(parts));
  ASSERT_OK(feed_.Finish());
  EXPECT_EQ(feed_.recovery().damaged_pages(), 1u);
  EXPECT_EQ(feed_.recovery().damaged().at(kSteps).count({0, 11}), 1u);
}

TEST_F(RecoveryPatchTest, APageThatIsWrittenWholeAfterItsDamageCostsNothing) {
  Parts parts = Fills();
  parts.damaged = true;
  ASSERT_OK(Feed(parts));
  ASSERT_OK(Feed(Fills()));
  ASSERT_OK(feed_.Finish());
  EXPECT_EQ(feed_.recovery().damaged_pages(), 0u);
  EXPECT_TRUE(feed_.recovery().damaged().empty());
}

}  // namespace
}  // namespace geardb::engine
