// What a log at its bound refuses, and what it still takes.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "engine/priority_table.h"
#include "engine/sampler.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

constexpr uint64_t kSegment = uint64_t{64} << 10;
constexpr uint64_t kBound = uint64_t{1} << 20;
/// The larger of 1 MiB and a sixteenth of the bound.
constexpr uint64_t kReserve = uint64_t{1} << 20;
constexpr const char* kNamed = "log_bytes_max = 1048576";

class DatabaseLogBoundTest : public StoreTest {
 protected:
  void SetUp() override {
    options_.segment_bytes = kSegment;
    options_.ring_bytes = kSegment;
    options_.log_bytes_max = kBound;
    options_.cold_tier = false;
    Open();
    TableSpec spec = StepSpec();
    spec.priority_tables = {WindowSpec("per")};
    Create(spec, {.lanes = 2});
  }

  /// Appends until the log refuses; fewer and fewer rows, so that nothing fits what is left.
  void FillLog() {
    for (const int64_t count : {500, 20, 1}) {
      const Rows rows(0, count);
      Status status;
      while (status.ok()) {
        status = writer_->AppendTrajectory(rows.many(), {.end = End::kTerminated}).status();
      }
      ASSERT_STATUS(kResourceExhausted, status, kNamed);
    }
  }
  /// The reserve too, by small tags.
  Status FillReserve() {
    const std::vector<std::byte> blob(2000);
    Status status;
    for (const size_t bytes : {size_t{2000}, size_t{0}}) {
      do {
        status = database_->WriteTag("small", std::span(blob).first(bytes)).status();
      } while (status.ok());
    }
    return status;
  }
  uint64_t LogEnd() const { return database_->Stats().log_end; }
  /// Nothing has been logged since, but for the seal of a log that was idle.
  bool EndsAt(Lsn end) const { return LogEnd() == end || LogEnd() == end + 64; }
};

TEST_F(DatabaseLogBoundTest, WhatBringsBytesIsRefused) {
  Append(0, 3, End::kGo, 1);
  FillLog();
  const uint64_t end = LogEnd();
  EXPECT_LE(end, kBound);
  const std::vector<std::byte> large((size_t{64} << 10) + 1);
  Status status;
  // What is left of the last segment may take a few records more.
  const uint32_t version = 7;
  const std::vector<ColumnValue> set = {{"version", TensorView::Scalar(version)}};
  for (int i = 0; i < 10000 && status.ok(); ++i) {
    status = table_->SetColumns(1, set);
  }
  EXPECT_STATUS(kResourceExhausted, status, kNamed);
  EXPECT_STATUS(kResourceExhausted, status, "1048576 bytes used");
  const auto items = priority("per")->Items();
  const std::vector<float> one(1, 2.0f);
  for (status = {}; status.ok();) {
    status = priority("per")->Set(std::span(items).first(1), one).status();
  }
  EXPECT_STATUS(kResourceExhausted, status, kNamed);
  EXPECT_STATUS(kResourceExhausted, database_->WriteTag("large", large), kNamed);
  EXPECT_STATUS(kNotFound, database_->LastTag("large"), "large");
  TableSpec other = StepSpec();
  other.name = "other";
  EXPECT_STATUS(kResourceExhausted, database_->CreateTable(other), kNamed);
  EXPECT_STATUS(kNotFound, database_->OpenTable("other"), "other");
  EXPECT_STATUS(kResourceExhausted, table_->CreatePriorityTable(WindowSpec("second")), kNamed);
  EXPECT_EQ(table_->PriorityTables().size(), 1u);
  const std::vector<float> each(priority("per")->Count(), 2.0f);
  EXPECT_STATUS(kResourceExhausted, priority("per")->SetAll(each), kNamed);
  // An empty list of columns logs nothing.
  const uint64_t before = LogEnd();
  EXPECT_OK(table_->SetColumns(1, {}));
  EXPECT_TRUE(EndsAt(before)) << LogEnd();
  EXPECT_LE(LogEnd(), kBound);
}

class DatabaseLogBoundConcurrentTest : public DatabaseLogBoundTest {
 protected:
  /// A table whose records say little about many rows.
  void CreateWide() {
    TableSpec spec = StepSpec();
    spec.name = "wide";
    spec.steps_per_page = 256;
    spec.priority_tables = {WindowSpec("per")};
    Create(spec);
  }
  /// Runs `call` in three threads at once and returns what each came to.
  static std::vector<Status> AtOnce(const std::function<Status(int)>& call) {
    std::vector<Status> statuses(3);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] { statuses[static_cast<size_t>(t)] = call(t); });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }
};

