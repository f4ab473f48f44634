#include "wal/drain.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/break.h"
#include "base/crash_point.h"

namespace geardb::wal {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr uint64_t kWriteBytesMax = uint64_t{1} << 20;
constexpr uint64_t kZeroAheadBytes = uint64_t{4} << 20;
constexpr uint64_t kBounceBytes = uint64_t{64} << 10;

}  // namespace

Drain::Drain(RingFile* ring, SegmentPool* pool, Lsn start)
    : ring_(ring),
      pool_(pool),
      mark_bytes_(std::max<uint64_t>(ring->bytes() / (kMarks / 2), kBlockBytes)),
      published_(start),
      drained_(start),
      boundary_(start),
      synced_(start),
      marks_(new std::atomic<Lsn>[kMarks]),
      last_mark_(start),
      bounce_(kBounceBytes) {}

void Drain::NoteRecordEnd(Lsn end) {
  if (end - last_mark_ >= mark_bytes_) {
    const uint64_t made = marks_made_.load(std::memory_order_relaxed);
    // Undrained bytes fit the ring, so their marks fit kMarks; were it not so, a mark less only
    // makes the boundary coarser.
    if (made - marks_used_.load(std::memory_order_acquire) < kMarks) {
      marks_[made % kMarks].store(end, std::memory_order_relaxed);
      marks_made_.store(made + 1, std::memory_order_release);
      last_mark_ = end;
    }
  }
  published_.store(end, std::memory_order_release);
}

Status Drain::Write(bool partial) {
  if (failed()) return failure();
  if (published() == drained()) return Status::Ok();
  MutexLock lock(&write_mutex_);
  // What is published while this writes is for the next one: a sync that waits for stragglers makes
  // those wait that were in time.
  const Lsn target = published();
  bool wrote = true;
  while (wrote && drained() < target) {
    if (failed()) return failure();
    const Status status = WriteChunk(target, partial, &wrote);
    if (!status.ok()) return Fail(status);
    if (wrote) AdvanceBoundary(target);
  }
  return Status::Ok();
}

Status Drain::WriteChunk(Lsn published_now, bool partial, bool* wrote) {
  const uint64_t segment_bytes = pool_->segment_bytes();
  const Lsn begin = AlignDown(drained(), kBlockBytes);
  const Lsn segment_end = AlignDown(begin, segment_bytes) + segment_bytes;
  Lsn end = AlignDown(std::min({published_now, begin + kWriteBytesMax, segment_end}), kBlockBytes);
  SegmentFile* const file = pool_->Find(begin);
  if (file == nullptr) return Status::Internal("no segment file for LSN ", begin);
  CrashPoint(begin % segment_bytes == 0 ? "rotate" : "drain");
  *wrote = true;
  const Lsn rest_end = std::min(published_now, segment_end);
  if (partial && rest_end - begin <= bounce_.span().size()) {
    // Little enough to copy: one write, zeros behind its end, instead of whole blocks and a last
    // one.
    end = rest_end;
    const size_t used = end - begin;
    const size_t bytes = AlignUp(used, kBlockBytes);
    std::memcpy(bounce_.data(), ring_->At(begin), used);
    std::memset(bounce_.data() + used, 0, bytes - used);
    if constexpr (kBreak.drain_unpublished_tail) {
      std::memcpy(bounce_.data(), ring_->At(begin), bytes);
    }
    GEARDB_RETURN_IF_ERROR(file->Write(begin % segment_bytes, bounce_.span().first(bytes)));
  } else if (end > begin) {
    GEARDB_RETURN_IF_ERROR(file->Write(begin % segment_bytes, {ring_->At(begin), end - begin}));
  } else {
    *wrote = false;
    return Status::Ok();
  }
  writes_.fetch_add(1, std::memory_order_relaxed);
  write_bytes_.fetch_add(AlignUp(end - begin, kBlockBytes), std::memory_order_relaxed);
  drained_.store(end, std::memory_order_release);
  return Status::Ok();
}

void Drain::AdvanceBoundary(Lsn published_now) {
  const Lsn drained_now = drained();
  Lsn boundary_now = boundary();
  uint64_t used = marks_used_.load(std::memory_order_relaxed);
  const uint64_t made = marks_made_.load(std::memory_order_acquire);
  for (; used < made; ++used) {
    const Lsn mark = marks_[used % kMarks].load(std::memory_order_relaxed);
    if (mark > drained_now) break;
    boundary_now = std::max(boundary_now, mark);
  }
  marks_used_.store(used, std::memory_order_release);
  if (drained_now == published_now) boundary_now = std::max(boundary_now, published_now);
  if (boundary_now == boundary()) return;
  boundary_.store(boundary_now, std::memory_order_seq_cst);
  if (room_waiters_.load(std::memory_order_seq_cst) > 0) {
    MutexLock lock(&room_mutex_);
    room_.NotifyAll();
  }
}

