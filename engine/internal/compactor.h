// Compactor: keeps the cold store within `space_amplification_max`. A compaction rewrites all that
// is in the store, which takes seconds or minutes; it runs in a thread of its own, since who
// appends waits for the passes of the cleaner.
#pragma once

#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/internal/cold_tier.h"

namespace geardb::engine {

/// Thread-safe.
class Compactor {
 public:
  /// Without `background` there is no thread: KeepSpace compacts.
  Compactor(ColdTier* cold, bool background) : cold_(cold), background_(background) {}
  ~Compactor() { Stop(); }
  Compactor(const Compactor&) = delete;
  Compactor& operator=(const Compactor&) = delete;

  /// Begins a compaction where the cold store, which is there, needs one; one that runs is followed
  /// by a look for another.
  Status KeepSpace();
  /// The same for a full disk (ColdStore::MakeRoom), and waits. The compaction's status.
  Status MakeRoom();
  /// Until none runs, nor was begun.
  void WaitIdle();
  /// Of the last compaction in the thread.
  Status last();
  /// Ends what runs as soon as it can, and the thread; nothing is begun again.
  void Stop();

 private:
  void Run();
  Status BeginLocked() GEARDB_REQUIRES(mutex_);

  ColdTier* const cold_;
  const bool background_;
  Mutex mutex_;
  CondVar changed_;
  bool stop_ GEARDB_GUARDED_BY(mutex_) = false;
  bool wanted_ GEARDB_GUARDED_BY(mutex_) = false;
  bool room_wanted_ GEARDB_GUARDED_BY(mutex_) = false;
  bool running_ GEARDB_GUARDED_BY(mutex_) = false;
  Status last_ GEARDB_GUARDED_BY(mutex_);
  std::thread thread_ GEARDB_GUARDED_BY(mutex_);
};

}  // namespace geardb::engine
