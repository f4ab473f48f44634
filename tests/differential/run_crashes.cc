// Crashes: of the process between operations, and, on a file system in memory (fault_env.h), of the
// machine, or at a named point within an operation. What is left is a prefix of the log, so one of
// the states that the model remembers: the last of those that the log's end covers, and never one
// before what had to survive. Where the end lies within a step, whose call has several records, it
// is the state before the step or behind it.
#include <algorithm>
#include <atomic>

#include "base/crash_point.h"
#include "tests/differential/runner.h"

namespace geardb::differential {
namespace {

using testing::CrashKind;
using testing::FaultEnv;

/// The crash that the next step is to meet.
std::atomic<PointCrash*> armed_crash{nullptr};

void MeetCrash(const char*) {
  PointCrash* const crash = armed_crash.load();
  if (crash == nullptr || crash->points_left.fetch_sub(1) != 1) return;
  crash->left = crash->env->CopyAfterCrash(crash->kind, crash->seed);
}

/// Calls of one record, or of several whose states are told apart: the others are done whole, or
/// durable, before anything crashes.
bool IsOneChange(Op op) {
  switch (op) {
    case Op::close_orphans:
    case Op::seal_overdue:
    case Op::patch_items:
    case Op::leave:
    case Op::remove_expired:
    case Op::remove_passing:
    case Op::reopen:
    case Op::look:
    case Op::crash:
    case Op::lose_power:
      return false;
    default:
      return true;
  }
}

}  // namespace

bool NeedsFaults(const Program& program) {
  return std::any_of(program.begin(), program.end(), [](const Step& step) {
    return step.op == Op::lose_power || step.op == Op::crash_within;
  });
}

// What the model remembers.

void Runner::Remember() {
  if (env_ == nullptr || database_ == nullptr || different()) return;
  const DatabaseStats stats = database_->Stats();
  if (history_.empty() || history_.back().end < stats.log_end) history_.emplace_back();
  PlainStore& now = history_.back();
  now = {.end = stats.log_end, .tables = {}, .tags = tags_};
  for (const auto& live : tables_) now.tables.push_back(live->plain);
  // What a crash within the step has left may be older than what is synced by now.
  if (meets_crash_) return;
  while (history_.size() > 1 && history_[1].end <= stats.log_synced) history_.pop_front();
}

/// Tables and tags are those of then. Ids that have been given out are not given out again.
void Runner::GoBackTo(const PlainStore& then) {
  std::vector<std::unique_ptr<LiveTable>> tables;
  for (const PlainTable& plain : then.tables) {
    const auto known = std::find_if(tables_.begin(), tables_.end(), [&](const auto& live) {
      return live != nullptr && live->plain.spec.name == plain.spec.name;
    });
    auto live = known == tables_.end() ? std::make_unique<LiveTable>(plain) : std::move(*known);
    const TrajectoryId last_id = std::max(live->plain.last_id, plain.last_id);
    live->plain = plain;
    live->plain.last_id = last_id;
    live->plain.now_us = clock_.now_us;
    live->plain.Reopen();
    tables.push_back(std::move(live));
  }
  tables_ = std::move(tables);
  tags_ = then.tags;
}

/// Opens what a crash has left, of which everything before `least` is there.
void Runner::OpenAfterCrash(Lsn least) {
  const std::deque<PlainStore> history = std::move(history_);
  history_.clear();
  OpenDatabase(/*read_only=*/false);
  if (different()) return;
  const Lsn end = database_->recovery().end;
  if (end < least) return Differ("log", "ends at " + Printed(end) + " before " + Printed(least));
  size_t at = 0;
  while (at + 1 < history.size() && history[at + 1].end <= end) ++at;
  if (bug_ == PlantedBug::kLosesTheLast && at > 0) --at;
  const bool lost = at + 1 < history.size();
  if (lost) {
    ++result_.counts.crashes["that lost changes"];
    batches_.clear();
    last_end_ = 0;
  }
  CompareWith(history[at], history[at]);
  if (different() && lost && history[at].end < end && end < history[at + 1].end) {
    result_.difference.reset();
    CompareWith(history[at + 1], history[at]);
  }
  Remember();
}

/// What was opened, with removals since `before`.
void Runner::CompareWith(const PlainStore& then, const PlainStore& before) {
  GoBackTo(then);
  OpenTables();
  if (!different()) CompareAll();
  for (const auto& live : tables_) {
    if (different()) return;
    const auto known = std::ranges::find_if(before.tables, [&](const PlainTable& plain) {
      return plain.spec.name == live->plain.spec.name;
    });
    if (known == before.tables.end()) continue;
    live->removals_seen = known->removals.size();
    CompareRemovals(live.get());
  }
}

void Runner::DropHandles() {
  CountStats();
  for (LiveSampler& sampler : samplers_) Cancel(&sampler);
  samplers_.clear();
  for (const auto& live : tables_) {
    for (auto& writer : live->writers) writer.reset();
    live->table.reset();
  }
  database_.reset();
}

/// With what a crash has left; nothing reaches the file system of before any more.
void Runner::GoOnWith(std::unique_ptr<FaultEnv> left) {
  env_->Die();
  DropHandles();
  env_ = std::move(left);
}

void Runner::Crash() {
  if (env_ == nullptr) {
    std::unique_ptr<testing::TempDir> left = testing::CopyOpenStore(directory_->path());
    DropHandles();
    for (const auto& live : tables_) live->plain.Reopen();
    directory_ = std::move(left);
    Open();
    if (!different()) CompareAll();
    return;
  }
  CrashOnFaults(CrashKind::kProcess, 0);
}

/// Everything that was synced is there, and of the rest what comes before the first that is lost.
void Runner::LosePower(const Step& step) {
  if (env_ != nullptr) CrashOnFaults(CrashKind::kPowerLoss, step.numbers[0]);
}

void Runner::CrashOnFaults(CrashKind kind, uint64_t seed) {
  Remember();
  const DatabaseStats stats = database_->Stats();
  const bool power = kind == CrashKind::kPowerLoss;
  ++result_.counts.crashes[power ? "of the machine" : "of the process"];
  GoOnWith(env_->CopyAfterCrash(kind, seed));
  OpenAfterCrash(power ? stats.log_synced : stats.log_end);
}

/// Of the steps after this one, the first meets it that comes to the point.
void Runner::CrashWithin(const Step& step) {
  if (env_ == nullptr) return;
  crash_ = std::make_unique<PointCrash>();
  crash_->points_left = 1 + static_cast<int64_t>(step.numbers[0] % 4);
  crash_->kind = step.numbers[1] % 2 == 0 ? CrashKind::kProcess : CrashKind::kPowerLoss;
  crash_->seed = step.numbers[2];
  ++result_.counts.done[op_];
}

/// The step goes on to its end, which is compared; then what was left at the point is opened.
void Runner::DoWithCrash(const Step& step) {
  const bool drops_rest = std::any_of(samplers_.begin(), samplers_.end(),
                                      [](const auto& s) { return s.options.drop_last; });
  const bool one_change = IsOneChange(step.op) && !(step.op == Op::next && drops_rest);
  if (crash_ == nullptr || !one_change || step.op == Op::crash_within) {
    Do(step);
    if (env_ == nullptr || different()) return;
    if (!one_change) SameCode("sync", database_->Sync(), StatusCode::kOk);
    return Remember();
  }
  Remember();
  const DatabaseStats before = database_->Stats();
  std::map<std::string, TrajectoryId> given_out;
  for (const auto& live : tables_) given_out[live->plain.spec.name] = live->plain.last_id;
  crash_->env = env_.get();
  armed_crash = crash_.get();
  meets_crash_ = true;
  SetCrashHook(MeetCrash);
  Do(step);
  SetCrashHook(nullptr);
  armed_crash = nullptr;
  Remember();
  meets_crash_ = false;
  if (crash_->left == nullptr || different()) return;
  const std::unique_ptr<PointCrash> crash = std::move(crash_);
  const bool changes = database_->Stats().log_end > before.log_end;
  // What the step was given nobody has got.
  for (const auto& live : tables_) live->plain.last_id = given_out[live->plain.spec.name];
  GoOnWith(std::move(crash->left));
  const bool power = crash->kind == CrashKind::kPowerLoss;
  OpenAfterCrash(power ? before.log_synced : before.log_end);
  if (different()) return;
  const bool happened = database_->recovery().end > before.log_end;
  if (changes) ++result_.counts.crashes[happened ? "behind a change" : "before a change"];
}

}  // namespace geardb::differential
