// ChangeSignal: says that something may have become drawable, to whoever waits for one table or for
// any of several.
//
// Invariant: a waiter that takes the count before it looks, and waits for another one, misses
// nothing that is signalled in between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace geardb::engine {

/// Waits for the signals that it is added to. Thread-safe.
class ChangeWaiter {
 public:
  uint64_t count() const {
    MutexLock lock(&mutex_);
    return count_;
  }
  void Notify() {
    MutexLock lock(&mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  /// Until there were more than `seen` signals; false when the deadline has passed.
  bool WaitBeyond(uint64_t seen, Deadline deadline) {
    MutexLock lock(&mutex_);
    while (count_ <= seen) {
      if (!changed_.WaitUntil(&mutex_, deadline)) return count_ > seen;
    }
    return true;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t count_ GEARDB_GUARDED_BY(mutex_) = 0;
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

}  // namespace geardb::engine
