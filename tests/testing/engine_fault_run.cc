#include "tests/testing/engine_fault_run.h"

#include <algorithm>

namespace geardb::testing {

EngineFaultRun::EngineFaultRun(uint64_t seed) : env_(seed * 31 + 7), random_(seed) {}
EngineFaultRun::~EngineFaultRun() { End(); }

void EngineFaultRun::End() {
  if (actor_ != nullptr) {
    large_sets_ += actor_->large_sets();
    large_patches_ += actor_->large_patches();
  }
  actor_.reset();
  database_.reset();
}

DatabaseOptions EngineFaultRun::options() {
  DatabaseOptions options;
  options.budgets.frames_bytes = 32 << 20;
  options.budgets.index_bytes = 16 << 20;
  options.segment_bytes = 64 << 10;
  options.ring_bytes = 32 << 10;
  options.background = false;
  options.env = &env_;
  return options;
}

void EngineFaultRun::Fail(const std::string& why) {
  if (wrong_.empty()) wrong_ = why;
}

bool EngineFaultRun::Start(bool may_be_full) {
  survival_ = {};
  compared_ = false;
  log_ = std::make_unique<OpLog>();
  auto opened = Database::Open(kDirectory, options());
  Status status = opened.status();
  if (status.ok()) {
    database_ = std::move(*opened);
    status = MakeOracleTables(database_.get());
  }
  if (status.ok()) {
    actor_ = std::make_unique<EngineActor>(
        EngineActor::Place{database_.get(), log_.get(), oracle_.first_op()}, oracle_.model(0),
        random_.Next());
    actor_->set_may_be_full(may_be_full);
    actor_->set_alone(true);
    status = actor_->Begin();
  }
  if (status.ok()) return true;
  if (!env_.crashed()) Fail("start: " + status.ToString());
  return false;
}

void EngineFaultRun::Steps(uint64_t count) {
  for (uint64_t i = 0; i < count && actor_->Step(); ++i) {
    if (random_.OneIn(20)) env_.WriteBackSome();
    if (random_.OneIn(30)) (void)database_->Sync();
  }
}

void EngineFaultRun::Crash(CrashKind kind) {
  env_.Die();
  if (kind == CrashKind::kPowerLoss) survival_.level = Ack::kSync;
  if (database_ != nullptr) {
    survival_.synced = std::max(survival_.synced, database_->Stats().log_synced);
  }
  End();
  env_.Crash(kind);
}

void EngineFaultRun::Close() {
  actor_.reset();  // The writers say that their trajectories are orphans.
  const Status status = database_->Close();
  if (!status.ok()) Fail("close: " + status.ToString());
  survival_ = {.level = Ack::kMemory, .synced = UINT64_MAX};
  End();
}

void EngineFaultRun::Compare(Database* database) {
  std::vector<const OpLog*> logs;
  if (!compared_) logs.push_back(log_.get());
  const std::string wrong = oracle_.Check(database, logs, survival_);
  if (!wrong.empty()) Fail(wrong);
  compared_ = true;
}

void EngineFaultRun::Verify(bool faults) {
  for (int good = 0; good < 2 && wrong_.empty();) {
    if (faults && random_.OneIn(2)) env_.SetCrashAfter(1 + random_.Below(20));
    auto opened = Database::Open(kDirectory, options());
    if (opened.ok()) {
      // What an open has served is durable.
      Compare(opened->get());
      ++good;
      if (!env_.crashed() && random_.OneIn(3)) {
        const Status status = (*opened)->Close();
        if (!status.ok() && !env_.crashed()) Fail("close: " + status.ToString());
      }
    } else if (!env_.crashed()) {
      if (opened.status().code() == StatusCode::kNotFound && oracle_.first_op() == 1) return;
      Fail("open: " + opened.status().ToString());
    }
    const CrashKind kind = random_.OneIn(2) ? CrashKind::kPowerLoss : CrashKind::kProcess;
    env_.Die();
    if (opened.ok()) opened->reset();
    if (kind == CrashKind::kPowerLoss && !compared_) survival_.level = Ack::kSync;
    env_.Crash(kind);
  }
}

}  // namespace geardb::testing
