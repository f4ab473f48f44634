// Remove, Truncate and DropTable, alone and while others read and draw.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

class TableRemoveTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    TableSpec spec = StepSpec();
    PriorityTableSpec whole = WindowSpec("whole");
    whole.item = ItemKind::kTrajectory;
    spec.priority_tables = {WindowSpec("per"),
                            WindowSpec("before", {.before = 3, .length = 1, .after = 0}), whole};
    Create(spec);
  }
  Status Remove(std::vector<TrajectoryId> ids) { return table_->Remove(ids); }
};

TEST_F(TableRemoveTest, RemovedTrajectoriesAreGone) {
  for (int64_t t = 0; t < 3; ++t) AppendClosed(100 * t, 6);
  ASSERT_OK(Remove({1, 3}));
  EXPECT_EQ(table_->Count(), 1u);
  EXPECT_EQ(table_->StepCount(), 6u);
  EXPECT_EQ(table_->Stats().pages, 2u);
  EXPECT_EQ(priority("per")->Count(), 6u);
  EXPECT_EQ(priority("whole")->Count(), 1u);
  EXPECT_STATUS(kNotFound, table_->Find(1), "no trajectory 1");
  EXPECT_STATUS(kNotFound, table_->Read(3, {}, {}), "no trajectory 3");
  EXPECT_EQ(Numbers(2), testing::Count(100, 6));
  // Its id does not come back; its memory does.
  EXPECT_EQ(AppendClosed(0, 6), 4u);
  EXPECT_EQ(table_->Stats().pages, 4u);
}

TEST_F(TableRemoveTest, OneUnknownIdRemovesNothing) {
  AppendClosed(0, 6);
  EXPECT_STATUS(kNotFound, Remove({1, 9}), "no trajectory 9; nothing was removed");
  EXPECT_EQ(table_->Count(), 1u);
  EXPECT_OK(Remove({}));
  EXPECT_OK(Remove({1, 1}));
  EXPECT_STATUS(kNotFound, Remove({1}), "no trajectory 1");
}

TEST_F(TableRemoveTest, ARangeOfIdsLeavesTheOthers) {
  for (int64_t t = 0; t < 6; ++t) AppendClosed(t, 2);
  const TrajectoryId open = Append(50, 2).id;
  ASSERT_OK(Remove({3}));
  const auto left = [&] {
    std::vector<TrajectoryId> ids;
    for (const TrajectoryRecord& record : table_->Scan({})) ids.push_back(record.id);
    return ids;
  };
  using Ids = std::vector<TrajectoryId>;
  const auto remove = [&](TrajectoryId begin, TrajectoryId end) {
    const auto removed = table_->Remove({begin, end});
    EXPECT_OK(removed);
    return removed.ok() ? *removed : UINT64_MAX;
  };
  EXPECT_EQ(remove(4, 4), 0u);
  EXPECT_EQ(remove(5, 2), 0u);
  EXPECT_EQ(remove(100, UINT64_MAX), 0u);
  EXPECT_EQ(left(), (Ids{1, 2, 4, 5, 6, open}));
  EXPECT_EQ(remove(2, 5), 2u);
  EXPECT_EQ(left(), (Ids{1, 5, 6, open}));
  EXPECT_EQ(priority("per")->Count(), 8u);
  EXPECT_EQ(remove(6, UINT64_MAX), 2u) << "open ones, too";
  EXPECT_STATUS(kNotFound, writer_->AppendSteps(Rows(60, 1).many(), {}), "was removed");
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(left(), (Ids{1, 5}));
  EXPECT_EQ(remove(0, UINT64_MAX), 2u);
  EXPECT_EQ(table_->StepCount(), 0u);
}

// A ring of 32 KiB: a record names some 380 trajectories.
TEST_F(TableRemoveTest, ARangeTakesAsManyRecordsAsItNeeds) {
  options_.ring_bytes = 32 << 10;
  options_.segment_bytes = 64 << 10;
  OpenEmpty();
  TableSpec spec = StepSpec();
  spec.priority_tables = {WindowSpec("per")};
  Create(spec);
  for (int64_t t = 0; t < 1000; ++t) AppendClosed(t, 1);
  ASSERT_OK_AND_ASSIGN(const uint64_t removed, table_->Remove({1, 1000}));
  EXPECT_EQ(removed, 999u);
  EXPECT_EQ(priority("per")->Count(), 1u);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), 1u);
  EXPECT_OK(table_->Find(1000));
}

TEST_F(TableRemoveTest, ManyGoAtOnce) {
  std::vector<TrajectoryId> ids;
  for (int64_t t = 0; t < 3000; ++t) ids.push_back(AppendClosed(t, 1));
  ASSERT_OK(table_->Remove(ids));
  EXPECT_EQ(table_->Count(), 0u);
  EXPECT_EQ(priority("per")->Count(), 0u);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(table_->Count(), 0u);
  EXPECT_EQ(AppendClosed(0, 1), 3001u);
}

