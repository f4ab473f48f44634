#include "tools/geardb/repair_plan.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "engine/internal/cold_check.h"
#include "engine/internal/cold_tier.h"
#include "tools/geardb/repair_shadow.h"
#include "tools/geardb/segment_head.h"
#include "tools/geardb/text_table.h"
#include "tools/geardb/whole_read.h"
#include "wal/segment_check.h"

namespace geardb::cli {
namespace {

namespace fs = std::filesystem;

/// Each try mends one more thing that the one before it found.
constexpr int kTriesMax = 8;

/// Makes one plan.
class Planner {
 public:
  explicit Planner(const RepairOptions& options) : options_(options) {
    plan_.directory = options.directory;
  }

  Result<RepairPlan> Plan() {
    GEARDB_RETURN_IF_ERROR(LookAtManifest());
    if (!plan_.impossible.empty()) return std::move(plan_);
    GEARDB_RETURN_IF_ERROR(LookAtFiles());
    GEARDB_RETURN_IF_ERROR(TryOut());
    if (!plan_.impossible.empty() || database_ == nullptr) return std::move(plan_);
    GEARDB_RETURN_IF_ERROR(ReadAll());
    GEARDB_RETURN_IF_ERROR(NameLosses());
    database_.reset();
    return std::move(plan_);
  }

 private:
  std::string log_directory() const { return JoinPath(options_.directory, wal::kLogDirectoryName); }
  std::string cold_directory() const { return JoinPath(options_.directory, "cold"); }
  void Add(std::string damage, std::string action) {
    if (shadow_ != nullptr) damage = shadow_->InPlace(std::move(damage), options_.directory);
    plan_.damage.push_back(std::move(damage));
    plan_.actions.push_back(std::move(action));
  }
  void GiveUp(std::string why) { plan_.impossible = std::move(why); }

  Status LookAtManifest();
  Status LookAtFiles();
  Status LookAtRing();
  Status TryOut();
  /// Mends what made an open of the shadow fail, or gives up.
  Status Mend(const Status& failure);
  Status LookAtSegment(const std::string& name);
  bool MendImage(const Status& failure);
  bool MendCold(const Status& failure);
  void CutLog(Lsn at, std::string damage);
  void MakeSegmentOf(Lsn end);
  bool HasSegmentOf(Lsn end) const;
  void LookAtCold();
  void AddFirst(const std::vector<std::string>& damage, const std::string& action) {
    const std::string more = " (and " + std::to_string(damage.size() - 1) + " more)";
    if (!damage.empty()) Add(damage[0] + (damage.size() == 1 ? "" : more), action);
  }
  Status ReadAll();
  Status NameLosses();
  void KeepWhatIsWrittenOver(const std::vector<SalvagedRecord>& beyond);
  bool HoldsValues(TableId id, const SalvagedRecord& record) const;
  void NameBeyond(const std::vector<SalvagedRecord>& beyond);
  void NameUnnamed(const std::vector<SalvagedRecord>& before);
  TableLoss& LossOf(TableId id);

