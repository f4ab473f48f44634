// ChangeSignal: says that something may have become drawable, to whoever waits for one table or for
// any of several.
//
// Invariant: a waiter that takes the count before it looks, and waits for another one, misses
// nothing that is signalled in between.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace geardb::engine {

/// Waits for the signals that it is added to; used by one waiting thread at a time.
class ChangeWaiter {
 public:
  uint64_t count() const { return count_.load(); }
  void Notify() {
    count_.fetch_add(1);
    // Whoever begins to wait says so before it looks at the count.
    if (!waiting_.load()) return;
    MutexLock lock(&mutex_);
    changed_.NotifyAll();
  }
  /// Until there were more than `seen` signals; false when the deadline has passed.
  bool WaitBeyond(uint64_t seen, Deadline deadline) {
    MutexLock lock(&mutex_);
    waiting_.store(true);
    bool in_time = true;
    while (count_.load() <= seen && in_time) in_time = changed_.WaitUntil(&mutex_, deadline);
    waiting_.store(false);
    return count_.load() > seen;
  }

 private:
  std::atomic<uint64_t> count_{0};
  std::atomic<bool> waiting_{false};
  Mutex mutex_;
  CondVar changed_;
};

/// Thread-safe.
class ChangeSignal {
 public:
  void NotifyAll() {
    MutexLock lock(&mutex_);
    for (ChangeWaiter* waiter : waiters_) waiter->Notify();
  }
  /// Until it is removed, which its owner does before it ends.
  void Add(ChangeWaiter* waiter) {
    MutexLock lock(&mutex_);
    waiters_.push_back(waiter);
  }
  void Remove(ChangeWaiter* waiter) {
    MutexLock lock(&mutex_);
    const auto found = std::find(waiters_.begin(), waiters_.end(), waiter);
    if (found != waiters_.end()) waiters_.erase(found);
  }

 private:
  Mutex mutex_;
  std::vector<ChangeWaiter*> waiters_ GEARDB_GUARDED_BY(mutex_);
};

/// A waiter hears a signal while it lives.
class WaitsForChange {
 public:
  WaitsForChange(ChangeSignal* signal, ChangeWaiter* waiter) : signal_(signal), waiter_(waiter) {
    signal_->Add(waiter_);
  }
  ~WaitsForChange() { signal_->Remove(waiter_); }
  WaitsForChange(const WaitsForChange&) = delete;
  WaitsForChange& operator=(const WaitsForChange&) = delete;

 private:
  ChangeSignal* const signal_;
  ChangeWaiter* const waiter_;
};

}  // namespace geardb::engine
