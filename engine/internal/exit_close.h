// Databases that are open when the process exits are closed before the static objects of RocksDB
// that their threads use are destroyed.
//
// A learner that called exit() with a database open would now and then die there, in a compaction
// or the cleaner, that had not ended. Nothing was lost by it, but who looks at how it ended would
// think so.
#pragma once

#include <functional>

#include "base/mutex.h"
#include "base/status.h"

namespace geardb::engine {

/// From now on an exit calls `close`, once. Not in forks of this process. Thread-safe, as all here.
void CloseAtExit(const void* owner, std::function<void()> close);
/// No longer. An exit that has begun to close it is waited for.
void ForgetAtExit(const void* owner);
/// An exit closes all while what RocksDB has made by now lives; by itself, when what it made as it
/// was loaded does. A child of a fork that has inherited what was open then ends behind its own
/// databases and what stdio holds: RocksDB's destructors wait there for threads that only the
/// parent has.
void ArmExit();

/// While it exists, an exit waits: somebody opens a database, which is closed then. A child of a
/// fork that comes in between ends as one that has inherited it.
class OpeningBeforeExit {
 public:
  OpeningBeforeExit();
  ~OpeningBeforeExit();
  OpeningBeforeExit(const OpeningBeforeExit&) = delete;
  OpeningBeforeExit& operator=(const OpeningBeforeExit&) = delete;

  /// Cancelled: an exit has closed all, and nothing is opened any more.
  Status status() const { return status_; }

 private:
  Status status_;
  Mutex mutex_;
  CondVar changed_;
  bool opened_ GEARDB_GUARDED_BY(mutex_) = false;
};

/// What an exit does. Whether something is another process's.
bool CloseAllForExit();

}  // namespace geardb::engine