  const RepairOptions options_;
  Env* const env_ = Env::Posix();
  RepairPlan plan_;
  wal::Manifest manifest_;            // As the plan writes it, or as it is.
  wal::Manifest found_;               // Before the log is cut.
  std::optional<Lsn> cut_;            // Where the log is.
  std::map<std::string, Lsn> bases_;  // Of segments, by their files' names.
  std::unique_ptr<Shadow> shadow_;    // What `database_` is opened in.
  std::unique_ptr<Database> database_;
  std::map<TableId, std::string> names_;
  std::set<TableId> created_;  // By records beyond the cut.
  std::map<TableId, TableLoss> losses_;
};

Status Planner::LookAtManifest() {
  const auto read = wal::ReadManifest(env_, options_.directory);
  if (read.ok()) {
    manifest_ = found_ = *read;
    return Status::Ok();
  }
  const StatusCode code = read.status().code();
  if (code != StatusCode::kNotFound && code != StatusCode::kCorruption) return read.status();
  if (code == StatusCode::kNotFound && !FindUuid(env_, log_directory())) {
    return Status::NotFound("there is no database in '", options_.directory, "'");
  }
  const auto rebuilt = RebuildManifest(env_, options_.directory);
  const std::string damage =
      code == StatusCode::kNotFound
          ? "the file MANIFEST is missing"
          : "the manifest is damaged: " + std::string(read.status().message());
  if (!rebuilt.ok()) {
    plan_.damage.push_back(damage);
    GiveUp("the manifest cannot be made again: " + std::string(rebuilt.status().message()));
    return Status::Ok();
  }
  manifest_ = found_ = *rebuilt;
  plan_.manifest = manifest_;
  Add(damage, "a manifest is made from what the log's records say: opening " +
                  std::to_string(manifest_.epoch.open) + ", which began at LSN " +
                  Grouped(manifest_.start));
  return Status::Ok();
}

Status Planner::LookAtRing() {
  const std::string path = JoinPath(log_directory(), wal::kRingName);
  const auto file = env_->OpenFile(path, {.mode = FileMode::kRead});
  std::string damage;
  if (file.status().code() == StatusCode::kNotFound) {
    damage = "the file " + path + " is missing";
  } else if (!file.ok()) {
    damage = "the ring cannot be read: " + std::string(file.status().message());
  } else {
    GEARDB_ASSIGN_OR_RETURN(const uint64_t bytes, (*file)->Size());
    if (bytes == manifest_.ring_bytes) return Status::Ok();
    damage = path + " has " + std::to_string(bytes) + " bytes; expected " +
             std::to_string(manifest_.ring_bytes);
  }
  plan_.ring_bytes = manifest_.ring_bytes;
  if (file.status().code() != StatusCode::kNotFound) plan_.aside.push_back(wal::kRingName);
  Add(damage, "an empty ring takes its place");
  plan_.losses.push_back("what only the ring held: appends of the last moments before a crash");
  return Status::Ok();
}

Status Planner::LookAtFiles() {
  GEARDB_ASSIGN_OR_RETURN(const bool locked,
                          env_->Exists(JoinPath(options_.directory, wal::kLockName)));
  if (!locked) {
    plan_.make_lock = true;
    Add("the file LOCK is missing", "an empty one is made");
  }
  GEARDB_RETURN_IF_ERROR(LookAtRing());
  const auto names = env_->List(log_directory());
  if (names.status().code() == StatusCode::kNotFound) {
    Add("the directory " + log_directory() + " is missing", "an empty one is made");
    return Status::Ok();
  }
  GEARDB_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    uint64_t number = 0;
    if (!wal::ParseSegmentName(name, &number)) continue;
    GEARDB_RETURN_IF_ERROR(LookAtSegment(name));
  }
  return Status::Ok();
}

Status Planner::LookAtSegment(const std::string& name) {
  const std::string path = JoinPath(log_directory(), name);
  const Status free = wal::CheckFreeSegment(env_, path, manifest_);
  if (!free.ok() && free.code() != StatusCode::kCorruption) return free;
  GEARDB_ASSIGN_OR_RETURN(const auto known, ReadSegmentBase(env_, path, manifest_));
  if (known) {
    bases_[name] = *known;
    return Status::Ok();
  }
  // Its first record is lost: what follows says which segment it is.
  GEARDB_ASSIGN_OR_RETURN(const auto records, SalvageFile(env_, path, manifest_));
  if (const auto first = FirstOfSegment(records, found_)) {
    const Lsn base = AlignDown(first->lsn, manifest_.segment_bytes);
    bases_[name] = base;
    plan_.heads.push_back({.name = name, .base = base, .epoch = first->epoch});
    Add(path + " has lost its first record",
        "the record is written again: it is the segment of LSN " + Grouped(base) +
            ", as its other records say");
  } else if (!free.ok()) {
    plan_.aside.push_back(name);
    Add(std::string(free.message()), "the file is put aside");
  }
  return Status::Ok();
}

// Where the log ends with a segment, the next one is made by whoever writes on.
bool Planner::HasSegmentOf(Lsn end) const {
  const Lsn base = AlignDown(end, manifest_.segment_bytes);
  if (base == end || (plan_.segment && plan_.segment->base == base)) return true;
  return std::ranges::any_of(bases_, [base](const auto& file) { return file.second == base; });
}

void Planner::MakeSegmentOf(Lsn end) {
  const Lsn base = AlignDown(end, manifest_.segment_bytes);
  plan_.segment = {.name = {}, .base = base, .epoch = found_.epoch};
  plan_.actions.push_back("a segment is made for the log to go on in, at LSN " + Grouped(base));
}

void Planner::CutLog(Lsn at, std::string damage) {
  cut_ = at;
  manifest_.epoch.open = std::max(manifest_.epoch.open, found_.epoch.open) + 1;
  manifest_.start = at;
  manifest_.cut = kNoLsn;
  plan_.manifest = manifest_;
  Add(std::move(damage),
      "the log is cut at LSN " + Grouped(at) + ": a new epoch begins there, by a new manifest");
  // It goes on in the middle of a segment, whose file has to say which one it is.
  plan_.segment.reset();
  if (!HasSegmentOf(at)) MakeSegmentOf(at);
}

Status Planner::TryOut() {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    shadow_ = std::make_unique<Shadow>();
    GEARDB_RETURN_IF_ERROR(shadow_->Make(plan_, manifest_));
    auto opened = shadow_->Open(options_.memory_bytes);
    if (!opened.ok()) {
      const StatusCode code = opened.status().code();
      if (code != StatusCode::kCorruption && code != StatusCode::kNotFound) return opened.status();
      GEARDB_RETURN_IF_ERROR(Mend(opened.status()));
      if (!plan_.impossible.empty()) return Status::Ok();
      continue;
    }
    const RecoveryReport& recovery = (*opened)->recovery();
    if (!recovery.damage.ok()) {
      CutLog(recovery.end, std::string(recovery.damage.message()));
      continue;
    }
    // An open for writing would go on in a file that does not say which segment it is. What only
    // the ring holds, it drains into new ones.
    GEARDB_ASSIGN_OR_RETURN(const SegmentsEnd segments,
                            EndOfSegments(env_, shadow_->path(), manifest_, recovery.start));
    const Lsn end = segments.lsn;
    if (!HasSegmentOf(end)) {
      std::string damage = "no file of " + log_directory() + " has the segment of LSN " +
                           Grouped(end) + ", in which the log goes on";
      if (end == recovery.end) {
        CutLog(end, std::move(damage));
      } else {
        plan_.damage.push_back(std::move(damage));
        MakeSegmentOf(end);
      }
      continue;
    }
    LookAtCold();
    if (segments.lost_what_the_ring_has()) {
      plan_.drain_ring = true;
      Add("the segments in " + log_directory() + " have no valid record at LSN " + Grouped(end) +
              ", but everything up to LSN " + Grouped(segments.synced) + " was synced",
          "the ring's copy is put back in its place, by an open for writing");
    }
    database_ = std::move(*opened);
    return Status::Ok();
  }
  GiveUp("each thing that was mended has shown another; the last is " +
         (plan_.damage.empty() ? std::string("unknown") : plan_.damage.back()));
  return Status::Ok();
}

