// Compares all of a StoreTwin's table that can be seen without drawing.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/conformance/store_twin.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/matchers.h"

namespace geardb::conformance {
namespace {

TrajectoryState StateOf(ModelState state) {
  switch (state) {
    case ModelState::kOpen:
      return TrajectoryState::kOpen;
    case ModelState::kClosed:
      return TrajectoryState::kClosed;
    case ModelState::kOrphaned:
      return TrajectoryState::kOrphaned;
  }
  return TrajectoryState::kOpen;
}

template <typename Items>
std::string ListOf(const Items& items) {
  std::ostringstream out;
  for (const ModelItem& item : items) out << " " << item.id << ":" << item.row;
  return out.str();
}

}  // namespace

void StoreTwin::CheckAll() {
  if (::testing::Test::HasFatalFailure()) return;
  // Every page, or none, or some have to be read for what follows.
  if (choice_->Percent(50)) testing::DropFrames(*database_);
  const std::vector<TrajectoryRecord> records = table_->Scan({});
  ASSERT_EQ(records.size(), model_.trajectories().size());
  ASSERT_EQ(table_->Count(), records.size());
  uint64_t steps = 0;
  size_t i = 0;
  for (const auto& [id, trajectory] : model_.trajectories()) {
    const TrajectoryRecord& record = records[i++];
    SCOPED_TRACE("trajectory " + std::to_string(id));
    ASSERT_EQ(record.id, id);
    EXPECT_EQ(record.state, StateOf(trajectory.state));
    EXPECT_EQ(record.end, trajectory.state == ModelState::kClosed ? trajectory.end : End::kGo);
    EXPECT_EQ(record.first_row, trajectory.first_row());
    EXPECT_EQ(record.rows_end, trajectory.rows_end());
    EXPECT_EQ(record.steps_end, trajectory.steps_end());
    EXPECT_EQ(record.times_sampled, times_sampled_[id]);
    ASSERT_OK_AND_ASSIGN(const TrajectoryRecord found, table_->Find(id));
    EXPECT_EQ(found.rows_end, record.rows_end);
    steps += static_cast<uint64_t>(trajectory.StepCount());
  }
  EXPECT_EQ(table_->StepCount(), steps);
  EXPECT_STATUS(kNotFound, table_->Find(last_id_ + 1), "");
  for (DrawnTable& drawn : drawn_) CheckItems(&drawn);
}

void StoreTwin::CheckItems(DrawnTable* drawn) {
  SCOPED_TRACE(DescribePriorityTable(drawn->spec));
  const auto priority = priority_table(*drawn);
  std::vector<ModelItem> stored;
  for (const RowId& row : priority->Items()) stored.push_back(ModelItem{row.id, row.row});
  std::vector<ModelItem> expected = model_.Items(drawn->rule);
  std::erase_if(expected, [&](const ModelItem& item) { return drawn->IsDeleted(item); });
  ASSERT_EQ(stored, expected) << "stored:" << ListOf(stored) << "\nexpected:" << ListOf(expected);
  EXPECT_EQ(priority->Count(), expected.size());
  uint64_t drawable = 0;
  for (const auto& [item, raw] : drawn->priorities) {
    const RowId row{item.id, item.row};
    drawable += drawn->Weight(raw) > 0 ? 1u : 0u;
    if (drawn->has_priorities()) {
      ASSERT_OK_AND_ASSIGN(const float stored_raw, priority->Priority(row));
      ASSERT_EQ(stored_raw, raw) << row.id << ":" << row.row;
    }
  }
  EXPECT_EQ(priority->DrawableCount(), drawable);
  for (const auto& [item, raw] : drawn->priorities) {
    const RowId row{item.id, item.row};
    const double exact = drawn->Probability(raw);
    ASSERT_OK_AND_ASSIGN(const double probability, priority->Probability(row));
    // Weights are fixed point: of each at least 8 bits count, of most 20.
    ASSERT_NEAR(probability, exact, drawn->has_weights() ? exact * 4e-3 : 1e-15)
        << row.id << ":" << row.row;
  }
  EXPECT_TRUE(!drawn->has_priorities() || priority->MaxPriority() == drawn->max_priority)
      << priority->MaxPriority() << ", expected " << drawn->max_priority;
  EXPECT_STATUS(kNotFound, priority->Priority(RowId{last_id_ + 1, 0}), "");
}

}  // namespace geardb::conformance
