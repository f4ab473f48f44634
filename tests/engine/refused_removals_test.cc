// What follows a change and is refused: trajectories that are finished, and those that cannot be
// read.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/internal/set_filter.h"
#include "engine/internal/set_priorities.h"
#include "engine/internal/table_change.h"
#include "engine/write_batch.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class RefusedRemovalsTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    options_.background = false;
    options_.segment_bytes = 64 << 10;
    options_.ring_bytes = 64 << 10;
    options_.log_bytes_max = 1 << 20;
    options_.cold_tier = false;
    options_.budgets.index_bytes = 4 << 20;
    Open();
    TableSpec spec = testing::StepSpec();
    spec.priority_tables = {testing::WindowSpec("per")};
    spec.priority_tables[0].selector = SelectorKind::kFifo;
    spec.priority_tables[0].max_times_sampled = 1;
    Create(spec);
  }
  std::shared_ptr<engine::TableCore> Core() {
    return testing::CoreOf(*database_)->TableById(table_->id());
  }
  /// It is exhausted, and the log had no room to remove it.
  void FinishWithoutRoom(TrajectoryId id) {
    const auto core = testing::CoreOf(*database_);
    const auto table = Core();
    PriorityTable::Impl limits{.database = core, .table = table, .number = 0, .spec = {}};
    ASSERT_OK(
        engine::ConfigureLimits(&limits, {.max_times_sampled = 1, .remove_when_exhausted = true}));
    MutexLock lock(&table->state->mutex);
    const Slot slot = table->state->trajectories().FindById(id);
    (void)table->state->TakeFinished();
    table->state->PutBackFinished({{slot, table->state->trajectories().record(slot).generation}});
    table->follow_up_due.store(true);
  }
  /// Up to the bound, and then what the log keeps for removals.
  void FillLog() {
    const std::vector<std::byte> blob(2000);
    for (const size_t bytes : {size_t{2000}, size_t{0}}) {
      Status status;
      while (status.ok()) {
        status = database_->WriteTag("small", std::span(blob).first(bytes)).status();
      }
      ASSERT_STATUS(kResourceExhausted, status, "log_bytes_max");
    }
  }
};

// They stayed until the next open, or until limits changed again.
TEST_F(RefusedRemovalsTest, WhatAConfigureFinishesIsLeftToWhatFollows) {
  const std::vector<TrajectoryId> ids = {AppendClosed(0, 1), AppendClosed(1, 1)};
  AppendClosed(2, 1);
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("per")->NewSampler({.batch = 2}));
  ASSERT_OK(sampler->Next());
  const auto core = testing::CoreOf(*database_);
  PriorityTable::Impl limits{.database = core, .table = Core(), .number = 0, .spec = {}};
  ASSERT_OK(
      engine::ConfigureLimits(&limits, {.max_times_sampled = 1, .remove_when_exhausted = true}));
  FillLog();
  engine::RemoveAllFinishedOf(core.get(), Core());
  EXPECT_EQ(table_->Count(), 3u);
  EXPECT_TRUE(Core()->follow_up_due.load());
  const auto table = Core();
  MutexLock lock(&table->state->mutex);
  std::vector<TrajectoryId> later;
  for (const engine::SlotOfTrajectory& finished : table->state->TakeFinished()) {
    later.push_back(table->state->trajectories().record(finished.slot).id);
  }
  EXPECT_EQ(later, ids);
}

// It waited for itself, and every other change for it.
TEST_F(RefusedRemovalsTest, AConfigureIsDoneWhereWeightsShouldHaveAnotherScale) {
  TableSpec spec = testing::StepSpec();
  spec.name = "weights";
  spec.priority_tables = {testing::WindowSpec("per")};
  spec.priority_tables[0].max_times_sampled = 1;
  Create(spec);
  AppendClosed(0, 1);
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("per")->NewSampler({.batch = 1}));
  ASSERT_OK(sampler->Next());
  ASSERT_OK(priority("per")->Configure({.max_times_sampled = 1, .remove_when_exhausted = true}));
  EXPECT_EQ(table_->Count(), 0u);
}

