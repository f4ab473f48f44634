// Mutex, MutexLock and CondVar: the standard ones with clang's thread-safety annotations, and waits
// that take a Deadline.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/clock.h"

#if defined(__clang__)
#define GEARDB_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define GEARDB_THREAD_ANNOTATION(x)
#endif
#define GEARDB_GUARDED_BY(x) GEARDB_THREAD_ANNOTATION(guarded_by(x))
#define GEARDB_REQUIRES(...) GEARDB_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define GEARDB_EXCLUDES(...) GEARDB_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace geardb {

/// A mutual-exclusion lock.
class GEARDB_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void Lock() GEARDB_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void Unlock() GEARDB_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  bool TryLock() GEARDB_THREAD_ANNOTATION(try_acquire_capability(true)) {
    return mutex_.try_lock();
  }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// Holds a Mutex for a scope.
class GEARDB_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) GEARDB_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() GEARDB_THREAD_ANNOTATION(release_capability()) { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* mutex_;
};

/// A condition variable. Wait for a state in a loop: it may wake without a cause.
class CondVar {
 public:
  /// Releases `mutex`, waits for a notification or the deadline, takes it again.
  /// Returns false when the deadline has passed.
  bool WaitUntil(Mutex* mutex, Deadline deadline) GEARDB_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    bool in_time = true;
    if (deadline.infinite()) {
      condition_.wait(lock);
    } else {
      in_time = condition_.wait_until(lock, deadline.at()) == std::cv_status::no_timeout;
    }
    lock.release();
    return in_time;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace geardb
