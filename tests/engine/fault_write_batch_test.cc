// A batch is one event over all its tables: whatever interrupts it, and wherever the disk fails,
// all of it is there or nothing.
#include <gtest/gtest.h>

#include <functional>

#include "base/crash_point.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::CrashKind;
using testing::FaultEnv;
using testing::Rows;

constexpr size_t kTables = 3;
/// Trajectories of one row that are there to be removed, one by each batch.
constexpr int64_t kOld = 20;

class FaultWriteBatchTest : public ::testing::Test {
 protected:
  FaultWriteBatchTest() {
    options_.budgets.frames_bytes = 16 << 20;
    options_.budgets.index_bytes = 16 << 20;
    options_.segment_bytes = 64 << 10;
    options_.ring_bytes = 32 << 10;
    options_.background = false;
  }

  struct Store {
    std::unique_ptr<Database> database;
    std::vector<std::shared_ptr<Table>> tables;
    std::vector<std::unique_ptr<Writer>> writers;

    /// How many batches each table shows, in the three ways in which one shows: rows, a removal,
    /// and a priority; and the tag. Of each kind one number where they agree.
    std::vector<int64_t> Seen() const {
      std::vector<int64_t> seen;
      for (const auto& table : tables) {
        int64_t batches = -1;  // The filler is there from the beginning.
        for (const TrajectoryRecord& record : table->Scan({})) {
          if (record.rows_end > 1) ++batches;
        }
        seen.push_back(batches);
        seen.push_back(kOld - static_cast<int64_t>(table->Count()) + batches + 1);
        const auto items = table->priority_table("per")->Items();
        seen.push_back(static_cast<int64_t>(*table->priority_table("per")->Priority(items[0])));
      }
      const auto tag = database->LastTag("batch");
      seen.push_back(tag.ok() ? static_cast<int64_t>(tag->blob.size()) : 0);
      return seen;
    }
  };

  Status Open(FaultEnv* env, Store* store) {
    options_.env = env;
    GEARDB_ASSIGN_OR_RETURN(store->database, Database::Open("store", options_));
    for (size_t t = 0; t < kTables; ++t) {
      TableSpec spec = testing::StepSpec();
      spec.name = "t" + std::to_string(t);
      spec.steps_per_page = 32;
      spec.priority_tables = {testing::WindowSpec("per")};
      GEARDB_ASSIGN_OR_RETURN(auto table, store->database->OpenOrCreateTable(spec));
      GEARDB_ASSIGN_OR_RETURN(auto writer, table->NewWriter({}));
      store->tables.push_back(std::move(table));
      store->writers.push_back(std::move(writer));
    }
    return Status::Ok();
  }
  /// Of each table: the filler, and what is to be removed.
  Status Fill(Store* store) {
    for (const auto& writer : store->writers) {
      const Rows two(0, 2);
      GEARDB_RETURN_IF_ERROR(
          writer->AppendTrajectory(two.many(), {.end = End::kTerminated}).status());
      for (int64_t i = 0; i < kOld; ++i) {
        const Rows one(i, 1);
        GEARDB_RETURN_IF_ERROR(
            writer->AppendTrajectory(one.many(), {.end = End::kTerminated}).status());
      }
    }
    return store->database->Sync();
  }
  /// Batch `number`, from 1: it shows in every table in three ways.
  Status Write(Store* store, int64_t number, int64_t rows) {
    const Rows appended(100 * number, rows);
    WriteBatch batch;
    const float priority[] = {static_cast<float>(number)};
    for (size_t t = 0; t < kTables; ++t) {
      batch.AppendTrajectory(store->writers[t].get(), appended.many(), {.end = End::kTerminated});
      const RowId first[] = {store->tables[t]->priority_table("per")->Items()[0]};
      batch.Set(store->tables[t]->priority_table("per"), first, priority);
      TrajectoryId oldest = 0;
      for (const TrajectoryRecord& record : store->tables[t]->Scan({})) {
        if (record.rows_end == 1 && oldest == 0) oldest = record.id;
      }
      batch.Remove(store->tables[t], {&oldest, 1});
    }
    const std::vector<std::byte> blob(static_cast<size_t>(number));
    batch.WriteTag("batch", blob);
    return store->database->Write(batch, {.ack = Ack::kSync, .admission_timeout_ms = 0}).status();
  }
  /// What a store that has taken so many batches shows.
  static std::vector<int64_t> Expected(int64_t batches) {
    std::vector<int64_t> seen(3 * kTables + 1, batches);
    for (size_t t = 0; t < kTables; ++t) seen[3 * t + 2] = std::max<int64_t>(batches, 1);
    return seen;
  }
  void ExpectOneOf(FaultEnv* env, int64_t least, int64_t most) {
    for (int opened = 0; opened < 2; ++opened) {
      Store store;
      ASSERT_OK(Open(env, &store));
      const std::vector<int64_t> seen = store.Seen();
      ASSERT_TRUE(seen[0] >= least && seen[0] <= most) << seen[0];
      EXPECT_EQ(seen, Expected(seen[0])) << "a part of a batch is there";
      env->Die();
      store = {};
      env->Crash(CrashKind::kProcess);
    }
  }

