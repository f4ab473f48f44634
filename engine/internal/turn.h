// Turn: what one call has at a time, for which others wait in the order in which they came, until
// their deadlines.
#pragma once

#include <cstdint>
#include <set>

#include "base/clock.h"
#include "base/mutex.h"

namespace geardb::engine {

/// Thread-safe.
class Turn {
 public:
  /// Of one call, as long as this exists and `ok`.
  class Taken {
   public:
    Taken(Turn* turn, Deadline deadline) : turn_(*turn), ok_(turn->Take(deadline)) {}
    ~Taken() {
      if (ok_) turn_.GiveBack();
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    /// It was taken in time.
    bool ok() const { return ok_; }

   private:
    Turn& turn_;
    const bool ok_;
  };

 private:
  bool Take(Deadline deadline) {
    MutexLock lock(&mutex_);
    const uint64_t ticket = tickets_++;
    waiting_.insert(ticket);
    const auto is_next = [&]() GEARDB_REQUIRES(mutex_) {
      return !taken_ && *waiting_.begin() == ticket;
    };
    for (bool in_time = true; !is_next() && in_time;) {
      in_time = changed_.WaitUntil(&mutex_, deadline);
    }
    const bool mine = is_next();
    waiting_.erase(ticket);
    if (mine) {
      taken_ = true;
    } else {
      changed_.NotifyAll();  // It may be another's turn now.
    }
    return mine;
  }
  void GiveBack() {
    MutexLock lock(&mutex_);
    taken_ = false;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  std::set<uint64_t> waiting_ GEARDB_GUARDED_BY(mutex_);  // By when they came.
  uint64_t tickets_ GEARDB_GUARDED_BY(mutex_) = 0;
  bool taken_ GEARDB_GUARDED_BY(mutex_) = false;
};

}  // namespace geardb::engine