TEST_F(TableRemoveTest, TruncateDropsRowsAndTheAnchorsThatNeedThem) {
  AppendClosed(0, 12);
  EXPECT_EQ(priority("before")->Count(), 12u);
  ASSERT_OK(table_->Truncate(1, 6));
  EXPECT_EQ(table_->Find(1)->first_row, 6);
  EXPECT_EQ(Numbers(1), testing::Count(6, 6));
  EXPECT_EQ(table_->StepCount(), 6u);
  EXPECT_EQ(table_->Stats().pages, 2u);
  EXPECT_EQ(table_->Stats().trimmed_rows, 6u);
  EXPECT_EQ(priority("per")->Items().front(), (RowId{1, 6}));
  EXPECT_EQ(priority("before")->Items().front(), (RowId{1, 9}));
  EXPECT_EQ(priority("whole")->Items().front(), (RowId{1, 6}));
  // Rows that are gone already stay gone.
  ASSERT_OK(table_->Truncate(1, 3));
  EXPECT_EQ(table_->Find(1)->first_row, 6);
  ASSERT_OK(table_->Truncate(1, 11));
  EXPECT_EQ(Numbers(1), std::vector<int32_t>{11});
  EXPECT_EQ(priority("before")->Count(), 0u);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Numbers(1), std::vector<int32_t>{11});
}

TEST_F(TableRemoveTest, TruncateLeavesAStep) {
  AppendClosed(0, 6);
  EXPECT_STATUS(kInvalidArgument, table_->Truncate(1, 6), "its steps are rows 0 to 5");
  EXPECT_STATUS(kInvalidArgument, table_->Truncate(1, -1), "row -1");
  EXPECT_STATUS(kNotFound, table_->Truncate(2, 1), "no trajectory 2");
  EXPECT_EQ(table_->StepCount(), 6u);
  OpenEmpty();
  Create(StepSpec(true));
  AppendClosed(0, 6);
  EXPECT_STATUS(kInvalidArgument, table_->Truncate(1, 6), "its steps are rows 0 to 5");
  ASSERT_OK(table_->Truncate(1, 5));
  EXPECT_EQ(table_->StepCount(), 1u);
  EXPECT_EQ(Obs(1), (std::vector<float>{5, 6}));
}

TEST_F(TableRemoveTest, OpenTrajectoriesGoOnAfterATruncate) {
  Append(0, 10);
  ASSERT_OK(table_->Truncate(1, 9));
  Append(10, 5);
  EXPECT_EQ(Numbers(1), testing::Count(9, 6));
  EXPECT_EQ(priority("before")->Items().front(), (RowId{1, 12}));
}

TEST_F(TableRemoveTest, DroppedTablesAreGoneAndTheirNameIsFree) {
  AppendClosed(0, 6);
  auto per = table_->priority_table("per");
  auto sampler = per->NewSampler({.batch = 4, .views = {{.column = "action"}}});
  ASSERT_OK(sampler);
  const uint64_t frames = database_->Stats().frames.used_bytes;
  ASSERT_OK(database_->DropTable("steps"));
  EXPECT_STATUS(kNotFound, database_->DropTable("steps"), "no table 'steps'");
  EXPECT_STATUS(kNotFound, database_->OpenTable("steps"), "it has none");
  EXPECT_STATUS(kCancelled, (*sampler)->Next(), "dropped");
  const Rows rows(0, 1);
  EXPECT_STATUS(kCancelled, writer_->Append(rows.one()), "dropped");
  EXPECT_STATUS(kCancelled, table_->Read(1, {}, {}), "dropped");
  const TrajectoryId ids[] = {1};
  EXPECT_STATUS(kCancelled, table_->Remove(ids), "dropped");
  EXPECT_STATUS(kCancelled, table_->NewWriter({}), "dropped");
  EXPECT_STATUS(kCancelled, per->NewSampler({}), "dropped");
  const float one[] = {1};
  EXPECT_STATUS(kCancelled, per->SetAll(one), "dropped");
  sampler->reset();
  per.reset();
  Create(StepSpec());
  EXPECT_EQ(table_->Count(), 0u);
  EXPECT_EQ(AppendClosed(7, 2), 1u);
  EXPECT_LT(table_->Stats().frame_bytes, frames);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Numbers(1), testing::Count(7, 2));
}