TEST_F(DatabaseLogBoundConcurrentTest, LargeCallsDoNotUseUpTheLogForEachOther) {
  for (int round = 0; round < 5; ++round) {
    OpenEmpty();
    CreateWide();
    std::vector<std::unique_ptr<Writer>> writers;
    for (int t = 0; t < 3; ++t) writers.push_back(std::move(*table_->NewWriter({})));
    // 400 KB each, and room for two.
    const Rows rows(0, 25'000);
    const auto statuses = AtOnce([&](int t) {
      return writers[static_cast<size_t>(t)]
          ->AppendTrajectory(rows.many(), {.end = End::kTerminated})
          .status();
    });
    int refused = 0;
    for (const Status& status : statuses) {
      if (status.ok()) continue;
      EXPECT_STATUS(kResourceExhausted, status, kNamed);
      ++refused;
    }
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(table_->Count(), 2u);
    AppendClosed(0, 100);
  }
}

TEST_F(DatabaseLogBoundConcurrentTest, ASetThatIsRefusedHasSetNothing) {
  CreateWide();
  AppendClosed(0, 3'000);
  PriorityTable* const per = priority("per");
  auto sampler = per->NewSampler({.batch = 3'000});
  ASSERT_OK(sampler);
  const auto batch = (*sampler)->Next();
  ASSERT_OK(batch);
  const auto handles = batch->handles();
  // Each a few records of a ring of 64 KiB.
  std::atomic<int> next{2};
  std::mutex mutex;
  std::set<float> taken = {1.0f};
  AtOnce([&](int) {
    Status status;
    while (status.ok()) {
      const auto value = static_cast<float>(next.fetch_add(1));
      const std::vector<float> values(handles.size(), value);
      status = per->Set(handles, values).status();
      const std::lock_guard lock(mutex);
      if (status.ok()) taken.insert(value);
    }
    return status;
  });
  for (const RowId& item : per->Items()) EXPECT_EQ(taken.count(*per->Priority(item)), 1u);
}

// An append in parts that more must leave for than one record names.
TEST_F(DatabaseLogBoundTest, RecordsOfRemovalsCountToo) {
  options_.ring_bytes = 32 << 10;
  int refused = 0;
  for (int gap = 0; gap < 12; ++gap) {
    OpenEmpty();
    TableSpec spec = StepSpec();
    spec.steps_per_page = 32;
    spec.steps_max = 700;
    Create(spec);
    for (int t = 0; t < 700; ++t) AppendClosed(t, 1);
    const std::vector<std::byte> blob(1'100);
    while (LogEnd() + 30'000 + 1'500 * static_cast<uint64_t>(gap) < kBound) {
      if (!database_->WriteTag("filler", blob).ok()) break;
    }
    const Lsn end = LogEnd();
    const auto appended = writer_->AppendTrajectory(Rows(0, 600).many(), {.end = End::kTerminated});
    if (appended.ok()) continue;
    ++refused;
    EXPECT_STATUS(kResourceExhausted, appended, kNamed);
    EXPECT_TRUE(EndsAt(end)) << gap;
    EXPECT_EQ(table_->Count(), 700u);
  }
  EXPECT_GT(refused, 0);
}

// In parts, whose bytes would be in the log for good.
TEST_F(DatabaseLogBoundTest, AChangeLargerThanTheBoundLeavesNoBytes) {
  TableSpec spec = StepSpec();
  spec.name = "wide";
  spec.steps_per_page = 256;
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  AppendClosed(0, 40'000);
  ASSERT_EQ(priority("per")->Count(), 40'000u);
  const Lsn end = LogEnd();
  const std::vector<std::byte> blob(2 * kBound);
  EXPECT_STATUS(kResourceExhausted, database_->WriteTag("large", blob), kNamed);
  EXPECT_STATUS(kResourceExhausted,
                writer_->AppendTrajectory(Rows(0, 60'000).many(), {.end = End::kTerminated}),
                kNamed);
  const std::vector<float> priorities(40'000, 2.0f);
  ASSERT_OK(priority("per")->SetAll(priorities));  // 160 KB still fit.
  const Lsn after_set = LogEnd();
  std::vector<ItemHandle> handles(40'000);
  EXPECT_STATUS(kResourceExhausted, priority("per")->Set(handles, priorities), kNamed);
  EXPECT_TRUE(EndsAt(after_set)) << LogEnd();
  EXPECT_GT(after_set, end);
  AppendClosed(0, 100);
  ASSERT_OK(database_->WriteTag("small", std::span(blob).first(10'000)));
}

TEST_F(DatabaseLogBoundTest, ALargeCallThatIsRefusedForAnotherReasonLeavesNone) {
  TableSpec spec = StepSpec();
  spec.name = "wide";
  spec.steps_per_page = 256;  // Its pages fit a record.
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  const float values[] = {1, 2, 3};
  const InitialPriorities priorities[] = {{"per", values}};
  const Lsn end = LogEnd();
  EXPECT_STATUS(kInvalidArgument,
                writer_->AppendTrajectory(Rows(0, 30'000).many(),
                                          {.end = End::kTerminated, .priorities = priorities}),
                "for 30000 items");
  EXPECT_TRUE(EndsAt(end)) << LogEnd();
  EXPECT_EQ(table_->Count(), 0u);
}

TEST_F(DatabaseLogBoundTest, RemovalsCutsAndSmallTagsGoOn) {
  Append(0, 3, End::kGo, 1);
  FillLog();
  const uint64_t count = table_->Count();
  const TrajectoryId ids[] = {2};
  EXPECT_OK(table_->Remove(ids));
  EXPECT_OK(writer_->Cut(1));
  const std::vector<std::byte> blob(size_t{64} << 10);
  EXPECT_OK(database_->WriteTag("small", blob));
  EXPECT_GT(LogEnd(), kBound);
  // The segment that the tag has begun is not for appends.
  EXPECT_STATUS(kResourceExhausted, writer_->Append(Rows(0, 1).one()), kNamed);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), count - 1);
  EXPECT_EQ(database_->LastTag("small")->blob.size(), blob.size());
}

TEST_F(DatabaseLogBoundTest, TheReserveIsFiniteAndARefusalChangesNothing) {
  const TrajectoryId open = Append(0, 3, End::kGo, 1).id;
  FillLog();
  EXPECT_STATUS(kResourceExhausted, FillReserve(), kNamed);
  EXPECT_STATUS(kResourceExhausted, database_->WriteTag("no", {}),
                "used up its reserve of 1048576 bytes");
  EXPECT_GT(LogEnd(), kBound + kReserve - kSegment);
  EXPECT_LE(LogEnd(), kBound + kReserve);
  const uint64_t count = table_->Count();
  const uint64_t steps = table_->StepCount();
  // Until the last segment is full, removals may find room that tags did not.
  std::vector<TrajectoryId> kept;
  Status status;
  uint64_t removed = 0;
  for (TrajectoryId id = 2; status.ok(); ++id) {
    const TrajectoryId ids[] = {id};
    status = table_->Remove(ids);
    removed += status.ok() ? 1u : 0u;
  }
  EXPECT_STATUS(kResourceExhausted, status, "used up its reserve");
  EXPECT_STATUS(kResourceExhausted, table_->Truncate(1, 2), "used up its reserve");
  EXPECT_STATUS(kResourceExhausted, writer_->Cut(1), "used up its reserve");
  EXPECT_STATUS(kResourceExhausted, database_->DropTable("steps"), "used up its reserve");
  EXPECT_EQ(table_->Count(), count - removed);
  EXPECT_EQ(Numbers(open), testing::Count(0, 3));
  EXPECT_LE(LogEnd(), kBound + kReserve);
  // It closes and opens; with a larger bound the same calls succeed.
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), count - removed);
  options_.log_bytes_max = 4 * kBound;
  Reopen();
  OpenAgain("steps", {.lanes = 2});
  EXPECT_EQ(table_->Count(), count - removed);
  EXPECT_LE(table_->StepCount(), steps);
  const TrajectoryId next[] = {2 + removed};
  EXPECT_OK(table_->Remove(next));
  EXPECT_OK(writer_->Resume(open, 1));
  EXPECT_OK(writer_->Cut(1));
  AppendClosed(0, 5);
  EXPECT_EQ(table_->Count(), count - removed);
}

TEST_F(DatabaseLogBoundTest, AWriterThatGoesWithoutRoomLeavesAnOrphanForTheNextOpen) {
  const TrajectoryId open = Append(0, 3, End::kGo, 1).id;
  FillLog();
  EXPECT_STATUS(kResourceExhausted, FillReserve(), kNamed);
  writer_.reset();
  EXPECT_EQ(Numbers(open), testing::Count(0, 3));
  options_.log_bytes_max = 4 * kBound;
  Reopen();
  OpenAgain("steps", {.lanes = 2});
  EXPECT_OK(writer_->Resume(open, 1));
  Append(3, 1, End::kTerminated, 1);
  EXPECT_EQ(Numbers(open), testing::Count(0, 4));
}

TEST_F(DatabaseLogBoundTest, ABoundBelowASegmentIsRefused) {
  Close();
  options_.log_bytes_max = 0;
  EXPECT_STATUS(kInvalidArgument, Database::Open(dir_->path(), options_), "log_bytes_max is 0");
  options_.log_bytes_max = kSegment - 1;
  EXPECT_STATUS(kInvalidArgument, Database::Open(dir_->path(), options_), "65536 bytes in ");
  EXPECT_STATUS(kInvalidArgument, Database::Open(dir_->File("new"), options_),
                "segment_bytes = 65536");
  options_.log_bytes_max = kSegment;
  Open();
}

TEST_F(DatabaseLogBoundTest, AColdStoreNeedsRoomForMoreThanWhatIsLive) {
  Close();
  options_.space_amplification_max = 1;
  EXPECT_STATUS(kInvalidArgument, Database::Open(dir_->path(), options_),
                "space_amplification_max is 1; expected more than 1");
}

TEST_F(DatabaseLogBoundTest, AnEmptyDirectoryNameIsRefused) {
  EXPECT_STATUS(kInvalidArgument, Database::Open("", options_), "directory of the database is ''");
}

}  // namespace
}  // namespace geardb
