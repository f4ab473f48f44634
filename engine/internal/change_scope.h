// ChangeScope: the one door of a change into the log.
//
// Invariants:
//   Whoever has an admitted scope holds `commit`, but for the waits that say otherwise.
//   No scope is admitted once the database is closed, and no record of a table has an LSN behind
//   the one that drops it.
//   Close waits until every admitted scope is gone, and then until all that was reserved is
//   published: a change is refused before it reserved anything, or finished whole.
//   DatabaseCore shows its log const: nothing but a scope (and Close itself) reserves a record.
#pragma once

#include <span>

#include "engine/internal/core.h"

namespace geardb::engine {

/// Lives on the stack from the first decision of a change to its last reservation, in parts and
/// several records too. What was reserved may be filled and published after it.
class GEARDB_THREAD_ANNOTATION(scoped_lockable) ChangeScope {
 public:
  /// Takes `database->commit`. `table` is the one that the change is of, or null.
  ChangeScope(DatabaseCore* database, const TableCore* table, const CommitOptions& how)
      GEARDB_THREAD_ANNOTATION(acquire_capability(database->commit));
  ~ChangeScope() GEARDB_THREAD_ANNOTATION(release_capability());
  ChangeScope(const ChangeScope&) = delete;
  ChangeScope& operator=(const ChangeScope&) = delete;

  /// Whether the change may go on. Cancelled: the database is closed, or the table was dropped,
  /// before the scope began or in a wait that released `commit`. FailedPrecondition: read-only.
  /// Closing does not stop what was admitted before it.
  Status status() const;
  const CommitOptions& how() const { return how_; }

  /// Until the log has room for records of these sizes. Releases `commit` while it waits, so what
  /// was decided before must be decided again when `*waited`. Cancelled: there is none, and none
  /// will be made, since the database is being closed.
  Status AwaitRoom(std::span<const wal::RecordSize> sizes, const CommitOptions& how, bool* waited);
  /// Likewise, but keeps `commit`: nothing comes between what was decided and the record. An error
  /// is that of the log (its first error, a full disk) or the deadline; Close causes none.
  Status AwaitRoomHolding(const wal::RecordSize& size, const CommitOptions& how);

  /// As LogWriter::PrepareFor, for a change of several records. What is refused for want of room
  /// the cleaner is told of (AwaitLogRoom).
  Status PrepareFor(std::span<const wal::RecordSize> sizes, wal::Urgency urgency);

  /// Takes a place in the log; the scope was admitted, and has seen that there is room.
  wal::Reservation Reserve(const wal::RecordRequest& request);

 private:
  DatabaseCore* const database_;
  const TableCore* const table_;
  const CommitOptions how_;
  Status refused_;
};

inline const Status& StatusOf(const Status& status) { return status; }
template <typename Value>
Status StatusOf(const Result<Value>& result) {
  return result.status();
}

/// How long a change waits for room in the log.
inline constexpr int64_t kAdmissionMs = 10'000;

/// How many segments the cleaner has given back until now.
uint64_t SegmentsReleased(DatabaseCore* database);

/// Of a call that was `refused` with ResourceExhausted: ok where the cleaner has made room in the
/// log for what wanted some, so that it is worth another try. Else what the call is refused with.
/// `released`: segments, before the call. `again`: others have taken what was made before; as much
/// as can be is made.
Status AwaitLogRoom(DatabaseCore* database, uint64_t released, bool again, Deadline deadline,
                    const Status& refused);

/// Calls `call`, and again while it is refused (which has changed nothing) for want of room in the
/// log, and the cleaner makes some. Holds no mutex, nor an epoch guard.
template <typename Call>
auto WithLogRoom(DatabaseCore* database, Deadline deadline, const Call& call) {
  for (bool again = false;; again = true) {
    const uint64_t released = SegmentsReleased(database);
    auto result = call();
    if (StatusOf(result).code() != StatusCode::kResourceExhausted) return result;
    const Status room = AwaitLogRoom(database, released, again, deadline, StatusOf(result));
    if (!room.ok()) return decltype(result)(room);
  }
}

}  // namespace geardb::engine
