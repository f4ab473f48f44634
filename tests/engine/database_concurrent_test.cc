// Everybody at once: writers, samplers, updates, removals, reads, tags and counters.
//
// concurrent: engine/internal/core.h engine/internal/table_plan.h engine/internal/table_state.h
// concurrent: engine/internal/append.h engine/internal/append.cc engine/internal/append_decide.cc
// concurrent: engine/internal/sampler_impl.h engine/sampler.cc engine/internal/batch_rep.h
// concurrent: engine/batch.cc engine/database.cc engine/table.cc engine/priority_table.cc
// concurrent: engine/internal/trajectory_end.cc engine/internal/table_change.cc
// concurrent: engine/internal/table_read.cc engine/internal/set_priorities.cc

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/testing/fault_env.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Random;
using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

class DatabaseConcurrentTest : public StoreTest {
 protected:
  /// A writer's rows are numbered 1,000,000 * (writer + 1) and on.
  static constexpr int64_t kApart = 1'000'000;
  static constexpr uint64_t kBatchesMin = 30;

  void CreateTable(bool stream, uint64_t steps_max) {
    TableSpec spec = StepSpec(true);
    spec.stream = stream;
    spec.steps_max = steps_max;
    PriorityTableSpec uniform = WindowSpec("uniform", {.before = 2, .length = 3, .after = 1});
    uniform.selector = SelectorKind::kUniform;
    PriorityTableSpec whole = WindowSpec("whole");
    whole.item = ItemKind::kTrajectory;
    spec.priority_tables = {WindowSpec("per", {.before = 0, .length = 1, .after = 1}), uniform,
                            whole};
    Create(spec);
  }

  void Write(int writer_number, int calls, Ack ack) {
    auto writer = table_->NewWriter({.lanes = 2, .ack = ack});
    ASSERT_OK(writer);
    Random random(static_cast<uint64_t>(writer_number));
    int64_t next = kApart * (writer_number + 1);
    // As long as it takes for the others to have drawn something.
    for (int call = 0; call < calls || batches_ < kBatchesMin; ++call) {
      const auto count = static_cast<int64_t>(1 + random.Below(7));
      const Rows rows(next, count);
      const Rows last(next + count, 1);
      AppendOptions options{.lane = static_cast<uint32_t>(random.Below(2)),
                            .end = random.OneIn(3) ? End::kTerminated : End::kGo};
      if (options.end != End::kGo) options.final = last.final_row();
      const auto appended = (*writer)->AppendSteps(rows.many(), options);
      // The table's other users may remove what is open here.
      if (!appended.ok()) {
        EXPECT_STATUS(kNotFound, appended, "was removed");
      }
      next += count + 1;
      if (random.OneIn(10)) (*writer)->Cut(options.lane).status().ok();
    }
  }

  void Draw(const std::string& name, const std::atomic<bool>& stop, bool observer, int prefetch) {
    auto table = table_->priority_table(name);
    SamplerOptions options{.batch = 32,
                           .views = {{.column = "action", .masks = true}, {.column = "reward"}},
                           .prefetch = prefetch,
                           .observer = observer,
                           .timeout_ms = 20};
    auto sampler = table->NewSampler(options);
    ASSERT_OK(sampler);
    while (!stop) {
      const auto batch = (*sampler)->Next();
      if (!batch.ok()) {
        EXPECT_STATUS(kDeadlineExceeded, batch, "nothing to draw");
        continue;
      }
      ++batches_;
      const auto actions = (*batch)["action"].values<int32_t>();
      const auto rewards = (*batch)["reward"].values<float>();
      const auto learn = (*batch)["action.learn"].values<bool>();
      for (size_t i = 0; i < actions.size(); ++i) {
        if (!learn[i]) continue;
        ASSERT_EQ(rewards[i], static_cast<float>(actions[i]) / 4);
        ASSERT_GE(actions[i], kApart);
      }
      if (observer) continue;
      std::vector<float> priorities;
      for (int64_t i = 0; i < batch->size(); ++i) priorities.push_back(static_cast<float>(i % 7));
      EXPECT_OK(table->Set(batch->handles(), priorities));
    }
  }

