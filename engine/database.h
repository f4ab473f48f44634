// Database: one directory that holds tables of trajectories. Start reading here.
//
//   auto db = Database::Open("/data/run1", {}).value();
//   TableSpec spec{.name = "replay", .columns = {...}, .priority_tables = {{.name = "per"}}};
//   auto table = db->OpenOrCreateTable(spec).value();
//   auto writer = table->NewWriter({}).value();
//   writer->Append({{"obs", obs}, {"action", action}, {"reward", reward}}, {.end = End::kGo});
//   auto per = table->priority_table("per");
//   auto sampler = per->NewSampler({.batch = 64, .views = {{.column = "obs"}}}).value();
//   Batch batch = sampler->Next().value();
//   per->Set(batch.handles(), td_errors);
//
// What an acknowledged call leaves behind survives: at Ack::kLog the death of the process, at
// Ack::kSync power loss. What anybody sees is always a prefix of the log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/options.h"
#include "engine/schema.h"
#include "engine/stats.h"
#include "engine/table.h"
#include "engine/write_batch.h"

namespace geardb {

/// Where a change stands in the log; to be waited on with Database::Wait. Trivially copyable.
struct Ticket {
  Lsn end = 0;  ///< One past the last byte of the change's record; 0 when nothing was logged.
};

/// Bytes of a tag's name: of any kind but control characters (below 0x20, and 0x7f).
inline constexpr size_t kTagNameBytesMax = 256;

/// A named record of the log: one atomic cut over all tables, with a blob of the learner's.
struct Tag {
  std::string name = {};
  std::vector<std::byte> blob = {};
  Lsn lsn = 0;
  int64_t created_us = 0;
  bool damaged = false;  ///< Its blob lay in a damaged piece of the log, and is empty.
};

/// A trajectory of a table.
struct TrajectoryName {
  std::string table = {};
  TrajectoryId id = 0;
  auto operator<=>(const TrajectoryName&) const = default;
};

/// What opening found.
struct RecoveryReport {
  Lsn start = 0;  ///< Where reading began.
  Lsn image = 0;  ///< As of which the index came from the cold store; 0: all from the log.
  Lsn end = 0;    ///< Where the log ended, and new records begin.
  uint64_t records = 0;
  uint64_t bytes = 0;
  uint64_t ring_records = 0;  ///< Records that only the ring held.
  uint64_t orphaned = 0;      ///< Trajectories that nobody closed and no writer has.
  /// Pages with a bad piece, of trajectories that were there at the log's end; these are lost, by
  /// name.
  uint64_t damaged_pages = 0;
  std::vector<TrajectoryName> damaged_trajectories = {};
  uint64_t damaged_priorities = 0;  ///< Of a Set or SetAll, in a bad piece: as they were.
  uint64_t damaged_tags = 0;        ///< Tags with a bad piece: they have lost their blob.
  /// The log ended with a seal, as a closed or idle one does: nothing before that was lost. (What
  /// came after it and was never synced, a power loss takes without a trace.) False after a crash;
  /// and after a Close on a full disk that had no file left for the seal, though all was synced.
  bool clean = false;
  double seconds = 0;           ///< Of the whole open.
  double prefault_seconds = 0;  ///< Of these, faulting in the frames (options.prefault).
  std::string note = {};        ///< For people: "cut at LSN x, durability unknown", or empty.
  /// Read-only opens: the damage in the middle of the log that ended the reading. What is shown is
  /// the state before it.
  Status damage = {};
};

/// An open directory. Thread-safe. Tables, writers and samplers hold a reference to what they need:
/// they may outlive the Database object. Once it is closed their calls that write, draw, wait or
/// read rows fail with Cancelled, and Table::priority_table is null; what Scan, counts, tags,
/// priorities and statistics tell is still there.
///
/// A process may fork: its database stays its own, and the directory is free once it has ended,
/// whatever children it leaves. In the child all calls that return a Status fail with
/// FailedPrecondition, the others must not be made, and destroying what was opened before the fork
/// (its memory stays) changes nothing; the child may open databases of its own.
///
/// Errors of calls that write: a call has changed nothing, but for IoError (the disk has failed)
/// and DeadlineExceeded "published, …": then it may have been done, and the next open shows whether
/// it was. After the first IoError the database takes no more writes.
class Database {
 public:
  /// Opens (or creates) the database in `directory`. One owner at a time: a second owner, in this
  /// process or another, gets FailedPrecondition naming the first. Unsupported for a newer format,
  /// Corruption for damage to what must be whole (with file and offset), ResourceExhausted where
  /// the system has too little (memory, descriptors, a thread), IoError for the rest.
  /// Blocks until the log has been replayed. A directory that is moved or replaced while it is open
  /// is still the one that is written; in one that is removed, calls that write get
  /// FailedPrecondition once the log needs another file.
  static Result<std::unique_ptr<Database>> Open(const std::string& directory,
                                                const DatabaseOptions& options);
  /// Closes without an error to report; call Close to see it. So does an exit of the process,
  /// unless the options name an Env or a Clock, which may be gone by then.
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Creates a table and its priority tables. AlreadyExists when there is one of that name.
  /// InvalidArgument where the frame budget has not the pages that all tables have to have at once,
  /// ResourceExhausted where the index budget is full, with what would do. For frames that others
  /// have it waits up to ten seconds. Durable (synced) when it returns.
  Result<std::shared_ptr<Table>> CreateTable(const TableSpec& spec);
  /// NotFound names the tables that there are.
  Result<std::shared_ptr<Table>> OpenTable(std::string_view name);
  /// Opens the table, or creates it; FailedPrecondition naming the first difference when a table of
  /// that name has another spec. The stored table may have more priority tables than `spec`, and
  /// another `expected_steps`, which only chose its page size when it was created.
  Result<std::shared_ptr<Table>> OpenOrCreateTable(const TableSpec& spec);
  /// Names in order of creation.
  std::vector<std::string> Tables() const;
  /// Removes a table with all it holds. Durable (synced) when it returns. Its writers and samplers
  /// end with Cancelled; its memory comes back when the last handle on it is gone.
  Status DropTable(std::string_view name);

