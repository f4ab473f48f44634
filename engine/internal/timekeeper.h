// Timekeeper: closes orphans, removes trajectories and seals draw groups when their time has come,
// for tables that say so in their schema.
//
// One thread, which the first such table starts. It does what Table::CloseOrphans,
// Table::RemoveExpired and PriorityTable::SealOverdueGroups do, with changes of its own in the log;
// what is refused (the log is full) is tried again the next time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/schema.h"

namespace geardb::engine {

class DatabaseCore;
struct TableCore;

/// Asked before each part of a long task; what is left once it says no waits for another call.
using GoesOn = std::function<bool()>;
inline bool ToTheEnd() { return true; }

/// Both return how many. `older_than_ms` as of Table::CloseOrphans.
Result<uint64_t> CloseOrphans(const std::shared_ptr<DatabaseCore>& database,
                              const std::shared_ptr<TableCore>& table, int64_t older_than_ms,
                              const GoesOn& goes_on = ToTheEnd);
Result<uint64_t> RemoveExpired(DatabaseCore* database, const std::shared_ptr<TableCore>& table);

/// Thread-safe.
class Timekeeper {
 public:
  explicit Timekeeper(DatabaseCore* database) : database_(database) {}
  ~Timekeeper() { Stop(); }
  Timekeeper(const Timekeeper&) = delete;
  Timekeeper& operator=(const Timekeeper&) = delete;

  /// Sees to a table from now on, if its schema, with its priority tables, has a time.
  /// ResourceExhausted where the system has no thread for it.
  Status Watch(const TableSpec& spec);
  /// Ends the thread; nothing is watched from here on. Idempotent.
  void Stop();

 private:
  void Run();
  void LookOnce();
  bool stopped();

  DatabaseCore* const database_;
  Mutex mutex_;
  CondVar changed_;
  bool stop_ GEARDB_GUARDED_BY(mutex_) = false;
  int64_t interval_ms_ GEARDB_GUARDED_BY(mutex_) = 0;
  bool shorter_ GEARDB_GUARDED_BY(mutex_) = false;  // Than the one that is waited for.
  std::thread thread_ GEARDB_GUARDED_BY(mutex_);
};

}  // namespace geardb::engine