// Nobody looked for them any more: a full table that nothing else leaves took nothing.
TEST_F(RefusedRemovalsTest, WhatFollowsAndIsRefusedAgainIsStillToBeDone) {
  const TrajectoryId id = AppendClosed(0, 1);
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("per")->NewSampler({.batch = 1}));
  ASSERT_OK(sampler->Next());
  FinishWithoutRoom(id);
  FillLog();
  engine::FollowUp(testing::CoreOf(*database_).get(), Core());
  EXPECT_OK(table_->Find(id));
  EXPECT_TRUE(Core()->follow_up_due.load());
}

// One that waited long for room was told of it when its time was over.
TEST_F(RefusedRemovalsTest, AFullTableLetsGoOfWhatIsFinishedBeforeItRefusesAnAppend) {
  TableSpec spec = testing::StepSpec();
  spec.trajectories_max = 2;
  spec.remover = Remover::kNone;
  spec.priority_tables = {testing::WindowSpec("per")};
  spec.priority_tables[0].selector = SelectorKind::kFifo;
  spec.priority_tables[0].max_times_sampled = 1;
  const testing::Rows rows(2, 1);
  for (const bool is_batch : {false, true}) {
    SCOPED_TRACE(is_batch);
    spec.name = is_batch ? "batch" : "call";
    Create(spec, {.admission_timeout_ms = 0});
    const TrajectoryId id = AppendClosed(0, 1);
    AppendClosed(1, 1);
    ASSERT_OK_AND_ASSIGN(const auto sampler, priority("per")->NewSampler({.batch = 1}));
    ASSERT_OK(sampler->Next());
    const auto append = [&] {
      WriteBatch batch;
      batch.AppendSteps(writer_.get(), rows.many(), {.end = End::kTerminated});
      if (is_batch) return database_->Write(batch, {.admission_timeout_ms = 0}).status();
      return writer_->AppendSteps(rows.many(), {.end = End::kTerminated}).status();
    };
    EXPECT_STATUS(kResourceExhausted, append(), "is full");
    FinishWithoutRoom(id);
    EXPECT_OK(append());
    EXPECT_STATUS(kNotFound, table_->Find(id), "");
  }
}

// As many were kept as had ever left like that, and the first append looked for them.
TEST_F(RefusedRemovalsTest, WhatWasFinishedBeforeAnOpenIsNotKeptByIt) {
  ASSERT_OK(priority("per")->Configure({.max_times_sampled = 1, .remove_when_exhausted = true}));
  const TrajectoryId id = Append(0, 1).id;
  ASSERT_OK_AND_ASSIGN(auto sampler, priority("per")->NewSampler({.batch = 1}));
  ASSERT_OK(sampler->Next());
  ASSERT_OK(writer_->Cut());
  EXPECT_STATUS(kNotFound, table_->Find(id), "") << "its end says that it is finished";
  sampler.reset();
  Reopen();
  OpenAgain("steps");
  const auto table = Core();
  MutexLock lock(&table->state->mutex);
  EXPECT_TRUE(table->state->TakeFinished().empty());
}

TEST_F(RefusedRemovalsTest, WhyNothingCouldBeHiddenIsSaid) {
  const TrajectoryId id = AppendClosed(0, 1);
  index::IndexMemory& memory = *testing::CoreOf(*database_)->index_memory;
  const uint64_t left = memory.budget_bytes() - memory.used_bytes();
  ASSERT_OK_AND_ASSIGN(index::Region rest, memory.Reserve("rest", {left}));
  ASSERT_OK(rest.Commit(0, left));
  const Status why = Status::Corruption("its file is away");
  EXPECT_STATUS(kCorruption, engine::HideUnreadable(Core(), id, why),
                "its file is away; the trajectory could not be hidden: ");
  EXPECT_STATUS(kCorruption, engine::HideUnreadable(Core(), id, why), "index_bytes");
  EXPECT_OK(table_->Find(id));
}

}  // namespace
}  // namespace geardb