  /// A sampler over several priority tables, of one table or of several of this database, whose
  /// views (and n-step) show the same: columns of one name, dtype and shape. A batch has the rows
  /// of part 0, then those of part 1, and so on (Batch::sources); how many is each part's share.
  /// Part p draws by a draw number of its own priority table and, so that parts of equal seeds do
  /// not show the same places, that table's seed + p · 0x9E3779B97F4A7C15. A batch is drawn when
  /// all its parts can be, and reserved and handed over in all of them or in none. Weights are
  /// (n·P)^−β as of each part alone, divided by the largest of the batch. InvalidArgument names
  /// what is wrong with a part; `within`, `tokens_max`, `restart_draw` (but for observers) and the
  /// weight maximum of the table are for samplers of one priority table.
  Result<std::unique_ptr<Sampler>> NewSampler(std::span<const SamplerPart> parts,
                                              const SamplerOptions& options);

  /// Makes all changes of a batch, in one record (in parts where it is large): after a crash all of
  /// them are there or none. They are decided by what there is before the batch, each as by its own
  /// call, and take effect in this order: priorities, deletions, removals, columns, appends, the
  /// tag. So no operation sees what another one of the batch adds; what a batch removes from a
  /// table makes room for what it appends there.
  ///
  /// The batch waits until it is admitted as a whole: by the capacity of its tables, by the
  /// limiters of all their priority tables, by the frame budget, and by the log. While it waits it
  /// holds no place that others could take. It shows in all its tables at one moment: a sampler
  /// over several of them draws before it or after it. Of two calls that look at two tables one
  /// after the other, the first may come before it and the second after it, never the other way
  /// round.
  ///
  /// An error names the operation by its index where one is to blame ("operation 2: …"), and has
  /// changed nothing, but as said of errors above. InvalidArgument, besides what the single calls
  /// refuse: a batch whose record would be too large without the rows (a quarter of the ring; 16
  /// bytes for each item or trajectory that it names, and what leaves full tables for it), two
  /// writers for one table, two tags, a table of another database.
  Result<WriteOutcome> Write(const WriteBatch& batch, const WriteOptions& options = {});

  /// Records an atomic cut: everything whose call returned before this one began is in it. Synced
  /// when it returns; costs two fsyncs at any size of the database. The newest tag of a name wins.
  /// InvalidArgument, naming how many fit, for a blob of more bytes than go into the log at once
  /// (DatabaseOptions::ring_bytes).
  Result<Tag> WriteTag(std::string_view name, std::span<const std::byte> blob);
  /// The newest tag (of that name, when one is given). NotFound when there is none; Corruption when
  /// its blob is damaged.
  Result<Tag> LastTag(std::optional<std::string_view> name = std::nullopt) const;
  /// The newest tag of each name, in order of LSN.
  std::vector<Tag> Tags() const;

  /// Waits until the change of `ticket` is acknowledged at `level`. DeadlineExceeded: "published,
  /// durability unknown"; a caller that has begun to sync for all who wait sees that through, and
  /// may return a disk's sync after its deadline. The first error of fdatasync, once there was one.
  /// InvalidArgument for a ticket beyond the end of the log, which has not been given out.
  Status Wait(Ticket ticket, Ack level, Deadline deadline = Deadline::Infinite());
  /// Everything whose call has returned is synced when this returns.
  Status Sync(Deadline deadline = Deadline::Infinite());

  /// Changes under way in other threads are finished first; those that begin later are refused with
  /// Cancelled and change nothing. Waits for something to draw and for room in a table end with
  /// Cancelled. Then seals and syncs the log, and releases the directory. Open trajectories stay
  /// resumable. Idempotent; returns the first error. OK: all is synced, also on a full disk: what
  /// the cold store cannot write then is still in the log. Where the log ends exactly at a
  /// segment's end and a full disk has left no file for the seal, it does without: the next open
  /// loses nothing, but cannot tell this from a crash, and is not `clean`.
  Status Close();

  const std::string& directory() const;
  const RecoveryReport& recovery() const;
  DatabaseStats Stats() const;
  /// What this process has done since the open, or, read-only, what the last that had it open for
  /// writing left of itself; and all before.
  DatabaseActivity Activity() const;
  /// The same of a database that another process may have open: what that has written of itself,
  /// some two seconds ago at most where it has threads (DatabaseOptions::background). Takes no
  /// lock, reads no log. NotFound where there is no database, Corruption of a damaged one's
  /// manifest.
  static Result<DatabaseActivity> ActivityOf(const std::string& directory);

  class Impl;  ///< Defined in engine/internal.

 private:
  friend class Table;
  explicit Database(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace geardb
