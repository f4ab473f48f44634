// concurrent: engine/internal/change_scope.h engine/internal/change_scope.cc
// engine/internal/core.cc

#include "engine/internal/change_scope.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class ChangeScopeTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    Create(testing::StepSpec());
    core_ = testing::CoreOf(*database_);
  }
  void TearDown() override {
    core_.reset();
    Close();
  }
  /// A record of the table that changes nothing.
  void Log(ChangeScope* scope) GEARDB_REQUIRES(core_->commit) {
    FunctionChange change([this](Lsn, Lsn) { ++applied_; });
    const TableCore& table = *core_->FindTable("steps");
    const TablePlan& plan = *table.plan;
    change.FinishBody(
        {.table = table.layout().id()}, fb::Change::Ranges,
        fb::CreateRanges(change.body, plan.ids_end, static_cast<uint32_t>(plan.generations_end))
            .Union());
    const wal::RecordSize size = wal::RecordSize::For(change.body_bytes().size(), {});
    bool waited = false;
    ASSERT_OK(scope->AwaitRoom({&size, 1}, scope->how(), &waited));
    core_->Finish(scope->Reserve({.size = size}), {}, &change);
    ASSERT_OK(core_->CatchUp());
  }

  std::shared_ptr<DatabaseCore> core_;
  int applied_ = 0;
};
using ChangeScopeConcurrentTest = ChangeScopeTest;

TEST_F(ChangeScopeTest, IsRefusedOnceTheDatabaseIsClosed) {
  ASSERT_OK(database_->Close());
  const ChangeScope scope(core_.get(), nullptr, {});
  EXPECT_STATUS(kCancelled, scope.status(), "database '" + dir_->path() + "' is closed");
}

TEST_F(ChangeScopeTest, IsRefusedWithWhatWaitsForRoomWhenReadOnly) {
  core_.reset();
  options_.read_only = true;
  Reopen();
  core_ = testing::CoreOf(*database_);
  ChangeScope scope(core_.get(), nullptr, {});
  const wal::RecordSize size = wal::RecordSize::For(100, {});
  bool waited = false;
  EXPECT_STATUS(kFailedPrecondition, scope.AwaitRoom({&size, 1}, {}, &waited), "read-only");
  EXPECT_STATUS(kFailedPrecondition, scope.AwaitRoomHolding(size, {}), "read-only");
}

// A record has been applied a moment before it counts as published: whoever draws then sees it.
TEST_F(ChangeScopeTest, ADrawNamesAnLsnBehindWhatWasAppliedLast) {
  ASSERT_OK(table_->CreatePriorityTable(testing::WindowSpec("per")));
  Append(0, 3);
  ASSERT_OK_AND_ASSIGN(
      const auto sampler,
      priority("per")->NewSampler({.batch = 2, .prefetch = 0, .observer = true, .seed = 1}));
  TableCore* const table = core_->FindTable("steps").get();
  Lsn applied = 0;
  Lsn drawn = 0;
  FunctionChange change([&](Lsn, Lsn end) {
    {
      const ApplyLock lock(table->state.get(), end);
      applied = end;
    }
    const auto batch = sampler->Next();
    ASSERT_OK(batch);
    drawn = batch->lsn();
  });
  change.FinishBody({.table = table->layout().id()}, fb::Change::Rescale,
                    fb::CreateRescale(change.body, 8).Union());
  ASSERT_OK(core_->Commit(table, &change, {}));
  ASSERT_OK(core_->CatchUp());
  EXPECT_GT(applied, 0u);
  EXPECT_EQ(drawn, applied);
}

TEST_F(ChangeScopeTest, IsRefusedForADroppedTableAlone) {
  const auto table = core_->FindTable("steps");
  ASSERT_OK(database_->DropTable("steps"));
  {
    const ChangeScope scope(core_.get(), table.get(), {});
    EXPECT_STATUS(kCancelled, scope.status(), "table 'steps' was dropped");
  }
  const ChangeScope scope(core_.get(), nullptr, {});
  EXPECT_OK(scope.status());
}

TEST_F(ChangeScopeConcurrentTest, CloseWaitsForAChangeThatWasAdmitted) {
  std::thread closer;
  {
    ChangeScope scope(core_.get(), core_->FindTable("steps").get(), {});
    Log(&scope);
    // As in the middle of an append in parts.
    core_->commit.Unlock();
    closer = std::thread([this] { EXPECT_OK(core_->Close()); });
    while (!core_->closed.load()) std::this_thread::yield();
    core_->commit.Lock();
    EXPECT_OK(scope.status());
    Log(&scope);
  }
  closer.join();
  EXPECT_EQ(applied_, 2);
  core_.reset();
  Reopen();
  EXPECT_TRUE(database_->recovery().clean);
}

TEST_F(ChangeScopeConcurrentTest, ATableThatIsDroppedMeanwhileRefusesTheRest) {
  const auto table = core_->FindTable("steps");
  ChangeScope scope(core_.get(), table.get(), {});
  EXPECT_OK(scope.status());
  core_->commit.Unlock();
  EXPECT_OK(database_->DropTable("steps"));
  core_->commit.Lock();
  EXPECT_STATUS(kCancelled, scope.AwaitRoomHolding(wal::RecordSize::For(100, {}), {}),
                "table 'steps' was dropped");
}

}  // namespace
}  // namespace geardb::engine
