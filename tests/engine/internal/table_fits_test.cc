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