Status Drain::SyncFile(SegmentFile* file) {
  const auto begin = std::chrono::steady_clock::now();
  const Status status = file->Sync();
  if (!status.ok()) return Fail(status);
  const auto took = std::chrono::steady_clock::now() - begin;
  NoteFsync(
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
  return Status::Ok();
}

Status Drain::SyncFiles(const std::vector<SegmentFile*>& dirty) {
  if (failed()) return failure();
  CrashPoint("sync");
  for (SegmentFile* file : dirty) {
    if constexpr (kBreak.skip_sync) continue;
    if (file->direct()) {
      GEARDB_RETURN_IF_ERROR(SyncFile(file));
    } else {
      MutexLock lock(&cached_sync_mutex_);
      GEARDB_RETURN_IF_ERROR(SyncFile(file));
    }
  }
  CrashPoint("synced");
  return Status::Ok();
}

bool Drain::MayBegin() const {
  return !leader_drains_ && syncs_begun_ - syncs_ended_ < pacing_.syncs_max();
}

bool Drain::Gathers(uint64_t number, Deadline deadline) {
  return !pacing_.Complete(Sleeping(number) + 1, SteadyClock::now()) &&
         pacing_.done_by() < deadline.at();
}

bool Drain::SleepFor(uint64_t number, Deadline deadline) {
  ++Sleeping(number);
  const bool in_time = Sleepers(number).WaitUntil(&sync_mutex_, deadline);
  if (number > syncs_ended_) --Sleeping(number);  // Else it was counted out with the sync.
  return in_time;
}

void Drain::WakeNextLeader() {
  if (MayBegin()) Sleepers(syncs_begun_ + 1).NotifyOne();
}

void Drain::PassOnCall(uint64_t slept_for) {
  if (slept_for > syncs_begun_) WakeNextLeader();
}

uint64_t Drain::sync_sleepers() {
  MutexLock lock(&sync_mutex_);
  return std::accumulate(sleeping_.begin(), sleeping_.end(), uint64_t{0});
}

uint64_t Drain::syncs_begun() {
  MutexLock lock(&sync_mutex_);
  return syncs_begun_;
}

uint64_t Drain::SyncServing(Lsn end) const {
  uint64_t number = syncs_ended_ + 1;
  while (number <= syncs_begun_ && targets_[number % targets_.size()] < end) ++number;
  return number;
}

void Drain::LeadSync(bool drain_first) {
  const uint64_t number = ++syncs_begun_;
  pacing_.NoteBegin(Sleeping(number) + 1);
  drain_first = drain_first || Sleeping(number) > 0;  // For those.
  SteadyClock::time_point began = SteadyClock::now();
  const Lsn drained_before = drained();
  Lsn* const target = &targets_[number % targets_.size()];
  // The write takes along what is published by now, and perhaps more.
  *target = drain_first ? published() : boundary();
  if (drain_first) {
    leader_drains_ = true;
    sync_mutex_.Unlock();
    (void)Write(/*partial=*/true);  // An error is kept.
    const Lsn drained_to = boundary();
    // The time of a large write is that of its bytes: company would not share it.
    if (drained() - drained_before > kBounceBytes) began = SteadyClock::now();
    sync_mutex_.Lock();
    leader_drains_ = false;
    *target = std::max(*target, drained_to);
    WakeNextLeader();
  }
  const Lsn reached = *target;
  // Before the next one may begin: what that takes, this one would end without.
  const std::vector<SegmentFile*> dirty = pool_->TakeDirty();
  sync_mutex_.Unlock();
  CrashPoint("sync_begun");
  (void)SyncFiles(dirty);
  const SteadyClock::duration took = SteadyClock::now() - began;
  sync_mutex_.Lock();
  while (syncs_ended_ + 1 != number) {
    Sleepers(number - 1).WaitUntil(&sync_mutex_, Deadline::Infinite());
  }
  syncs_ended_ = number;
  // Here, since it may let another begin, who is called below.
  if (!dirty.empty()) pacing_.NoteDuration(took);
  const uint64_t served = std::exchange(Sleeping(number), 0) + 1;
  if (syncs_begun_ == number) {
    pacing_.NoteEnd({.served = served, .waiting = Sleeping(number + 1)}, SteadyClock::now());
  }
  // An error of any sync is one of those that end after it, too.
  if (!failed() && reached > synced()) {
    synced_.store(kBreak.read_sync_target_late ? boundary() : reached, std::memory_order_release);
    pool_->RestBelow(reached);
  }
  // The next leader first: the others only go on.
  WakeNextLeader();
  // Without the mutex, for which all of them would wait at once.
  sync_mutex_.Unlock();
  Sleepers(number).NotifyAll();
  sync_mutex_.Lock();
}

Status Drain::Sync() { return Reach(boundary(), /*drain_first=*/false, Deadline::Infinite()); }

Status Drain::WaitSynced(Lsn end, Deadline deadline) {
  return Reach(end, /*drain_first=*/true, deadline);
}

Status Drain::Reach(Lsn end, bool drain_first, Deadline deadline) {
  if (synced() >= end && !failed()) return Status::Ok();
  MutexLock lock(&sync_mutex_);
  uint64_t slept_for = 0;  // The sync that this one waited for last.
  while (synced() < end && !failed()) {
    const uint64_t number = SyncServing(end);
    const bool may_lead = number > syncs_begun_ && MayBegin();
    const bool gathers = may_lead && Gathers(number, deadline);
    if (number != slept_for) PassOnCall(slept_for);
    if (may_lead && !gathers && !deadline.passed()) {
      LeadSync(drain_first);
      continue;
    }
    slept_for = number;
    if (gathers && gatherer_of_ != number) {
      // Who makes it complete leads it, if that is before its time.
      gatherer_of_ = number;
      SleepFor(number, Deadline(pacing_.until()));
      if (gatherer_of_ == number) gatherer_of_ = 0;
      continue;
    }
    const bool in_time = (gathers || !may_lead) && SleepFor(number, deadline);
    if (!in_time && synced() < end) {
      WakeNextLeader();  // Had the notification to lead gone here, another takes it.
      return Status::DeadlineExceeded("published, durability unknown: waited for a sync up to LSN ",
                                      end, ", synced up to ", synced());
    }
  }
  if (failed()) {
    // One of those who slept may have been woken alone to lead: the others have to know, too.
    for (CondVar& sleepers : sleepers_) sleepers.NotifyAll();
    return failure();
  }
  PassOnCall(slept_for);
  return Status::Ok();
}

bool Drain::ZeroAhead() {
  if (failed()) return false;
  MutexLock lock(&write_mutex_);
  const uint64_t segment_bytes = pool_->segment_bytes();
  const Lsn at = drained();
  if (published() != at) return false;
  uint64_t ahead = AlignUp(at % segment_bytes, kBlockBytes);
  SegmentFile* file = pool_->Find(at);
  const auto zero = [&](SegmentFile* into, uint64_t from, uint64_t to) {
    if (into == nullptr) return false;
    from = std::max(from, into->written_bytes());
    if (from >= to) return false;
    const uint64_t bytes = std::min(to - from, kWriteBytesMax);
    if (const Status status = into->WriteZeros(from, bytes); !status.ok()) (void)Fail(status);
    return true;
  };
  if (file == nullptr) ahead = segment_bytes;
  const uint64_t window_end = ahead + kZeroAheadBytes;
  if (zero(file, ahead, std::min(window_end, segment_bytes))) return true;
  if (window_end <= segment_bytes) return false;
  return zero(pool_->NextFree(), 0, std::min(window_end - segment_bytes, segment_bytes));
}

bool Drain::WaitBoundary(Lsn seen, Deadline deadline) {
  room_waiters_.fetch_add(1, std::memory_order_seq_cst);
  bool in_time = true;
  {
    MutexLock lock(&room_mutex_);
    const uint64_t interrupts = interrupts_;
    while (boundary_.load(std::memory_order_seq_cst) == seen && !failed() &&
           interrupts == interrupts_ && in_time) {
      in_time = room_.WaitUntil(&room_mutex_, deadline);
    }
  }
  room_waiters_.fetch_sub(1, std::memory_order_seq_cst);
  return in_time;
}

void Drain::Interrupt() {
  MutexLock lock(&room_mutex_);
  ++interrupts_;
  room_.NotifyAll();
}

Status Drain::failure() const {
  MutexLock lock(&error_mutex_);
  return first_error_;
}

Status Drain::Fail(const Status& status) {
  Status first;
  {
    MutexLock lock(&error_mutex_);
    if (first_error_.ok()) {
      // A device that is full below the file system fails a sync with ENOSPC. What was to be synced
      // is done all the same, and nothing goes on when there is room: no refusal.
      first_error_ = Status::IoError(status.message())
                         .WithContext("the log is read-only after its first write error");
    }
    first = first_error_;
    failed_.store(true, std::memory_order_release);
  }
  Interrupt();
  return first;
}

void Drain::NoteFsync(uint64_t us) {
  const uint64_t number = fsyncs_.fetch_add(1, std::memory_order_relaxed);
  fsync_us_[number % fsync_us_.size()].store(
      static_cast<uint32_t>(std::min<uint64_t>(us, UINT32_MAX)), std::memory_order_relaxed);
  if (us > fsync_max_us_.load(std::memory_order_relaxed)) {
    fsync_max_us_.store(us, std::memory_order_relaxed);
  }
}

void Drain::AddStats(LogStats* stats) const {
  stats->published = published();
  stats->drained = drained();
  stats->synced = synced();
  stats->drain_writes = writes_.load(std::memory_order_relaxed);
  stats->drain_bytes = write_bytes_.load(std::memory_order_relaxed);
  stats->fsyncs = fsyncs_.load(std::memory_order_relaxed);
  stats->fsync_max_us = fsync_max_us_.load(std::memory_order_relaxed);
  std::vector<uint32_t> times;
  for (size_t i = 0; i < std::min<uint64_t>(stats->fsyncs, fsync_us_.size()); ++i) {
    times.push_back(fsync_us_[i].load(std::memory_order_relaxed));
  }
  if (!times.empty()) {
    std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2),
                     times.end());
    stats->fsync_median_us = times[times.size() / 2];
  }
}

}  // namespace geardb::wal
