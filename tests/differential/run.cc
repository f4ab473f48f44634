#include "tests/differential/run.h"

#include "tests/differential/runner.h"
#include "tests/testing/drop_frames.h"

namespace geardb::differential {
namespace {

/// So small that pages lose their frames and the log's segments are recycled.
/// RocksDB has no seam for its files: without it the log keeps everything.
void UseFaults(testing::FaultEnv* env, DatabaseOptions* options) {
  options->env = env;
  options->cold_tier = false;
  options->log_bytes_max = uint64_t{1} << 30;
}

template <typename Map>
void AddMap(const Map& from, Map* to) {
  for (const auto& [key, count] : from) (*to)[key] += count;
}

}  // namespace

void RunCounts::Add(const RunCounts& other) {
  AddMap(other.done, &done);
  AddMap(other.refused, &refused);
  AddMap(other.drawn, &drawn);
  AddMap(other.shown, &shown);
  AddMap(other.removed, &removed);
  AddMap(other.crashes, &crashes);
  rows_compared += other.rows_compared;
  frames_dropped += other.frames_dropped;
  frame_misses += other.frame_misses;
  log_page_reads += other.log_page_reads;
  cold_page_reads += other.cold_page_reads;
  cleaner_passes += other.cleaner_passes;
  segments_recycled += other.segments_recycled;
  images_opened += other.images_opened;
  rescales += other.rescales;
}

RunResult RunProgram(const Program& program, PlantedBug bug) { return Runner(bug).Run(program); }

Runner::~Runner() {
  samplers_.clear();
  tables_.clear();
}

RunResult Runner::Run(const Program& program) {
  options_ = OptionsKind(program.empty() ? 0 : program[0].numbers[3]);
  if (NeedsFaults(program)) env_ = std::make_unique<testing::FaultEnv>(/*seed=*/1);
  Open();
  Remember();
  for (step_ = 0; step_ < program.size() && !different(); ++step_) {
    op_ = program[step_].op;
    DoWithCrash(program[step_]);
    for (const auto& live : tables_) {
      if (!different()) CompareRemovals(live.get());
      if (!different()) Same("count", live->table->Count(), live->plain.trajectories.size());
    }
  }
  op_ = Op::compare;
  if (!different()) CompareAll();
  if (!different()) Reopen();
  CountStats();
  return result_;
}

void Runner::Do(const Step& step) {
  switch (step.op) {
    case Op::create_table:
      return CreateTable(step);
    case Op::drop_table:
      return DropTable(step);
    case Op::open_table:
      return OpenTable(step);
    case Op::create_priority_table:
      return CreatePriorityTable(step);
    case Op::append:
    case Op::append_steps:
    case Op::append_trajectory:
      return AppendOne(step);
    case Op::append_lanes:
      return AppendLanes(step);
    case Op::cut:
      return Cut(step);
    case Op::detach:
      return Detach(step);
    case Op::leave:
      return Leave(step);
    case Op::resume:
      return Resume(step);
    case Op::remove:
      return Remove(step);
    case Op::remove_range:
      return RemoveRange(step);
    case Op::remove_passing:
      return RemovePassing(step);
    case Op::truncate:
      return Truncate(step);
    case Op::set_columns:
      return SetColumns(step);
    case Op::patch:
      return Patch(step);
    case Op::patch_items:
      return PatchItems(step);
    case Op::add_columns:
      return AddColumns(step);
    case Op::drop_columns:
      return DropColumns(step);
    case Op::close_orphans:
      return CloseOrphans(step);
    case Op::remove_expired:
      return RemoveExpired(step);
    case Op::pass_time:
      return PassTime(step);
    default:
      return DoMore(step);
  }
}

/// Those that neither append nor change what a table holds.
void Runner::DoMore(const Step& step) {
  switch (step.op) {
    case Op::set_rows:
      return SetRows(step);
    case Op::set_handles:
      return SetHandles(step);
    case Op::set_all:
      return SetAll(step);
    case Op::delete_rows:
      return DeleteRows(step);
    case Op::delete_handles:
      return DeleteHandles(step);
    case Op::configure:
      return Configure(step);
    case Op::set_filter:
      return SetFilter(step);
    case Op::begin_epoch:
      return BeginEpoch(step);
    case Op::seal_group:
      return SealGroup(step);
    case Op::seal_overdue:
      return SealOverdue(step);
    case Op::sample:
      return Sample(step);
    case Op::sample_mixed:
      return SampleMixed(step);
    case Op::next:
      return Next(step);
    case Op::stop_sampling:
      return StopSampling(step);
    case Op::set_beta:
      return SetBeta(step);
    case Op::write_batch:
      return WriteBatches(step);
    case Op::tag:
      return WriteTag(step);
    case Op::wait:
      return Wait(step);
    case Op::drop_frames:
      return DropFrames();
    case Op::reopen:
      return Reopen();
    case Op::crash:
      return Crash();
    case Op::lose_power:
      return LosePower(step);
    case Op::crash_within:
      return CrashWithin(step);
    case Op::look:
      return Look();
    case Op::gather:
      return Gather(step);
    case Op::scan:
      return Scan(step);
    case Op::statistics:
      return Statistics(step);
    default:
      return CompareAll();
  }
}

void Runner::Differ(const std::string& what, const std::string& text) {
  if (different()) return;
  const std::string kind = std::string(NameOf(op_)) + ": " + what;
  result_.difference = Difference{step_, kind, kind + ": " + text};
}

bool Runner::SameCode(const std::string& what, const Status& found, StatusCode expected) {
  if (different()) return false;
  ++(found.ok() ? result_.counts.done : result_.counts.refused)[op_];
  if (found.code() == expected) return true;
  Differ(what + " status",
         "found " + found.ToString() + ", expected " + std::string(StatusCodeName(expected)));
  return false;
}

void Runner::Open(bool read_only) {
  OpenDatabase(read_only);
  if (!different()) OpenTables();
}

void Runner::OpenDatabase(bool read_only) {
  DatabaseOptions options = options_;
  options.clock = &clock_;
  options.read_only = read_only;
  if (env_ != nullptr) UseFaults(env_.get(), &options);
  auto opened = Database::Open(env_ == nullptr ? directory_->path() : "store", options);
  if (!opened.ok()) return Differ("open", opened.status().ToString());
  database_ = std::move(*opened);
  result_.counts.images_opened += database_->recovery().image > 0 ? 1u : 0u;
}

void Runner::OpenTables() {
  std::vector<std::string> names;
  for (const auto& live : tables_) names.push_back(live->plain.spec.name);
  if (!Same("tables", database_->Tables(), names)) return;
  for (const auto& live : tables_) {
    auto table = database_->OpenTable(live->plain.spec.name);
    if (!SameCode("open table", table.status(), StatusCode::kOk)) return;
    live->table = std::move(*table);
    const auto removals = live->table->ReadRemovals(0);
    if (!SameCode("removals", removals.status(), StatusCode::kOk)) return;
    live->removals_seen = live->plain.removals.size();
  }
}

void Runner::CountStats() {
  if (database_ == nullptr) return;
  RunCounts& counts = result_.counts;
  const DatabaseStats stats = database_->Stats();
  counts.log_page_reads += stats.log_page_reads;
  counts.cold_page_reads += stats.cold_page_reads;
  counts.cleaner_passes += stats.cleaner.passes;
  counts.segments_recycled += stats.cleaner.segments;
  for (const auto& live : tables_) {
    const FrameStats frames = live->table->Stats().frames;
    counts.frames_dropped += frames.dropped;
    counts.frame_misses += frames.misses;
    for (size_t p = 0; p < live->plain.priorities.size(); ++p) {
      counts.rescales += live->priority_table(p)->Stats().rescales;
    }
  }
}

void Runner::Close() {
  CountStats();
  StopAll(nullptr);
  for (const auto& live : tables_) {
    for (size_t w = 0; w < live->plain.writers.size(); ++w) {
      if (live->writers[w] == nullptr) continue;
      live->writers[w].reset();
      live->plain.Leave(w);
    }
    live->table.reset();
  }
  SameCode("close", database_->Close(), StatusCode::kOk);
  database_.reset();
}

void Runner::Reopen() {
  Close();
  if (different()) return;
  for (const auto& live : tables_) {
    live->plain.Reopen();
    if (bug_ != PlantedBug::kLosesOrphans) continue;
    std::erase_if(live->plain.trajectories, [](const auto& t) { return !t.second.closed(); });
    live->plain.Settle();
  }
  Open();
  if (!different()) CompareAll();
}

/// A read-only open shows the same, and takes no change.
void Runner::Look() {
  Close();
  if (different()) return;
  std::vector<PlainTable> before;
  for (const auto& live : tables_) {
    before.push_back(live->plain);
    live->plain.Reopen(/*read_only=*/true);
  }
  Open(/*read_only=*/true);
  if (!different()) CompareAll();
  for (const auto& live : tables_) {
    if (different()) return;
    const IdRange none(0, 1);
    SameCode("a change", live->table->Remove(none).status(), StatusCode::kFailedPrecondition);
    live->table.reset();
  }
  if (different()) return;
  SameCode("close", database_->Close(), StatusCode::kOk);
  database_.reset();
  for (size_t i = 0; i < tables_.size(); ++i) {
    tables_[i]->plain = before[i];
    tables_[i]->plain.Reopen();
  }
  Open();
  if (!different()) CompareAll();
}

void Runner::DropFrames() {
  SameCode("sync", database_->Sync(), StatusCode::kOk);
  testing::DropFrames(*database_);
}

}  // namespace geardb::differential
