// The changes of a StoreTwin that append nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "tests/conformance/store_twin.h"
#include "tests/testing/matchers.h"

namespace geardb::conformance {

void StoreTwin::CutLane(Lane* lane) {
  Writer* const writer = writers_[lane->writer].get();
  if (lane->id == 0) {
    ASSERT_STATUS(kFailedPrecondition, writer->Cut(lane->number), "");
    return;
  }
  ASSERT_OK_AND_ASSIGN(const Appended cut, writer->Cut(lane->number));
  const bool left = model_.Cut(lane->id);
  ASSERT_EQ(cut.id, left ? lane->id : 0);
  if (left) capacity_.NoteClosed(lane->id, /*by_cut=*/true);
  lane->id = 0;
  Settle();
}

void StoreTwin::TrimSome() {
  if (model_.trajectories().empty()) return;
  auto chosen = model_.trajectories().begin();
  std::advance(chosen, choice_->Below(model_.trajectories().size()));
  if (choice_->Percent(50)) chosen = std::prev(model_.trajectories().end());  // Open more often.
  const auto& [id, trajectory] = *chosen;
  // At least a row before the last final row stays, in an open trajectory another one (which a cut
  // may take).
  const int64_t keep = trajectory.state == ModelState::kClosed ? 0 : 1;
  std::vector<int64_t> firsts = {0};
  for (const ModelRow& row : trajectory.rows) {
    const bool last = row.number + keep >= trajectory.steps_end();
    if (!last) firsts.push_back(row.number);  // A stream may begin with a final row then.
  }
  if (trajectory.StepCount() == 0) return;
  // Half of them cut into the last episode.
  const size_t near_end = std::min<size_t>(firsts.size(), 8);
  const int64_t first = firsts[choice_->Percent(50) ? choice_->Below(firsts.size())
                                                    : firsts.size() - 1 - choice_->Below(near_end)];
  ASSERT_OK(table_->Truncate(id, first));
  model_.Trim(id, first);
  Settle();
}

/// An append that is expected to be refused.
Result<Appended> StoreTwin::AppendOneRow(const Lane& lane) {
  std::vector<Bytes> bytes;
  std::vector<ColumnValue> values;
  for (size_t c = 0; c < random_table_.step_columns.size(); ++c) {
    const Column& column = random_table_.step_column(c);
    if (random_table_.IsLate(column)) continue;
    bytes.push_back(RandomRow(column, choice_));
    values.push_back({column.name, TensorView(bytes.back().data(), column.dtype, column.shape)});
  }
  return writers_[lane.writer]->Append(values, {.lane = lane.number, .ack = {}});
}

void StoreTwin::RemoveSome() {
  if (model_.trajectories().size() < 2) return;
  std::set<TrajectoryId> ids;
  for (const auto& [id, trajectory] : model_.trajectories()) {
    if (choice_->Percent(10)) ids.insert(id);
  }
  std::vector<TrajectoryId> list(ids.begin(), ids.end());
  choice_->Shuffle(&list);
  if (choice_->Percent(20)) {
    // All or, with an unknown id, none.
    std::vector<TrajectoryId> unknown = list;
    unknown.push_back(last_id_ + 1000);
    ASSERT_STATUS(kNotFound, table_->Remove(unknown), std::to_string(last_id_ + 1000));
    return;
  }
  if (list.empty()) return;
  ASSERT_OK(table_->Remove(list));
  for (const TrajectoryId id : list) model_.Remove(id);
  for (Lane& lane : lanes_) {
    if (!ids.contains(lane.id)) continue;
    Writer* const writer = writers_[lane.writer].get();
    ASSERT_STATUS(kNotFound, AppendOneRow(lane), std::to_string(lane.id));
    lane.id = 0;
    ASSERT_EQ(writer->open_trajectory(lane.number), 0u);
  }
  Settle();
}

void StoreTwin::OrphanWriter(size_t writer) {
  uint32_t lanes = 0;
  writers_[writer].reset();
  for (Lane& lane : lanes_) {
    if (lane.writer != writer) continue;
    ++lanes;
    if (lane.id != 0) model_.SetState(lane.id, ModelState::kOrphaned);
    lane.id = 0;
  }
  ASSERT_OK_AND_ASSIGN(writers_[writer],
                       table_->NewWriter(WriterOptions{.lanes = lanes, .ack = {}}));
  Settle();
  if (has_capacity()) AdoptOrphans();
}

void StoreTwin::ResumeSome() {
  for (Lane& lane : lanes_) {
    if (lane.id != 0) continue;
    for (const auto& [id, trajectory] : model_.trajectories()) {
      if (trajectory.state != ModelState::kOrphaned || choice_->Percent(30)) continue;
      ASSERT_OK(writers_[lane.writer]->Resume(id, lane.number));
      model_.SetState(id, ModelState::kOpen);
      lane.id = id;
      break;
    }
  }
  Settle();
}

void StoreTwin::AdoptOrphans() {
  std::vector<TrajectoryId> orphans;
  for (const auto& [id, trajectory] : model_.trajectories()) {
    if (trajectory.state == ModelState::kOrphaned) orphans.push_back(id);
  }
  for (Lane& lane : lanes_) {
    if (lane.id != 0 || orphans.empty()) continue;
    lane.id = orphans.back();
    orphans.pop_back();
    ASSERT_OK(writers_[lane.writer]->Resume(lane.id, lane.number));
    model_.SetState(lane.id, ModelState::kOpen);
  }
  if (orphans.empty()) return Settle();
  ASSERT_OK(table_->Remove(orphans));
  for (const TrajectoryId id : orphans) model_.Remove(id);
  Settle();
}

void StoreTwin::SetTrajectoryColumns() {
  if (model_.trajectories().empty()) return;
  auto chosen = model_.trajectories().begin();
  std::advance(chosen, choice_->Below(model_.trajectories().size()));
  const size_t goal = random_table_.TrajectoryColumn("goal");
  const Column& column = random_table_.trajectory_column(goal);
  const Bytes bytes = RandomRow(column, choice_);
  const ColumnValue value{column.name, TensorView(bytes.data(), column.dtype, column.shape)};
  ASSERT_OK(table_->SetColumns(chosen->first, {&value, 1}));
  trajectory_values_[chosen->first][goal] = bytes;
  model_.Mark(chosen->first);
  places_ = {{chosen->first, 0}};
  Settle();
}

namespace {

struct ChosenSpan {
  RowSpan span = {};
  int64_t first = 0;                            ///< Absolute, of the first row.
  const ModelTrajectory* trajectory = nullptr;  ///< Null: there is none.
};

}  // namespace

void StoreTwin::PatchSome() {
  std::vector<size_t> columns;
  bool late = false;
  for (size_t c = 0; c < random_table_.step_columns.size(); ++c) {
    const bool is_late = random_table_.IsLate(random_table_.step_column(c));
    if (!choice_->Percent(is_late ? 60 : 25)) continue;
    columns.push_back(c);
    late |= is_late;
  }
  if (columns.empty()) return;
  std::vector<ChosenSpan> chosen;
  for (const auto& [id, trajectory] : model_.trajectories()) {
    if (choice_->Percent(70)) continue;
    const int64_t least = trajectory.first_row();
    const int64_t filled = std::max(filled_[id], least);
    const int64_t most = late ? std::min(filled, trajectory.rows_end()) : trajectory.rows_end();
    for (int64_t again = choice_->Percent(30) ? 2 : 1; again > 0; --again) {
      ChosenSpan one{.first = choice_->Between(std::max<int64_t>(least - 2, 0), most),
                     .trajectory = &trajectory};
      one.span = {id, one.first, choice_->Between(0, trajectory.rows_end() - one.first)};
      if (choice_->Percent(20) && one.first < trajectory.rows_end()) {
        one.span.first_row -= trajectory.rows_end();
      }
      chosen.push_back(one);
    }
  }
  if (choice_->Percent(20)) chosen.push_back({.span = {last_id_ + 9, 3, 2}});
  choice_->Shuffle(&chosen);
  int64_t longest = 1;
  int64_t total = 0;
  for (const ChosenSpan& one : chosen) {
    longest = std::max(longest, one.span.rows);
    total += one.span.rows;
  }
  const bool padded = choice_->Percent(50);
  std::vector<Bytes> bytes(columns.size());
  std::vector<RowSpan> spans;
  uint64_t stale = 0;
  for (const ChosenSpan& one : chosen) {
    spans.push_back(one.span);
    for (int64_t r = 0; r < (padded ? longest : one.span.rows); ++r) {
      const int64_t row = one.first + r;
      const bool there = one.trajectory != nullptr && row >= one.trajectory->first_row();
      if (r < one.span.rows) stale += there ? 0 : 1;
      for (size_t i = 0; i < columns.size(); ++i) {
        const Bytes value = RandomRow(random_table_.step_column(columns[i]), choice_);
        bytes[i].insert(bytes[i].end(), value.begin(), value.end());
        if (there && r < one.span.rows) model_.SetRow(one.span.id, row, columns[i], value);
      }
    }
    if (late && one.trajectory != nullptr) {
      int64_t& filled = filled_[one.span.id];
      filled = std::max(filled, one.first + one.span.rows);
      model_.Fill(one.span.id, filled);
    }
  }
  std::vector<ColumnValue> values;
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& column = random_table_.step_column(columns[i]);
    const Shape shape = padded
                            ? column.shape.WithOuter({static_cast<int64_t>(chosen.size()), longest})
                            : column.shape.WithOuter({total});
    values.push_back({column.name, TensorView(bytes[i].data(), column.dtype, shape)});
  }
  ASSERT_OK_AND_ASSIGN(const PatchOutcome outcome, table_->Patch(spans, values));
  EXPECT_EQ(outcome.stale, stale);
  EXPECT_EQ(outcome.applied, static_cast<uint64_t>(total) - stale);
  Settle();
}

