#include "tests/conformance/store_twin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/testing/drop_frames.h"
#include "tests/testing/matchers.h"

namespace geardb::conformance {
namespace {

constexpr TrajectoryId kNotYet = UINT64_MAX;  ///< In the model only: its id is not known yet.

Bytes AsBytes(float value) {
  const auto* const first = reinterpret_cast<const std::byte*>(&value);
  return Bytes(first, first + sizeof(value));
}

/// Values of columns for a call, and the bytes behind them.
class CallColumns {
 public:
  void Add(const Column& column, Bytes bytes, std::optional<int64_t> outer) {
    names_.push_back(column.name);
    bytes_.push_back(std::move(bytes));
    dtypes_.push_back(column.dtype);
    shapes_.push_back(outer ? column.shape.WithOuter({*outer}) : column.shape);
  }
  std::vector<ColumnValue> values(RandomChoice* choice) const {
    std::vector<ColumnValue> values;
    for (size_t i = 0; i < names_.size(); ++i) {
      values.push_back(
          ColumnValue{names_[i], TensorView(bytes_[i].data(), dtypes_[i], shapes_[i])});
    }
    choice->Shuffle(&values);
    return values;
  }

 private:
  std::vector<std::string> names_;
  std::vector<Bytes> bytes_;
  std::vector<DType> dtypes_;
  std::vector<Shape> shapes_;
};

}  // namespace

float* DrawnTable::Find(const ModelItem& item) {
  const auto found =
      rule.trajectories ? priorities.lower_bound(ModelItem{item.id, 0}) : priorities.find(item);
  const bool there = found != priorities.end() && found->first.id == item.id;
  return there ? &found->second : nullptr;
}

double DrawnTable::Weight(float priority) const {
  if (!has_weights()) return 1;
  return priority == 0 ? 0 : std::pow(static_cast<double>(priority), spec.alpha);
}

double DrawnTable::TotalWeight() const {
  double total = 0;
  for (const auto& [item, priority] : priorities) total += Weight(priority);
  return total;
}

double DrawnTable::Probability(float priority) const {
  if (ordered()) return 1;
  const double total = TotalWeight();
  return total > 0 ? Weight(priority) / total : 0;
}

std::tuple<double, int64_t, int64_t, int64_t> DrawnTable::Place(const ModelItem& item) const {
  const auto [change, place, row] = ages.at(item);
  const auto priority = static_cast<double>(priorities.at(item));
  if (spec.selector == SelectorKind::kLifo) return {0, -change, -place, -row};
  if (spec.selector == SelectorKind::kMinHeap) return {priority, change, place, row};
  if (spec.selector == SelectorKind::kMaxHeap) return {-priority, change, place, row};
  return {0, change, place, row};
}

StoreTwin::StoreTwin(RandomTable table, std::string directory, Env* env, RandomChoice* choice)
    : random_table_(std::move(table)),
      directory_(std::move(directory)),
      env_(env),
      choice_(choice),
      model_(ModelTableOf(random_table_)),
      capacity_(ModelCapacityOf(random_table_)) {
  for (const PriorityTableSpec& spec : random_table_.spec.priority_tables) {
    drawn_.push_back(DrawnTable{spec, ModelRuleOf(spec), {}, {}, {}, 1});
  }
  OpenDatabase();
}

void StoreTwin::OpenDatabase() {
  DatabaseOptions options;
  options.env = env_;
  options.segment_bytes = uint64_t{1} << 20;
  options.ring_bytes = uint64_t{1} << 20;
  options.budgets.frames_bytes = uint64_t{64} << 20;
  ASSERT_OK_AND_ASSIGN(database_, Database::Open(directory_, options));
  ASSERT_OK_AND_ASSIGN(table_, database_->OpenOrCreateTable(random_table_.spec));
  OpenWriters();
}

void StoreTwin::OpenWriters() {
  lanes_.clear();
  writers_.clear();
  const size_t writers = 1 + choice_->Below(2);
  for (size_t w = 0; w < writers; ++w) {
    const auto lanes = static_cast<uint32_t>(1 + choice_->Below(3));
    ASSERT_OK_AND_ASSIGN(auto writer, table_->NewWriter(WriterOptions{.lanes = lanes, .ack = {}}));
    writers_.push_back(std::move(writer));
    for (uint32_t lane = 0; lane < lanes; ++lane) lanes_.push_back(Lane{w, lane, 0});
  }
}

void StoreTwin::Reopen() {
  writers_.clear();
  for (const Lane& lane : lanes_) {
    if (lane.id != 0) model_.SetState(lane.id, ModelState::kOrphaned);
  }
  table_.reset();
  ASSERT_OK(database_->Close());
  database_.reset();
  model_.ForgetVolatile();
  for (const ColumnGroup& group : random_table_.spec.groups) {
    if (group.late && group.is_volatile) filled_.clear();
  }
  Settle();
  OpenDatabase();
  if (has_capacity()) AdoptOrphans();
}

std::shared_ptr<PriorityTable> StoreTwin::priority_table(const DrawnTable& drawn) const {
  return table_->priority_table(drawn.spec.name);
}

const Bytes& StoreTwin::TrajectoryValue(TrajectoryId id, size_t column) const {
  return trajectory_values_.at(id)[column];
}

bool StoreTwin::has_capacity() const {
  return random_table_.spec.steps_max != 0 || random_table_.spec.trajectories_max != 0;
}

float StoreTwin::RandomPriority() {
  return choice_->Percent(5) ? 0.0f : static_cast<float>(choice_->Between(2, 16)) / 4.0f;
}

void StoreTwin::Change() {
  if (::testing::Test::HasFatalFailure()) return;
  Lane& lane = lanes_[choice_->Below(lanes_.size())];
  switch (choice_->Below(24)) {
    case 0:
      return CutLane(&lane);
    case 1:
    case 2:
      return TrimSome();
    case 3:
      return RemoveSome();
    case 4:
      return OrphanWriter(choice_->Below(writers_.size()));
    case 5:
      return ResumeSome();
    case 6:
      return SetTrajectoryColumns();
    case 7:
    case 8:
      return SetPriorities();
    case 20:
    case 21:
      return PatchSome();
    case 22:
      testing::DropFrames(*database_);
      return;
    case 23:
      return DeleteSome();
    case 9:
    case 10:
    case 11:
    case 12:
      return AppendToLanes(choice_->Below(writers_.size()));
    default:
      return AppendToLane(&lane);
  }
}

// Appends.

End StoreTwin::RandomEnd() {
  if (choice_->Percent(60)) return End::kGo;
  return choice_->Of({End::kTerminated, End::kTruncated, End::kCut});
}

int64_t StoreTwin::RandomCount() { return choice_->Percent(50) ? 1 : choice_->Between(2, 12); }

StoreTwin::Rows StoreTwin::RandomRows(const Lane& lane, int64_t count, End end) {
  Rows rows;
  rows.end = end;
  const size_t columns = random_table_.step_columns.size();
  for (int64_t i = 0; i <= count; ++i) {
    std::vector<Bytes> row;
    for (size_t c = 0; c < columns; ++c) {
      row.push_back(RandomRow(random_table_.step_column(c), choice_));
    }
    if (i < count) {
      rows.rows.push_back(std::move(row));
    } else {
      rows.final_row = std::move(row);
    }
  }
  for (size_t c = 0; c < random_table_.trajectory_columns.size(); ++c) {
    const Column& column = random_table_.trajectory_column(c);
    if (column.name == "first_priority") {
      if (lane.id != 0 && choice_->Percent(70)) continue;
      rows.trajectory[c] = AsBytes(RandomPriority());
    } else if (choice_->Percent(30)) {
      rows.trajectory[c] = RandomRow(column, choice_);
    }
  }
  return rows;
}

bool StoreTwin::Vanishes(const Lane& lane, const Rows& rows) const {
  const TableSpec& spec = random_table_.spec;
  const bool one_row_cut = rows.end == End::kCut && rows.rows.size() == 1;
  return !spec.stream && spec.final_row && one_row_cut && lane.id == 0;
}

void StoreTwin::TakeOver(Lane* lane, const Rows& rows, const Appended& appended) {
  const auto count = static_cast<int64_t>(rows.rows.size());
  const TableSpec& spec = random_table_.spec;
  if (Vanishes(*lane, rows)) {
    ASSERT_EQ(appended.id, 0u) << "a cut left nothing of a trajectory of one row";
    return;
  }
  if (lane->id != 0) {
    ASSERT_EQ(appended.id, lane->id);
  } else {
    ASSERT_GT(appended.id, last_id_) << "an id was used before";
    last_id_ = appended.id;
    for (size_t c = 0; c < random_table_.trajectory_columns.size(); ++c) {
      trajectory_values_[appended.id].push_back(DefaultRow(random_table_.trajectory_column(c)));
    }
  }
  const auto found = model_.trajectories().find(appended.id);
  const int64_t first = found == model_.trajectories().end() ? 0 : found->second.rows_end();
  ASSERT_EQ(appended.first_row, first);
  ASSERT_EQ(appended.rows, count);
  model_.Append(appended.id, rows.rows, rows.end, rows.final_row);
  ASSERT_TRUE(model_.trajectories().contains(appended.id));
  const ModelTrajectory& after = model_.trajectories().at(appended.id);
  capacity_.NoteRows(appended.id, first, after.rows_end());
  if (after.state == ModelState::kClosed) capacity_.NoteClosed(appended.id, /*by_cut=*/false);
  for (const auto& [c, bytes] : rows.trajectory) trajectory_values_[appended.id][c] = bytes;
  if (rows.trajectory.contains(random_table_.TrajectoryColumn("goal"))) model_.Mark(appended.id);
  lane->id = rows.end == End::kGo || spec.stream ? appended.id : 0;
  ASSERT_EQ(writers_[lane->writer]->open_trajectory(lane->number), lane->id);
}

size_t StoreTwin::CountNewItems(const DrawnTable& drawn, const Lane& lane, const Rows& rows) const {
  WindowModel after = model_;
  const TrajectoryId id = lane.id == 0 ? kNotYet : lane.id;
  after.Append(id, rows.rows, rows.end, rows.final_row);
  size_t added = 0;
  for (const ModelItem& item : after.Items(drawn.rule)) {
    if (item.id != id || drawn.IsDeleted(item)) continue;
    added += drawn.priorities.contains(item) ? 0u : 1u;
  }
  return added;
}

/// The values of one call, and the bytes behind them.
struct StoreTwin::Call {
  CallColumns step;
  CallColumns final_row;
  CallColumns trajectory;
};

void StoreTwin::AppendToLane(Lane* lane) {
  const TableSpec& spec = random_table_.spec;
  const End end = RandomEnd();
  const int64_t count = RandomCount();
  const Rows rows = RandomRows(*lane, count, end);
  const bool may_be_whole = lane->id == 0 || (spec.stream && EpisodeHasEnded(*lane));
  const bool whole = end != End::kGo && may_be_whole && choice_->Percent(60);
  const bool one = !whole && count == 1 && choice_->Percent(50);

  Call call;
  const bool has_final = spec.final_row && (end == End::kTerminated || end == End::kTruncated);
  for (size_t c = 0; c < random_table_.step_columns.size(); ++c) {
    const Column& column = random_table_.step_column(c);
    if (random_table_.IsLate(column)) continue;
    Bytes all;
    for (const auto& row : rows.rows) Add(row[c], &all);
    call.step.Add(column, std::move(all), one ? std::nullopt : std::optional(count));
    if (has_final && column.in_final_row) call.final_row.Add(column, rows.final_row[c], {});
  }
  for (const auto& [c, bytes] : rows.trajectory) {
    call.trajectory.Add(random_table_.trajectory_column(c), bytes, {});
  }
  const auto step = call.step.values(choice_);
  const auto final_row = call.final_row.values(choice_);
  const auto trajectory = call.trajectory.values(choice_);

  GivenPriorities given;
  std::vector<float> values;
  std::vector<InitialPriorities> priorities;
  if (choice_->Percent(30)) GivePriorities(*lane, rows, &given, &values);
  if (!given.empty()) {
    priorities.push_back(InitialPriorities{given.begin()->first->spec.name, values});
  }
  const AppendOptions options{.lane = lane->number,
                              .end = end,
                              .final = final_row,
                              .trajectory = trajectory,
                              .priorities = priorities,
                              .ack = {}};
  Writer* const writer = writers_[lane->writer].get();
  if (end != End::kGo && !may_be_whole) {
    ASSERT_STATUS(kFailedPrecondition, writer->AppendTrajectory(step, options), "");
  }
  const Result<Appended> appended = whole ? writer->AppendTrajectory(step, options)
                                    : one ? writer->Append(step, options)
                                          : writer->AppendSteps(step, options);
  ASSERT_OK(appended);
  MakeRoom({lane}, {&rows});
  TakeOver(lane, rows, *appended);
  CheckCapacity();
  places_ = {{appended->id, 0}};
  Settle(given);
}

/// A stream's next row begins an episode.
bool StoreTwin::EpisodeHasEnded(const Lane& lane) const {
  return model_.trajectories().at(lane.id).rows.back().end != End::kGo;
}

/// Initial priorities for the items that an append makes drawable: one for each, or one for all.
void StoreTwin::GivePriorities(const Lane& lane, const Rows& rows, GivenPriorities* given,
                               std::vector<float>* values) {
  const DrawnTable& drawn = choice_->Of(drawn_);
  if (has_capacity() || !drawn.has_priorities() || !drawn.spec.required.empty()) return;
  const size_t items = CountNewItems(drawn, lane, rows);
  if (items == 0) return;
  const bool single = choice_->Percent(30);
  for (size_t i = 0; i < (single ? 1 : items); ++i) values->push_back(RandomPriority());
  (*given)[&drawn] = single ? std::vector<float>(items, (*values)[0]) : *values;
}

/// Rows for each lane: a per-trajectory column is set for all of them or for none.
std::vector<StoreTwin::Rows> StoreTwin::RandomRowsOfLanes(const std::vector<Lane*>& lanes,
                                                          std::vector<End>* ends) {
  std::vector<Rows> rows;
  for (const Lane* lane : lanes) {
    const End end = choice_->Percent(15) ? End::kSkip : RandomEnd();
    ends->push_back(end);
    rows.push_back(RandomRows(*lane, 1, end));
  }
  for (size_t c = 0; c < random_table_.trajectory_columns.size(); ++c) {
    const Column& column = random_table_.trajectory_column(c);
    const bool priority = column.name == "first_priority";
    const bool set = priority || choice_->Percent(30);
    for (Rows& of_lane : rows) {
      of_lane.trajectory.erase(c);
      if (set)
        of_lane.trajectory[c] = priority ? AsBytes(RandomPriority()) : RandomRow(column, choice_);
    }
  }
  return rows;
}

void StoreTwin::AppendToLanes(size_t writer) {
  std::vector<Lane*> lanes;
  for (Lane& lane : lanes_) {
    if (lane.writer == writer) lanes.push_back(&lane);
  }
  const auto count = static_cast<int64_t>(lanes.size());
  std::vector<End> ends;
  const std::vector<Rows> rows = RandomRowsOfLanes(lanes, &ends);
  const bool has_final =
      random_table_.spec.final_row && std::any_of(ends.begin(), ends.end(), [](End end) {
        return end == End::kTerminated || end == End::kTruncated;
      });
  Call call;
  for (size_t c = 0; c < random_table_.step_columns.size(); ++c) {
    const Column& column = random_table_.step_column(c);
    if (random_table_.IsLate(column)) continue;
    Bytes all;
    Bytes all_final;
    for (const Rows& of_lane : rows) Add(of_lane.rows[0][c], &all);
    for (const Rows& of_lane : rows) Add(of_lane.final_row[c], &all_final);
    call.step.Add(column, std::move(all), count);
    if (has_final && column.in_final_row) call.final_row.Add(column, std::move(all_final), count);
  }
  for (const auto& [c, ignored] : rows[0].trajectory) {
    Bytes all;
    for (const Rows& of_lane : rows) Add(of_lane.trajectory.at(c), &all);
    call.trajectory.Add(random_table_.trajectory_column(c), std::move(all), count);
  }
  const auto step = call.step.values(choice_);
  const auto final_row = call.final_row.values(choice_);
  const auto trajectory = call.trajectory.values(choice_);
  AppendLanesOptions options{.ends = ends, .final = final_row, .trajectory = trajectory, .ack = {}};
  const bool all_go = std::all_of(ends.begin(), ends.end(), [](End e) { return e == End::kGo; });
  if (all_go && choice_->Percent(50)) options.ends = {};
  const auto appended = writers_[writer]->AppendLanes(step, options);
  ASSERT_OK(appended);
  ASSERT_EQ(appended->size(), lanes.size());
  std::vector<const Rows*> all_rows;
  for (const Rows& of_lane : rows) all_rows.push_back(&of_lane);
  MakeRoom(lanes, all_rows);
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (ends[i] == End::kSkip) {
      ASSERT_EQ((*appended)[i].id, 0u);
    } else {
      TakeOver(lanes[i], rows[i], (*appended)[i]);
      places_[(*appended)[i].id] = static_cast<int64_t>(i);
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
  CheckCapacity();
  Settle();
}

}  // namespace geardb::conformance
