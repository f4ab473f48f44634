#include "tests/testing/engine_oracle.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "base/check.h"

namespace geardb::testing {

TableSpec OracleSpec(uint32_t table) {
  static constexpr const char* kNames[kOracleTables] = {"kept", "ring", "few"};
  TableSpec spec;
  spec.name = kNames[table];
  spec.columns = {
      {.name = "key", .dtype = DType::kU64, .in_final_row = true},
      {.name = "obs", .dtype = DType::kF32, .shape = {4}, .in_final_row = true},
      {.name = "action", .dtype = DType::kI32},
      {.name = "opener", .dtype = DType::kU64, .kind = ColumnKind::kPerTrajectory},
  };
  spec.steps_per_page = 4;
  spec.final_row = table != 2;
  for (Column& column : spec.columns) column.in_final_row = column.in_final_row && spec.final_row;
  spec.stream = table == 1;
  if (table == 1) spec.steps_max = 240;
  if (table == 2) spec.trajectories_max = 24;
  PriorityTableSpec per;
  per.name = "per";
  per.window.extent = {.before = 0, .length = 1, .after = 1};
  per.initial = InitialPriority::kConstant;
  per.seed = 5;
  PriorityTableSpec pairs;
  pairs.name = "pairs";
  pairs.selector = SelectorKind::kUniform;
  pairs.window.extent = {.before = 2, .length = 3, .after = 1};
  pairs.window.left = EdgeRule::kRequire;
  PriorityTableSpec whole;
  whole.name = "whole";
  whole.item = ItemKind::kTrajectory;
  spec.priority_tables = {per, pairs};
  if (!spec.stream) spec.priority_tables.push_back(whole);
  return spec;
}

// ---- What operations write.
uint64_t OracleRows::KeyOf(uint32_t actor, uint64_t op, uint32_t lane, int64_t row) {
  return (uint64_t{actor} << 56) | (op << 24) | (uint64_t{lane} << 16) | static_cast<uint64_t>(row);
}

void OracleRows::Fill(uint64_t key, float obs[4]) {
  uint64_t x = key * 0x9E3779B97F4A7C15ull;
  for (int i = 0; i < 4; ++i) {
    obs[i] = static_cast<float>(x >> 40);
    x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ull;
  }
}

OracleRows::OracleRows(uint32_t actor, uint64_t op, uint32_t lane, int64_t rows_in)
    : rows(rows_in) {
  for (int64_t row = 0; row <= rows; ++row) {
    keys.push_back(KeyOf(actor, op, lane, row));
    obs.resize(obs.size() + 4);
    Fill(keys.back(), obs.data() + obs.size() - 4);
    actions.push_back(static_cast<int32_t>(keys.back() & 0xFFFFFF));
  }
}

std::vector<std::byte> OracleBlob(uint32_t actor, uint64_t op, uint32_t bytes) {
  std::vector<std::byte> blob(bytes);
  uint64_t x = OracleRows::KeyOf(actor, op, 0, 0);
  for (std::byte& b : blob) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    b = static_cast<std::byte>(x >> 56);
  }
  return blob;
}

// ---- The model of one actor.

int64_t ActorModel::Trajectory::rows_end() const {
  if (segments.empty()) return 0;
  const Segment& last = segments.back();
  return last.first_row + last.rows + (last.has_final ? 1 : 0);
}
bool ActorModel::Trajectory::has_final() const {
  return cut_row_is_final || (!segments.empty() && segments.back().has_final);
}

ActorModel::Trajectory* ActorModel::OpenOn(uint32_t table, uint32_t lane) {
  const auto& key = lanes_[table][lane];
  return key ? &trajectories_.at(*key) : nullptr;
}

ActorModel::Trajectory* ActorModel::FindById(uint32_t table, uint64_t id) {
  for (auto& [key, trajectory] : trajectories_) {
    if (trajectory.table == table && trajectory.id == id && id != 0) return &trajectory;
  }
  return nullptr;
}

void ActorModel::AppendTo(uint64_t number, const Op& op, uint32_t lane, uint32_t rows, End end) {
  const TableSpec spec = OracleSpec(op.table);
  auto& key = lanes_[op.table][lane];
  if (!key) {
    key = Key{number, lane};
    trajectories_[*key].table = op.table;
  }
  Trajectory& trajectory = trajectories_.at(*key);
  if (op.ids[lane] != 0) trajectory.id = op.ids[lane];
  const bool has_final = spec.final_row && (end == End::kTerminated || end == End::kTruncated);
  trajectory.segments.push_back(
      {number, lane, trajectory.rows_end(), rows, has_final, end, op.end_lsn});
  if (end == End::kGo || spec.stream) return;
  trajectory.open = false;
  trajectory.end = end;
  trajectory.cut_row_is_final = spec.final_row && end == End::kCut;
  trajectory.closed_lsn = op.end_lsn;
  key.reset();
}