  void Disturb(const std::atomic<bool>& stop) {
    Random random(99);
    while (!stop) {
      const auto records = table_->Scan({});
      if (records.empty()) continue;
      const TrajectoryRecord& record = records[random.Below(records.size())];
      switch (random.Below(7)) {
        case 0: {
          const TrajectoryId ids[] = {record.id};
          const Status status = table_->Remove(ids);
          if (!status.ok()) {
            EXPECT_STATUS(kNotFound, status, "no trajectory");
          }
          break;
        }
        case 1:
          if (record.steps_end - record.first_row < 3) break;
          table_->Truncate(record.id, record.first_row + 2).ok();  // It may be gone meanwhile.
          break;
        case 2: {
          const float one[] = {1};
          EXPECT_OK(table_->priority_table("per")->SetAll(one));
          break;
        }
        case 3: {
          const float score = 2;
          const ColumnValue values[] = {{"score", TensorView::Scalar(score)}};
          table_->SetColumns(record.id, values).ok();
          break;
        }
        case 4:
          EXPECT_OK(database_->WriteTag("cut", std::as_bytes(std::span(records))));
          break;
        default: {
          const std::string_view columns[] = {"action", "reward"};
          const auto rows = table_->Read(record.id, columns, {});
          if (!rows.ok()) break;
          const auto actions = (*rows)[0].view();
          const auto rewards = (*rows)[1].view();
          for (size_t i = 0; i < actions.values<int32_t>().size(); ++i) {
            ASSERT_EQ(rewards.values<float>()[i],
                      static_cast<float>(actions.values<int32_t>()[i]) / 4);
          }
        }
      }
      database_->Stats();
      table_->Stats();
      table_->priority_table("uniform")->Stats();
    }
  }

  void RunAll(int calls) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> writers, others;
    others.emplace_back([&] { Draw("per", stop, false, 2); });
    others.emplace_back([&] { Draw("uniform", stop, false, 0); });
    others.emplace_back([&] { Draw("whole", stop, true, 1); });
    others.emplace_back([&] { Disturb(stop); });
    for (int i = 0; i < 3; ++i) {
      writers.emplace_back([&, i] { Write(i, calls, i == 0 ? Ack::kMemory : Ack::kLog); });
    }
    for (auto& thread : writers) thread.join();
    stop = true;
    for (auto& thread : others) thread.join();
  }

  /// What the table says of itself agrees with what can be read of it.
  void CheckTable() {
    uint64_t rows = 0, steps = 0;
    for (const auto& record : table_->Scan({})) {
      const auto read = table_->Read(record.id, {}, {});
      ASSERT_OK(read);
      rows += static_cast<uint64_t>((*read)[0].shape[0]);
      steps += static_cast<uint64_t>(record.steps_end - record.first_row);
    }
    const TableStats stats = table_->Stats();
    EXPECT_EQ(stats.trajectories, table_->Scan({}).size());
    if (!table_->spec().stream) {
      EXPECT_EQ(stats.steps, steps);
    }
    const uint64_t row_bytes = 16 + (table_->spec().stream ? 1 : 0);
    EXPECT_EQ(stats.row_bytes, rows * row_bytes);
    for (const char* name : {"per", "uniform", "whole"}) {
      EXPECT_EQ(priority(name)->Count(), priority(name)->Items().size());
    }
  }

  std::atomic<uint64_t> batches_{0};
};

TEST_F(DatabaseConcurrentTest, EverybodyAtOnce) {
  CreateTable(false, 0);
  RunAll(300);
  EXPECT_GE(batches_, kBatchesMin);
  CheckTable();
  const auto records = table_->Scan({});
  const auto per = priority("per")->Items();
  Reopen();
  OpenAgain("steps");
  CheckTable();
  EXPECT_EQ(table_->Scan({}).size(), records.size());
  EXPECT_EQ(priority("per")->Items(), per);
}

