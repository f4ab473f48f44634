// The log's background thread: it drains within drain_interval_ms, syncs within sync_interval_ms,
// seals an idle log, and keeps spare files ready. It sleeps without a limit when nothing is left.
#include <algorithm>

#include "wal/writer_core.h"

namespace geardb::wal {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// Spare files that the cold store may have: those for appends and for removals.
constexpr uint64_t kSparesGivenUpMax = 2;

/// Spare files that are opened before they are needed, at most.
constexpr uint64_t kReadyMost = 4;

bool Elapsed(SteadyClock::time_point since, int64_t ms) {
  return SteadyClock::now() - since >= std::chrono::milliseconds(ms);
}

}  // namespace

void LogWriter::Core::OnAdvance(Lsn published) {
  drain_.NoteRecordEnd(published);
  const uint64_t eager = ring_->bytes() / 2;
  // Sequentially consistent, as next_ is: Run() says that it sleeps and then looks at next_.
  if (asleep_.load(std::memory_order_seq_cst) || published - drain_.drained() >= eager) Wake();
}

void LogWriter::Core::Wake() {
  if (!options_.background || wake_.load(std::memory_order_relaxed)) return;
  if (wake_.exchange(true, std::memory_order_seq_cst)) return;
  MutexLock lock(&work_mutex_);
  work_.NotifyOne();
}

void LogWriter::Core::StopThread() {
  if (thread_ == nullptr) return;
  {
    MutexLock lock(&work_mutex_);
    stop_ = true;
    work_.NotifyOne();
  }
  thread_.reset();
}

// Does what is due. True when something is left that time alone makes due.
bool LogWriter::Core::Work() {
  const Lsn published_now = published();
  if (end() != seen_end_) {
    seen_end_ = end();
    last_append_ = SteadyClock::now();
  }
  const bool idle = Elapsed(last_append_, options_.idle_seal_ms);
  // Errors are kept by the drain; whoever waits or writes gets them.
  const bool partial = idle || Elapsed(last_drain_, options_.drain_interval_ms);
  if (published_now != drain_.drained()) {
    (void)drain_.Write(partial);
    if (partial) last_drain_ = SteadyClock::now();
  } else {
    last_drain_ = SteadyClock::now();
  }
  if (drain_.boundary() != drain_.synced()) {
    if (idle || Elapsed(last_sync_, options_.sync_interval_ms)) {
      (void)drain_.Sync();
      last_sync_ = SteadyClock::now();
    }
  } else {
    last_sync_ = SteadyClock::now();
  }
  if (idle && drain_.synced() == end()) {
    (void)SealOnce();
    seen_end_ = end();
  }
  bool spares_missing = LacksSpares() || pool_->ready_count() < ReadyWanted();
  if (spares_missing && Elapsed(last_spare_, 1000)) {
    // A full disk is tried again a second later; appends get the error meanwhile.
    spares_missing = !PrepareSpares().ok();
    if (spares_missing) last_spare_ = SteadyClock::now();
  }
  if (drain_.failed()) return false;
  const bool zeroed = published() == drain_.drained() && drain_.ZeroAhead();
  if (zeroed) wake_.store(true, std::memory_order_relaxed);  // At once again.
  const Lsn at = end();
  const bool sealed = seal_end_.load(std::memory_order_acquire) == at || at % segment_bytes_ == 0;
  return zeroed || spares_missing || drain_.synced() != end() || (!sealed && end() != start_);
}

// One more than is kept, so that an append finds one to take.
uint64_t LogWriter::Core::SparesWanted() const {
  return spare_target_ + 1 - spares_given_up_.load(std::memory_order_relaxed);
}

uint64_t LogWriter::Core::ReadyWanted() const {
  return std::min({kReadyMost, SparesWanted(), pool_->free_count()});
}

Status LogWriter::Core::PrepareSpares() {
  GEARDB_RETURN_IF_ERROR(MakeSpares(SparesWanted()));
  return WakeSpares(ReadyWanted());
}

Status LogWriter::Core::MakeSpares(uint64_t files) {
  MutexLock lock(&spare_mutex_);
  while (pool_->free_count() < files) {
    GEARDB_RETURN_IF_ERROR(UsableOrError());
    const Status status = pool_->CreateSpare();
    no_room_for_spares_.store(status.code() == StatusCode::kResourceExhausted,
                              std::memory_order_relaxed);
    // A full disk may have room again; any other error is final, as it is for the live files.
    if (status.code() == StatusCode::kIoError) return drain_.Fail(status);
    GEARDB_RETURN_IF_ERROR(status);
  }
  return Status::Ok();
}

Status LogWriter::Core::WakeSpares(uint64_t files) {
  MutexLock lock(&spare_mutex_);
  while (pool_->ready_count() < std::min(files, pool_->free_count())) {
    GEARDB_RETURN_IF_ERROR(UsableOrError());
    const Status status = pool_->WakeSpare();
    if (status.code() == StatusCode::kIoError) return drain_.Fail(status);
    GEARDB_RETURN_IF_ERROR(status);
  }
  return Status::Ok();
}

void LogWriter::Core::RemoveSpares(uint64_t left) {
  MutexLock lock(&spare_mutex_);
  pool_->RemoveSpares(left);
}

void LogWriter::Core::RemoveSurplus() {
  const uint64_t most = SegmentsMax(Urgency::kReserve) + spare_target_ + 1;
  const uint64_t live = pool_->live_count();
  const uint64_t left = std::max(most - std::min(most, live), spare_target_ + 1);
  // Else nobody waits for a spare file that is being made.
  if (pool_->free_count() > left) RemoveSpares(left);
}

bool LogWriter::Core::GiveUpSpares() {
  for (uint64_t given_up = 1; given_up <= kSparesGivenUpMax; ++given_up) {
    spares_given_up_.store(given_up, std::memory_order_relaxed);
    const uint64_t before = pool_->free_count();
    if (before <= SparesWanted()) continue;
    RemoveSpares(SparesWanted());
    return pool_->free_count() < before;
  }
  return false;
}

void LogWriter::Core::RestoreSpares() {
  if (spares_given_up_.exchange(0, std::memory_order_relaxed) > 0) Wake();
}

void LogWriter::Core::Run() {
  while (true) {
    wake_.store(false, std::memory_order_seq_cst);
    const bool more = Work();
    if (!more) asleep_.store(true, std::memory_order_seq_cst);
    MutexLock lock(&work_mutex_);
    // A record reserved after Work looked either sees asleep_ when it is published or is seen here.
    const bool sleeps = !more && next_.load(std::memory_order_seq_cst) == seen_end_;
    const Deadline deadline =
        sleeps ? Deadline::Infinite()
               : Deadline::AfterMs(std::max<int64_t>(options_.drain_interval_ms, 1));
    while (!stop_ && !wake_.load(std::memory_order_relaxed)) {
      if (!work_.WaitUntil(&work_mutex_, deadline)) break;
    }
    asleep_.store(false, std::memory_order_relaxed);
    if (stop_) return;
  }
}

}  // namespace geardb::wal