// Priorities.

void StoreTwin::SetPriorities() {
  DrawnTable& drawn = drawn_[choice_->Below(drawn_.size())];
  if (!drawn.has_priorities()) return;
  if (choice_->Percent(25)) return SetAllPriorities(&drawn);
  std::vector<RowId> rows;
  std::vector<float> priorities;
  uint64_t stale = 0;
  std::vector<ModelItem> items;
  for (const auto& [item, priority] : drawn.priorities) items.push_back(item);
  for (uint64_t i = choice_->Below(12); i > 0; --i) {
    const bool unknown = items.empty() || choice_->Percent(10);
    ModelItem item = unknown ? ModelItem{last_id_ + 7, 0} : choice_->Of(items);
    if (!unknown && !drawn.rule.trajectories && choice_->Percent(10)) item.row += 1;
    priorities.push_back(RandomPriority());
    float* const priority = drawn.Find(item);
    if (priority == nullptr) {
      ++stale;
    } else {
      *priority = priorities.back();  // The last of duplicates stays.
      drawn.max_priority = std::max(drawn.max_priority, priorities.back());
    }
    if (drawn.rule.trajectories) item.row = choice_->Between(0, 99);  // Ignored.
    rows.push_back(RowId{item.id, item.row});
  }
  ASSERT_OK_AND_ASSIGN(const SetOutcome outcome, priority_table(drawn)->Set(rows, priorities));
  EXPECT_EQ(outcome.stale, stale) << drawn.spec.name;
  EXPECT_EQ(outcome.applied, rows.size() - stale) << drawn.spec.name;
}