Status Planner::Mend(const Status& failure) {
  if (MendImage(failure) || MendCold(failure)) return Status::Ok();
  const std::string why = shadow_->InPlace(std::string(failure.message()), options_.directory);
  plan_.damage.push_back(why);
  GiveUp("nothing is known to save of it: " + why);
  return Status::Ok();
}

// The log ends before the image: that is a state by itself, and the log begins anew behind it.
bool Planner::MendImage(const Status& failure) {
  if (plan_.cold_aside || cut_) return false;
  engine::ColdTier tier(env_, options_.directory, engine::ColdStoreOptions{.read_only = true});
  if (!tier.OpenExisting(0).ok() || tier.head().number == 0) return false;
  const engine::ImageHead head = tier.head();
  const auto end = EndOfDamagedLog(env_, options_.directory, manifest_, head.log_from);
  if (!end.ok() || *end >= head.lsn || head.log_from != head.lsn) return false;
  CutLog(head.lsn, std::string(failure.message()));
  return true;
}

// A log that has all since its begin needs no cold store.
bool Planner::MendCold(const Status& failure) {
  if (plan_.cold_aside || !fs::exists(cold_directory())) return false;
  // What is left of a segment that was given back is no begin of the log.
  std::set<Lsn> bases;
  for (const auto& [name, base] : bases_) bases.insert(base);
  Lsn next = 0;
  while (bases.contains(next)) next += manifest_.segment_bytes;
  if (bases.empty() || next <= *bases.rbegin()) return false;
  plan_.cold_aside = true;
  Add("the cold store: " + std::string(failure.message()),
      "the cold store is put aside: the log has all since its begin");
  return true;
}

