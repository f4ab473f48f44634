// Full tables: what leaves, and who waits.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "base/crash_point.h"
#include "tests/testing/named_number.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

class TableCapacityTest : public StoreTest {
 protected:
  void CreateBounded(uint64_t trajectories, uint64_t steps, uint64_t bytes, Remover remover,
                     const WriterOptions& options = {}) {
    TableSpec spec = StepSpec();
    spec.trajectories_max = trajectories;
    spec.steps_max = steps;
    spec.bytes_max = bytes;
    spec.remover = remover;
    spec.priority_tables = {WindowSpec("per"),
                            WindowSpec("window", {.before = 2, .length = 2, .after = 0})};
    spec.priority_tables[1].window.left = EdgeRule::kRepeat;
    Create(spec, options);
  }
  std::vector<TrajectoryId> Ids() {
    std::vector<TrajectoryId> ids;
    for (const auto& record : table_->Scan({})) ids.push_back(record.id);
    return ids;
  }
  Status TryAppend(int64_t count, End end = End::kGo) {
    const Rows rows(0, count);
    return writer_->AppendSteps(rows.many(), {.end = end}).status();
  }
  uint64_t StoredRows() {
    uint64_t rows = 0;
    for (const auto& record : table_->Scan({})) {
      rows += static_cast<uint64_t>(record.rows_end - record.first_row);
    }
    return rows;
  }
};

TEST_F(TableCapacityTest, TheOldestTrajectoryLeaves) {
  CreateBounded(3, 0, 0, Remover::kFifo);
  for (int64_t t = 0; t < 6; ++t) AppendClosed(100 * t, 5);
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{4, 5, 6}));
  EXPECT_EQ(priority("per")->Count(), 15u);
  EXPECT_EQ(table_->Stats().removed_trajectories, 3u);
  EXPECT_EQ(Numbers(4), testing::Count(300, 5));
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{4, 5, 6}));
  AppendClosed(600, 5);
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{5, 6, 7}));
}

// The frames of a call are taken before it is decided what leaves for it.
TEST_F(TableCapacityTest, ABoundInBytesLeavesFramesToTheCallsUnderWay) {
  options_.budgets.frames_bytes = uint64_t{8} << 20;
  options_.resident = true;
  // Of the larger pages 13 go into a slab of 2 MiB.
  for (const uint32_t steps_per_page : {128u, 32u}) {
    SCOPED_TRACE(steps_per_page);
    OpenEmpty();
    TableSpec spec;
    spec.name = "all";
    spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {1200}}};
    spec.steps_per_page = steps_per_page;
    spec.bytes_max = options_.budgets.frames_bytes;
    const auto refused = database_->CreateTable(spec).status();
    ASSERT_STATUS(kInvalidArgument, refused, "'all' may hold 8388608 bytes");
    const auto named = testing::NumberBehind("at most ", refused);
    ASSERT_TRUE(named) << refused;
    spec.bytes_max = *named;
    EXPECT_GE(spec.bytes_max, 7 * options_.budgets.frames_bytes / 8);
    Create(spec);
    const std::vector<uint8_t> rows(size_t{steps_per_page} * 1200, 7);
    for (int i = 0; i < 300; ++i) {
      ASSERT_OK(
          writer_->AppendTrajectory({{"x", TensorView::Of<uint8_t>(rows, {steps_per_page, 1200})}},
                                    {.end = End::kCut, .ack = Ack::kMemory}))
          << "append " << i;
    }
    ASSERT_OK(database_->Sync());
    EXPECT_LE(table_->Stats().frame_bytes, spec.bytes_max);
    EXPECT_EQ(Ids().back(), 300u);
    ++spec.bytes_max;
    spec.name = "more";
    EXPECT_STATUS(kInvalidArgument, database_->CreateTable(spec), "'more' may hold");
  }
}

std::atomic<int> evicting_appends{0};
std::atomic<int> removals{0};

