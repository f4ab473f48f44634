// What a remover by priority sees of a table's state: after any change the slots that it is told of
// are all whose largest priority has become another, and that is what a look at every item says.
#include <algorithm>
#include <map>
#include <random>

#include "engine/internal/table_state.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

using testing::Rows;

class FollowedPrioritiesTest : public testing::StoreTest,
                               public ::testing::WithParamInterface<ItemKind> {
 protected:
  uint64_t Roll(uint64_t below) { return random_() % below; }

  void Change() {
    const auto records = table_->Scan({});
    const uint64_t what = Roll(100);
    if (what < 40 || records.empty()) {
      constexpr End kEnds[] = {End::kGo, End::kTerminated, End::kTruncated};
      Append(0, static_cast<int64_t>(1 + Roll(6)), kEnds[Roll(3)], static_cast<uint32_t>(Roll(2)));
      return;
    }
    const TrajectoryRecord& record = records[Roll(records.size())];
    const std::vector<RowId> items = priority("per")->Items();
    if (what < 70 && !items.empty()) {
      const RowId item = items[Roll(items.size())];
      const float value = static_cast<float>(Roll(8));
      ASSERT_OK(priority("per")->Set({&item, 1}, {&value, 1}));
    } else if (what < 74) {
      const float value = static_cast<float>(Roll(8));
      ASSERT_OK(priority("per")->SetAll({&value, 1}));
    } else if (what < 80 && !items.empty()) {
      ASSERT_OK(priority("per")->Delete({&items[Roll(items.size())], 1}));
    } else if (what < 86 && record.steps_end - record.first_row > 1) {
      const int64_t steps = record.steps_end - record.first_row;
      ASSERT_OK(table_->Truncate(
          record.id, record.first_row + static_cast<int64_t>(Roll(static_cast<uint64_t>(steps)))));
    } else if (what < 90 && record.state != TrajectoryState::kOpen) {
      ASSERT_OK(table_->Remove({&record.id, 1}));
    } else if (writer_->open_trajectory(0) != 0) {
      ASSERT_OK(writer_->Cut(0));
    }
  }

  std::map<TrajectoryId, float> Largest() {
    std::map<TrajectoryId, float> largest;
    for (const TrajectoryRecord& record : table_->Scan({})) largest[record.id] = 0;
    for (const RowId& item : priority("per")->Items()) {
      largest[item.id] = std::max(largest[item.id], *priority("per")->Priority(item));
    }
    return largest;
  }

  std::mt19937_64 random_;
};

TEST_P(FollowedPrioritiesTest, WhoeverIsWorthAnotherIsTold) {
  for (uint64_t seed = 1; seed <= testing::ShareOf(20) && !HasFailure(); ++seed) {
    random_.seed(seed);
    OpenEmpty();
    TableSpec spec = testing::StepSpec();
    PriorityTableSpec per = testing::WindowSpec("per", {.before = 0, .length = 2, .after = 0});
    per.item = GetParam();
    spec.priority_tables = {testing::WindowSpec("other"), per};
    Create(spec, {.lanes = 2});
    TableState& state = *testing::CoreOf(*database_)->FindTable("steps")->state;
    {
      MutexLock lock(&state.mutex);
      state.FollowPriorities(1);
    }
    std::map<TrajectoryId, float> known;
    for (int step = 0; step < 100 && !HasFatalFailure(); ++step) {
      Change();
      std::vector<Slot> changed;
      {
        MutexLock lock(&state.mutex);
        state.TakeChangedPriorities(&changed);
        for (const Slot slot : changed) {
          const index::TrajectoryRecord& record = state.trajectories().record(slot);
          if (record.state == index::TrajectoryState::kFree) continue;
          known[record.id] = state.LargestPriority(1, slot);
        }
      }
      std::sort(changed.begin(), changed.end());
      EXPECT_EQ(std::adjacent_find(changed.begin(), changed.end()), changed.end());
      for (const auto& [id, largest] : Largest()) {
        ASSERT_EQ(known[id], largest) << "trajectory " << id << ", step " << step;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Items, FollowedPrioritiesTest,
                         ::testing::Values(ItemKind::kWindow, ItemKind::kTrajectory));

}  // namespace
}  // namespace geardb::engine