void StoreTwin::DeleteSome() {
  DrawnTable& drawn = drawn_[choice_->Below(drawn_.size())];
  std::vector<ModelItem> items;
  for (const auto& [item, priority] : drawn.priorities) items.push_back(item);
  std::vector<RowId> rows;
  uint64_t applied = 0;
  for (uint64_t i = choice_->Below(4); i > 0; --i) {
    const bool unknown = items.empty() || choice_->Percent(10);
    const ModelItem item = unknown ? ModelItem{last_id_ + 7, 0} : choice_->Of(items);
    rows.push_back(RowId{item.id, item.row});
    if (unknown) continue;
    const ModelItem gone{item.id, drawn.rule.trajectories ? 0 : item.row};
    applied += drawn.deleted.insert(gone).second ? 1u : 0u;
  }
  ASSERT_OK_AND_ASSIGN(const SetOutcome outcome, priority_table(drawn)->Delete(rows));
  EXPECT_EQ(outcome.applied, applied) << drawn.spec.name;
  EXPECT_EQ(outcome.stale, rows.size() - applied) << drawn.spec.name;
  Settle();
}

void StoreTwin::SetAllPriorities(DrawnTable* drawn) {
  const size_t items = drawn->priorities.size();
  if (choice_->Percent(20)) {
    const std::vector<float> wrong(items + 2, 1.0f);
    ASSERT_STATUS(kFailedPrecondition, priority_table(*drawn)->SetAll(wrong),
                  std::to_string(items + 2));
    return;
  }
  if (items == 0) return;
  std::vector<float> values(choice_->Percent(30) ? 1 : items);
  for (float& value : values) value = RandomPriority();
  ASSERT_OK_AND_ASSIGN(const SetOutcome outcome, priority_table(*drawn)->SetAll(values));
  EXPECT_EQ(outcome.applied, items);
  EXPECT_EQ(outcome.stale, 0u);
  size_t i = 0;
  for (auto& [item, priority] : drawn->priorities) priority = values[values.size() == 1 ? 0 : i++];
  const float largest = *std::max_element(values.begin(), values.end());
  drawn->max_priority = std::max(drawn->max_priority, largest);
}

