// Timekeeper: what it closes and removes in the background, beside others.
//
// concurrent: engine/internal/timekeeper.h engine/internal/timekeeper.cc
// concurrent: engine/internal/set_filter.cc engine/internal/append.cc
#include "engine/internal/timekeeper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "engine/internal/set_filter.h"
#include "engine/internal/set_priorities.h"
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

/// What is done by hand, or by the timekeeper alone.
class LeftToTheTimekeeperConcurrentTest : public testing::StoreTest {
 protected:
  void CreateExpiring(bool from_the_start) {
    TableSpec spec = testing::StepSpec();
    spec.steps_per_page = 256;
    spec.priority_tables = {testing::WindowSpec("fresh")};
    spec.priority_tables[0].selector = SelectorKind::kUniform;
    if (from_the_start) {
      spec.priority_tables[0].filter = "version >= 1";
      spec.priority_tables[0].filter_action = FilterAction::kExpire;
    }
    Create(spec, {.ack = Ack::kMemory});
    if (from_the_start) return;
    ASSERT_OK(priority("fresh")->SetFilter("version >= 1", FilterAction::kExpire));
  }
  uint64_t RemovedByFilter() {
    return table_->Stats().removed_by[static_cast<size_t>(RemovalReason::kFilter)];
  }
};

// It stayed until the next call that changed something, as its record was applied behind the call.
TEST_F(LeftToTheTimekeeperConcurrentTest, WhatExpiresBehindAnAppendInMemoryIsRemoved) {
  const testing::Rows rows(0, 40'000);  // The filler's, which takes longer than the call.
  const uint32_t version = 0;
  const ColumnValue fails[] = {{"version", TensorView::Scalar(version)}};
  for (const bool from_the_start : {true, false}) {
    SCOPED_TRACE(from_the_start);
    options_.ring_bytes = options_.segment_bytes = 8 << 20;
    OpenEmpty();
    CreateExpiring(from_the_start);
    for (uint64_t removed = 1; removed <= 20; ++removed) {
      ASSERT_OK(writer_->AppendSteps(rows.many(), {.end = End::kTerminated, .trajectory = fails}));
      const Deadline deadline = Deadline::AfterMs(60'000);
      while (RemovedByFilter() != removed && !deadline.passed()) std::this_thread::yield();
      ASSERT_EQ(RemovedByFilter(), removed);
    }
    writer_.reset();
  }
}

// Nobody looked for what a full log had not removed while they waited.
TEST_F(LeftToTheTimekeeperConcurrentTest, WhoWaitsForRoomGetsThatOfARefusedRemoval) {
  TableSpec spec = testing::StepSpec();
  spec.trajectories_max = 1;
  spec.remover = Remover::kNone;
  spec.priority_tables = {testing::WindowSpec("per")};
  spec.priority_tables[0].max_times_sampled = 1;
  Create(spec, {.admission_timeout_ms = 60'000});
  const TrajectoryId id = AppendClosed(0, 1);
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("per")->NewSampler({.batch = 1}));
  ASSERT_OK(sampler->Next());
  std::thread waiting([&] { AppendClosed(1, 1); });
  const auto core = testing::CoreOf(*database_);
  while (core->waits.table_room.count().waits == 0) core->room_made.NotifyAll();
  // As a Configure leaves it that finds no room for the removal.
  PriorityTable::Impl limits{
      .database = core, .table = core->TableById(table_->id()), .number = 0, .spec = {}};
  ASSERT_OK(
      engine::ConfigureLimits(&limits, {.max_times_sampled = 1, .remove_when_exhausted = true}));
  {
    engine::TableState& state = *limits.table->state;
    MutexLock lock(&state.mutex);
    const Slot slot = state.trajectories().FindById(id);
    state.PutBackFinished({{slot, state.trajectories().record(slot).generation}});
    engine::LeaveFollowUp(core.get(), limits.table.get(), Deadline::AfterMs(1));
  }
  waiting.join();
  EXPECT_STATUS(kNotFound, table_->Find(id), "");
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
