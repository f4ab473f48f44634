// Close beside every kind of change: each is finished whole or refused with nothing changed, and
// the next open finds the seal.
//
// concurrent: engine/internal/core.cc engine/internal/core.h engine/internal/set_priorities.cc
// concurrent: engine/internal/append.cc engine/internal/trajectory_end.cc

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <thread>

#include "engine/write_batch.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

class DatabaseCloseConcurrentTest : public StoreTest {
 protected:
  static constexpr int kThreads = 8;
  /// Each closes after another number of calls: of the short ones so many more.
  static constexpr int kRounds = 20;
  static constexpr int kRoundsOfLongCalls = 8;
  /// More than fit a record of the ring of kSmallRing.
  static constexpr int64_t kManyRows = 3000;
  static constexpr uint64_t kSmallRing = uint64_t{1} << 16;

  void SetUp() override {}  // Start opens.

  /// Each thread calls until it is refused. The database is closed after so many acknowledged
  /// calls.
  using Call = std::function<Status(int thread, int call)>;
  void CloseBeside(int after, const Call& call) {
    acknowledged_.assign(kThreads, 0);
    std::atomic<int> done{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        int& count = acknowledged_[static_cast<size_t>(thread)];
        Status status = call(thread, 0);
        while (status.ok()) {
          ++count;
          ++done;
          status = call(thread, count);
        }
        EXPECT_STATUS(kCancelled, status, "database '" + dir_->path() + "' is closed");
      });
    }
    while (done < after) std::this_thread::yield();
    EXPECT_OK(database_->Close());
    for (auto& thread : threads) thread.join();
  }
  /// Looks at the closed database, then at what a reopen finds.
  void CheckLiveAndReopened(const std::function<void()>& check) {
    check();
    ReopenClean();
    check();
  }
  void ReopenClean() {
    per_.reset();
    Reopen();
    EXPECT_TRUE(database_->recovery().clean) << database_->recovery().note;
    OpenAgain("steps");
    per_ = table_->priority_table("per");
  }
  void Start(uint64_t ring_bytes = uint64_t{1} << 20) {
    per_.reset();
    options_.ring_bytes = ring_bytes;
    OpenEmpty();
    TableSpec spec = StepSpec();
    spec.steps_per_page = 64;
    spec.priority_tables = {WindowSpec("per")};
    Create(spec);
    per_ = table_->priority_table("per");
  }
  int AllAcknowledged() const {
    return std::accumulate(acknowledged_.begin(), acknowledged_.end(), 0);
  }
  std::vector<float> Priorities(TrajectoryId id) {
    std::vector<float> found;
    for (int64_t row = 0; row < kManyRows; ++row) {
      found.push_back(per_->Priority({id, row}).value());
    }
    return found;
  }

  std::shared_ptr<PriorityTable> per_;
  std::vector<int> acknowledged_;  // Calls, by thread.
};

TEST_F(DatabaseCloseConcurrentTest, ASetOfManyRecordsIsWholeOrNotAtAll) {
  for (int round = 0; round < kRoundsOfLongCalls; ++round) {
    Start(kSmallRing);
    std::vector<TrajectoryId> ids;
    for (int i = 0; i < kThreads; ++i) ids.push_back(AppendClosed(0, kManyRows));
    CloseBeside(2 + 2 * round, [&](int thread, int call) {
      std::vector<RowId> rows;
      for (int64_t row = 0; row < kManyRows; ++row) {
        rows.push_back({ids[static_cast<size_t>(thread)], row});
      }
      const std::vector<float> values(rows.size(), static_cast<float>(call + 2));
      return per_->Set(rows, values).status();
    });
    CheckLiveAndReopened([&] {
      for (size_t i = 0; i < ids.size(); ++i) {
        // A call that was refused has changed nothing.
        const std::vector<float> all(kManyRows, static_cast<float>(acknowledged_[i] + 1));
        EXPECT_TRUE(Priorities(ids[i]) == all) << "round " << round << ", thread " << i;
      }
    });
  }
}

TEST_F(DatabaseCloseConcurrentTest, ASetAllInPartsIsWholeOrNotAtAll) {
  for (int round = 0; round < kRoundsOfLongCalls; ++round) {
    Start(kSmallRing);
    std::vector<TrajectoryId> ids;
    for (int i = 0; i < kThreads; ++i) ids.push_back(AppendClosed(0, kManyRows));
    CloseBeside(2 + 2 * round, [&](int thread, int) {
      const std::vector<float> values(kManyRows * kThreads, static_cast<float>(thread + 2));
      return per_->SetAll(values).status();
    });
    CheckLiveAndReopened([&] {
      std::vector<float> found = Priorities(ids[0]);
      EXPECT_GE(found[0], 2);
      for (const TrajectoryId id : ids) {
        EXPECT_TRUE(Priorities(id) == std::vector<float>(kManyRows, found[0])) << "round " << round;
      }
    });
  }
}

