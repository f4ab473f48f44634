#include "engine/internal/image_check.h"

#include <gtest/gtest.h>

#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

constexpr Lsn kLsn = 1000;

index::TrajectoryRecord Closed() {
  index::TrajectoryRecord record;
  record.id = 1;
  record.rows_end = 5;
  record.generation = 1;
  record.last_lsn = 500;
  record.state = index::TrajectoryState::kClosed;
  record.end = End::kTerminated;
  return record;
}

TEST(ImageCheckTest, ATrajectoryFitsItsTable) {
  const TableLayout plain(testing::StepSpec(), 1);
  const TableLayout final_row(testing::StepSpec(/*final_row=*/true), 1);
  TableSpec stream_spec = testing::StepSpec(/*final_row=*/true);
  stream_spec.stream = true;
  const TableLayout stream(stream_spec, 1);
  index::TrajectoryRecord record = Closed();
  EXPECT_EQ(CheckTrajectory(plain, record, kLsn), "");
  EXPECT_EQ(CheckTrajectory(final_row, record, kLsn), "its flags are 0");
  record.flags = index::kFinalRowStored;
  EXPECT_EQ(CheckTrajectory(plain, record, kLsn), "its flags are 1");
  EXPECT_EQ(CheckTrajectory(final_row, record, kLsn), "");
  record.state = index::TrajectoryState::kOpen;
  record.end = End::kGo;
  EXPECT_EQ(CheckTrajectory(final_row, record, kLsn), "its flags are 1");
  EXPECT_EQ(CheckTrajectory(stream, record, kLsn), "") << "it goes on behind a final row";
  record.state = index::TrajectoryState::kOrphaned;
  record.flags = 0;
  EXPECT_EQ(CheckTrajectory(plain, record, kLsn), "");
  record.columns_set = 3;
  EXPECT_EQ(CheckTrajectory(plain, record, kLsn), "");
  record.columns_set = 4;
  EXPECT_EQ(CheckTrajectory(plain, record, kLsn), "it sets columns that the table does not have");
}

TEST(ImageCheckTest, RowsHaveNumbersOfPages) {
  const TableLayout layout(testing::StepSpec(), 1);
  index::TrajectoryRecord record = Closed();
  record.rows_end = uint64_t{UINT32_MAX} * 4;  // The last page is the last that there can be.
  EXPECT_EQ(CheckTrajectory(layout, record, kLsn), "");
  ++record.rows_end;
  EXPECT_NE(CheckTrajectory(layout, record, kLsn), "");
  record.rows_end = UINT64_MAX;
  EXPECT_NE(CheckTrajectory(layout, record, kLsn), "");
}

index::GroupPageRecord Written(uint16_t rows, uint8_t pieces) {
  index::GroupPageRecord record;
  record.birth_lsn = 10;
  record.newest_lsn = pieces > 0 ? 20 : kNoLsn;
  record.rows_filled = rows;
  record.piece_count = pieces;
  return record;
}

TEST(ImageCheckTest, APageFitsItsGroup) {
  const GroupLayout plain{.name = ""};
  const GroupLayout cache{.name = "cache", .is_volatile = true};
  const GroupLayout late{.name = "late", .late = true};
  const PageOfTrajectory page{.first = 8, .rows = 4, .filled = 10};
  EXPECT_EQ(CheckGroupPage(plain, Written(4, 2), page, kLsn), "");
  EXPECT_EQ(CheckGroupPage(plain, Written(3, 2), page, kLsn), "it has 3 of 4 rows");
  EXPECT_EQ(CheckGroupPage(plain, {}, page, kLsn), "it has 0 of 4 rows");
  EXPECT_NE(CheckGroupPage(plain, Written(4, 0), page, kLsn), "");
  EXPECT_NE(CheckGroupPage(plain, Written(4, 1), page, 20), "") << "its record is behind";
  EXPECT_EQ(CheckGroupPage(plain, Written(4, 1), page, 21), "");
  EXPECT_EQ(CheckGroupPage(cache, Written(4, 0), page, kLsn), "");
  EXPECT_NE(CheckGroupPage(cache, Written(4, 1), page, kLsn), "") << "it is not in the log";
  EXPECT_EQ(CheckGroupPage(late, Written(2, 1), page, kLsn), "");
  EXPECT_EQ(CheckGroupPage(late, Written(4, 1), page, kLsn), "it has 4 of 2 rows");
  EXPECT_EQ(CheckGroupPage(late, {}, page, kLsn), "it has 0 of 2 rows");
  EXPECT_EQ(CheckGroupPage(late, {}, {.first = 8, .rows = 4, .filled = 8}, kLsn), "");
  EXPECT_EQ(CheckGroupPage(late, {}, {.first = 8, .rows = 4, .filled = 0}, kLsn), "");
  EXPECT_EQ(CheckGroupPage(late, Written(4, 1), {.first = 8, .rows = 4, .filled = 99}, kLsn), "");
  index::GroupPageRecord record = Written(4, 1);
  record.piece_at = 30;
  EXPECT_EQ(CheckGroupPage(plain, record, page, kLsn), "");
  record.piece_at = kLsn;
  EXPECT_EQ(CheckGroupPage(plain, record, page, kLsn), "its piece is at 1000");
}

}  // namespace
}  // namespace geardb::engine