TEST_F(TableCapacityTest, ThousandsLeaveInTheRecordOfTheAppendThatNeedsTheRoom) {
  options_.ring_bytes = uint64_t{4} << 20;
  options_.segment_bytes = uint64_t{4} << 20;
  OpenEmpty();
  constexpr int64_t kMany = 6'000;
  CreateBounded(0, kMany, 0, Remover::kFifo);
  for (int64_t t = 0; t < kMany; ++t) AppendClosed(t, 1);
  EXPECT_EQ(table_->Count(), static_cast<uint64_t>(kMany));
  evicting_appends = removals = 0;
  SetCrashHook([](const char* point) {
    evicting_appends += std::string_view(point) == "append_evicts" ? 1 : 0;
    removals += std::string_view(point) == "removal" ? 1 : 0;
  });
  const TrajectoryId last = AppendClosed(0, kMany);
  SetCrashHook(nullptr);
  EXPECT_EQ(evicting_appends, 1);
  EXPECT_EQ(removals, 0);
  EXPECT_EQ(Ids(), std::vector<TrajectoryId>{last});
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Ids(), std::vector<TrajectoryId>{last});
}

TEST_F(TableCapacityTest, OldestMeansClosedFirst) {
  CreateBounded(3, 0, 0, Remover::kFifo, {.lanes = 2});
  Append(0, 2, End::kGo, 0);          // 1, stays open…
  Append(0, 2, End::kTerminated, 1);  // 2
  Append(0, 2, End::kTerminated, 1);  // 3
  Append(2, 2, End::kTerminated, 0);  // …and closes after 3.
  Append(0, 2, End::kTerminated, 1);  // 4: 2 leaves.
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{1, 3, 4}));
  Append(0, 2, End::kTerminated, 1);  // 5: 3 leaves.
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{1, 4, 5}));
}

TEST_F(TableCapacityTest, WhatHappensToAClosedTrajectoryLaterDoesNotMakeItYounger) {
  for (const bool reopen : {false, true}) {
    SCOPED_TRACE(reopen);
    OpenEmpty();
    CreateBounded(3, 0, 0, Remover::kFifo);
    for (int64_t t = 0; t < 3; ++t) AppendClosed(100 * t, 8);
    const float score = 1;
    const ColumnValue values[] = {{"score", TensorView::Scalar(score)}};
    ASSERT_OK(table_->SetColumns(1, values));
    ASSERT_OK(table_->Truncate(2, 5));
    if (reopen) {
      Reopen();
      OpenAgain("steps");
    }
    AppendClosed(300, 8);
    EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{2, 3, 4}));
    AppendClosed(400, 8);
    EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{3, 4, 5}));
  }
}

TEST_F(TableCapacityTest, OpenTrajectoriesAloneCannotMakeRoom) {
  CreateBounded(2, 0, 0, Remover::kFifo, {.lanes = 3});
  Append(0, 1, End::kGo, 0);
  Append(0, 1, End::kGo, 1);
  const Rows rows(0, 1);
  EXPECT_STATUS(kResourceExhausted, writer_->Append(rows.one(), {.lane = 2}),
                "table 'steps' is full: it holds 2 trajectories (at most 2)");
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{1, 2}));
  EXPECT_EQ(writer_->open_trajectory(2), 0u);
  Append(1, 1, End::kTerminated, 0);
  EXPECT_EQ(Append(0, 1, End::kGo, 2).id, 3u);
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{2, 3}));
}

