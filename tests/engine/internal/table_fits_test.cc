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
constexpr int64_t kFitsRowBytes = 64 << 10;

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
    TableSpec spec = Spec(name, kFitsRowBytes);
    spec.bytes_max = pages * kFitsRowBytes;
    return spec;
  }
  static Status AppendRow(Writer* writer) {
    static const std::vector<uint8_t> row(kFitsRowBytes, 7);
    return writer->Append({{"x", TensorView::Of<uint8_t>(row)}}, {.end = End::kTerminated})
        .status();
  }
};

TEST_F(TableFitsTest, TheDefaultPageFitsARecordOfTheLog) {
  options_.ring_bytes = 256 << 10;
  OpenEmpty();
  TableSpec spec = Spec("page", 2000);
  spec.steps_per_page = 0;
  EXPECT_EQ(ChooseStepsPerPage(spec), 32u);
  ASSERT_OK_AND_ASSIGN(const auto table, database_->CreateTable(spec));
  EXPECT_EQ(table->steps_per_page(), 16u);
  EXPECT_OK(database_->OpenOrCreateTable(spec));
  spec.name = "chosen";
  spec.steps_per_page = 32;
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec), "a page of 32 steps has 64000");
}

// Whatever bounds the table has, or none. The page of a trajectory's end stays while the next one
// is taken.
TEST_F(TableFitsTest, ASmallLogIsToldWhatColumnsOfValuesNeed) {
  options_.ring_bytes = 64 << 10;
  options_.segment_bytes = 64 << 10;
  OpenEmpty();
  TableSpec spec = Spec("values", 8);
  spec.columns.push_back({.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged});
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec).status(),
                "column 'text': table 'values', column 'text': a page of 32768 steps has 32768 "
                "bytes; at most 12288 fit a record of the log (a quarter of the ring's 65536 bytes "
                "and half of a segment's 65536 bytes, less 4096): use a larger ring_bytes and "
                "segment_bytes");
}

TEST_F(TableFitsTest, APageLargerThanTheFrameBudgetIsRefused) {
  options_.ring_bytes = options_.segment_bytes = 32 * kMiB;
  for (const uint64_t frames_mib : {2u, 6u, 10u, 12u}) {
    SCOPED_TRACE(frames_mib);
    options_.budgets.frames_bytes = frames_mib * kMiB;
    options_.resident = true;
    OpenEmpty();
    TableSpec spec = Spec("page", 5 * kMiB);
    const auto check = [&] {
      const Status status = database_->CreateTable(spec).status();
      if (frames_mib == 12) {
        EXPECT_OK(status);
      } else {
        EXPECT_STATUS(kInvalidArgument, status, "use at least 12582912");
        EXPECT_TRUE(database_->Tables().empty());
      }
    };
    check();
    if (frames_mib == 12) {
      ASSERT_OK(database_->DropTable("page"));
    }
    spec.name = "bounded";
    spec.trajectories_max = 1;
    check();
  }
}

TEST_F(TableFitsTest, TheBoundsOfAllTablesLeaveFramesToTheCallsUnderWay) {
  options_.budgets.frames_bytes = 8 * kMiB;  // 128 frames, of which 8 are left to the calls.
  options_.resident = true;
  OpenEmpty();
  ASSERT_OK(database_->CreateTable(BoundedTo("a", 120)));
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(BoundedTo("b", 2)),
                "may hold 2 pages of 65536 bytes: at most 0, since other tables may hold 8388608 "
                "bytes, in whole slabs of 2097152, of the frame budget of 8388608 bytes");
  TableSpec steps = Spec("b", kFitsRowBytes);
  steps.steps_max = 2;
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(steps), "may hold 2 pages");
  // Of others nobody knows what they will hold, but that it is something.
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(Spec("b", kFitsRowBytes)),
                "use at least 10485760");
  // What is there is opened, with fewer frames, too.
  EXPECT_OK(database_->OpenOrCreateTable(BoundedTo("a", 120)));
  EXPECT_STATUS(kAlreadyExists, database_->CreateTable(BoundedTo("a", 120)), "'a'");
  options_.budgets.frames_bytes = 4 * kMiB;
  options_.resident = true;
  Reopen();
  EXPECT_OK(database_->OpenOrCreateTable(BoundedTo("a", 120)));
}

