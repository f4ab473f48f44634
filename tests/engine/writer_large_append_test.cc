// Calls whose bytes do not fit one record of the log go in parts; they are still one change.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class WriterLargeAppendTest : public StoreTest {
 protected:
  void OpenWith(uint64_t ring_bytes, uint64_t segment_bytes) {
    options_.ring_bytes = ring_bytes;
    options_.segment_bytes = segment_bytes;
    options_.budgets.frames_bytes = 256 * kMiB;
    options_.resident = true;
    OpenEmpty();
  }
  /// Table "single" of rows that have a page each, so that a few calls take all ids of a range.
  void CreateSingleRows() {
    OpenWith(64 * kMiB, 64 * kMiB);
    options_.budgets.index_bytes = 256 * kMiB;
    OpenEmpty();
    TableSpec spec;
    spec.name = "single";
    spec.columns = {{.name = "k", .dtype = DType::kI32}};
    spec.steps_per_page = 1;
    spec.steps_max = 100'000;
    Create(spec);
  }
  static std::vector<uint8_t> Bytes(uint64_t count, uint64_t seed) {
    std::vector<uint8_t> bytes(count);
    for (uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>((i * 31 + seed) >> 3);
    return bytes;
  }
};

TEST_F(WriterLargeAppendTest, AppendsLargerThanAQuarterOfTheRingSurviveAReopen) {
  OpenWith(kMiB, kMiB);
  TableSpec spec = StepSpec();
  spec.steps_per_page = 256;
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  Append(0, 5);  // The first page begins in the middle.
  for (const int64_t rows : {8'000, 16'000, 20'000, 70'000, 200'000}) {
    SCOPED_TRACE(rows);
    const int64_t first = table_->Find(1)->rows_end;
    EXPECT_EQ(Append(first, rows).first_row, first);
  }
  EXPECT_EQ(Numbers(1), testing::Count(0, 314'005));
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Numbers(1), testing::Count(0, 314'005));
  EXPECT_EQ(priority("per")->Count(), 314'005u);
  ASSERT_OK(writer_->Resume(1));
  Append(314'005, 100'000, End::kTerminated);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Numbers(1), testing::Count(0, 414'005));
}

// Whatever its priorities and what leaves for it take beside its rows.
TEST_F(WriterLargeAppendTest, AppendsWithPrioritiesGoIntoAFullTable) {
  OpenWith(kMiB, kMiB);
  constexpr int64_t kSteps = 36'000;
  TableSpec spec;
  spec.name = "numbers";
  spec.columns = {{.name = "row", .dtype = DType::kI32}};
  spec.steps_per_page = 256;
  spec.steps_max = kSteps;
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  for (int32_t row = 0; row < kSteps; ++row) {
    ASSERT_OK(writer_->Append({{"row", TensorView::Scalar(row)}},
                              {.end = End::kTerminated, .ack = Ack::kMemory}));
  }
  TrajectoryId last = 0;
  for (const int32_t rows : {24'000, 26'000, 28'000, 29'500, 31'000, 32'000}) {
    SCOPED_TRACE(rows);
    // Each finds as many trajectories of a row as it has rows.
    for (int32_t row = 0; row < 4'000; ++row) {
      ASSERT_OK(writer_->Append({{"row", TensorView::Scalar(row)}},
                                {.end = End::kTerminated, .ack = Ack::kMemory}));
    }
    const std::vector<int32_t> numbers = testing::Count(0, rows);
    const std::vector<float> priorities(numbers.size(), 1.5f);
    const InitialPriorities given[] = {{"per", priorities}};
    const auto appended = writer_->AppendSteps(
        {{"row", TensorView::Of(std::span<const int32_t>(numbers), Shape({rows}))}},
        {.end = End::kTerminated, .priorities = given});
    ASSERT_OK(appended);
    last = appended->id;
    EXPECT_EQ(*priority("per")->Priority({last, rows - 1}), 1.5f);
  }
  Reopen();
  OpenAgain("numbers");
  EXPECT_EQ(table_->Find(last)->rows_end, 32'000);
}

TEST_F(WriterLargeAppendTest, LargeCallsOnManyLanes) {
  OpenWith(4 * kMiB, 4 * kMiB);
  TableSpec spec;
  spec.name = "images";
  spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {64, 1024}}};
  Create(spec, {.lanes = 64});
  for (uint64_t call = 0; call < 3; ++call) {
    const auto bytes = Bytes(64 * 65'536, call);
    ASSERT_OK(writer_->AppendLanes(
        {{"x", TensorView::Of(std::span<const uint8_t>(bytes), Shape({64, 64, 1024}))}}, {}));
  }
  Reopen();
  OpenAgain("images");
  EXPECT_EQ(table_->Count(), 64u);
  for (const TrajectoryId id : {1u, 33u, 64u}) {
    const auto read = table_->Read(id, {}, {});
    ASSERT_OK(read);
    const auto view = (*read)[0].view();
    const auto values = view.values<uint8_t>();
    for (uint64_t call = 0; call < 3; ++call) {
      const auto bytes = Bytes(64 * 65'536, call);
      EXPECT_TRUE(std::equal(bytes.begin() + static_cast<int64_t>(id - 1) * 65'536,
                             bytes.begin() + static_cast<int64_t>(id) * 65'536,
                             values.begin() + static_cast<int64_t>(call) * 65'536));
    }
  }
}

// Rows of an eighth of a record were never asked what columns of trajectories come with them.
TEST_F(WriterLargeAppendTest, FewRowsBesideMuchOfTheirTrajectories) {
  OpenWith(kMiB, kMiB);
  TableSpec spec;
  spec.name = "goals";
  spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {100}}};
  for (int i = 0; i < 16; ++i) {
    spec.columns.push_back({.name = "goal" + std::to_string(i),
                            .dtype = DType::kU8,
                            .shape = {64},
                            .kind = ColumnKind::kPerTrajectory});
  }
  constexpr int64_t kLanes = 195;
  Create(spec, {.lanes = kLanes});
  const auto rows = Bytes(kLanes * 100, 1);
  const auto goals = Bytes(kLanes * 64, 2);
  std::vector<ColumnValue> set;
  for (size_t i = 1; i < spec.columns.size(); ++i) {
    set.push_back({spec.columns[i].name,
                   TensorView::Of(std::span<const uint8_t>(goals), Shape({kLanes, 64}))});
  }
  ASSERT_OK(writer_->AppendLanes(
      {{"x", TensorView::Of(std::span<const uint8_t>(rows), Shape({kLanes, 100}))}},
      {.trajectory = set}));
  Reopen();
  OpenAgain("goals");
  EXPECT_EQ(table_->Count(), 195u);
}

TEST_F(WriterLargeAppendTest, RowsOfSeveralMegabytes) {
  OpenWith(32 * kMiB, 32 * kMiB);
  constexpr uint64_t kRow = 3 * kMiB + 12'345;
  TableSpec spec;
  spec.name = "large";
  spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {static_cast<int64_t>(kRow)}},
                  {.name = "k", .dtype = DType::kI32}};
  spec.priority_tables = {WindowSpec("per", {.before = 0, .length = 2, .after = 0})};
  Create(spec);
  EXPECT_EQ(table_->steps_per_page(), 1u);
  for (int32_t k = 0; k < 6; ++k) {
    const auto bytes = Bytes(2 * kRow, static_cast<uint64_t>(k));
    const int32_t numbers[2] = {2 * k, 2 * k + 1};
    ASSERT_OK(writer_->AppendSteps({{"x", TensorView::Of(std::span<const uint8_t>(bytes),
                                                         Shape({2, static_cast<int64_t>(kRow)}))},
                                    {"k", TensorView::Of(std::span<const int32_t>(numbers))}}));
    if (k == 2) {
      Reopen();
      OpenAgain("large");
      ASSERT_OK(writer_->Resume(1));
    }
  }
  const auto read = table_->Read(1, {}, {7, 8});
  ASSERT_OK(read);
  const auto expected = Bytes(2 * kRow, 3);
  const auto view = (*read)[0].view();
  EXPECT_TRUE(std::equal(expected.begin() + kRow, expected.end(), view.values<uint8_t>().begin()));
  auto sampler = priority("per")->NewSampler({.batch = 3, .views = {{.column = "x"}}});
  ASSERT_OK(sampler);
  const auto batch = (*sampler)->Next();
  ASSERT_OK(batch);
  for (size_t i = 0; i < 3; ++i) {
    const int64_t anchor = batch->anchors()[i];
    const auto rows = table_->Read(1, {}, {anchor, anchor + 2});
    const auto stored = (*rows)[0].view();
    const auto stored_values = stored.values<uint8_t>();
    const auto drawn = (*batch)["x"];
    EXPECT_TRUE(std::equal(stored_values.begin(), stored_values.end(),
                           drawn.values<uint8_t>().begin() + static_cast<int64_t>(i * 2 * kRow)));
  }
}

TEST_F(WriterLargeAppendTest, ATrajectoryOfAMillionRows) {
  OpenWith(64 * kMiB, 64 * kMiB);
  TableSpec spec;
  spec.name = "long";
  spec.columns = {{.name = "k", .dtype = DType::kI32}};
  spec.expected_steps = 1'000'000;
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  const auto numbers = testing::Count(0, 1'000'000);
  ASSERT_OK(writer_->AppendTrajectory({{"k", TensorView::Of(std::span<const int32_t>(numbers))}},
                                      {.end = End::kTerminated}));
  Reopen();
  OpenAgain("long");
  EXPECT_EQ(table_->StepCount(), 1'000'000u);
  EXPECT_EQ(priority("per")->Count(), 1'000'000u);
  const auto read = table_->Read(1, {}, {{}, {}, -1});
  ASSERT_OK(read);
  const auto view = (*read)[0].view();
  EXPECT_EQ(view.values<int32_t>()[0], 999'999);
  EXPECT_EQ(view.values<int32_t>()[999'999], 0);
}

TEST_F(WriterLargeAppendTest, MoreGenerationsThanOneRangeHolds) {
  CreateSingleRows();
  const auto numbers = testing::Count(0, 50'000);
  for (int call = 0; call < 25; ++call) {
    ASSERT_OK(writer_->AppendSteps({{"k", TensorView::Of(std::span<const int32_t>(numbers))}}));
  }
  EXPECT_EQ(table_->Find(1)->rows_end, 1'250'000);
  Reopen();
  OpenAgain("single");
  EXPECT_EQ(table_->Find(1)->rows_end, 1'250'000);
  ASSERT_OK(writer_->Resume(1));
  ASSERT_OK(writer_->AppendSteps({{"k", TensorView::Of(std::span<const int32_t>(numbers))}}));
}

// Without time to wait for the sync that makes more ids and generations safe, a call takes no
// effect; once they are synced, the next one has them.
TEST_F(WriterLargeAppendTest, ACallWithoutTimeLeavesItsIdsToTheNext) {
  CreateSingleRows();
  ASSERT_OK_AND_ASSIGN(const auto hasty, table_->NewWriter({.admission_timeout_ms = 0}));
  const auto numbers = testing::Count(0, 50'000);
  const ColumnValue rows[] = {{"k", TensorView::Of(std::span<const int32_t>(numbers))}};
  int without_ids = 0;
  for (int call = 0; call < 25; ++call) {
    const Status status = hasty->AppendSteps(rows).status();
    if (status.ok()) continue;
    ASSERT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
    without_ids += status.message().find("never admitted: waited for more ids of table 'single'") !=
                           std::string_view::npos
                       ? 1
                       : 0;
    ASSERT_OK(database_->Sync());
    ASSERT_OK(hasty->AppendSteps(rows));
  }
  EXPECT_LE(without_ids, 1);  // None, where the promise made ahead is synced by then.
  EXPECT_EQ(table_->Find(1)->rows_end, 1'250'000);
}

TEST_F(WriterLargeAppendTest, ACallThatCanNeverFitIsRefusedByName) {
  OpenWith(uint64_t{64} << 10, uint64_t{64} << 10);
  TableSpec spec;
  spec.name = "single";
  spec.columns = {{.name = "k", .dtype = DType::kI32}};
  spec.steps_per_page = 1;
  Create(spec);
  const auto numbers = testing::Count(0, 10'000);
  const Status status =
      writer_->AppendSteps({{"k", TensorView::Of(std::span<const int32_t>(numbers))}}).status();
  EXPECT_STATUS(kInvalidArgument, status, "10000 rows in 10000 pages");
  EXPECT_EQ(table_->Count(), 0u);
  EXPECT_EQ(database_->Stats().frames.used_bytes, 0u);
}

// Of a number that no memory holds nothing is planned.
TEST_F(WriterLargeAppendTest, RowsThatNothingHoldsAreRefusedBeforeTheyAreLookedAt) {
  OpenWith(uint64_t{64} << 10, uint64_t{64} << 10);
  TableSpec spec;
  spec.name = "single";
  spec.columns = {{.name = "k", .dtype = DType::kI32}};
  const int32_t number = 0;
  const auto append = [&](int64_t rows) {
    return writer_->AppendSteps({{"k", TensorView(&number, DType::kI32, Shape({rows}))}});
  };
  for (const int64_t rows : {int64_t{1} << 40, INT64_MAX / 4, INT64_MAX}) {
    SCOPED_TRACE(rows);
    spec.name = "t" + std::to_string(rows);
    spec.steps_max = 0;
    Create(spec);
    EXPECT_STATUS(kResourceExhausted, append(rows), "bytes (budgets.frames_bytes) has");
    spec.name += ".bounded";
    spec.bytes_max = uint64_t{1} << 20;
    Create(spec);
    EXPECT_STATUS(kInvalidArgument, append(rows), "the table may hold");
    spec.bytes_max = 0;
  }
  // Frames would hold these, and no record.
  options_.budgets.frames_bytes = uint64_t{1} << 43;
  Reopen();
  spec.name = "log";
  Create(spec);
  EXPECT_STATUS(kInvalidArgument, append(int64_t{1} << 31), "fit the ring");
  // A record could not say so many.
  EXPECT_STATUS(kInvalidArgument, append(int64_t{1} << 40), "rows fit a call");
  EXPECT_EQ(table_->Count(), 0u);
  EXPECT_EQ(database_->Stats().frames.used_bytes, 0u);
}

class WriterLargeAppendConcurrentTest : public WriterLargeAppendTest {};

TEST_F(WriterLargeAppendConcurrentTest, ATrajectoryRemovedMeanwhileIsWhollyThereOrGone) {
  OpenWith(kMiB, kMiB);
  TableSpec spec = StepSpec();
  spec.steps_per_page = 256;
  Create(spec);
  constexpr int64_t kRows = 20'000;  // More than a record holds.
  std::atomic<TrajectoryId> open{0};
  std::atomic<bool> stop{false};
  uint64_t removed = 0;
  std::thread remover([&] {
    while (!stop) {
      const TrajectoryId ids[] = {open.exchange(0)};
      if (ids[0] == 0) continue;
      EXPECT_OK(table_->Remove(ids));
      ++removed;
    }
  });
  // Takes the frames that the removed pages gave back.
  std::thread other([&] {
    auto writer = table_->NewWriter({});
    ASSERT_OK(writer);
    const Rows rows(0, 256);
    while (!stop) {
      const auto appended = (*writer)->AppendTrajectory(rows.many(), {.end = End::kTerminated});
      ASSERT_OK(appended);
      const TrajectoryId ids[] = {appended->id};
      EXPECT_OK(table_->Remove(ids));
    }
  });
  uint64_t cut_short = 0;
  for (int call = 0; call < 200 && cut_short < 20; ++call) {
    const Rows few(0, 5);
    const auto begun = writer_->AppendSteps(few.many());
    ASSERT_OK(begun);
    if (call % 3 != 0) open = begun->id;
    const Rows many(5, kRows);
    const auto appended = writer_->AppendSteps(many.many(), {.end = End::kTerminated});
    if (!appended.ok()) {
      EXPECT_STATUS(kNotFound, appended, "was removed");
      EXPECT_EQ(writer_->open_trajectory(), 0u);
      ++cut_short;
    } else if (call % 3 == 0) {
      EXPECT_EQ(Numbers(begun->id), testing::Count(0, kRows + 5));
      const TrajectoryId ids[] = {begun->id};
      ASSERT_OK(table_->Remove(ids));
    }
  }
  stop = true;
  remover.join();
  other.join();
  EXPECT_GT(removed, 0u);
}

}  // namespace
}  // namespace geardb
