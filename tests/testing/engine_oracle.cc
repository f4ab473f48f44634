// EngineOracle: the check of a store.
#include "tests/testing/engine_oracle.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace geardb::testing {

// ---- The store.

struct StoreImage {
  struct Content {
    TrajectoryRecord record;
    std::vector<uint64_t> keys;
    std::vector<float> obs;
    std::vector<int32_t> actions;
    std::vector<uint32_t> extras;
    std::vector<float> targets;  // "kept" alone, as the rest.
    std::vector<int32_t> scratch;
    std::vector<int64_t> ready;  // Rows that are items of "ready", ascending.
    uint64_t opener = 0;
  };
  std::map<uint64_t, Content> tables[kOracleTables];
  std::map<uint64_t, uint64_t> by_first_key[kOracleTables];  // Key of the first row there -> id.
  OracleHeld held[kOracleTables];
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

template <typename T>
void CopyValues(const ColumnRows& rows, std::vector<T>* values) {
  const auto read = rows.view().values<T>();
  values->assign(read.begin(), read.end());
}

void ReadTable(StoreImage* image, uint32_t number) {
  auto table = image->database->OpenTable(OracleSpec(number).name);
  if (!table.ok()) return;  // Never created: nothing is in it.
  image->handles[number] = *table;
  uint64_t rows_there = 0;
  uint64_t steps = 0;
  for (const TrajectoryRecord& record : (*table)->Scan({})) {
    StoreImage::Content content;
    content.record = record;
    std::vector<std::string_view> columns = {"key", "obs", "action", "opener", "extra"};
    if (number == 0) columns.insert(columns.end(), {"target", "scratch"});
    auto rows = (*table)->Read(record.id, columns, {});
    if (!rows.ok()) {
      image->error = Say("trajectory ", record.id, ": ", rows.status().ToString());
      return;
    }
    CopyValues((*rows)[0], &content.keys);
    CopyValues((*rows)[1], &content.obs);
    CopyValues((*rows)[2], &content.actions);
    CopyValues((*rows)[4], &content.extras);
    if (number == 0) CopyValues((*rows)[5], &content.targets);
    if (number == 0) CopyValues((*rows)[6], &content.scratch);
    content.opener = (*rows)[3].view().values<uint64_t>()[0];
    rows_there += static_cast<uint64_t>(record.rows_end - record.first_row);
    steps += static_cast<uint64_t>(record.steps_end - record.first_row);
    if (!content.keys.empty()) image->by_first_key[number][content.keys[0]] = record.id;
    image->tables[number][record.id] = std::move(content);
  }
  if (auto ready = (*table)->priority_table("ready"); ready != nullptr) {
    for (const RowId& item : ready->Items()) {
      image->tables[number][item.id].ready.push_back(item.row);
      const auto priority = ready->Priority(item);
      if (priority.ok() && *priority == 2) continue;
      image->error =
          Say("item ", item.id, "/", item.row,
              " of 'ready': ", priority.ok() ? Say(*priority) : priority.status().ToString());
    }
  }
  image->held[number] = {.rows = static_cast<int64_t>(rows_there),
                         .trajectories = image->tables[number].size()};
  const TableSpec spec = OracleSpec(number);
  if ((*table)->Count() != image->tables[number].size() ||
      (!spec.stream && (*table)->StepCount() != steps)) {
    image->error = Say("table ", spec.name, " counts ", (*table)->Count(), " trajectories and ",
                       (*table)->StepCount(), " steps; a scan finds ", image->tables[number].size(),
                       " and ", steps);
  }
  if (spec.steps_max > 0 && rows_there > spec.steps_max) {
    image->error = Say("table ", spec.name, " holds ", rows_there, " rows");
  }
  if (spec.trajectories_max > 0 && (*table)->Count() > spec.trajectories_max) {
    image->error = Say("table ", spec.name, " holds ", (*table)->Count(), " trajectories");
  }
}

uint64_t OpenerOf(uint32_t actor, const ActorModel::Trajectory& trajectory) {
  const ActorModel::Segment& first = trajectory.segments[0];
  return OracleRows::KeyOf(actor, first.op, first.lane, 0);
}

// What a row shows that patches may have written; of "target" and "scratch" more in CheckLate.
struct PatchedRow {
  const ActorModel::Trajectory& trajectory;
  uint64_t opener;
  int64_t row;