TEST_F(TableCapacityTest, OrphansLeaveLikeClosedTrajectories) {
  CreateBounded(3, 0, 0, Remover::kFifo, {.lanes = 3});
  for (uint32_t lane = 0; lane < 3; ++lane) Append(0, 1, End::kGo, lane);
  Reopen();  // Their writer is gone.
  OpenAgain("steps");
  EXPECT_EQ(Append(0, 1, End::kTerminated).id, 4u);
  EXPECT_EQ(Ids().size(), 3u);
  ASSERT_OK(writer_->Resume(3));
  EXPECT_EQ(Append(1, 1).id, 3u);
  auto second = table_->NewWriter({});
  ASSERT_OK(second);
  const Rows rows(0, 1);
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK((*second)->Append(rows.one(), {.end = End::kTerminated}));
  }
  // What was resumed stays: it is open again.
  EXPECT_OK(table_->Find(3));
  EXPECT_EQ(Ids().size(), 3u);
}

TEST_F(TableCapacityTest, OrphansOfALiveDatabaseLeaveToo) {
  CreateBounded(2, 0, 0, Remover::kFifo, {.lanes = 2});
  Append(0, 1, End::kGo, 0);
  Append(0, 1, End::kGo, 1);
  writer_.reset();
  OpenAgain("steps");
  EXPECT_EQ(Append(0, 1, End::kTerminated).id, 3u);
  EXPECT_EQ(Ids().size(), 2u);
}

TEST_F(TableCapacityTest, RowsBeyondTheStepCapacityLeaveWithTheirTrajectory) {
  CreateBounded(0, 20, 0, Remover::kFifo);
  for (int64_t t = 0; t < 10; ++t) {
    AppendClosed(100 * t, 6);
    EXPECT_LE(StoredRows(), 20u);
  }
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{8, 9, 10}));
  EXPECT_EQ(priority("per")->Count(), 18u);
  EXPECT_EQ(table_->Stats().pages, 6u);
}

TEST_F(TableCapacityTest, BytesCountFrames) {
  TableSpec probe = StepSpec();
  probe.name = "probe";
  Create(probe);
  Append(0, 1);
  const uint64_t frame = table_->Stats().frame_bytes;
  CreateBounded(0, 0, 4 * frame, Remover::kFifo);
  for (int64_t t = 0; t < 10; ++t) {
    AppendClosed(100 * t, 5);  // Two pages each.
    EXPECT_LE(table_->Stats().frame_bytes, 4 * frame);
  }
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{9, 10}));
}

TEST_F(TableCapacityTest, ACapacityIsUsedToItsEndAfterAReopen) {
  TableSpec probe = StepSpec();
  probe.name = "probe";
  Create(probe);
  Append(0, 1);
  const uint64_t frame = table_->Stats().frame_bytes;
  struct Bound {
    uint64_t trajectories, steps, bytes;
  };
  // Room for five trajectories of four rows, one page each.
  for (const Bound& bound : {Bound{5, 0, 0}, Bound{0, 20, 0}, Bound{0, 0, 5 * frame}}) {
    SCOPED_TRACE(bound.steps);
    SCOPED_TRACE(bound.bytes);
    OpenEmpty();
    CreateBounded(bound.trajectories, bound.steps, bound.bytes, Remover::kFifo);
    for (int64_t t = 0; t < 6; ++t) AppendClosed(100 * t, 4);
    ASSERT_EQ(Ids(), (std::vector<TrajectoryId>{2, 3, 4, 5, 6}));
    const TrajectoryId removed[] = {4};
    ASSERT_OK(table_->Remove(removed));
    Reopen();
    OpenAgain("steps");
    // There is room for one, and not for two.
    AppendClosed(600, 4);
    EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{2, 3, 5, 6, 7}));
    AppendClosed(700, 4);
    EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{3, 5, 6, 7, 8}));
  }
}

