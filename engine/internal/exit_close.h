// Databases that are open when the process exits are closed before the static objects of RocksDB
// that their threads use are destroyed.
//
// A learner that called exit() with a database open would now and then die there, in a compaction
// or the cleaner, that had not ended. Nothing was lost by it, but who looks at how it ended would
// think so.
#pragma once

#include <functional>

namespace geardb::engine {

/// From now on an exit calls `close`, once. Not in forks of this process. Thread-safe, as all here.
void CloseAtExit(const void* owner, std::function<void()> close);
/// No longer. An exit that has begun to close it is waited for.
void ForgetAtExit(const void* owner);
/// RocksDB is in use. What it has made by then lives until all is closed; without this nothing is
/// closed. A child of a fork that has inherited what was open then ends behind its own databases
/// and what stdio holds: RocksDB's destructors wait there for threads that only the parent has.
void ArmExit();

/// What an exit does. Whether something is another process's.
bool CloseAllForExit();

}  // namespace geardb::engine