void StoreTwin::SetByHandle(DrawnTable* drawn, std::span<const ItemHandle> handles,
                            const std::vector<ModelItem>& items) {
  std::vector<float> priorities;
  uint64_t stale = 0;
  for (const ModelItem& item : items) {
    priorities.push_back(static_cast<float>(choice_->Between(2, 16)) / 4.0f);
    float* const priority = drawn->Find(item);
    if (priority == nullptr) {
      ++stale;
      continue;
    }
    *priority = priorities.back();
    drawn->max_priority = std::max(drawn->max_priority, priorities.back());
  }
  ASSERT_OK_AND_ASSIGN(const SetOutcome outcome, priority_table(*drawn)->Set(handles, priorities));
  EXPECT_EQ(outcome.stale, stale) << drawn->spec.name;
  EXPECT_EQ(outcome.applied, items.size() - stale) << drawn->spec.name;
}

void StoreTwin::Settle(const GivenPriorities& given) {
  const size_t column = random_table_.TrajectoryColumn("first_priority");
  ++changes_;
  for (DrawnTable& drawn : drawn_) {
    const auto explicit_values = given.find(&drawn);
    size_t next_given = 0;
    std::map<ModelItem, float> priorities;
    std::map<ModelItem, ItemAge> ages;
    const float max_before = drawn.max_priority;
    for (const ModelItem& item : model_.Items(drawn.rule)) {
      if (drawn.IsDeleted(item)) continue;
      // A trajectory stays the same item when its head is trimmed.
      if (const float* const kept = drawn.Find(item)) {
        priorities[item] = *kept;
        ages[item] = drawn.rule.trajectories ? drawn.ages.lower_bound({item.id, 0})->second
                                             : drawn.ages.at(item);
        continue;
      }
      const auto place = places_.find(item.id);
      const bool known = place != places_.end();
      ages[item] = known ? ItemAge(changes_, place->second, item.row) : ItemAge(changes_, 0, 0);
      float priority = max_before;
      if (explicit_values != given.end()) {
        ASSERT_LT(next_given, explicit_values->second.size());
        priority = explicit_values->second[next_given++];
      } else if (drawn.spec.initial == InitialPriority::kConstant) {
        priority = drawn.spec.initial_priority_value;
      } else if (drawn.spec.initial == InitialPriority::kColumn) {
        std::memcpy(&priority, TrajectoryValue(item.id, column).data(), sizeof(priority));
      }
      priorities[item] = priority;
      drawn.max_priority = std::max(drawn.max_priority, priority);
    }
    drawn.priorities = std::move(priorities);
    drawn.ages = std::move(ages);
  }
  places_.clear();
}

void StoreTwin::MakeRoom(const std::vector<Lane*>& lanes, const std::vector<const Rows*>& rows) {
  if (!has_capacity() || ::testing::Test::HasFatalFailure()) return;
  ModelGrowth growth;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const End end = rows[i]->end;
    if (end == End::kSkip || Vanishes(*lanes[i], *rows[i])) continue;
    const bool final =
        random_table_.spec.final_row && (end == End::kTerminated || end == End::kTruncated);
    growth.rows += static_cast<int64_t>(rows[i]->rows.size()) + (final ? 1 : 0);
    growth.trajectories += lanes[i]->id == 0 ? 1 : 0;
  }
  ASSERT_TRUE(capacity_.MakeRoom(growth, &model_)) << "the model finds no room";
}

void StoreTwin::CheckCapacity() {
  if (!has_capacity() || ::testing::Test::HasFatalFailure()) return;
  std::map<TrajectoryId, int64_t> stored;
  for (const TrajectoryRecord& record : table_->Scan({})) stored[record.id] = record.first_row;
  std::map<TrajectoryId, int64_t> expected;
  for (const auto& [id, trajectory] : model_.trajectories()) expected[id] = trajectory.first_row();
  ASSERT_EQ(stored, expected) << "a full table: ids and first rows of what is left";
}

}  // namespace geardb::conformance
