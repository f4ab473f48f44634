// Timekeeper: what it closes and removes in the background, beside others.
//
// concurrent: engine/internal/timekeeper.h engine/internal/timekeeper.cc
#include "engine/internal/timekeeper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/engine/internal/live_core.h"
#include "tests/testing/hand_clock.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class TimekeeperConcurrentTest : public testing::StoreTest {
 protected:
  /// Until the table holds `count` trajectories.
  void AwaitCount(uint64_t count) {
    while (table_->Count() != count) std::this_thread::yield();
  }
};

TEST_F(TimekeeperConcurrentTest, OrphansAreClosedInTheBackground) {
  TableSpec spec = testing::StepSpec();
  spec.orphan_timeout_ms = 1;
  Create(spec);
  const TrajectoryId id = Append(0, 4).id;
  writer_.reset();
  while (table_->Find(id)->state != TrajectoryState::kClosed) std::this_thread::yield();
  EXPECT_EQ(table_->Find(id)->end, End::kCut);
}

TEST_F(TimekeeperConcurrentTest, AStoreThatIsOpenedSeesToItsTables) {
  TableSpec spec = testing::StepSpec();
  spec.orphan_timeout_ms = 1;
  spec.ttl_ms = 1;
  Create(spec);
  Append(0, 4);
  Reopen();
  ASSERT_OK_AND_ASSIGN(table_, database_->OpenTable("steps"));
  AwaitCount(0);  // Closed, and then removed.
}

// Not when the longer time of the other table has it look again, ten seconds later.
TEST_F(TimekeeperConcurrentTest, ATableWithAShorterTimeIsSeenToInItsOwn) {
  TableSpec spec = testing::StepSpec();
  spec.name = "long";
  spec.ttl_ms = 3'600'000;
  Create(spec);
  spec.name = "short";
  spec.ttl_ms = 1;
  Create(spec);
  AppendClosed(0, 4);
  AwaitCount(0);
}

TEST_F(TimekeeperConcurrentTest, WritersGoOnBesideIt) {
  TableSpec spec = testing::StepSpec();
  spec.ttl_ms = 1;
  spec.orphan_timeout_ms = 1;
  spec.priority_tables = {testing::WindowSpec("per")};
  Create(spec);
  std::atomic<bool> stop{false};
  std::thread leaver([&] {
    while (!stop.load()) {
      const auto writer = table_->NewWriter({});
      ASSERT_OK(writer);
      const testing::Rows rows(0, 3);
      ASSERT_OK((*writer)->AppendSteps(rows.many()));
    }
  });
  for (int i = 0; i < 500; ++i) AppendClosed(10 * i, 4);
  stop.store(true);
  leaver.join();
  AwaitCount(0);
  EXPECT_EQ(priority("per")->Count(), 0u);
}

TEST_F(TimekeeperConcurrentTest, CloseDoesNotWaitForATime) {
  TableSpec spec = testing::StepSpec();
  spec.ttl_ms = int64_t{1000} * 3600 * 24;
  Create(spec);
  AppendClosed(0, 3);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), 1u);
}

// Each look took the mutex of all changes.
TEST_F(TimekeeperConcurrentTest, ALookThatFindsNothingHoldsUpNoChange) {
  TableSpec spec = testing::StepSpec();
  spec.ttl_ms = 3'600'000;
  Create(spec);
  AppendClosed(0, 3);
  const auto core = testing::CoreOf(*database_);
  std::atomic<bool> looked{false};
  std::thread looker;
  {
    MutexLock held(&core->commit);
    looker = std::thread([&] {
      EXPECT_EQ(*table_->RemoveExpired(), 0u);
      EXPECT_EQ(*table_->CloseOrphans(1000), 0u);
      looked = true;
    });
    const Deadline deadline = Deadline::AfterMs(60'000);
    while (!looked && !deadline.passed()) std::this_thread::yield();
    EXPECT_TRUE(looked);
  }
  looker.join();
}

class TimesOfTablesConcurrentTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    options_.clock = &clock_;
    Open();
  }
  void TearDown() override { Close(); }  // The clock goes first.

  testing::HandClock clock_;
};

// All tables were looked at as often as the one with the shortest time, for good.
TEST_F(TimesOfTablesConcurrentTest, AShortTimeHasNoOtherTableLookedAt) {
  const auto begun = std::chrono::steady_clock::now();
  TableSpec spec = testing::StepSpec();
  spec.name = "long";
  spec.ttl_ms = 3'600'000;  // Looked at after ten seconds.
  Create(spec);
  AppendClosed(0, 1);
  const std::shared_ptr<Table> long_table = table_;
  clock_.now_us += int64_t{7'200'000'000};
  spec.name = "short";
  spec.ttl_ms = 1;
  Create(spec);
  for (int i = 0; i < 20; ++i) {
    AppendClosed(0, 1);
    clock_.now_us += 10'000;
    while (table_->Count() != 0) std::this_thread::yield();
  }
  const bool is_early = std::chrono::steady_clock::now() - begun < std::chrono::seconds(9);
  EXPECT_TRUE(long_table->Count() == 1 || !is_early);
}

}  // namespace
}  // namespace geardb
