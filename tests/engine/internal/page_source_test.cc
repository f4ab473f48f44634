// Pages read back from the log by their places, and what is said where they are not to be had.
#include "engine/internal/page_source.h"

#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

class PageSourceTest : public FramesTest {
 protected:
  /// The place of page `number` of a trajectory in group 0.
  engine::PagePlace PlaceOf(TrajectoryId id, uint32_t number) {
    const auto core = testing::CoreOf(*database_);
    EXPECT_OK(core->Acknowledge(core->log->end(), Ack::kSync));
    engine::TableState& state = *core->AllTables()[0]->state;
    MutexLock lock(&state.mutex);
    const auto& record = state.trajectories().record(state.trajectories().FindById(id));
    return state.frames().PlaceOf(0,
                                  state.pages().Find(engine::TableState::ListOf(record), number));
  }
  Status Read(const engine::PagePlace& place) {
    bytes_.assign(place.layout->group(0).pages.frame_bytes(), std::byte{0xEE});
    wal::AlignedBuffer scratch;
    return testing::CoreOf(*database_)->page_source->Read(place, &scratch, bytes_.data());
  }
  void ExpectRows(TrajectoryId id, int64_t first, int64_t count) {
    for (int64_t row = 0; row < count; ++row) {
      ExpectRow(id, first + row,
                reinterpret_cast<const uint8_t*>(bytes_.data()) + row * kFrameBytes);
    }
    // What is beyond the rows stays.
    if (count < kPageRows) {
      EXPECT_EQ(bytes_[static_cast<size_t>(count * kFrameBytes)], std::byte{0xEE});
    }
  }
  std::vector<std::byte> bytes_;
};

TEST_F(PageSourceTest, OnePieceIsReadByItself) {
  const TrajectoryId id = Add(7, 7);
  const engine::PagePlace place = PlaceOf(id, 1);
  EXPECT_NE(place.log_at, kNoLsn);
  ASSERT_OK(Read(place));
  ExpectRows(id, 4, 3);
  EXPECT_EQ(database_->Stats().log_page_reads, 1u);
}

TEST_F(PageSourceTest, PiecesAreFollowedBackToTheFirst) {
  const TrajectoryId id = Add(4, 1);
  const engine::PagePlace place = PlaceOf(id, 0);
  EXPECT_EQ(place.log_at, kNoLsn);
  ASSERT_OK(Read(place));
  ExpectRows(id, 0, 4);
  EXPECT_EQ(database_->Stats().log_page_reads, 4u);
}

TEST_F(PageSourceTest, WhatIsNotThereIsNamed) {
  const TrajectoryId id = Add(4, 1);
  const std::string name = "page 0 of trajectory " + std::to_string(id) + " of table 'frames'";
  engine::PagePlace place = PlaceOf(id, 0);
  place.generation += 1;
  EXPECT_STATUS(kCorruption, Read(place), name);
  EXPECT_STATUS(kCorruption, Read(place), "has no piece of it up to row 4");
  place = PlaceOf(id, 0);
  place.newest_lsn += 64;
  EXPECT_STATUS(kCorruption, Read(place), "no good record");
  place.in_cold = true;
  EXPECT_STATUS(kCorruption, Read(place), "neither in the log nor in a cold store");
  place = PlaceOf(Add(4, 4), 0);
  place.log_checksum ^= 1;
  EXPECT_STATUS(kCorruption, Read(place), "does not fit its checksum");
}

TEST_F(PageSourceTest, TheColdStoreHasWhatTheCleanerMoved) {
  const TrajectoryId id = Add(7, 2);
  for (int i = 0; i < 60; ++i) Add(8, 8);
  const auto core = testing::CoreOf(*database_);
  ASSERT_OK(core->cleaner->CleanNow(/*all=*/true));
  engine::PagePlace place = PlaceOf(id, 1);
  EXPECT_TRUE(place.in_cold);
  EXPECT_EQ(place.log_at, kNoLsn);
  ASSERT_OK(Read(place));
  ExpectRows(id, 4, 3);
  place.rows = 4;
  EXPECT_STATUS(kCorruption, Read(place), "has 3 of its 4 rows");
  place.trajectory = 9999;
  EXPECT_STATUS(kCorruption, Read(place), "page 1 of trajectory 9999");
}

}  // namespace
}  // namespace geardb
