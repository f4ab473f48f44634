#include "tests/differential/plain_table.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace geardb::differential {
namespace {

template <typename T>
T As(const Bytes& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace

PlainTable::PlainTable(const TableSpec& spec_in, int64_t now) : spec(spec_in), now_us(now) {
  groups = spec.groups;
  for (const Column& column : spec.columns) AddColumn(column);
  layout = 0;
  for (const PriorityTableSpec& priority : spec.priority_tables) CreatePriority(priority);
  for (const uint32_t lanes : kLanesOfWriter) {
    writers.emplace_back().lanes.resize(lanes);
  }
}

uint64_t PlainTable::PagesTo(uint64_t rows_end) const {
  return (rows_end + spec.steps_per_page - 1) / spec.steps_per_page;
}

int64_t PlainTable::RowsTrimmed() const {
  int64_t rows = 0;
  for (const auto& [id, trajectory] : trajectories) rows += trajectory.first_row();
  return rows;
}

const PlainColumn* PlainTable::FindColumn(std::string_view name) const {
  for (const PlainColumn& column : columns) {
    if (column.column.name == name) return &column;
  }
  return nullptr;
}

Value PlainTable::ValueOf(const PlainRow& row, const PlainColumn& column) const {
  const auto found = row.values.find(column.number);
  return found == row.values.end() ? column.unwritten : found->second;
}

Value PlainTable::ValueOf(const PlainTrajectory& trajectory, const PlainColumn& column) const {
  const auto found = trajectory.columns.find(column.number);
  return found == trajectory.columns.end() ? column.unwritten : found->second;
}

/// Of the texts that FilterKind makes.
bool PlainTable::Passes(const std::string& filter, const PlainTrajectory& trajectory) const {
  if (filter.empty()) return true;
  const PlainColumn* const goal_column = FindColumn("goal");
  const PlainColumn* const flag_column = FindColumn("flag");
  const int32_t goal = goal_column ? As<int32_t>(*ValueOf(trajectory, *goal_column)) : 0;
  const bool flag = flag_column && As<uint8_t>(*ValueOf(trajectory, *flag_column)) != 0;
  const size_t digits = filter.find_first_of("0123456789");
  int64_t bound = 0;
  if (digits != std::string::npos) {
    std::from_chars(filter.data() + digits, filter.data() + filter.size(), bound);
  }
  if (filter.starts_with("goal >=")) return goal >= bound;
  if (filter.starts_with("length")) {
    return trajectory.steps_end() - trajectory.first_row() > bound;
  }
  if (filter.starts_with("state")) return trajectory.closed();
  if (filter.starts_with("!flag")) return !flag && goal != bound;
  if (filter.starts_with("first_row")) return trajectory.first_row() < bound;
  if (filter.starts_with("goal in")) return goal == bound || goal == 3 || goal == 10;
  if (filter.starts_with("times")) return static_cast<int64_t>(trajectory.times_sampled) <= bound;
  return (goal_column && trajectory.columns.contains(goal_column->number)) ||
         trajectory.end == End::kTerminated;
}

// Appends.

void PlainTable::MakeWriter(size_t writer) {
  writers[writer] = {true, layout, columns, std::vector<TrajectoryId>(kLanesOfWriter[writer])};
}

void PlainTable::Leave(size_t writer) {
  ++moment;
  for (const TrajectoryId id : writers[writer].lanes) {
    if (trajectories.contains(id)) Orphan(id);
  }
  writers[writer].there = false;
  Settle();
}

void PlainTable::Orphan(TrajectoryId id) {
  PlainTrajectory& trajectory = trajectories.at(id);
  trajectory.state = TrajectoryState::kOrphaned;
  trajectory.touched = moment;
  trajectory.left_us = now_us;
}

bool PlainTable::Vanishes(size_t writer, const PlainLaneRows& call) const {
  return !spec.stream && spec.final_row && call.end == End::kCut && call.rows.size() == 1 &&
         writers[writer].lanes[call.lane] == 0;
}

bool PlainTable::Append(size_t writer, const std::vector<PlainLaneRows>& calls,
                        const GivenPriorities& given, const std::vector<TrajectoryId>& ids,
                        const std::vector<TrajectoryId>& victims) {
  ++moment;
  if (!MakeRoom(GrowthOf(writer, calls), victims)) return false;
  ++moment;
  std::map<TrajectoryId, int64_t> lanes;
  for (size_t i = 0; i < calls.size(); ++i) {
    const PlainLaneRows& call = calls[i];
    if (call.end == End::kSkip || Vanishes(writer, call)) continue;
    TrajectoryId& lane = writers[writer].lanes[call.lane];
    if (lane == 0) {
      lane = ids[i];
      last_id = std::max(last_id, lane);
      trajectories[lane].id = lane;
      trajectories[lane].created_us = now_us;
    }
    AppendRows(lane, call, moment);
    lanes[lane] = static_cast<int64_t>(i);
    if (call.end != End::kGo && !spec.stream) lane = 0;
  }
  Settle(lanes, given);
  return true;
}

void PlainTable::AppendRows(TrajectoryId id, const PlainLaneRows& call, uint64_t touched) {
  PlainTrajectory& trajectory = trajectories.at(id);
  trajectory.touched = touched;
  const auto add = [&](const Values& values) -> PlainRow& {
    PlainRow row{.values = values};
    if (!trajectory.rows.empty()) row.number = trajectory.rows_end();
    row.first = trajectory.rows.empty() || EndsEpisode(trajectory.rows.back());
    if (row.number % spec.steps_per_page == 0) {
      pages_.push_back({id, row.number + spec.steps_per_page});
    }
    return trajectory.rows.emplace_back(std::move(row));
  };
  for (const Values& values : call.rows) add(values);
  trajectory.rows.back().end = call.end;
  for (const auto& [number, value] : call.trajectory) trajectory.columns[number] = value;
  if (call.end == End::kGo) return;
  if (!spec.stream) {
    trajectory.state = TrajectoryState::kClosed;
    trajectory.end = call.end;
  }
  if (!spec.final_row) return;
  if (call.end != End::kCut) {
    PlainRow& row = add(call.final);
    row.end = call.end;
  }
  trajectory.rows.back().final = true;
}

std::vector<int64_t> PlainTable::NewItems(size_t writer,
                                          const std::vector<PlainLaneRows>& calls) const {
  PlainTable after = *this;
  after.spec.trajectories_max = after.spec.steps_max = after.spec.bytes_max = 0;
  for (PlainPriority& priority : after.priorities) priority.spec.filter.clear();
  std::vector<TrajectoryId> ids;
  for (size_t i = 0; i < calls.size(); ++i) ids.push_back(last_id + 1 + i);
  after.Append(writer, calls, {}, ids, {});
  std::vector<int64_t> items;
  for (size_t p = 0; p < priorities.size(); ++p) {
    items.push_back(after.priorities[p].counts.inserts - priorities[p].counts.inserts);
  }
  return items;
}

// What leaves a full table (README, "Capacity and removal").

PlainTable::Growth PlainTable::GrowthOf(size_t writer,
                                        const std::vector<PlainLaneRows>& calls) const {
  Growth growth;
  for (const PlainLaneRows& call : calls) {
    if (call.end == End::kSkip || Vanishes(writer, call)) continue;
    const auto open = trajectories.find(writers[writer].lanes[call.lane]);
    // A final row also where its column has been dropped.
    const bool final = spec.final_row && call.end != End::kGo && call.end != End::kCut;
    const uint64_t rows = call.rows.size() + (final ? 1 : 0);
    const bool opens = open == trajectories.end();
    const auto first = opens ? 0 : static_cast<uint64_t>(open->second.rows_end());
    growth.rows += rows;
    growth.pages += PagesTo(first + rows) - PagesTo(first);
    growth.trajectories += opens ? 1 : 0;
  }
  return growth;
}

PlainTable::Growth PlainTable::Held() const {
  Growth held{.trajectories = trajectories.size()};
  for (const auto& [id, trajectory] : trajectories) {
    const auto first_page = static_cast<uint64_t>(trajectory.first_row()) / spec.steps_per_page;
    held.rows += trajectory.rows.size();
    held.pages += PagesTo(static_cast<uint64_t>(trajectory.rows_end())) - first_page;
  }
  return held;
}

bool PlainTable::Fits(const Growth& held, const Growth& more) const {
  const auto fits = [](uint64_t sum, uint64_t most) { return most == 0 || sum <= most; };
  return fits(held.trajectories + more.trajectories, spec.trajectories_max) &&
         fits(held.rows + more.rows, spec.steps_max) &&
         // Where columns came since, it may be over: nothing leaves for rows that bring no page.
         (more.pages == 0 || fits((held.pages + more.pages) * page_bytes, spec.bytes_max));
}

bool PlainTable::MayHold(size_t writer, const std::vector<PlainLaneRows>& calls) const {
  PlainTable trial = *this;
  // Whatever it chooses, as much may leave.
  if (spec.remover == Remover::kUniform) trial.spec.remover = Remover::kLifo;
  return trial.MakeRoom(GrowthOf(writer, calls), {});
}

bool PlainTable::MakeRoom(const Growth& more, const std::vector<TrajectoryId>& victims) {
  // Of a call of which nothing is left (Vanishes). The table may be over its bounds by then: added
  // columns make pages larger.
  if (more.rows == 0) return true;
  size_t victim = 0;
  for (Growth held = Held(); !Fits(held, more); held = Held()) {
    if (spec.remover == Remover::kNone) return false;
    const bool too_many =
        spec.trajectories_max > 0 && held.trajectories + more.trajectories > spec.trajectories_max;
    const bool pages = spec.remover == Remover::kFifo && !too_many;
    const TrajectoryId next = pages ? 0 : NextToLeave(victims, &victim);
    if (next != 0) {
      Remove(next, RemovalReason::kCapacity);
    } else if (too_many || !LoseOldestPage()) {
      return false;
    }
  }
  return spec.remover != Remover::kUniform || victim == victims.size();
}

/// Of the trajectories that no writer has; 0 when there is none.
TrajectoryId PlainTable::NextToLeave(const std::vector<TrajectoryId>& victims,
                                     size_t* victim) const {
  TrajectoryId next = 0;
  std::tuple<double, double> least;
  for (const auto& [id, trajectory] : trajectories) {
    if (trajectory.open()) continue;
    const auto age = static_cast<double>(trajectory.touched);
    std::tuple<double, double> place(0, age);
    if (spec.remover == Remover::kLifo) place = {0, -age};
    if (spec.remover == Remover::kMinHeap) place = {static_cast<double>(WorthOf(id)), age};
    if (spec.remover == Remover::kMaxHeap) place = {-static_cast<double>(WorthOf(id)), age};
    // Of those that one record left, the first opened is the oldest: ids ascend.
    const bool later_first = spec.remover == Remover::kLifo;
    if (next == 0 || place < least || (later_first && place == least)) {
      next = id;
      least = place;
    }
  }
  if (spec.remover != Remover::kUniform || next == 0) return next;
  if (*victim == victims.size()) return 0;
  const TrajectoryId chosen = victims[(*victim)++];
  const auto found = trajectories.find(chosen);
  return found == trajectories.end() || found->second.open() ? 0 : chosen;
}

float PlainTable::WorthOf(TrajectoryId id) const {
  float worth = 0;
  for (const PlainPriority& priority : priorities) {
    if (priority.spec.name != spec.remover_priority_table) continue;
    for (const auto& [key, item] : priority.items) {
      const std::vector<TrajectoryId> ids = priority.TrajectoriesOf(key);
      const bool its_own = std::find(ids.begin(), ids.end(), id) != ids.end();
      if (its_own) worth = std::max(worth, item.priority);
    }
  }
  return worth;
}

/// Of an open trajectory the page, but for the one that is being written; of another the whole.
bool PlainTable::LoseOldestPage() {
  for (const Page& page : pages_) {
    const auto found = trajectories.find(page.id);
    if (found == trajectories.end() || page.end <= found->second.first_row()) continue;
    if (!found->second.open()) {
      Remove(page.id, RemovalReason::kCapacity);
      return true;
    }
    if (page.end >= found->second.rows_end()) continue;
    Truncate(page.id, page.end);
    return true;
  }
  return false;
}

// Other changes.

bool PlainTable::Cut(TrajectoryId id) {
  ++moment;
  PlainTrajectory& trajectory = trajectories.at(id);
  for (PlainWriter& writer : writers) {
    std::replace(writer.lanes.begin(), writer.lanes.end(), id, TrajectoryId{0});
  }
  PlainRow& last = trajectory.rows.back();
  const bool between_episodes = EndsEpisode(last);
  if (!between_episodes && spec.final_row && trajectory.rows.size() == 1) {
    Remove(id, RemovalReason::kByHand);
    Settle();
    return false;
  }
  trajectory.state = TrajectoryState::kClosed;
  trajectory.end = End::kCut;
  trajectory.touched = moment;
  if (!between_episodes) {
    last.end = End::kCut;
    last.final = spec.final_row;
  }
  Settle({{id, 0}});
  return true;
}

void PlainTable::Remove(TrajectoryId id, RemovalReason reason, const std::string& priority_table) {
  trajectories.erase(id);
  removals.push_back({id, reason, priority_table});
}

void PlainTable::Truncate(TrajectoryId id, int64_t first_row) {
  std::erase_if(trajectories.at(id).rows,
                [&](const PlainRow& row) { return row.number < first_row; });
}

void PlainTable::SetColumns(TrajectoryId id, const Values& values,
                            const std::vector<TrajectoryId>& removed) {
  ++moment;
  for (const auto& [number, value] : values) trajectories.at(id).columns[number] = value;
  for (const TrajectoryId gone : removed) Remove(gone, RemovalReason::kByHand);
  Settle({{id, 0}});
}

void PlainTable::Patch(TrajectoryId id, int64_t first, const std::vector<Values>& rows) {
  ++moment;
  PlainTrajectory& trajectory = trajectories.at(id);
  const int64_t end = first + static_cast<int64_t>(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t number = first + static_cast<int64_t>(i);
    if (number < trajectory.first_row()) continue;
    PlainRow& row = trajectory.rows[static_cast<size_t>(number - trajectory.first_row())];
    for (const auto& [column, value] : rows[i]) row.values[column] = value;
  }
  for (const PlainColumn& column : columns) {
    if (!column.late || rows.empty() || !rows[0].contains(column.number)) continue;
    int64_t& filled = trajectory.filled[column.column.group];
    filled = std::max(filled, end);
  }
  Settle({{id, 0}});
}

void PlainTable::AddColumn(const Column& column) {
  ++layout;
  PlainColumn added{.number = next_column_++, .column = column};
  for (const ColumnGroup& group : groups) {
    if (group.name != column.group) continue;
    added.late = group.late;
    added.is_volatile = group.is_volatile;
  }
  added.unwritten = std::make_shared<const Bytes>(DefaultRow(column));
  columns.push_back(added);
}

void PlainTable::DropColumn(std::string_view name) {
  ++layout;
  std::erase_if(columns, [&](const PlainColumn& column) { return column.column.name == name; });
  std::erase_if(groups, [&](const ColumnGroup& group) {
    return std::none_of(columns.begin(), columns.end(), [&](const PlainColumn& column) {
      return column.column.group == group.name;
    });
  });
}

uint64_t PlainTable::CloseOrphans(int64_t older_than_ms) {
  std::vector<TrajectoryId> ids;
  for (const auto& [id, trajectory] : trajectories) {
    if (trajectory.state != TrajectoryState::kOrphaned) continue;
    if (now_us - trajectory.left_us >= older_than_ms * 1000) ids.push_back(id);
  }
  for (const TrajectoryId id : ids) Cut(id);
  return ids.size();
}

uint64_t PlainTable::RemoveExpired() {
  ++moment;
  std::vector<TrajectoryId> ids;
  for (const auto& [id, trajectory] : trajectories) {
    if (spec.ttl_ms == 0 || !trajectory.closed()) continue;
    if (now_us - trajectory.created_us > spec.ttl_ms * 1000) ids.push_back(id);
  }
  for (const TrajectoryId id : ids) Remove(id, RemovalReason::kAge);
  Settle();
  return ids.size();
}

void PlainTable::Reopen(bool read_only) {
  for (PlainWriter& writer : writers) writer.there = false;
  for (auto& [id, trajectory] : trajectories) {
    if (trajectory.open()) trajectory.state = TrajectoryState::kOrphaned;
    trajectory.left_us = now_us;
    for (const PlainColumn& column : columns) {
      if (!column.is_volatile) continue;
      for (PlainRow& row : trajectory.rows) row.values.erase(column.number);
      trajectory.filled.erase(column.column.group);
    }
  }
  for (PlainPriority& priority : priorities) {
    priority.counts.reserved = 0;
    priority.next_ahead = priority.next_draw;
    for (auto& [key, item] : priority.items) item.reserved = 0;
    for (auto& [key, group] : priority.groups) group.first_us = now_us;
  }
  Settle();
  if (!read_only) FinishAll();
}

}  // namespace geardb::differential
