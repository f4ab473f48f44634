// FrameQueue: who has frames that nobody sees yet, and who waits for some of them.
//
// A call takes all frames of what it writes before anything is decided. One that finds too few
// gives back those it has (two that each kept some would wait for each other) and queues: the first
// looks again whenever frames of another call's were published, which can be dropped then, or given
// back. Whoever comes later waits behind it, so that small calls do not starve a large one; but not
// where all that have frames are kept waiting by limits of their tables, which may last.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <set>

#include "base/mutex.h"
#include "base/status.h"

namespace geardb::engine {

class DatabaseCore;

/// Thread-safe.
class FrameQueue {
 public:
  class Pause;

  /// A call from its first frame until these are published or given back. Of one thread, which has
  /// no other that has begun.
  class Hold {
   public:
    explicit Hold(FrameQueue* queue) : queue_(queue) {}
    ~Hold() { End(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    /// Behind those who wait, until the deadline.
    void BeginBehind(Deadline deadline);
    void Begin();
    void End();

   private:
    friend class Pause;
    FrameQueue* const queue_;
    bool holds_ = false;
  };

  /// The call waits for what may never come, while this exists. `hold` may be null.
  class Pause {
   public:
    explicit Pause(Hold* hold);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Hold* const hold_;
  };

  /// A place in the queue.
  class Place {
   public:
    explicit Place(FrameQueue* queue);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    /// False: the deadline came first.
    bool AwaitTurn(Deadline deadline) const;

   private:
    FrameQueue* const queue_;
    uint64_t ticket_ = 0;
  };

  /// Those who have a place.
  uint64_t waiting() const { return queued_.load(); }
  /// Counts holds that have ended while somebody had a place.
  uint64_t ended() const;
  /// Until another has ended than the first `ended`, or the deadline. False: none has, and nobody
  /// holds anything.
  bool AwaitEnd(uint64_t ended, Deadline deadline);

 private:
  bool MustWait() const GEARDB_REQUIRES(mutex_) {
    return !places_.empty() && holds_.load() > paused_.load();
  }
  void Notify();

  // Read without the mutex by whoever finds nobody queued.
  std::atomic<uint64_t> queued_{0};
  std::atomic<uint64_t> holds_{0};
  std::atomic<uint64_t> paused_{0};

  mutable Mutex mutex_;
  CondVar changed_;
  std::set<uint64_t> places_ GEARDB_GUARDED_BY(mutex_);
  uint64_t tickets_ GEARDB_GUARDED_BY(mutex_) = 0;
  uint64_t ended_ GEARDB_GUARDED_BY(mutex_) = 0;
};

/// How a call takes its frames.
struct FrameTaking {
  std::function<Status()> take;     ///< All, or ResourceExhausted.
  std::function<void()> give_back;  ///< What a `take` that failed has taken.
};

/// Takes a call's frames: now, or once others' come free, until the deadline. ResourceExhausted:
/// nobody has any that could. `hold` has begun when this returns ok. No mutex is held that
/// somebody who has frames may wait for.
Status TakeInTurn(DatabaseCore* database, FrameQueue::Hold* hold, Deadline deadline,
                  const FrameTaking& taking);

}  // namespace geardb::engine
