// Ids and generations are never handed out twice, whatever a power loss forgets.
#include <gtest/gtest.h>

#include <set>

#include "engine/database.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"

namespace geardb {
namespace {

using testing::CrashKind;
using testing::FaultEnv;

class FaultIdsTest : public ::testing::Test {
 protected:
  FaultIdsTest() {
    options_.budgets.frames_bytes = 16 << 20;
    options_.budgets.index_bytes = 16 << 20;
    options_.segment_bytes = 64 << 10;
    options_.ring_bytes = 32 << 10;
    options_.background = false;
    options_.env = &env_;
  }

  std::unique_ptr<Database> Open() {
    auto db = Database::Open("store", options_);
    EXPECT_OK(db);
    TableSpec spec;
    spec.name = "t";
    spec.columns = {{.name = "value", .dtype = DType::kI64}};
    spec.priority_tables = {{.name = "per"}};
    auto table = (*db)->OpenOrCreateTable(spec);
    EXPECT_OK(table);
    table_ = *table;
    return std::move(*db);
  }

  /// Appends trajectories of one step at Ack::kLog; their ids must be new, and so must the handles
  /// of their items.
  void AppendNew(int count) {
    auto writer = table_->NewWriter({});
    ASSERT_OK(writer);
    for (int i = 0; i < count; ++i) {
      const int64_t value = i;
      auto appended = (*writer)->Append({{"value", TensorView::Scalar(value)}},
                                        {.end = End::kTerminated, .ack = Ack::kLog});
      ASSERT_OK(appended);
      EXPECT_TRUE(ids_.insert(appended->id).second) << "id " << appended->id << " came twice";
    }
    auto sampler = table_->priority_table("per")->NewSampler(
        {.batch = 64, .views = {{"value"}}, .observer = true, .seed = 1});
    ASSERT_OK(sampler);
    auto batch = (*sampler)->Next();
    ASSERT_OK(batch);
    for (int64_t i = 0; i < batch->size(); ++i) {
      const auto at = static_cast<size_t>(i);
      const ItemHandle& handle = batch->handles()[at];
      const auto [seen, fresh] =
          items_.emplace(std::pair(handle.leaf, handle.generation), batch->trajectory_ids()[at]);
      EXPECT_EQ(seen->second, batch->trajectory_ids()[at])
          << "leaf " << handle.leaf << ", generation " << handle.generation
          << " named two trajectories";
    }
  }

  void LosePower(std::unique_ptr<Database> db) {
    env_.Die();
    table_.reset();
    db.reset();
    env_.Crash(CrashKind::kPowerLoss);
  }

  FaultEnv env_{3};
  DatabaseOptions options_;
  std::shared_ptr<Table> table_;
  std::set<TrajectoryId> ids_;
  std::map<std::pair<uint64_t, uint32_t>, TrajectoryId> items_;
};

TEST_F(FaultIdsTest, NotAfterPowerLoss) {
  for (int round = 0; round < 5; ++round) {
    auto db = Open();
    AppendNew(20);
    LosePower(std::move(db));
  }
}

// The log ends with the seal of the clean close: what came after it is lost without a trace.
TEST_F(FaultIdsTest, NotWhenTheLogLostIsThatAfterASeal) {
  {
    auto db = Open();
    AppendNew(5);
    ASSERT_OK(db->Close());
  }
  for (int round = 0; round < 5; ++round) {
    auto db = Open();
    AppendNew(20);
    LosePower(std::move(db));
  }
}

TEST_F(FaultIdsTest, NotWhenAllWasRemovedBeforeTheClose) {
  for (int round = 0; round < 3; ++round) {
    auto db = Open();
    AppendNew(5);
    for (const TrajectoryRecord& record : table_->Scan({})) {
      ASSERT_OK(table_->Remove({&record.id, 1}));
    }
    ASSERT_OK(db->Close());
  }
}

// What a reopened table hands out is promised by a synced record: the writer saw to that, and a
// call that does not wait need not.
TEST_F(FaultIdsTest, AReopenedTableTakesACallThatDoesNotWait) {
  ASSERT_OK(Open()->Close());
  for (int round = 0; round < 3; ++round) {
    auto db = Open();
    auto writer = table_->NewWriter({.admission_timeout_ms = 0});
    ASSERT_OK(writer);
    const int64_t value = round;
    EXPECT_OK((*writer)->Append({{"value", TensorView::Scalar(value)}}, {.end = End::kTerminated}));
    writer->reset();
    ASSERT_OK(db->Close());
  }
}

}  // namespace
}  // namespace geardb
