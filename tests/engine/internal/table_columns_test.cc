// TableState with columns that come and leave: what it takes for them, and gives back.
#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class TableColumnsStateTest : public testing::StoreTest {
 protected:
  TableState& State() { return *testing::CoreOf(*database_)->AllTables()[0]->state; }
  TableHistory With(std::vector<Column> columns) {
    return *WithColumns(State().HistoryNow(), columns, {});
  }
};

TEST_F(TableColumnsStateTest, WhatIsPreparedIsSeenOnceItIsApplied) {
  Create(testing::StepSpec());
  const TrajectoryId id = AppendClosed(0, 6);
  const TableLayout& before = State().layout();
  ASSERT_OK_AND_ASSIGN(auto change,
                       State().PrepareColumns(With({{.name = "x", .default_value = 3},
                                                    {.name = "y",
                                                     .dtype = DType::kU8,
                                                     .shape = {5},
                                                     .kind = ColumnKind::kPerTrajectory,
                                                     .default_value = 9}})));
  EXPECT_EQ(&State().layout(), &before);
  MutexLock lock(&State().mutex);
  State().ApplyColumns(std::move(change));
  EXPECT_EQ(State().layout().version(), 1u);
  EXPECT_EQ(&State().LayoutAt(0), &before) << "who knows it can go on with it";
  EXPECT_EQ(&State().LayoutAt(1), &State().layout());
  const Slot slot = State().trajectories().FindById(id);
  for (const std::byte value : State().ValueOf(2, slot)) EXPECT_EQ(value, std::byte{9});
  EXPECT_EQ(State().ValueOf(2, slot).size(), 5u);
  const Lpn lpn = State().trajectories().record(slot).head_lpn;
  EXPECT_TRUE(State().frames().ShowsDefaults(1, lpn));
  EXPECT_FALSE(State().frames().ShowsDefaults(0, lpn));
}

TEST_F(TableColumnsStateTest, AFailureLeavesTheNextOneItsPlace) {
  options_.budgets.index_bytes = 1 << 20;
  OpenEmpty();
  Create(testing::StepSpec());
  for (int k = 0; k < 3; ++k) AppendClosed(0, 6);
  // Columns of 64 bytes are paid for by the slots there are, in steps.
  std::vector<Column> many;
  for (int k = 0; k < 240; ++k) {
    many.push_back(
        {.name = "y" + std::to_string(k), .shape = {16}, .kind = ColumnKind::kPerTrajectory});
  }
  many.push_back({.name = "x", .default_value = 4});
  EXPECT_STATUS(kResourceExhausted, State().PrepareColumns(With(many)), "budget");
  const uint64_t used = State().index_bytes();
  EXPECT_STATUS(kResourceExhausted, State().PrepareColumns(With(many)), "budget");
  EXPECT_EQ(State().index_bytes(), used);
  ASSERT_OK_AND_ASSIGN(auto change, State().PrepareColumns(
                                        With({{.name = "z", .kind = ColumnKind::kPerTrajectory},
                                              {.name = "w", .shape = {300}, .default_value = 2}})));
  MutexLock lock(&State().mutex);
  State().ApplyColumns(std::move(change));
  EXPECT_EQ(State().trajectories().column_count(), 3u);
  EXPECT_EQ(State().layout().group(1).pages.region(0).row_bytes, 1200u);
}

}  // namespace
}  // namespace geardb::engine