TEST_F(DatabaseCloseConcurrentTest, ColumnsAreSetAsAcknowledged) {
  for (int round = 0; round < kRounds; ++round) {
    Start();
    std::vector<TrajectoryId> ids;
    for (int i = 0; i < kThreads; ++i) ids.push_back(AppendClosed(0, 3));
    CloseBeside(20 * (1 + round), [&](int thread, int call) {
      const auto version = static_cast<uint32_t>(call + 1);
      const ColumnValue values[] = {{"version", TensorView::Scalar(version)}};
      return table_->SetColumns(ids[static_cast<size_t>(thread)], values);
    });
    ReopenClean();
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string_view columns[] = {"version"};
      const auto found = table_->Read(ids[i], columns, {});
      ASSERT_OK(found);
      EXPECT_EQ((*found)[0].view().values<uint32_t>()[0], static_cast<uint32_t>(acknowledged_[i]));
    }
  }
}

TEST_F(DatabaseCloseConcurrentTest, AppendsInPartsAreThereAsAcknowledged) {
  for (int round = 0; round < kRoundsOfLongCalls; ++round) {
    Start(kSmallRing);
    std::vector<std::unique_ptr<Writer>> writers;
    for (int i = 0; i < kThreads; ++i) writers.push_back(table_->NewWriter({}).value());
    const Rows rows(0, kManyRows);
    CloseBeside(2 + 2 * round, [&](int thread, int) {
      return writers[static_cast<size_t>(thread)]
          ->AppendTrajectory(rows.many(), {.end = End::kTerminated})
          .status();
    });
    CheckLiveAndReopened([&] {
      EXPECT_EQ(table_->Count(), static_cast<uint64_t>(AllAcknowledged()));
      EXPECT_EQ(table_->StepCount(), static_cast<uint64_t>(AllAcknowledged() * kManyRows));
    });
  }
}

TEST_F(DatabaseCloseConcurrentTest, AppendsThatNobodyWaitsForAreThere) {
  for (int round = 0; round < kRoundsOfLongCalls; ++round) {
    Start();
    std::vector<std::unique_ptr<Writer>> writers;
    for (int i = 0; i < kThreads; ++i) {
      writers.push_back(table_->NewWriter({.ack = Ack::kMemory}).value());
    }
    const Rows rows(0, 400);  // The filler's: a tenth of the ring.
    CloseBeside(2 + 2 * round, [&](int thread, int) {
      return writers[static_cast<size_t>(thread)]
          ->AppendTrajectory(rows.many(), {.end = End::kTerminated})
          .status();
    });
    CheckLiveAndReopened(
        [&] { EXPECT_EQ(table_->Count(), static_cast<uint64_t>(AllAcknowledged())); });
  }
}

TEST_F(DatabaseCloseConcurrentTest, CutsAreThereAsAcknowledged) {
  constexpr uint32_t kLanes = 200;
  const std::vector<int32_t> zeros(kLanes * 2, 0);
  const ColumnValue rows[] = {{"obs", TensorView(zeros.data(), DType::kF32, Shape({kLanes, 2}))},
                              {"action", TensorView(zeros.data(), DType::kI32, Shape({kLanes}))},
                              {"reward", TensorView(zeros.data(), DType::kF32, Shape({kLanes}))}};
  for (int round = 0; round < kRounds; ++round) {
    Start();
    std::vector<std::unique_ptr<Writer>> writers;
    for (int i = 0; i < kThreads; ++i) {
      writers.push_back(table_->NewWriter({.lanes = kLanes}).value());
      ASSERT_OK(writers.back()->AppendLanes(rows, {}));
    }
    CloseBeside(20 * (1 + round), [&](int thread, int call) {
      Writer& writer = *writers[static_cast<size_t>(thread)];
      if (call < static_cast<int>(kLanes)) return writer.Cut(static_cast<uint32_t>(call)).status();
      return table_->Remove({});  // Nothing is left to cut until the close.
    });
    uint64_t cuts = 0;
    for (const int count : acknowledged_) cuts += std::min(static_cast<uint32_t>(count), kLanes);
    writers.clear();
    CheckLiveAndReopened([&] {
      EXPECT_EQ(table_->Scan({.state = TrajectoryState::kClosed}).size(), cuts);
      EXPECT_EQ(table_->Count(), kLanes * kThreads);
    });
  }
}

