// Timekeeper: closes orphans, removes trajectories and seals draw groups when their time has come,
// for tables that say so in their schema; and removes what is finished where no call does.
//
// One thread, which the first such table starts. It does what Table::CloseOrphans,
// Table::RemoveExpired and PriorityTable::SealOverdueGroups do, with changes of its own in the log;
// what is refused (the log is full) is tried again the next time. Each table has its own times: a
// short one has no other table looked at.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/schema.h"

namespace geardb::engine {

class DatabaseCore;
struct TableCore;

/// Asked before each part of a long task; what is left once it says no waits for another call.
using GoesOn = std::function<bool()>;
inline bool ToTheEnd() { return true; }

/// Both return how many. `older_than_ms` as of Table::CloseOrphans. They look for what has to go
/// beside other changes, which are held up only where something is found.
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

  /// Before there is such a table: has a thread that sees to it, where it has something to see to.
  /// ResourceExhausted where the system has no thread for it.
  Status Watch(const TableSpec& spec);
  /// Another table, or priority table, is there.
  void LookAnew();
  /// Some table may have trajectories to remove (TableCore::follow_up_due), which no call is going
  /// to: this one does at that time. A mutex of a state may be held.
  void FollowUpAt(Deadline at);
  /// Ends the thread; nothing is watched from here on. Idempotent.
  void Stop();

 private:
  enum class Kind : uint8_t { kOrphans, kExpired, kOverdueGroups };
  struct What {
    TableId table = 0;
    Kind kind = Kind::kOrphans;
    uint32_t priority_table = 0;
    friend auto operator<=>(const What&, const What&) = default;
  };
  struct Look {
    std::weak_ptr<TableCore> table;
    int64_t interval_ms = 0;
    Deadline due = Deadline::Infinite();
  };
  using Looks = std::map<What, Look>;

  void Run();
  /// Adds those of tables that have come.
  void AddLooks(Looks* looks) const;
  /// Looks where it is time, and forgets tables that are gone.
  void LookWhereDue(Looks* looks);
  void LookAt(const What& what, const std::shared_ptr<TableCore>& table);
  void FollowUpAll();
  bool stopped();

  DatabaseCore* const database_;
  Mutex mutex_;
  CondVar changed_;
  bool stop_ GEARDB_GUARDED_BY(mutex_) = false;
  bool look_anew_ GEARDB_GUARDED_BY(mutex_) = true;
  Deadline follow_up_at_ GEARDB_GUARDED_BY(mutex_) = Deadline::Infinite();
  std::thread thread_ GEARDB_GUARDED_BY(mutex_);
};

}  // namespace geardb::engine