TEST_F(TableRemoveTest, MoreThanARecordHoldsIsRefusedByNumber) {
  options_.ring_bytes = uint64_t{64} << 10;
  options_.segment_bytes = uint64_t{64} << 10;
  OpenEmpty();
  TableSpec spec = StepSpec();
  spec.steps_per_page = 1;
  Create(spec);
  std::vector<TrajectoryId> ids;
  for (int i = 0; i < 897; ++i) ids.push_back(AppendClosed(i, 1));
  EXPECT_STATUS(kInvalidArgument, table_->Remove(ids),
                "897 trajectories cannot be removed at once; "
                "at most 896");
  EXPECT_EQ(table_->Count(), 897u);
  ids.pop_back();
  ASSERT_OK(table_->Remove(ids));
  EXPECT_EQ(table_->Count(), 1u);
}

TEST_F(TableRemoveTest, FramesComeBackAfterRemoval) {
  options_.budgets.frames_bytes = uint64_t{2} << 20;  // One slab.
  options_.resident = true;
  OpenEmpty();
  TableSpec spec = StepSpec();
  spec.steps_per_page = 256;
  Create(spec);
  for (int round = 0; round < 20; ++round) {
    const TrajectoryId id = AppendClosed(0, 100'000 / 8);  // About a tenth of it.
    ASSERT_NE(id, 0u);
    const TrajectoryId ids[] = {id};
    ASSERT_OK(table_->Remove(ids));
  }
}

class TableRemoveConcurrentTest : public TableRemoveTest {};

TEST_F(TableRemoveConcurrentTest, RowsThatAreReadAreWholeWhileTrajectoriesComeAndGo) {
  // Every row of a trajectory says the same number: a torn or reused page would show another.
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> reads{0};
  for (int t = 0; t < 8; ++t) AppendClosed(0, 20);
  const auto constant = [&](std::span<const int32_t> actions, std::span<const float> rewards) {
    // Rows of StepSpec: action k, reward k / 4.
    for (size_t i = 0; i < actions.size(); ++i) {
      if (rewards[i] * 4 != static_cast<float>(actions[i])) return false;
    }
    return true;
  };
  std::thread reader([&] {
    while (!stop) {
      for (const auto& record : table_->Scan({})) {
        const std::string_view columns[] = {"action", "reward"};
        const auto rows = table_->Read(record.id, columns, {});
        if (!rows.ok()) {
          EXPECT_STATUS(kNotFound, rows, "no trajectory");
          continue;
        }
        EXPECT_TRUE(
            constant((*rows)[0].view().values<int32_t>(), (*rows)[1].view().values<float>()));
        ++reads;
      }
    }
  });
  auto per = table_->priority_table("per");
  std::thread drawer([&] {
    auto sampler = per->NewSampler(
        {.batch = 32, .views = {{.column = "action"}, {.column = "reward"}}, .prefetch = 2});
    while (!stop) {
      const auto batch = (*sampler)->Next();
      if (!batch.ok()) continue;
      EXPECT_TRUE(
          constant((*batch)["action"].values<int32_t>(), (*batch)["reward"].values<float>()));
      const std::vector<float> ones(32, 1.0f);
      EXPECT_OK(per->Set(batch->handles(), ones));
    }
  });
  for (int64_t t = 0; t < 300; ++t) {
    const TrajectoryId id = AppendClosed(t * 1000, 20);
    if (t % 3 == 0) {
      ASSERT_OK(table_->Truncate(id, 9));
    }
    const TrajectoryId oldest[] = {table_->Scan({.limit = 1})[0].id};
    ASSERT_OK(table_->Remove(oldest));
  }
  while (reads < 10) std::this_thread::yield();
  stop = true;
  reader.join();
  drawer.join();
  EXPECT_EQ(table_->Count(), 8u);
}

TEST_F(TableRemoveConcurrentTest, WaitingSamplersEndWhenTheirTableIsDropped) {
  auto per = table_->priority_table("per");
  Status status;
  std::thread drawer([&] {
    auto sampler = per->NewSampler({.batch = 4, .timeout_ms = 60'000});
    if (!sampler.ok()) {
      status = sampler.status();
      return;
    }
    status = (*sampler)->Next().status();
  });
  ASSERT_OK(database_->DropTable("steps"));
  drawer.join();
  EXPECT_STATUS(kCancelled, status, "dropped");
}

TEST_F(TableRemoveConcurrentTest, WaitingSamplersEndWhenTheDatabaseCloses) {
  auto per = table_->priority_table("per");
  Status status;
  std::thread drawer([&] {
    auto sampler = per->NewSampler({.batch = 4, .timeout_ms = 60'000});
    if (!sampler.ok()) {
      status = sampler.status();
      return;
    }
    status = (*sampler)->Next().status();
  });
  ASSERT_OK(database_->Close());
  drawer.join();
  EXPECT_STATUS(kCancelled, status, "closed");
}

}  // namespace
}  // namespace geardb