TEST_F(TableFitsTest, TwoTablesAreFilledToTheBoundsThatAreAccepted) {
  options_.budgets.frames_bytes = 8 * kMiB;
  options_.resident = true;
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
  options_.resident = true;
  OpenEmpty();
  ASSERT_OK(database_->CreateTable(BoundedTo("bounded", 60)));  // 64 frames are kept.
  ASSERT_OK(database_->CreateTable(Spec("other", kFitsRowBytes)));
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
  ASSERT_OK(database_->CreateTable(Spec("other", kFitsRowBytes)));
  fill("other", 64);
  ASSERT_OK(database_->DropTable("bounded"));
  ASSERT_OK(database_->DropTable("other"));
  ASSERT_OK(database_->CreateTable(Spec("other", kFitsRowBytes)));
  {
    ASSERT_OK_AND_ASSIGN(const auto table, database_->OpenTable("other"));
    ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
    for (int i = 0; i < 128; ++i) ASSERT_OK(AppendRow(writer.get())) << i;
  }
}

// Values have most of such a bound; a table whose other columns are few bytes a step would be asked
// for frames as for the whole of it.
TEST_F(TableFitsTest, ABoundInBytesKeepsNothingBesideValues) {
  options_.budgets.frames_bytes = 64 * kMiB;
  OpenEmpty();
  TableSpec spec = Spec("volatile", 8);
  spec.columns.push_back(
      {.name = "tokens", .dtype = DType::kI32, .kind = ColumnKind::kRagged, .expected_rows = 2000});
  spec.columns.push_back({.name = "lost", .group = "lost"});
  spec.groups.push_back({.name = "lost", .is_volatile = true});
  spec.bytes_max = uint64_t{8} << 30;
  ASSERT_OK(database_->CreateTable(spec));
  EXPECT_OK(database_->CreateTable(Spec("other", kFitsRowBytes)));
}