// One good copy of each index chunk is there, or there would be nothing to open.
void Planner::LookAtCold() {
  if (plan_.cold_aside) return;
  const auto found = engine::CheckColdChunks(cold_directory());
  if (!found.ok() ||
      (!found->mendable && !found->pages && found->blobs.empty() && found->tables.empty())) {
    return;
  }
  for (const std::string& text : found->manifest) {
    Add(text, "what says which files the cold store has is written again, twice");
  }
  for (const auto& [path, text] : found->blobs) {
    Add(text, "it gets its header and footer again; the values that it still has can be read");
  }
  for (const auto& [path, text] : found->tables) {
    Add(text, "its tail is made again from the keys that it has");
  }
  plan_.mend_files = !found->blobs.empty() || !found->tables.empty();
  plan_.mend_cold = found->mendable;
  plan_.drop_cold_pages = found->pages || found->blobs_cut;
  plan_.drop_before_removals = found->pages_name_lsns;
  const char* const copies =
      found->both_bad ? "nothing of copies that are damaged in the same places: this is refused"
                      : "copies of index chunks that are damaged are written again from the others";
  AddFirst(found->files, found->pages ? "the cold store goes on without it" : copies);
  AddFirst(found->copies, copies);
  for (const auto& [name, base] : bases_) plan_.log_start = std::min(plan_.log_start, base);
  if (bases_.empty()) plan_.log_start = 0;
}

TableLoss& Planner::LossOf(TableId id) {
  TableLoss& loss = losses_[id];
  loss.id = id;
  return loss;
}

// Everything of every trajectory: a page that cannot be read costs its trajectory.
Status Planner::ReadAll() {
  for (const std::string& name : database_->Tables()) {
    GEARDB_ASSIGN_OR_RETURN(const auto table, database_->OpenTable(name));
    names_[table->id()] = name;
    const WholeRead whole(table.get());
    for (const TrajectoryRecord& record : table->Scan({})) {
      const Status read = whole.Read(record);
      if (read.ok()) continue;
      if (read.code() != StatusCode::kCorruption) return read;
      Add(std::string(read.message()),
          "trajectory '" + name + "'/" + std::to_string(record.id) + " is removed");
      plan_.remove[name].push_back(record.id);
      LossOf(table->id()).trajectories.push_back(record.id);
    }
  }
  for (const TrajectoryName& lost : database_->recovery().damaged_trajectories) {
    Add("pages of trajectory '" + lost.table + "'/" + std::to_string(lost.id) +
            " are damaged in the log",
        "trajectory '" + lost.table + "'/" + std::to_string(lost.id) + " is removed");
    plan_.remove[lost.table];  // The open itself removes it.
    for (const auto& [id, name] : names_) {
      if (name == lost.table) LossOf(id).trajectories.push_back(lost.id);
    }
  }
  for (const Tag& tag : database_->Tags()) {
    if (tag.damaged) plan_.notes.push_back("tag '" + tag.name + "' has lost its blob");
  }
  if (const uint64_t count = database_->recovery().damaged_priorities; count > 0) {
    plan_.notes.push_back(Counted(count, "priority") +
                          " in damaged pieces of the log stayed as before");
  }
  return Status::Ok();
}

// The values of a column of any length lie in a table that nobody sees: nothing names it, and its
// operations come behind those of the table that the column is of. What that one loses is said of
// it, and of a table whose own record is lost no more can be known.
bool Planner::HoldsValues(TableId id, const SalvagedRecord& record) const {
  const bool named = names_.contains(id) || created_.contains(id);
  return !named && record.first_table != id;
}