TEST_F(DatabaseCloseConcurrentTest, TrimsAreThereAsAcknowledged) {
  for (int round = 0; round < kRounds; ++round) {
    Start();
    std::vector<TrajectoryId> ids;
    for (int i = 0; i < kThreads; ++i) ids.push_back(AppendClosed(0, kManyRows));
    const auto row_after = [](int calls) { return std::min<int64_t>(calls, kManyRows - 1); };
    CloseBeside(20 * (1 + round), [&](int thread, int call) {
      return table_->Truncate(ids[static_cast<size_t>(thread)], row_after(call + 1));
    });
    CheckLiveAndReopened([&] {
      const auto records = table_->Scan({});
      ASSERT_EQ(records.size(), ids.size());
      for (size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(records[i].first_row, row_after(acknowledged_[i]));
      }
    });
  }
}

TEST_F(DatabaseCloseConcurrentTest, RemovalsAreThereAsAcknowledged) {
  constexpr size_t kTrajectories = 1600;
  for (int round = 0; round < kRounds; ++round) {
    Start();
    std::vector<TrajectoryId> ids;
    for (size_t i = 0; i < kTrajectories; ++i) ids.push_back(AppendClosed(0, 2));
    CloseBeside(20 * (1 + round), [&](int thread, int call) {
      const size_t at = static_cast<size_t>(call) * kThreads + static_cast<size_t>(thread);
      // When all are gone, nothing is removed until the close.
      return table_->Remove(
          std::span(ids).subspan(std::min(at, kTrajectories - 1), at < kTrajectories ? 1 : 0));
    });
    uint64_t removed = 0;
    for (const int count : acknowledged_) {
      removed += std::min(static_cast<size_t>(count), kTrajectories / kThreads);
    }
    CheckLiveAndReopened([&] { EXPECT_EQ(table_->Count(), kTrajectories - removed); });
  }
}

TEST_F(DatabaseCloseConcurrentTest, ResumedTrajectoriesAreTheirWritersAsAcknowledged) {
  constexpr uint32_t kLanes = 200;
  const Rows row(0, 1);
  for (int round = 0; round < kRounds; ++round) {
    Start();
    std::vector<std::vector<TrajectoryId>> ids(kThreads);
    std::vector<std::unique_ptr<Writer>> writers;
    for (auto& of_thread : ids) {
      auto left = table_->NewWriter({.lanes = kLanes, .ack = Ack::kMemory}).value();
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        of_thread.push_back(left->Append(row.one(), {.lane = lane}).value().id);
      }
      writers.push_back(table_->NewWriter({.lanes = kLanes}).value());
    }
    CloseBeside(20 * (1 + round), [&](int thread, int call) {
      if (call >= static_cast<int>(kLanes)) return table_->Remove({});
      const auto lane = static_cast<uint32_t>(call);
      return writers[static_cast<size_t>(thread)]->Resume(ids[static_cast<size_t>(thread)][lane],
                                                          lane);
    });
    uint64_t resumed = 0;
    for (const int count : acknowledged_) resumed += std::min(static_cast<uint32_t>(count), kLanes);
    EXPECT_EQ(table_->Scan({.state = TrajectoryState::kOpen}).size(), resumed);
    ReopenClean();
    EXPECT_EQ(table_->Scan({.state = TrajectoryState::kOrphaned}).size(), kLanes * kThreads);
  }
}

// While Close waits, the cleaner makes no room any more: that is no lack of room.
TEST_F(DatabaseCloseConcurrentTest, WhoWantsRoomInAFullLogIsCancelled) {
  options_.segment_bytes = uint64_t{256} << 10;
  options_.log_bytes_max = uint64_t{2} << 20;
  options_.budgets.frames_bytes = uint64_t{16} << 20;
  Start(uint64_t{256} << 10);
  testing::CoreOf(*database_)->cleaner->Stop();  // As Close does first.
  const Rows rows(0, 500);
  WriteBatch batch;
  batch.AppendTrajectory(writer_.get(), rows.many(), {.end = End::kTerminated});
  Status status;
  uint64_t appended = 0;
  for (; status.ok(); ++appended) {
    status = writer_->AppendTrajectory(rows.many(), {.end = End::kTerminated}).status();
  }
  EXPECT_GT(appended, 10u);
  const std::string text = "database '" + dir_->path() + "' is being closed";
  EXPECT_STATUS(kCancelled, status, text);
  EXPECT_STATUS(kCancelled, database_->Write(batch).status(), text);
  EXPECT_EQ(table_->Count(), appended - 1);
  // The log's reserve is for what makes room.
  EXPECT_OK(table_->Remove(IdRange(1, 3)));
}