TEST_F(TableFitsTest, ABoundThatValuesHadLeftOpenIsAskedForWhenTheyLeave) {
  options_.budgets.frames_bytes = 64 * kMiB;
  options_.resident = true;
  OpenEmpty();
  TableSpec spec = BoundedTo("a", 600);
  spec.columns.push_back({.name = "blob", .dtype = DType::kU8, .kind = ColumnKind::kBlob});
  ASSERT_OK_AND_ASSIGN(const auto a, database_->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(const auto b, database_->CreateTable(BoundedTo("b", 600)));
  const std::string_view blob[] = {"blob"};
  EXPECT_STATUS(kInvalidArgument, a->DropColumns(blob), "since other tables may hold");
  ASSERT_OK_AND_ASSIGN(const auto writer, b->NewWriter({}));
  for (int i = 0; i < 800; ++i) ASSERT_OK(AppendRow(writer.get())) << i;
  ASSERT_OK(database_->CreateTable(Spec("c", kFitsRowBytes)));
  ASSERT_OK(database_->DropTable("b"));
  EXPECT_OK(a->DropColumns(blob));
  EXPECT_STATUS(kInvalidArgument, database_->CreateTable(BoundedTo("b", 600)),
                "since other tables may hold");
}

// Though others had taken slabs when the second came: for these the second waits.
TEST_F(TableFitsTest, ATableComesToItsBoundBesideOneMadeLater) {
  options_.budgets.frames_bytes = 8 * kMiB;
  options_.resident = true;
  OpenEmpty();
  ASSERT_OK_AND_ASSIGN(const auto first, database_->CreateTable(BoundedTo("first", 60)));
  ASSERT_OK_AND_ASSIGN(auto old, database_->CreateTable(BoundedTo("second", 30)));
  const auto fill = [](Table* table) {
    auto writer = table->NewWriter({.admission_timeout_ms = 300});
    EXPECT_OK(writer);
    int rows = 0;
    while (rows < 200 && AppendRow(writer->get()).ok()) ++rows;
    return rows;
  };
  EXPECT_EQ(fill(old.get()), 200);
  ASSERT_OK(database_->DropTable("second"));  // Its pages stay with the handle.
  ASSERT_OK_AND_ASSIGN(const auto second, database_->CreateTable(BoundedTo("second", 60)));
  EXPECT_EQ(fill(second.get()), 32);
  EXPECT_EQ(fill(first.get()), 200);
  old.reset();
  EXPECT_EQ(fill(second.get()), 200);
}

// A bound of no whole number of pages takes one more; and the page of the call under way.
TEST_F(TableFitsTest, ATableComesToItsBoundInSteps) {
  options_.budgets.frames_bytes = 8 * kMiB;
  options_.resident = true;
  options_.ring_bytes = options_.segment_bytes = 32 * kMiB;
  for (uint64_t steps_max = 2; steps_max <= 16; ++steps_max) {
    SCOPED_TRACE(steps_max);
    OpenEmpty();
    TableSpec spec = Spec("t", 400'000);  // A slab holds one page.
    spec.steps_per_page = 4;
    spec.steps_max = steps_max;
    const auto table = database_->CreateTable(spec);
    ASSERT_EQ(table.ok(), steps_max <= 12) << table.status();
    if (!table.ok()) continue;
    ASSERT_OK_AND_ASSIGN(const auto writer, (*table)->NewWriter({.admission_timeout_ms = 300}));
    for (const int64_t rows : {1, 2, 3}) {
      const std::vector<uint8_t> bytes(static_cast<size_t>(rows) * 400'000);
      for (int i = 0; i < 30 && steps_max >= static_cast<uint64_t>(rows) + 1; ++i) {
        ASSERT_OK(writer->AppendSteps({{"x", TensorView::Of<uint8_t>(bytes, {rows, 400'000})}}));
      }
    }
  }
}

TEST_F(TableFitsTest, FramesOfSeveralSlabsAreKeptSideBySide) {
  constexpr int64_t kLargeRow = 3 * kMiB;  // Two slabs.
  options_.ring_bytes = options_.segment_bytes = 32 * kMiB;
  options_.budgets.frames_bytes = 32 * kMiB;
  options_.resident = true;
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

// Every second slab is free: a frame of two takes those.
TEST_F(TableFitsTest, FramesOfSeveralSlabsNeedNoNeighbours) {
  options_.ring_bytes = options_.segment_bytes = 32 * kMiB;
  options_.budgets.frames_bytes = 24 * kMiB;
  options_.resident = true;
  OpenEmpty();
  Create(Spec("small", kFitsRowBytes));
  for (int i = 0; i < 384; ++i) ASSERT_OK(AppendRow(writer_.get()));
  std::vector<TrajectoryId> odd;
  const auto all = table_->Scan({});
  for (size_t i = 0; i < all.size(); ++i) {
    if (i / 32 % 2 == 1) odd.push_back(all[i].id);
  }
  ASSERT_OK(table_->Remove(odd));
  TableSpec large = Spec("large", 3 * kMiB);
  large.bytes_max = 6 * kMiB;
  ASSERT_OK(database_->CreateTable(large));
  const std::vector<uint8_t> row(static_cast<size_t>(3 * kMiB), 3);
  for (int round = 0; round < 2; ++round) {
    SCOPED_TRACE(round);
    {
      ASSERT_OK_AND_ASSIGN(const auto table, database_->OpenTable("large"));
      ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
      for (int i = 0; i < 5; ++i) {
        ASSERT_OK(writer->Append({{"x", TensorView::Of<uint8_t>(row)}}, {.end = End::kTerminated}));
      }
      EXPECT_EQ(table->Count(), 2u);
    }
    Reopen();
  }
}

// A dropped table goes with its last handle, so pages lie elsewhere after a reopen.
TEST_F(TableFitsTest, WhatFittedFitsAgainWhereverItComesToLie) {
  options_.ring_bytes = options_.segment_bytes = 32 * kMiB;
  options_.budgets.frames_bytes = 10 * kMiB;
  options_.resident = true;
  OpenEmpty();
  const auto append = [&](Table* table) {
    ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
    const std::vector<uint8_t> row(static_cast<size_t>(table->spec().columns[0].shape[0]), 5);
    ASSERT_OK(writer->Append({{"x", TensorView::Of<uint8_t>(row)}}, {.end = End::kTerminated}));
  };
  std::vector<std::shared_ptr<Table>> tables;
  for (const char* name : {"p", "x", "q", "y"}) {
    ASSERT_OK_AND_ASSIGN(auto table, database_->CreateTable(Spec(name, 100)));
    tables.push_back(std::move(table));
  }
  ASSERT_OK_AND_ASSIGN(auto large, database_->CreateTable(Spec("large", 3 * kMiB)));
  append(tables[0].get());
  ASSERT_OK(database_->DropTable("p"));
  for (const size_t i : {1u, 2u, 3u}) append(tables[i].get());
  tables[0].reset();
  ASSERT_OK(database_->DropTable("x"));
  tables.clear();
  append(large.get());
  large.reset();
  Reopen();
  ASSERT_OK_AND_ASSIGN(large, database_->OpenTable("large"));
  EXPECT_EQ(large->Count(), 1u);
}

TEST_F(TableFitsTest, AReopenTakesWhatIsKeptForOthers) {
  options_.budgets.frames_bytes = 32 * kMiB;
  options_.resident = true;
  OpenEmpty();
  ASSERT_OK(database_->CreateTable(BoundedTo("bounded", 150)));
  Create(Spec("other", kFitsRowBytes));
  for (int i = 0; i < 256; ++i) ASSERT_OK(AppendRow(writer_.get()));
  options_.budgets.frames_bytes = 16 * kMiB;  // Eight slabs, of which five are kept.
  options_.resident = true;
  Reopen();
  OpenAgain("other");
  EXPECT_EQ(table_->Count(), 256u);
}

TEST_F(TableFitsTest, AReopenPutsPagesIntoFewSlabs) {
  options_.budgets.frames_bytes = 8 * kMiB;
  options_.resident = true;
  OpenEmpty();
  const auto append = [&](int count, uint8_t first) {
    for (int i = 0; i < count; ++i) {
      const std::vector<uint8_t> row(kFitsRowBytes, static_cast<uint8_t>(first + i));
      ASSERT_OK(writer_->Append({{"x", TensorView::Of<uint8_t>(row)}}, {.end = End::kTerminated}));
    }
  };
  Create(Spec("sparse", kFitsRowBytes));
  append(64, 0);
  std::vector<TrajectoryId> most;
  for (const TrajectoryRecord& one : table_->Scan({})) {
    if (one.id != 7 && one.id != 40) most.push_back(one.id);
  }
  ASSERT_OK(table_->Remove(most));
  Create(Spec("full", kFitsRowBytes));
  append(64, 100);
  options_.budgets.frames_bytes = 6 * kMiB;
  options_.resident = true;
  Reopen();
  for (const char* name : {"sparse", "full"}) {
    SCOPED_TRACE(name);
    OpenAgain(name);
    const auto there = table_->Scan({});
    EXPECT_EQ(there.size(), name == std::string("full") ? 64u : 2u);
    for (const TrajectoryRecord& one : there) {
      ASSERT_OK_AND_ASSIGN(const auto rows, table_->Read(one.id, {}, {}));
      const auto expected = static_cast<uint8_t>(one.id - 1 + (there.size() == 64 ? 100 : 0));
      EXPECT_EQ(rows[0].bytes, std::vector<std::byte>(kFitsRowBytes, std::byte{expected}));
    }
  }
}

TEST_F(TableFitsTest, AFullTableInTooSmallABudgetSaysWhatHelps) {
  options_.budgets.frames_bytes = 8 * kMiB;
  options_.resident = true;
  OpenEmpty();
  Create(BoundedTo("a", 96));
  for (int i = 0; i < 100; ++i) ASSERT_OK(AppendRow(writer_.get()));
  options_.budgets.frames_bytes = 6 * kMiB;
  options_.resident = true;
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
