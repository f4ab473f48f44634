#include "engine/internal/compactor.h"

#include <utility>

#include "base/break.h"
#include "base/crash_point.h"
#include "base/thread.h"

namespace geardb::engine {
namespace {

Status CompactIfNeeded(ColdStore* store, bool disk_is_full) {
  GEARDB_RETURN_IF_ERROR(store->FindGarbage());
  if (kBreak.never_compact) return Status::Ok();
  if (store->NeedsCompaction()) {
    CrashPoint("compaction");
    return store->CompactForSpace();
  }
  return disk_is_full ? store->MakeRoom() : Status::Ok();
}

}  // namespace

Status Compactor::KeepSpace() {
  if (!background_) return CompactIfNeeded(cold_->if_open(), /*disk_is_full=*/false);
  MutexLock lock(&mutex_);
  return BeginLocked();
}

Status Compactor::MakeRoom() {
  if (!background_) return CompactIfNeeded(cold_->if_open(), /*disk_is_full=*/true);
  {
    MutexLock lock(&mutex_);
    room_wanted_ = true;
    GEARDB_RETURN_IF_ERROR(BeginLocked());
  }
  WaitIdle();
  return last();
}

Status Compactor::BeginLocked() {
  if (stop_) return Status::Ok();
  if (!thread_.joinable()) {
    GEARDB_ASSIGN_OR_RETURN(thread_, StartThread("compacts the cold store", [this] { Run(); }));
  }
  wanted_ = true;
  changed_.NotifyAll();
  return Status::Ok();
}

void Compactor::Run() {
  for (;;) {
    bool disk_is_full = false;
    {
      MutexLock lock(&mutex_);
      while (!wanted_ && !stop_) changed_.WaitUntil(&mutex_, Deadline::Infinite());
      if (stop_) return;
      wanted_ = false;
      disk_is_full = std::exchange(room_wanted_, false);
      running_ = true;
    }
    Status status = CompactIfNeeded(cold_->if_open(), disk_is_full);
    MutexLock lock(&mutex_);
    running_ = false;
    if (status.code() != StatusCode::kCancelled) last_ = std::move(status);
    changed_.NotifyAll();
  }
}

void Compactor::WaitIdle() {
  MutexLock lock(&mutex_);
  while ((wanted_ && !stop_) || running_) changed_.WaitUntil(&mutex_, Deadline::Infinite());
}

Status Compactor::last() {
  MutexLock lock(&mutex_);
  return last_;
}

void Compactor::Stop() {
  std::thread thread;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    if (thread_.joinable()) cold_->if_open()->EndCompactions();
    changed_.NotifyAll();
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

}  // namespace geardb::engine