TEST_F(TableCapacityTest, EndlessTrajectoriesAreTrimmedAtTheirHead) {
  CreateBounded(0, 20, 0, Remover::kFifo);
  for (int64_t k = 0; k < 100; ++k) {
    Append(k, 1);
    EXPECT_LE(StoredRows(), 20u);
    const auto record = table_->Find(1);
    ASSERT_OK(record);
    EXPECT_EQ(record->first_row % 4, 0);
    EXPECT_GE(record->rows_end - record->first_row, std::min<int64_t>(k + 1, 16));
  }
  const int64_t first = table_->Find(1)->first_row;
  EXPECT_EQ(Numbers(1),
            testing::Count(static_cast<int32_t>(first), static_cast<int32_t>(100 - first)));
  EXPECT_EQ(table_->Stats().trimmed_rows, static_cast<uint64_t>(first));
  EXPECT_EQ(priority("per")->Count(), static_cast<uint64_t>(100 - first));
  // Anchors whose two rows before them are gone have left, although the rule would repeat.
  EXPECT_EQ(priority("window")->Items().front(), (RowId{1, first + 2}));
  EXPECT_EQ(priority("window")->Items().back(), (RowId{1, 98}));
  // The trim is in the log.
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->Find(1)->first_row, first);
  EXPECT_EQ(priority("window")->Items().front(), (RowId{1, first + 2}));
  ASSERT_OK(writer_->Resume(1));
  Append(100, 1);
  EXPECT_LE(StoredRows(), 20u);
}

TEST_F(TableCapacityTest, FourThousandStreamsThatNeverEndStayWithinTheirCapacity) {
  options_.ring_bytes = options_.segment_bytes = uint64_t{16} << 20;
  OpenEmpty();
  constexpr uint32_t kLanes = 4096;
  TableSpec spec = StepSpec();
  spec.stream = true;
  spec.steps_max = 12 * kLanes;
  spec.priority_tables = {WindowSpec("per", {.before = 3, .length = 1, .after = 1})};
  Create(spec, {.lanes = kLanes});
  std::vector<End> ends(kLanes, End::kGo);
  for (int64_t k = 0; k < 40; ++k) {
    for (uint32_t i = 0; i < kLanes; ++i) {
      ends[i] = (k + i) % 17 == 0 ? End::kTerminated : End::kGo;
    }
    const Rows rows(0, kLanes);
    ASSERT_OK(writer_->AppendLanes(rows.many(), {.ends = ends}));
    ASSERT_LE(table_->Stats().row_bytes, spec.steps_max * 17);  // 16 bytes and the flags.
  }
  EXPECT_EQ(table_->Count(), kLanes);
  const auto stats = table_->Stats();
  EXPECT_EQ(stats.appended_rows, 40u * kLanes);
  EXPECT_GE(stats.trimmed_rows, 28u * kLanes);
  EXPECT_EQ(StoredRows() + stats.trimmed_rows, stats.appended_rows);
  // Every item's window can be read.
  auto sampler = priority("per")->NewSampler(
      {.batch = 4096, .views = {{.column = "action", .rows = {.begin = -3, .count = 5}}}});
  ASSERT_OK(sampler);
  const auto batch = (*sampler)->Next();
  ASSERT_OK(batch);
  for (size_t i = 0; i < 4096; ++i) {
    EXPECT_EQ((*batch)["action"].values<int32_t>()[5 * i],
              static_cast<int32_t>(batch->trajectory_ids()[i]) - 1);
  }
}

TEST_F(TableCapacityTest, WithoutARemoverAnAppendFailsAtItsDeadline) {
  CreateBounded(0, 8, 0, Remover::kNone, {.admission_timeout_ms = 1});
  AppendClosed(0, 8);
  EXPECT_STATUS(kResourceExhausted, TryAppend(1), "8 rows (at most 8)");
  EXPECT_EQ(writer_->open_trajectory(), 0u);
  EXPECT_EQ(table_->Stats().pages, 2u);
  const TrajectoryId ids[] = {1};
  ASSERT_OK(table_->Remove(ids));
  EXPECT_OK(TryAppend(8));
}

TEST_F(TableCapacityTest, AppendsLargerThanTheTableAreRefusedAtOnce) {
  CreateBounded(0, 8, 0, Remover::kFifo);
  AppendClosed(0, 4);
  const Status status = TryAppend(9);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("9"), std::string::npos) << status;
  EXPECT_EQ(Ids(), (std::vector<TrajectoryId>{1}));  // Nothing left in vain.
}