TEST_F(DatabaseConcurrentTest, EverybodyAtOnceInAFullTableOfStreams) {
  CreateTable(true, 400);
  RunAll(300);
  CheckTable();
  uint64_t rows = 0;
  for (const auto& record : table_->Scan({})) {
    rows += static_cast<uint64_t>(record.rows_end - record.first_row);
  }
  EXPECT_LE(rows, 400u);
  const auto per = priority("per")->Items();
  Reopen();
  OpenAgain("steps");
  CheckTable();
  EXPECT_EQ(priority("per")->Items(), per);
}

TEST_F(DatabaseConcurrentTest, ClosingEndsEveryCall) {
  CreateTable(false, 0);
  std::atomic<int> ended{0};
  auto per = table_->priority_table("per");
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      auto writer = table_->NewWriter({});
      const Rows rows(kApart, 3);
      const Rows last(kApart + 3, 1);
      Status status = writer.status();
      while (status.ok()) {
        status = (*writer)
                     ->AppendTrajectory(rows.many(),
                                        {.end = End::kTerminated, .final = last.final_row()})
                     .status();
      }
      EXPECT_STATUS(kCancelled, status, "closed");
      ++ended;
    });
  }
  threads.emplace_back([&] {
    auto sampler = per->NewSampler({.batch = 8, .prefetch = 2, .timeout_ms = 60'000});
    Status status = sampler.status();
    while (status.ok()) {
      auto batch = (*sampler)->Next();
      status = batch.status();
      if (status.ok()) {
        const std::vector<float> ones(8, 1.0f);
        status = per->Set(batch->handles(), ones).status();
      }
    }
    EXPECT_STATUS(kCancelled, status, "closed");
    ++ended;
  });
  threads.emplace_back([&] {
    Status status;
    const float one[] = {1};
    while (status.ok()) {
      status = database_->WriteTag("t", std::as_bytes(std::span(one))).status();
    }
    EXPECT_STATUS(kCancelled, status, "closed");
    ++ended;
  });
  while (table_->Count() < 50) std::this_thread::yield();
  ASSERT_OK(database_->Close());
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ended, 4);
  const uint64_t count = table_->Count();
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), count);
}

TEST_F(DatabaseConcurrentTest, EverybodyMayOpenOrCreateTheSameTable) {
  for (int round = 0; round < 50; ++round) {
    TableSpec spec = StepSpec();
    spec.name = "t" + std::to_string(round);
    spec.priority_tables = {WindowSpec("per"), WindowSpec("other")};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        auto table = database_->OpenOrCreateTable(spec);
        ASSERT_OK(table);
        EXPECT_EQ((*table)->PriorityTables().size(), 2u);
      });
    }
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(database_->Tables().size(), 50u);
}

TEST_F(DatabaseConcurrentTest, TablesComeAndGoWhileOthersWrite) {
  CreateTable(false, 0);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (int round = 0; round < 30; ++round) {
      TableSpec spec = StepSpec();
      spec.name = "other" + std::to_string(round % 3);
      spec.priority_tables = {WindowSpec("per")};
      auto table = database_->OpenOrCreateTable(spec);
      ASSERT_OK(table);
      auto writer = (*table)->NewWriter({});
      const Rows rows(0, 5);
      ASSERT_OK((*writer)->AppendSteps(rows.many(), {}));
      if (round % 2 == 0) {
        ASSERT_OK(database_->DropTable(spec.name));
      }
    }
    stop = true;
  });
  int64_t next = kApart;
  while (!stop) {
    Append(next, 5, End::kTerminated);
    next += 10;
  }
  other.join();
  const uint64_t count = table_->Count();
  const auto tables = database_->Tables();
  Reopen();
  EXPECT_EQ(database_->Tables(), tables);
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), count);
}

}  // namespace
}  // namespace geardb
