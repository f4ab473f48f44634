// What CreateTable accepts has room, alone and beside the tables that there are.
#include "engine/internal/table_fits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::StoreTest;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr int64_t kRowBytes = 64 << 10;

class TableFitsTest : public StoreTest {
 protected:
  static TableSpec Spec(const std::string& name, int64_t row_bytes) {
    TableSpec spec;
    spec.name = name;
    spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {row_bytes}}};
    spec.steps_per_page = 1;
    return spec;
  }
  static TableSpec BoundedTo(const std::string& name, uint64_t pages) {
    TableSpec spec = Spec(name, kRowBytes);
    spec.bytes_max = pages * kRowBytes;
    return spec;
  }
  static Status AppendRow(Writer* writer) {
    static const std::vector<uint8_t> row(kRowBytes, 7);
    return writer->Append({{"x", TensorView::Of<uint8_t>(row)}}, {.end = End::kTerminated})
        .status();
  }
};

// Whatever bounds the table has, or none.
TEST_F(TableFitsTest, APageLargerThanTheFrameBudgetIsRefused) {
  options_.ring_bytes = options_.segment_bytes = 32 * kMiB;
  for (const uint64_t frames_mib : {2u, 4u, 6u}) {
    SCOPED_TRACE(frames_mib);
    options_.budgets.frames_bytes = frames_mib * kMiB;
    OpenEmpty();
    TableSpec spec = Spec("page", 5 * kMiB);
    const auto check = [&] {
      const Status status = database_->CreateTable(spec).status();
      if (frames_mib == 6) {
        EXPECT_OK(status);
      } else {
        EXPECT_STATUS(kInvalidArgument, status, "a page of 1 steps takes 5242880 bytes");
        EXPECT_TRUE(database_->Tables().empty());
      }
    };
    check();
    spec.name = "bounded";
    spec.trajectories_max = 1;
    check();
  }
}

TEST_F(TableFitsTest, TheBoundsOfAllTablesLeaveFramesToTheCallsUnderWay) {
  options_.budgets.frames_bytes = 8 * kMiB;  // 128 frames, of which 8 are left to the calls.
  OpenEmpty();
  ASSERT_OK(database_->CreateTable(BoundedTo("a", 120)));
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(BoundedTo("b", 2)),
                "may hold 2 pages of 65536 bytes: at most 0, since other tables may hold 8388608 "
                "bytes, in whole slabs of 2097152, of the frame budget of 8388608 bytes");
  TableSpec steps = Spec("b", kRowBytes);
  steps.steps_max = 2;
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(steps), "may hold 2 pages");
  // Of these nobody knows what they will hold.
  ASSERT_OK(database_->CreateTable(Spec("b", kRowBytes)));
  ASSERT_OK(database_->DropTable("b"));
  // What is there is opened, with fewer frames, too.
  EXPECT_OK(database_->OpenOrCreateTable(BoundedTo("a", 120)));
  EXPECT_STATUS(kAlreadyExists, database_->CreateTable(BoundedTo("a", 120)), "'a'");
  options_.budgets.frames_bytes = 4 * kMiB;
  Reopen();
  EXPECT_OK(database_->OpenOrCreateTable(BoundedTo("a", 120)));
}

TEST_F(TableFitsTest, TwoTablesAreFilledToTheBoundsThatAreAccepted) {
  options_.budgets.frames_bytes = 8 * kMiB;
  OpenEmpty();
  std::vector<std::unique_ptr<Writer>> writers;
  for (const char* name : {"a", "b"}) {
    EXPECT_FALSE(database_->CreateTable(BoundedTo(name, 121)).ok());
    ASSERT_OK_AND_ASSIGN(const auto table, database_->CreateTable(BoundedTo(name, 60)));
    ASSERT_OK_AND_ASSIGN(auto writer, table->NewWriter({}));
    writers.push_back(std::move(writer));
  }
  for (int i = 0; i < 400; ++i) ASSERT_OK(AppendRow(writers[i < 200 ? 0 : 1].get())) << i;
}