TEST_F(TableCapacityTest, OneSmallBoundIsStillUsable) {
  // The bound is one page: the page that is full must be able to leave for the next row.
  CreateBounded(0, 4, 0, Remover::kFifo);
  for (int64_t k = 0; k < 20; ++k) Append(k, 1);
  EXPECT_LE(StoredRows(), 4u);
}

TEST_F(TableCapacityTest, EachLaneNeedsTwoRows) {
  for (const uint64_t steps_max : {5u, 6u}) {
    SCOPED_TRACE(steps_max);
    OpenEmpty();
    CreateBounded(0, steps_max, 0, Remover::kFifo, {.lanes = 3});
    Status status;
    for (int64_t k = 0; k < 4 && status.ok(); ++k) {
      const Rows rows(k, 3);
      status = writer_->AppendLanes(rows.many(), {}).status();
    }
    if (steps_max == 6) {
      EXPECT_OK(status);
    } else {
      EXPECT_STATUS(kResourceExhausted, status,
                    "3 trajectories are open and each keeps a row at least: with this call "
                    "steps_max must be 6 or more");
    }
  }
}

class TableCapacityConcurrentTest : public TableCapacityTest {};

TEST_F(TableCapacityConcurrentTest, WithoutARemoverAnAppendGoesOnAfterARemoval) {
  CreateBounded(0, 8, 0, Remover::kNone, {.admission_timeout_ms = 60'000});
  AppendClosed(0, 8);
  Status status;
  std::thread waiter([&] { status = TryAppend(4); });
  const TrajectoryId ids[] = {1};
  ASSERT_OK(table_->Remove(ids));
  waiter.join();
  EXPECT_OK(status);
  EXPECT_EQ(table_->StepCount(), 4u);
}

// What leaves gives its frames back when its record is published: by another thread, at any moment
// between a call's look for a frame and the next.
TEST_F(TableCapacityConcurrentTest, AFrameThatIsGivenBackMeanwhileIsFound) {
  options_.budgets.frames_bytes = uint64_t{2} << 20;
  options_.resident = true;
  options_.ring_bytes = uint64_t{8} << 20;
  OpenEmpty();
  constexpr int64_t kRowBytes = 128 << 10;
  TableSpec spec;
  spec.name = "wide";
  spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {kRowBytes}}};
  spec.steps_per_page = 1;
  spec.bytes_max = 15 * kRowBytes;
  Create(spec);
  const std::vector<uint8_t> row(kRowBytes, 7);
  for (int i = 0; i < 2500; ++i) {
    ASSERT_OK(writer_->Append({{"x", TensorView::Of<uint8_t>(row)}},
                              {.end = End::kTerminated, .ack = Ack::kMemory}))
        << "append " << i;
  }
}

TEST_F(TableCapacityConcurrentTest, AWaitingAppendEndsWhenItsTableIsDropped) {
  CreateBounded(0, 8, 0, Remover::kNone, {.admission_timeout_ms = 60'000});
  AppendClosed(0, 8);
  Status status;
  std::thread waiter([&] { status = TryAppend(4); });
  ASSERT_OK(database_->DropTable("steps"));
  waiter.join();
  EXPECT_STATUS(kCancelled, status, "dropped");
}

TEST_F(TableCapacityConcurrentTest, AWaitingAppendEndsWhenTheDatabaseCloses) {
  CreateBounded(0, 8, 0, Remover::kNone, {.admission_timeout_ms = 60'000});
  AppendClosed(0, 8);
  Status status;
  std::thread waiter([&] { status = TryAppend(4); });
  ASSERT_OK(database_->Close());
  waiter.join();
  EXPECT_STATUS(kCancelled, status, "closed");
}

}  // namespace
}  // namespace geardb