  struct Copies {
    CrashKind kind = CrashKind::kProcess;
    std::vector<std::unique_ptr<FaultEnv>> made;
  };
  static void CopyNow(const char*) {
    Copies& copies = now_->copies_;
    copies.made.push_back(now_->env_.CopyAfterCrash(copies.kind, copies.made.size()));
  }
  void InterruptEverywhere(CrashKind kind, int64_t rows) {
    Store store;
    ASSERT_OK(Open(&env_, &store));
    ASSERT_OK(Fill(&store));
    copies_.kind = kind;
    now_ = this;
    SetCrashHook(&CopyNow);
    const Status first = Write(&store, 1, rows);
    const Status second = Write(&store, 2, rows);
    SetCrashHook(nullptr);
    ASSERT_OK(first);
    ASSERT_OK(second);
    EXPECT_EQ(store.Seen(), Expected(2));
    ASSERT_GE(copies_.made.size(), 10u);
    for (size_t i = 0; i < copies_.made.size(); ++i) {
      SCOPED_TRACE("interrupted at point " + std::to_string(i));
      ExpectOneOf(copies_.made[i].get(), 0, 2);
      if (HasFatalFailure()) return;
    }
    env_.Die();
    store = {};
    env_.Crash(kind);
    ExpectOneOf(&env_, 2, 2);
  }

  FaultEnv env_{7};
  DatabaseOptions options_;
  Copies copies_;
  static inline FaultWriteBatchTest* now_ = nullptr;
};

TEST_F(FaultWriteBatchTest, DeathOfTheProcess) { InterruptEverywhere(CrashKind::kProcess, 3); }
TEST_F(FaultWriteBatchTest, PowerLoss) { InterruptEverywhere(CrashKind::kPowerLoss, 3); }
TEST_F(FaultWriteBatchTest, DeathOfTheProcessInParts) {
  InterruptEverywhere(CrashKind::kProcess, 200);
}
TEST_F(FaultWriteBatchTest, PowerLossInParts) { InterruptEverywhere(CrashKind::kPowerLoss, 200); }

/// Batches until one fails, by what `fail` makes of the disk; then what is there.
class FaultyDiskTest : public FaultWriteBatchTest {
 protected:
  void FailEach(const std::function<void(FaultEnv*, uint64_t)>& fail, uint64_t most, int64_t rows) {
    uint64_t failed = 0;
    for (uint64_t n = 1; n <= most; ++n) {
      SCOPED_TRACE(n);
      FaultEnv env(n);
      Store store;
      ASSERT_OK(Open(&env, &store));
      ASSERT_OK(Fill(&store));
      fail(&env, n);
      int64_t done = 0;
      Status status;
      while (done < kOld && (status = Write(&store, done + 1, rows)).ok()) ++done;
      failed += status.ok() ? 0u : 1u;
      // One whose error is of the disk may have been done.
      if (status.code() != StatusCode::kIoError) {
        EXPECT_EQ(store.Seen(), Expected(done)) << status.ToString();
      }
      env.Die();
      store = {};
      env.ClearFailures();
      env.set_disk_bytes_max(uint64_t{1} << 40);
      env.Crash(n % 2 == 0 ? CrashKind::kProcess : CrashKind::kPowerLoss);
      ExpectOneOf(&env, done, done + 1);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(failed, most / 4);
  }
};

TEST_F(FaultyDiskTest, EverySyncFailsOnce) {
  FailEach([](FaultEnv* env, uint64_t n) { env->FailSyncAfter(n); }, 6, 3);
}
TEST_F(FaultyDiskTest, EveryWriteFailsOnce) {
  FailEach([](FaultEnv* env, uint64_t n) { env->FailWriteAfter(n); }, 12, 200);
}
TEST_F(FaultyDiskTest, EveryChangeIsTornOnce) {
  FailEach([](FaultEnv* env, uint64_t n) { env->SetCrashAfter(n); }, 12, 200);
}
TEST_F(FaultyDiskTest, TheDiskIsFull) {
  FailEach(
      [](FaultEnv* env, uint64_t n) {
        env->set_disk_bytes_max(env->disk_bytes() + (n - 1) * (uint64_t{16} << 10));
      },
      10, 200);
}

}  // namespace
}  // namespace geardb
