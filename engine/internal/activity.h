// ActivityKeeper: keeps what a process does with a database in its file COUNTERS, so that somebody
// who looks at the database later sees it.
//
// Nothing waits for it and nothing fails by it: the file is written behind the calls that are
// counted, at most every few seconds and by Close, whole (beside it, then renamed) and not synced.
// What cannot be written is tried again the next time; what cannot be read is unknown.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/env.h"
#include "base/mutex.h"
#include "engine/stats.h"

namespace geardb::engine {

/// What the last process wrote that had the database in a directory open for writing, or has it
/// open. `seed` is that of the database's checksums.
DatabaseActivity ReadActivity(Env* env, const std::string& directory, uint64_t seed);

/// Thread-safe.
class ActivityKeeper {
 public:
  struct Place {
    std::shared_ptr<Env> env;
    std::string directory;
    uint64_t seed = 0;  ///< Of the database's checksums.
    const Clock* clock = nullptr;
  };
  /// Reads what there is.
  explicit ActivityKeeper(Place place);
  ~ActivityKeeper() { Stop(); }
  ActivityKeeper(const ActivityKeeper&) = delete;
  ActivityKeeper& operator=(const ActivityKeeper&) = delete;

  /// Opening number `opening` of the database for writing begins; `collect` says what it has done
  /// so far, until Stop, and `stats`, where there is one, how things stand; `tables`, likewise,
  /// what its tables hold, which may take long. With `background`, a thread writes now and then, if
  /// one can be had.
  struct Opening {
    uint32_t number = 0;
    std::function<ActivityCounters()> collect;
    std::function<DatabaseStats()> stats = {};
    std::function<std::vector<TableActivity>()> tables = {};
    bool background = false;
  };
  void Begin(Opening opening);
  /// Writes if something has changed since it last did; the error is for tests.
  Status Write();
  /// Ends the thread. Write may follow. Idempotent.
  void Stop();

  /// Of the opening under way, or what was found.
  DatabaseActivity activity();

 private:
  void Run();
  /// Counts the tables again, where that was long enough ago for what it takes.
  void CountTables() GEARDB_REQUIRES(write_mutex_);
  /// `found_` with what this opening has done, as of now, but for the time.
  DatabaseActivity WithThis() const;

  const Place place_;
  DatabaseActivity found_;  // As of the open.
  Opening opening_;         // Number 0: none.
  int64_t opened_us_ = 0;

  Mutex write_mutex_;                                                    // One writes at a time.
  std::vector<std::byte> last_written_ GEARDB_GUARDED_BY(write_mutex_);  // But for the times.

  std::chrono::steady_clock::time_point tables_due_ GEARDB_GUARDED_BY(write_mutex_);

  mutable Mutex mutex_;
  CondVar stopped_;
  bool stop_ GEARDB_GUARDED_BY(mutex_) = false;
  std::thread thread_ GEARDB_GUARDED_BY(mutex_);
  TablesActivity tables_ GEARDB_GUARDED_BY(mutex_);  // When they were last counted.
};

}  // namespace geardb::engine