// Whatever others, whose bound nobody knows, have taken since.
TEST_F(TableFitsTest, ATableComesToItsBoundBesideOneWithout) {
  options_.budgets.frames_bytes = 8 * kMiB;
  OpenEmpty();
  ASSERT_OK(database_->CreateTable(BoundedTo("bounded", 60)));  // 64 frames are kept.
  ASSERT_OK(database_->CreateTable(Spec("other", kRowBytes)));
  const auto fill = [&](const char* name, int rows_max) {
    ASSERT_OK_AND_ASSIGN(const auto table, database_->OpenTable(name));
    ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
    int rows = 0;
    Status status;
    while (status.ok() && rows < 200) {
      status = AppendRow(writer.get());
      rows += status.ok() ? 1 : 0;
    }
    EXPECT_EQ(rows, rows_max) << status;
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kResourceExhausted) << status;
  };
  fill("other", 64);
  Reopen();
  fill("other", 0);
  fill("bounded", 200);
  fill("bounded", 200);
  // Nothing is kept for a table that is gone, and in a smaller budget only what fits.
  ASSERT_OK(database_->DropTable("other"));
  ASSERT_OK(database_->CreateTable(Spec("other", kRowBytes)));
  fill("other", 64);
  ASSERT_OK(database_->DropTable("bounded"));
  ASSERT_OK(database_->DropTable("other"));
  ASSERT_OK(database_->CreateTable(Spec("other", kRowBytes)));
  {
    ASSERT_OK_AND_ASSIGN(const auto table, database_->OpenTable("other"));
    ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
    for (int i = 0; i < 128; ++i) ASSERT_OK(AppendRow(writer.get())) << i;
  }
}

TEST_F(TableFitsTest, FramesOfSeveralSlabsAreKeptSideBySide) {
  constexpr int64_t kLargeRow = 3 * kMiB;  // Two slabs.
  options_.ring_bytes = options_.segment_bytes = 32 * kMiB;
  options_.budgets.frames_bytes = 32 * kMiB;
  OpenEmpty();
  TableSpec large = Spec("large", kLargeRow);
  large.bytes_max = 4 * 3 * kMiB + kMiB;
  ASSERT_OK(database_->CreateTable(BoundedTo("small", 150)));
  ASSERT_OK(database_->CreateTable(large));
  const std::vector<uint8_t> large_row(kLargeRow, 3);
  for (int round = 0; round < 2; ++round) {
    SCOPED_TRACE(round);
    ASSERT_OK_AND_ASSIGN(const auto small_table, database_->OpenTable("small"));
    ASSERT_OK_AND_ASSIGN(const auto large_table, database_->OpenTable("large"));
    ASSERT_OK_AND_ASSIGN(const auto small_writer, small_table->NewWriter({}));
    ASSERT_OK_AND_ASSIGN(const auto large_writer, large_table->NewWriter({}));
    for (int i = 0; i < 300; ++i) {
      ASSERT_OK(AppendRow(small_writer.get())) << i;
      if (i % 20 != 0) continue;
      ASSERT_OK(large_writer->Append({{"x", TensorView::Of<uint8_t>(large_row)}},
                                     {.end = End::kTerminated}))
          << i;
    }
    Reopen();
  }
}

// Six slabs of twelve are free, but a frame of two finds none.
TEST_F(TableFitsTest, FramesOfSeveralSlabsThatLackNeighboursAreRefused) {
  options_.ring_bytes = options_.segment_bytes = 32 * kMiB;
  options_.budgets.frames_bytes = 24 * kMiB;
  OpenEmpty();
  Create(Spec("small", kRowBytes));
  for (int i = 0; i < 384; ++i) ASSERT_OK(AppendRow(writer_.get()));
  std::vector<TrajectoryId> odd;
  const auto all = table_->Scan({});
  for (size_t i = 0; i < all.size(); ++i) {
    if (i / 32 % 2 == 1) odd.push_back(all[i].id);
  }
  ASSERT_OK(table_->Remove(odd));
  TableSpec large = Spec("large", 3 * kMiB);
  large.bytes_max = 6 * kMiB;
  EXPECT_STATUS(kResourceExhausted, database_->CreateTable(large),
                "table 'large' may take 3 frames of 3145728 bytes, each 2 slabs of 2097152 bytes "
                "side by side");
  std::vector<TrajectoryId> rest;
  for (const TrajectoryRecord& one : table_->Scan({})) rest.push_back(one.id);
  ASSERT_OK(table_->Remove(rest));
  EXPECT_OK(database_->CreateTable(large));
}

TEST_F(TableFitsTest, AFullTableInTooSmallABudgetSaysWhatHelps) {
  options_.budgets.frames_bytes = 8 * kMiB;
  OpenEmpty();
  Create(BoundedTo("a", 96));
  for (int i = 0; i < 100; ++i) ASSERT_OK(AppendRow(writer_.get()));
  options_.budgets.frames_bytes = 6 * kMiB;
  Reopen();
  OpenAgain("a");
  EXPECT_STATUS(kResourceExhausted, AppendRow(writer_.get()),
                "table 'a' holds 6291456 bytes of them (bytes_max 6291456, steps_max 0)");
  const TrajectoryId oldest = table_->Scan({})[0].id;
  ASSERT_OK(table_->Remove({&oldest, 1}));
  EXPECT_OK(AppendRow(writer_.get()));
}

}  // namespace
}  // namespace geardb
