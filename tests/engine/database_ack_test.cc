// What an acknowledgement survives, wherever it was asked for: by the database's options, by the
// writer's, or by the call; and what the calls survive that promise to be synced.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/testing/fault_env.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::CrashKind;
using testing::FaultEnv;
using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

/// Nothing is synced here but what a call asks for: there are no background threads.
class DatabaseAckTest : public StoreTest {
 protected:
  void SetUp() override { OpenNew({}); }
  void TearDown() override { Close(); }

  void OpenNew(std::optional<Ack> ack) {
    Close();
    env_ = std::make_unique<FaultEnv>(1);
    options_ = testing::SmallOptions();
    options_.env = env_.get();
    options_.background = false;
    if (ack) options_.ack = *ack;
    Open();
  }
  /// In how many of some ways that a power loss now may go `there` holds afterwards.
  int CountAfterPowerLoss(const std::function<bool(Database*)>& there) {
    int count = 0;
    for (uint64_t seed = 1; seed <= kLosses; ++seed) {
      const auto env = env_->CopyAfterCrash(CrashKind::kPowerLoss, seed);
      DatabaseOptions options = options_;
      options.env = env.get();
      auto database = Database::Open(dir_->path(), options);
      EXPECT_OK(database);
      if (!database.ok()) continue;
      count += there(database->get()) ? 1 : 0;
      EXPECT_OK((*database)->Close());
      database->reset();
    }
    return count;
  }
  static bool Closed(Database* database, TrajectoryId id) {
    const auto table = database->OpenTable("steps");
    if (!table.ok()) return false;
    for (const TrajectoryRecord& record : (*table)->Scan({})) {
      if (record.id == id) return record.state == TrajectoryState::kClosed;
    }
    return false;
  }

  static constexpr int kLosses = 16;
  std::unique_ptr<FaultEnv> env_;
};

struct Asked {
  std::optional<Ack> database, writer, call;
  bool synced;
};

constexpr Asked kAsked[] = {
    {{}, {}, {}, false},
    {Ack::kSync, {}, {}, true},
    {Ack::kLog, {}, {}, false},
    {{}, Ack::kSync, {}, true},
    {Ack::kLog, Ack::kSync, {}, true},
    {Ack::kSync, Ack::kLog, {}, false},
    {{}, {}, Ack::kSync, true},
    {Ack::kLog, Ack::kLog, Ack::kSync, true},
    {Ack::kMemory, Ack::kMemory, Ack::kSync, true},
    {Ack::kSync, Ack::kSync, Ack::kLog, false},
    {Ack::kSync, Ack::kSync, Ack::kMemory, false},
    {Ack::kSync, Ack::kLog, Ack::kSync, true},
};

TEST_F(DatabaseAckTest, TheCallsCountsBeforeTheWritersAndThatBeforeTheDatabases) {
  for (const Asked& asked : kAsked) {
    SCOPED_TRACE(&asked - kAsked);
    OpenNew(asked.database);
    Create(StepSpec(), {.lanes = 2, .ack = asked.writer});
    const Rows rows(0, 3);
    const auto by_steps =
        writer_->AppendSteps(rows.many(), {.end = End::kTerminated, .ack = asked.call});
    ASSERT_OK(by_steps);
    int there = CountAfterPowerLoss([&](Database* db) { return Closed(db, by_steps->id); });
    EXPECT_EQ(there == kLosses, asked.synced) << there << " of " << kLosses;
    const Rows lanes(0, 2);
    const End ends[] = {End::kTerminated, End::kTerminated};
    const auto by_lanes = writer_->AppendLanes(lanes.many(), {.ends = ends, .ack = asked.call});
    ASSERT_OK(by_lanes);
    there = CountAfterPowerLoss([&](Database* db) { return Closed(db, by_lanes->back().id); });
    EXPECT_EQ(there == kLosses, asked.synced) << there << " of " << kLosses;
  }
}

TEST_F(DatabaseAckTest, ACutIsAcknowledgedAsTheWritersCallsAre) {
  for (const Asked& asked : kAsked) {
    if (asked.call) continue;
    SCOPED_TRACE(&asked - kAsked);
    OpenNew(asked.database);
    Create(StepSpec(), {.ack = asked.writer});
    const TrajectoryId id = Append(0, 3).id;
    ASSERT_OK(writer_->Cut());
    const int there = CountAfterPowerLoss([&](Database* db) { return Closed(db, id); });
    EXPECT_EQ(there == kLosses, asked.synced) << there << " of " << kLosses;
  }
}

TEST_F(DatabaseAckTest, ACreatedTableIsThereAndADroppedOneIsNot) {
  const auto has = [](Database* db, const std::string& name) { return db->OpenTable(name).ok(); };
  Create(StepSpec());
  EXPECT_EQ(CountAfterPowerLoss([&](Database* db) { return has(db, "steps"); }), kLosses);
  ASSERT_OK(table_->CreatePriorityTable(WindowSpec("later")));
  EXPECT_EQ(CountAfterPowerLoss([](Database* db) {
              const auto table = db->OpenTable("steps");
              return table.ok() && (*table)->priority_table("later") != nullptr;
            }),
            kLosses);
  TableSpec other = StepSpec();
  other.name = "other";
  ASSERT_OK(database_->OpenOrCreateTable(other));
  EXPECT_EQ(CountAfterPowerLoss([&](Database* db) { return has(db, "other"); }), kLosses);
  ASSERT_OK(database_->DropTable("steps"));
  EXPECT_EQ(CountAfterPowerLoss([&](Database* db) { return has(db, "steps"); }), 0);
  ASSERT_OK(database_->WriteTag("tag", {}));
  EXPECT_EQ(CountAfterPowerLoss([](Database* db) { return db->LastTag("tag").ok(); }), kLosses);
}

class DatabaseAckConcurrentTest : public StoreTest {};

// Nobody waits for a sync, and the log is never idle: only the option makes it sync. The bound is
// many times what the ring holds, and the thread that drains it looks at the clock each time.
TEST_F(DatabaseAckConcurrentTest, ABusyDatabaseIsSyncedWithinItsInterval) {
  options_.sync_interval_ms = 1;
  Reopen();
  TableSpec spec = StepSpec();
  spec.steps_max = 10'000;
  spec.remover = Remover::kFifo;
  Create(spec);
  const Rows rows(0, 100);
  const Lsn first = writer_->AppendSteps(rows.many(), {})->end_lsn;
  while (database_->Stats().log_synced < first &&
         database_->Stats().log_end < first + 128 * options_.ring_bytes) {
    ASSERT_OK(writer_->AppendSteps(rows.many(), {.end = End::kTerminated}));
  }
  EXPECT_GE(database_->Stats().log_synced, first);
}

}  // namespace
}  // namespace geardb