  std::optional<OraclePatchRow> By(uint32_t column) const {
    const auto patch = trajectory.patched.find({column, row});
    if (patch == trajectory.patched.end()) return {};
    return OraclePatchRow(patch->second, opener, row);
  }
};

std::string CheckRows(const StoreImage::Content& found, uint32_t actor,
                      const ActorModel::Trajectory& trajectory) {
  const uint64_t opener = OpenerOf(actor, trajectory);
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
      const bool final = within == segment.rows;
      int32_t action = final ? 0 : static_cast<int32_t>(key & 0xFFFFFF);
      std::array<uint32_t, 2> extra = {9, 9};
      if (!final) extra = OracleRows::Extra(key);
      const PatchedRow patched{trajectory, opener, row};
      if (const auto by = patched.By(kPatchAction)) action = by->action;
      if (const auto by = patched.By(kPatchExtra)) extra = by->extra;
      if (found.keys[at] != key || std::memcmp(&found.obs[at * 4], obs, sizeof(obs)) != 0) {
        return Say("row ", row, " holds key ", found.keys[at], ", expected ", key);
      }
      if (found.actions[at] != action) {
        return Say("row ", row, " holds action ", found.actions[at], ", expected ", action);
      }
      if (std::memcmp(&found.extras[at * 2], extra.data(), sizeof(extra)) != 0) {
        return Say("row ", row, " holds extra ", found.extras[at * 2], ", expected ", extra[0]);
      }
    }
  }
  return found.opener == opener ? "" : Say("opener is ", found.opener, ", expected ", opener);
}

// The late group and what waits for it; what is not in the log.
std::string CheckLate(const StoreImage& image, const StoreImage::Content& found, uint32_t actor,
                      const ActorModel::Trajectory& trajectory) {
  const TrajectoryRecord& record = found.record;
  const uint64_t opener = OpenerOf(actor, trajectory);
  for (int64_t row = record.first_row; row < record.rows_end; ++row) {
    const auto at = static_cast<size_t>(row - record.first_row);
    std::array<float, kTargetFloats> target;
    target.fill(-1);
    if (const auto by = PatchedRow{trajectory, opener, row}.By(kPatchTarget)) target = by->target;
    const float* const read = &found.targets[at * kTargetFloats];
    if (!std::equal(target.begin(), target.end(), read)) {
      return Say("row ", row, " holds target ", read[0], ", expected ", target[0]);
    }
    if (found.scratch[at] != 3) return Say("row ", row, " holds scratch ", found.scratch[at]);
  }
  const int64_t filled = std::max(trajectory.filled, record.first_row);
  const auto stored = image.handles[0]->Filled(record.id, "later");
  if (!stored.ok() || *stored != filled) {
    return Say("it is filled up to row ", stored.ok() ? Say(*stored) : stored.status().ToString(),
               ", expected ", filled);
  }
  std::vector<int64_t> ready;
  for (int64_t row = record.first_row; row < std::min(filled, record.steps_end); ++row) {
    ready.push_back(row);
  }
  if (found.ready == ready) return "";
  return Say("it has ", found.ready.size(), " items in 'ready', from row ",
             found.ready.empty() ? -1 : found.ready[0], " on; expected ", ready.size(), " from ",
             record.first_row);
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
  trajectory->seen = true;
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
  if (wrong.empty() && table == 0) wrong = CheckLate(image, found->second, actor, *trajectory);
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

std::string EngineOracle::Check(Database* database, const std::vector<const OpLog*>& logs,
                                const Survival& survival) {
  StoreImage image;
  image.database = database;
  for (uint32_t table = 0; table < kOracleTables; ++table) ReadTable(&image, table);
  if (!image.error.empty()) return image.error;
  newest_there_ = 0;
  oldest_missing_ = UINT64_MAX;
  const std::vector<ActorModel> before = models_;
  for (uint32_t actor = 0; actor < actors(); ++actor) {
    const OpLog* log = logs.empty() ? nullptr : logs[actor];
    std::string wrong = CheckActor(image, log, survival, actor);
    if (!wrong.empty()) return wrong;
  }
  if (!logs.empty()) first_op_ += OpLog::kCapacity;
  std::string wrong = CheckOrder(image);
  if (wrong.empty()) wrong = CheckAges();
  if (wrong.empty()) wrong = CheckHeld(before, image.held);
  return wrong;
}

}  // namespace geardb::testing