TEST_F(DatabaseCloseConcurrentTest, AppendsThatWaitForRoomInTheLogAreCancelled) {
  for (int round = 0; round < kRoundsOfLongCalls; ++round) {
    options_.segment_bytes = uint64_t{256} << 10;
    options_.log_bytes_max = uint64_t{2} << 20;
    options_.budgets.frames_bytes = uint64_t{16} << 20;
    Start(uint64_t{256} << 10);
    std::atomic<uint64_t> done{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&] {
        const auto writer = table_->NewWriter({}).value();
        const Rows rows(0, 500);
        Status status;
        while (status.ok()) {
          status = writer->AppendTrajectory(rows.many(), {.end = End::kTerminated}).status();
          done += status.ok() ? 1 : 0;
        }
        EXPECT_STATUS(kCancelled, status, "database '" + dir_->path() + "' is ");
      });
    }
    while (done < 300u + 20u * static_cast<uint64_t>(round)) std::this_thread::yield();
    EXPECT_OK(database_->Close());
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(table_->Count(), done);
  }
}

// They went on until the last handle of the dropped table was gone.
TEST_F(DatabaseCloseConcurrentTest, AppendsThatWaitForFramesOfADroppedTableAreCancelled) {
  options_.resident = true;
  options_.budgets.frames_bytes = uint64_t{8} << 20;
  OpenEmpty();
  TableSpec spec{.name = "dropped"};
  spec.columns = {{.name = "x", .dtype = DType::kU8, .shape = {4096}}};
  spec.steps_per_page = 16;
  Create(spec, {.admission_timeout_ms = 0});
  const std::vector<uint8_t> rows(size_t{64} * 4096, 1);
  const auto append = [&rows](Writer* writer) {
    return writer
        ->AppendTrajectory({{"x", TensorView(rows.data(), DType::kU8, Shape({64, 4096}))}},
                           {.end = End::kTerminated})
        .status();
  };
  Status full;
  while (full.ok()) full = append(writer_.get());
  EXPECT_STATUS(kResourceExhausted, full, "frame");
  writer_.reset();
  std::shared_ptr<Table> dropped = table_;
  ASSERT_OK(database_->DropTable("dropped"));
  spec.name = "next";
  Create(spec, {.admission_timeout_ms = INT64_MAX});
  std::atomic<bool> begun{false}, done{false};
  Status status;
  std::thread caller([&] {
    begun = true;
    status = append(writer_.get());
    done = true;
  });
  while (!begun) std::this_thread::yield();
  EXPECT_OK(database_->Close());
  const Deadline deadline = Deadline::AfterMs(60'000);
  while (!done && !deadline.passed()) std::this_thread::yield();
  EXPECT_TRUE(done);
  dropped.reset();
  caller.join();
  EXPECT_STATUS(kCancelled, status, "database '" + dir_->path() + "' is closed");
}

// They waited on, and the exit for the threads that made them.
TEST_F(DatabaseCloseConcurrentTest, TheCloseOfAnExitEndsWaitsForItemsAndRemovals) {
  Start();
  const auto core = testing::CoreOf(*database_);
  const auto sampler = per_->NewSampler({.batch = 1}).value();
  const std::string text = "database '" + dir_->path() + "' is closed";
  std::thread learner(
      [&] { EXPECT_STATUS(kCancelled, sampler->Next(Deadline::AfterMs(60'000)), text); });
  std::atomic<bool> begun{false};
  std::thread producer([&] {
    begun = true;
    const auto removals = table_->ReadRemovals(0, {.timeout_ms = 60'000});
    EXPECT_STATUS(kCancelled, removals, text);
  });
  while (!begun || per_->WhyBlocked().samples.waiting == 0) std::this_thread::yield();
  EXPECT_OK(core->Close());  // No more than what an exit calls.
  learner.join();
  producer.join();
}

TEST_F(DatabaseCloseConcurrentTest, DrawsAreCountedAsHandedOver) {
  for (int round = 0; round < kRounds; ++round) {
    Start();
    AppendClosed(0, 50);
    std::vector<std::unique_ptr<Sampler>> samplers;
    for (int i = 0; i < kThreads; ++i) {
      samplers.push_back(
          per_->NewSampler({.batch = 4, .views = {{.column = "action"}}, .prefetch = 2}).value());
    }
    CloseBeside(20 * (1 + round), [&](int thread, int) {
      return samplers[static_cast<size_t>(thread)]->Next().status();
    });
    samplers.clear();
    CheckLiveAndReopened([&] {
      EXPECT_EQ(table_->Scan({})[0].times_sampled, static_cast<uint64_t>(4 * AllAcknowledged()));
    });
  }
}

}  // namespace
}  // namespace geardb