void ActorModel::Apply(uint64_t number, const Op& op) {
  if (op.state == OpState::kRefused) {
    // A refused append says that a lane's trajectory is gone.
    if (op.code != StatusCode::kNotFound) return;
    if (op.kind == OpKind::kResume) {
      if (Trajectory* lost = OpenOn(op.table, op.lane)) lost->absent = true;
      ForgetLane(op.table, op.lane);
    } else if (op.kind <= OpKind::kCut) {
      for (uint32_t lane = 0; lane < kOracleLanes; ++lane) {
        if (op.ids[lane] != 0 || (op.kind != OpKind::kAppendLanes && lane != op.lane)) continue;
        ForgetLane(op.table, lane);
      }
    }
    return;
  }
  switch (op.kind) {
    case OpKind::kAppend:
    case OpKind::kAppendTrajectory:
      return AppendTo(number, op, op.lane, op.rows, op.ends[0]);
    case OpKind::kAppendLanes:
      for (uint32_t lane = 0; lane < kOracleLanes; ++lane) {
        if (op.ends[lane] != End::kSkip) AppendTo(number, op, lane, 1, op.ends[lane]);
      }
      return;
    case OpKind::kCut: {
      Trajectory& trajectory = *OpenOn(op.table, op.lane);
      ForgetLane(op.table, op.lane);
      trajectory.open = false;
      trajectory.end = End::kCut;
      trajectory.closed_lsn = op.end_lsn;
      // The last row becomes the final row; where it was the only one, nothing is left.
      const TableSpec spec = OracleSpec(op.table);
      const bool between = spec.stream && trajectory.segments.back().end != End::kGo;
      if (!spec.final_row || between) return;
      const bool one_row = trajectory.rows_end() - trajectory.first_row == 1;
      // Once it is done, the call has said so: a capacity may have trimmed it.
      trajectory.removed = op.state == OpState::kDone ? op.ids[op.lane] == 0 : one_row;
      trajectory.cut_row_is_final = true;
      return;
    }
    case OpKind::kRemove:
      FindById(op.table, op.target)->removed = true;
      return;
    case OpKind::kTruncate:
      FindById(op.table, op.target)->first_row =
          std::max(FindById(op.table, op.target)->first_row, op.row);
      return;
    case OpKind::kSet:
      FindById(op.table, op.target)->priorities[op.row] = op.priority;
      return;
    case OpKind::kResume:
      return;
    case OpKind::kNext:
      ++next_draw_;
      return;
    case OpKind::kTag:
      tags_[op.lane] = {number, op.tag_bytes};
      return;
  }
}

// ---- The store.

struct StoreImage {
  struct Content {
    TrajectoryRecord record;
    std::vector<uint64_t> keys;
    std::vector<float> obs;
    std::vector<int32_t> actions;
    uint64_t opener = 0;
  };
  std::map<uint64_t, Content> tables[kOracleTables];
  std::map<uint64_t, uint64_t> by_first_key[kOracleTables];  // Key of the first row there -> id.
  Database* database = nullptr;
  std::shared_ptr<Table> handles[kOracleTables];
  std::string error;
};