void Planner::NameBeyond(const std::vector<SalvagedRecord>& beyond) {
  LogLoss log{.from = *cut_, .to = *cut_};
  for (const SalvagedRecord& record : beyond) {
    log.to = std::max(log.to, record.end);
    ++log.readable_records;
    for (const auto& [id, name] : record.created) {
      if (names_.contains(id)) continue;
      created_.insert(id);
      LossOf(id).whole = true;
      LossOf(id).name = name;
    }
    for (const auto& [id, opened] : record.opened) {
      if (HoldsValues(id, record)) continue;
      std::vector<TrajectoryId>& lost = LossOf(id).trajectories;
      lost.insert(lost.end(), opened.begin(), opened.end());
      LossOf(id).whole |= !names_.contains(id);
    }
    for (const std::string& tag : record.tags) {
      plan_.losses.push_back("tag '" + tag + "', written at LSN " + Grouped(record.lsn));
    }
  }
  plan_.log = log;
}

// Ids of a table ascend in the order of the log.
void Planner::NameUnnamed(const std::vector<SalvagedRecord>& before) {
  std::map<TableId, TrajectoryId> known;
  for (const SalvagedRecord& record : before) {
    for (const auto& [id, opened] : record.opened) {
      for (const TrajectoryId one : opened) known[id] = std::max(known[id], one);
    }
  }
  for (const auto& [id, name] : names_) {
    const auto table = database_->OpenTable(name);
    if (!table.ok()) continue;
    for (const TrajectoryRecord& record : (*table)->Scan({})) {
      known[id] = std::max(known[id], record.id);
      if (record.state == TrajectoryState::kClosed) continue;
      LossOf(id).cut_short.push_back({.id = record.id, .rows_end = record.rows_end});
    }
    TableLoss& loss = LossOf(id);
    std::ranges::sort(loss.trajectories);
    TrajectoryId next = known[id] + 1;
    for (const TrajectoryId lost : loss.trajectories) {
      if (lost > next) loss.unnamed.emplace_back(next, lost - 1);
      next = std::max(next, lost + 1);
    }
    // What cannot be read may have begun more of them.
    loss.unnamed.emplace_back(next, kNoEnd);
  }
}

void Planner::KeepWhatIsWrittenOver(const std::vector<SalvagedRecord>& beyond) {
  std::set<std::string> kept = {wal::kRingName};
  for (const SalvagedRecord& record : beyond) kept.insert(record.file);
  for (const auto& [name, base] : bases_) {
    if (base <= *cut_ && *cut_ < base + manifest_.segment_bytes) kept.insert(name);
  }
  for (const std::string& name : kept) {
    if (std::ranges::count(plan_.aside, name) == 0 && fs::exists(JoinPath(log_directory(), name))) {
      plan_.kept.push_back(name);
    }
  }
}

Status Planner::NameLosses() {
  if (cut_) {
    GEARDB_ASSIGN_OR_RETURN(auto records, SalvageLog(env_, log_directory(), found_));
    std::vector<SalvagedRecord> before, beyond;
    for (SalvagedRecord& record : records) {
      if (record.lsn < *cut_) {
        before.push_back(std::move(record));
      } else if (IsLive(record, found_)) {
        beyond.push_back(std::move(record));
      }
    }
    NameBeyond(beyond);
    NameUnnamed(before);
    KeepWhatIsWrittenOver(beyond);
    plan_.losses.push_back(
        "what the log said from LSN " + Grouped(*cut_) +
        " on of what stays: rows of open trajectories, patches, removals, "
        "priorities, columns that were set, draws; and tables and tags that no record "
        "names which can be read");
  }
  for (auto& [id, loss] : losses_) {
    if (names_.contains(id)) loss.name = names_[id];
    if (loss.name.empty()) loss.name = "number " + std::to_string(id);
    std::ranges::sort(loss.trajectories);
    const auto twice = std::unique(loss.trajectories.begin(), loss.trajectories.end());
    loss.trajectories.erase(twice, loss.trajectories.end());
    if (!loss.empty()) plan_.tables.push_back(std::move(loss));
  }
  return Status::Ok();
}

}  // namespace

Result<RepairPlan> PlanRepair(const RepairOptions& options) { return Planner(options).Plan(); }

}  // namespace geardb::cli