namespace {

template <typename... Parts>
std::string Say(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

void ReadTable(StoreImage* image, uint32_t number) {
  auto table = image->database->OpenTable(OracleSpec(number).name);
  if (!table.ok()) return;  // Never created: nothing is in it.
  image->handles[number] = *table;
  uint64_t rows_end = 0;
  uint64_t steps = 0;
  for (const TrajectoryRecord& record : (*table)->Scan({})) {
    StoreImage::Content content;
    content.record = record;
    const std::string_view columns[] = {"key", "obs", "action", "opener"};
    auto rows = (*table)->Read(record.id, columns, {});
    if (!rows.ok()) {
      image->error = Say("trajectory ", record.id, ": ", rows.status().ToString());
      return;
    }
    const auto keys = (*rows)[0].view().values<uint64_t>();
    const auto obs = (*rows)[1].view().values<float>();
    const auto actions = (*rows)[2].view().values<int32_t>();
    content.keys.assign(keys.begin(), keys.end());
    content.obs.assign(obs.begin(), obs.end());
    content.actions.assign(actions.begin(), actions.end());
    content.opener = (*rows)[3].view().values<uint64_t>()[0];
    rows_end += static_cast<uint64_t>(record.rows_end - record.first_row);
    steps += static_cast<uint64_t>(record.steps_end - record.first_row);
    if (!content.keys.empty()) image->by_first_key[number][content.keys[0]] = record.id;
    image->tables[number][record.id] = std::move(content);
  }
  const TableSpec spec = OracleSpec(number);
  if ((*table)->Count() != image->tables[number].size() ||
      (!spec.stream && (*table)->StepCount() != steps)) {
    image->error = Say("table ", spec.name, " counts ", (*table)->Count(), " trajectories and ",
                       (*table)->StepCount(), " steps; a scan finds ", image->tables[number].size(),
                       " and ", steps);
  }
  if (spec.steps_max > 0 && rows_end > spec.steps_max) {
    image->error = Say("table ", spec.name, " holds ", rows_end, " rows");
  }
  if (spec.trajectories_max > 0 && (*table)->Count() > spec.trajectories_max) {
    image->error = Say("table ", spec.name, " holds ", (*table)->Count(), " trajectories");
  }
}

std::string CheckRows(const StoreImage::Content& found, uint32_t actor,
                      const ActorModel::Trajectory& trajectory) {
  const int64_t first = found.record.first_row;
  const auto count = static_cast<size_t>(found.record.rows_end - first);
  if (found.keys.size() != count) return Say(found.keys.size(), " rows were read of ", count);
  for (const ActorModel::Segment& segment : trajectory.segments) {
    const int64_t end = segment.first_row + segment.rows + (segment.has_final ? 1 : 0);
    for (int64_t row = std::max(segment.first_row, first); row < end; ++row) {
      const auto at = static_cast<size_t>(row - first);
      const int64_t within = row - segment.first_row;
      const uint64_t key = OracleRows::KeyOf(actor, segment.op, segment.lane, within);
      float obs[4];
      OracleRows::Fill(key, obs);
      const int32_t action = within == segment.rows ? 0 : static_cast<int32_t>(key & 0xFFFFFF);
      if (found.keys[at] != key || found.actions[at] != action ||
          std::memcmp(&found.obs[at * 4], obs, sizeof(obs)) != 0) {
        return Say("row ", row, " holds key ", found.keys[at], ", expected ", key);
      }
    }
  }
  const uint64_t opener =
      OracleRows::KeyOf(actor, trajectory.segments[0].op, trajectory.segments[0].lane, 0);
  return found.opener == opener ? "" : Say("opener is ", found.opener, ", expected ", opener);
}

std::string CheckPriorities(const StoreImage& image, const StoreImage::Content& found,
                            const ActorModel::Trajectory& trajectory) {
  auto per = image.handles[trajectory.table]->priority_table("per");
  if (per == nullptr) return "priority table 'per' is gone";
  const int64_t end = trajectory.open ? found.record.rows_end - 1 : found.record.steps_end;
  for (int64_t row = found.record.first_row; row < end; ++row) {
    const auto priority = per->Priority({found.record.id, row});
    if (!priority.ok()) return Say("row ", row, ": ", priority.status().ToString());
    const auto set = trajectory.priorities.find(row);
    const float expected = set == trajectory.priorities.end() ? 1.0f : set->second;
    if (*priority != expected) {
      return Say("row ", row, " has priority ", *priority, ", expected ", expected);
    }
  }
  return "";
}

}  // namespace

// ---- The check.

EngineOracle::EngineOracle(uint32_t actors) {
  for (uint32_t actor = 0; actor < actors; ++actor) models_.emplace_back(actor);
}

std::string EngineOracle::MatchesTrajectory(const StoreImage& image, uint32_t actor,
                                            ActorModel::Trajectory* trajectory) const {
  const uint32_t table = trajectory->table;
  if (trajectory->id == 0) {
    const ActorModel::Segment& first = trajectory->segments[0];
    // What is left of it begins with a row of the operation that opened it.
    for (int64_t row = 0; row <= first.rows && trajectory->id == 0; ++row) {
      const auto found =
          image.by_first_key[table].find(OracleRows::KeyOf(actor, first.op, first.lane, row));
      if (found != image.by_first_key[table].end()) trajectory->id = found->second;
    }
  }
  const auto found = image.tables[table].find(trajectory->id);
  const bool there = trajectory->id != 0 && found != image.tables[table].end();
  if (trajectory->removed || trajectory->absent) {
    return there ? "it was removed, and is there" : "";
  }
  if (!there) {
    if (table == 0 && !damage_) return "it is missing";
    // A cut that was pending: of a trimmed trajectory it may have left nothing.
    const bool cut_away = trajectory->end == End::kCut && trajectory->closed_lsn == 0;
    (cut_away ? trajectory->removed : trajectory->absent) = true;
    return "";
  }
  const TrajectoryRecord& record = found->second.record;
  if (record.rows_end != trajectory->rows_end()) {
    return Say("it ends at row ", record.rows_end, ", expected ", trajectory->rows_end());
  }
  const TrajectoryState state =
      trajectory->open ? TrajectoryState::kOrphaned : TrajectoryState::kClosed;
  if (record.state != state || (!trajectory->open && record.end != trajectory->end)) {
    return Say("its state is ", static_cast<int>(record.state), ", end ",
               static_cast<int>(record.end), "; expected ", static_cast<int>(state), ", ",
               static_cast<int>(trajectory->end));
  }
  if (table != 1 && record.first_row != trajectory->first_row) {
    return Say("it begins at row ", record.first_row, ", expected ", trajectory->first_row);
  }
  if (table == 1 && record.first_row < trajectory->first_row) {
    return Say("it begins at row ", record.first_row, " after ", trajectory->first_row);
  }
  trajectory->first_row = record.first_row;
  const int64_t steps_end = record.rows_end - (trajectory->has_final() ? 1 : 0);
  if (table != 1 && record.steps_end != steps_end) {
    return Say("its steps end at row ", record.steps_end, ", expected ", steps_end);
  }
  std::string wrong = CheckRows(found->second, actor, *trajectory);
  if (wrong.empty() && table == 0) wrong = CheckPriorities(image, found->second, *trajectory);
  return wrong;
}

std::string EngineOracle::Matches(const StoreImage& image, ActorModel* model) const {
  for (auto& [key, trajectory] : model->trajectories()) {
    const std::string wrong = MatchesTrajectory(image, model->actor(), &trajectory);
    if (wrong.empty()) continue;
    return Say("actor ", model->actor(), ", table ", OracleSpec(trajectory.table).name,
               ", trajectory ", trajectory.id, " of operation ", key.first, ": ", wrong);
  }
  for (uint32_t table = 0; table < kOracleTables; ++table) {
    for (uint32_t lane = 0; lane < kOracleLanes; ++lane) {
      const ActorModel::Trajectory* open = model->OpenOn(table, lane);
      if (open != nullptr && (open->absent || open->removed)) model->ForgetLane(table, lane);
    }
  }
  for (uint32_t tag = 0; tag < kOracleTags && model->actor() == 0; ++tag) {
    const auto found = image.database->LastTag("tag" + std::to_string(tag));
    const auto expected = model->tags().find(tag);
    if (expected == model->tags().end()) {
      if (found.ok()) return Say("tag ", tag, " is there");
      continue;
    }
    if (damage_ && found.status().code() == StatusCode::kCorruption) continue;
    if (!found.ok()) return Say("tag ", tag, ": ", found.status().ToString());
    const auto [op, bytes] = expected->second;
    if (found->blob != OracleBlob(0, op, bytes)) {
      return Say("tag ", tag, " does not hold the blob of operation ", op);
    }
  }
  if (model->actor() == 0 && image.handles[0] != nullptr) {
    auto per = image.handles[0]->priority_table("per");
    const uint64_t draws = per == nullptr ? 0 : per->Stats().draws;
    if (draws != model->next_draw()) {
      return Say("the next draw is ", draws, ", expected ", model->next_draw());
    }
  }
  return "";
}

std::string EngineOracle::CheckActor(const StoreImage& image, const OpLog* log,
                                     const Survival& survival, uint32_t actor) {
  const uint32_t started = log == nullptr ? 0 : log->started.load();
  uint32_t certain = 0;
  uint32_t lost = started;  // Operations from here on are not there.
  for (uint32_t i = 0; i < started; ++i) {
    const Op& op = log->ops[i];
    const bool synced = op.end_lsn != 0 && op.end_lsn <= survival.synced;
    if (op.state != OpState::kDone) continue;
    if (op.ack >= survival.level || synced) certain = i + 1;
    // The log says itself where it ends.
    if (op.end_lsn > image.database->recovery().end) lost = std::min(lost, i);
  }
  if (lost < certain) {
    return Say("actor ", actor, ": the log ends at LSN ", image.database->recovery().end,
               ", and operation ", first_op_ + certain - 1, " was acknowledged");
  }
  // The longest history that fits.
  std::string wrong;
  for (uint32_t count = lost + 1; count-- > certain;) {
    ActorModel model = models_[actor];
    for (uint32_t i = 0; i < count; ++i) model.Apply(first_op_ + i, log->ops[i]);
    const std::string mismatch = Matches(image, &model);
    if (!mismatch.empty()) {
      wrong += Say("\n  after ", count, " operations: ", mismatch);
      continue;
    }
    models_[actor] = std::move(model);
    for (uint32_t i = 0; i < started; ++i) {
      const Lsn end = log->ops[i].end_lsn;
      if (log->ops[i].state != OpState::kDone || end == 0) continue;
      if (i < count) newest_there_ = std::max(newest_there_, end);
      if (i >= count) oldest_missing_ = std::min(oldest_missing_, end);
    }
    return "";
  }
  return Say("actor ", actor, ": ", started, " operations from ", first_op_, ", ", certain,
             " of them certain; none of these fits:", wrong);
}

std::string EngineOracle::CheckOrder(const StoreImage& image) const {
  if (newest_there_ > oldest_missing_) {
    return Say("the record that ends at LSN ", newest_there_, " is there, the one that ends at ",
               oldest_missing_, " is not: no prefix of the log");
  }
  for (uint32_t table = 0; table < kOracleTables; ++table) {
    std::set<uint64_t> known;
    for (const ActorModel& model : models_) {
      for (const auto& [key, trajectory] : model.trajectories()) {
        if (trajectory.table != table || trajectory.id == 0) continue;
        if (!known.insert(trajectory.id).second) {
          return Say("id ", trajectory.id, " of table ", OracleSpec(table).name,
                     " was given to two trajectories");
        }
      }
    }
    for (const auto& [id, content] : image.tables[table]) {
      if (known.count(id) == 0) return Say("nobody appended trajectory ", id);
    }
  }
  return "";
}

// Fifo: what was closed before something else that a capacity removed began (or closed, where
// trajectories are counted) is gone, too.
std::string EngineOracle::CheckAges(const StoreImage& image) const {
  if (damage_) return "";
  for (const uint32_t table : {1u, 2u}) {
    Lsn newest_gone = 0;
    const auto visit = [&](auto&& see) {
      for (const ActorModel& model : models_) {
        for (const auto& [key, trajectory] : model.trajectories()) {
          if (trajectory.table == table && !trajectory.removed) see(trajectory);
        }
      }
    };
    visit([&](const ActorModel::Trajectory& trajectory) {
      if (!trajectory.absent && trajectory.first_row == 0) return;
      const Lsn age = table == 1 ? trajectory.segments[0].end_lsn : trajectory.closed_lsn;
      newest_gone = std::max(newest_gone, age);
    });
    std::string wrong;
    visit([&](const ActorModel::Trajectory& trajectory) {
      if (trajectory.absent || trajectory.open || trajectory.closed_lsn == 0) return;
      if (trajectory.closed_lsn >= newest_gone) return;
      wrong = Say("table ", OracleSpec(table).name, ": trajectory ", trajectory.id,
                  ", closed at LSN ", trajectory.closed_lsn,
                  ", is there, but a younger one of LSN ", newest_gone, " is not");
    });
    if (!wrong.empty()) return wrong;
  }
  return image.error;
}

std::string EngineOracle::Check(Database* database, const std::vector<const OpLog*>& logs,
                                const Survival& survival) {
  StoreImage image;
  image.database = database;
  for (uint32_t table = 0; table < kOracleTables; ++table) ReadTable(&image, table);
  if (!image.error.empty()) return image.error;
  newest_there_ = 0;
  oldest_missing_ = UINT64_MAX;
  for (uint32_t actor = 0; actor < actors(); ++actor) {
    const OpLog* log = logs.empty() ? nullptr : logs[actor];
    std::string wrong = CheckActor(image, log, survival, actor);
    if (!wrong.empty()) return wrong;
  }
  if (!logs.empty()) first_op_ += OpLog::kCapacity;
  std::string wrong = CheckOrder(image);
  return wrong.empty() ? CheckAges(image) : wrong;
}

}  // namespace geardb::testing
