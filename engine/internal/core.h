// DatabaseCore: what an open database is made of, and the way of a change into it:
//
//   build the record's body → [ChangeScope: plan, room in the log, LSN] → fill the ring →
//   publish (in LSN order: apply to the TableState) → wait for the acknowledgement asked for
//
// Locks, in the order in which they are taken: a table's `patches`, `commit`, a table's
// `state->mutex`. Whoever
// publishes holds neither while it waits, so a planner that waits for publication inside `commit`
// cannot deadlock.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/env.h"
#include "base/epoch.h"
#include "base/fork.h"
#include "base/mutex.h"
#include "engine/database.h"
#include "engine/internal/activity.h"
#include "engine/internal/arena.h"
#include "engine/internal/batch_rep.h"
#include "engine/internal/cleaner.h"
#include "engine/internal/evictor.h"
#include "engine/internal/filler.h"
#include "engine/internal/frame_queue.h"
#include "engine/internal/stored_schema.h"
#include "engine/internal/table_plan.h"
#include "engine/internal/table_state.h"
#include "engine/internal/timekeeper.h"
#include "engine/internal/turn.h"
#include "engine/internal/wait_count.h"
#include "engine/operations_generated.h"
#include "index/index_memory.h"
#include "wal/log_writer.h"
#include "wal/open_log.h"

namespace geardb::engine {

/// An open table. Owned by the database and by every handle on it.
struct TableCore {
  /// Of its memory: it goes last, when all of that has been given back.
  const std::shared_ptr<const bool> presence = std::make_shared<const bool>(true);
  std::unique_ptr<TableState> state;
  std::unique_ptr<TablePlan> plan;
  std::atomic<bool> dropped{false};
  /// Set by whoever applied rows after which some weights should have another scale; cleared by
  /// whoever sees to it. See FollowUp.
  std::atomic<bool> follow_up_due{false};
  /// A patch has it from its first look to its record, a change of columns too; before `commit`.
  Turn patches;
  /// In the order of the layout's (companion.h); null: its column was dropped. They change with
  /// `commit` and the state's mutex held, and are read with either.
  std::vector<std::shared_ptr<TableCore>> companions;
  /// Of columns that were dropped since the open: readers may still look at them. Empty.
  std::vector<std::shared_ptr<TableCore>> former_companions;
  /// Takes the state's mutex.
  std::vector<std::shared_ptr<TableCore>> CompanionsNow() const {
    MutexLock lock(&state->mutex);
    return companions;
  }
  /// Whose companion it is; expired, or never set: nobody's.
  std::weak_ptr<TableCore> owner;
  bool is_companion = false;

  const TableLayout& layout() const { return state->layout(); }
  /// Of a call whose turn did not come in time.
  Status PatchUnderWay() const {
    return Status::DeadlineExceeded("table '", layout().spec().name,
                                    "': another patch, or a change of its columns, is under way");
  }
};

/// A record on its way: its body, and what it does when it is published.
class Change : public wal::PublishCallback {
 public:
  virtual ~Change() = default;
  void OnPublished(Lsn lsn, Lsn end) final;

  flatbuffers::FlatBufferBuilder body;
  /// Deletes itself once applied: nobody waits for it.
  bool deletes_itself = false;

  std::span<const std::byte> body_bytes() const {
    return {reinterpret_cast<const std::byte*>(body.GetBufferPointer()), body.GetSize()};
  }
  /// The one operation of the finished body.
  const fb::Operation* operation() const;
  /// Finishes the body with one operation.
  struct Target {
    TableId table = 0;
    uint32_t priority_table = 0;
  };
  void FinishBody(Target target, fb::Change kind, flatbuffers::Offset<void> change);

 protected:
  /// The record lies at [lsn, end). Takes the state's mutex with an ApplyLock.
  virtual void Apply(Lsn lsn, Lsn end) = 0;
};

/// A Change that applies by calling a function.
class FunctionChange final : public Change {
 public:
  using Function = std::function<void(Lsn lsn, Lsn end)>;
  explicit FunctionChange(Function apply) : apply_(std::move(apply)) {}
  void set_apply(Function apply) { apply_ = std::move(apply); }

 private:
  void Apply(Lsn lsn, Lsn end) override { apply_(lsn, end); }
  Function apply_;
};

/// How a record enters the log.
struct CommitOptions {
  wal::RecordType type = wal::RecordType::kData;
  wal::Urgency urgency = wal::Urgency::kAppend;
  Deadline deadline = Deadline::Infinite();
  /// It may let appends in that wait for room or for a limiter.
  bool makes_room = false;
};

class ChangeScope;

class DatabaseCore {
 public:
  explicit DatabaseCore(const DatabaseOptions& options_in);
  ~DatabaseCore();

  const ForkMark owner;  ///< The process that opened it.

  // Set once, while opening.
  DatabaseOptions options;
  std::string directory;
  Env* env;
  const Clock* clock;
  wal::Manifest manifest;
  RecoveryReport recovery;
  EpochRegistry epochs;
  std::unique_ptr<HostArena> arena;
  std::unique_ptr<index::IndexMemory> index_memory;
  std::unique_ptr<PageSource> page_source;
  std::unique_ptr<PageLoader> page_loader;
  const std::unique_ptr<Evictor> evictor;
  std::unique_ptr<FileLock> lock;
  /// Null when the database is read-only. Takes no records here: those go through a ChangeScope.
  const wal::LogWriter* log = nullptr;
  std::unique_ptr<ColdTier> cold;          ///< Null: files are not the system's own.
  std::unique_ptr<Cleaner> cleaner;        ///< Null likewise, or as the log.
  std::unique_ptr<Filler> filler;          ///< Null likewise, and without background threads.
  std::unique_ptr<Timekeeper> timekeeper;  ///< Null as the filler.
  int64_t opened_us = 0;                   ///< By the steady time of the clock.
  void UseLog(std::unique_ptr<wal::LogWriter> writer);
  /// Once all that is there was recovered: what works beside calls, and Close promises no more
  /// numbers than were handed out.
  void BeginWork();
  /// Null until the open is done.
  std::unique_ptr<ActivityKeeper> activity;
  /// From here on what is done is counted in a file of `held`'s directory; read-only, what is there
  /// is read.
  void KeepActivity(std::shared_ptr<Env> held);
  /// What calls have waited for; pages are counted by the page loader.
  struct {
    WaitCounter frames, log_room, limiters, table_room;
  } waits;
  FrameQueue frame_queue;
  WaitStats WaitsSoFar() const;
  /// But for the names of tables.
  DatabaseStats StatsNow();
  /// What has been done since the open.
  ActivityCounters Counters();
  std::vector<TableActivity> TablesNow() const;
  /// Pages are read from the log of `held`'s directory, described by `manifest`.
  void UsePages(std::shared_ptr<Env> held, const wal::Manifest& manifest);
  /// What of the log can be read from its segments.
  ReadableLog readable_log() const {
    const Lsn read = read_from_segments.load();
    if (log == nullptr) {
      return {.bytes = read, .records = read, .has_writers = false};
    }
    return {.bytes = log->drained(), .records = log->boundary()};
  }
  std::atomic<Lsn> read_from_segments{0};  ///< That while the log is being read, or for good.
  /// Pieces that begin before it may be gone soon, or are.
  std::atomic<Lsn> log_start{0};
  std::atomic<Lsn> log_released{0};  ///< Segments that end at or below are gone.
  std::atomic<Lsn> image_lsn{0};     ///< Of the current image; 0: there is none.
  bool may_be_cold = false;          ///< While it is recovered: see TableFrames::Memory.
  /// Of the log's files, as the open found them.
  struct {
    Lsn synced = 0;
    std::vector<Lsn> bases = {};  ///< Of segments that hold, or held, some of the log.
    uint64_t files = 0;           ///< With a segment's name.
    uint64_t segments_live = 0, segments_free = 0;
  } log_files;
  /// Where the log has no room for so many bytes of the user's, waits for the cleaner to make some.
  /// True: it has made some. Neither `commit` nor an epoch guard is held.
  bool MakeLogRoom(uint64_t bytes, Deadline deadline);
  /// They may be written again; `pinned_by` as of LogWriter::ReleaseBelow.
  void ReleaseLog(Lsn below, std::string_view pinned_by) {
    log_writer_->ReleaseBelow(below, pinned_by);
    log_released.store(below);
  }
  /// As LogWriter::GiveUpSpares and RestoreSpares.
  bool GiveUpLogSpares() {
    MutexLock one_change(&commit);  // A change of several records may count on them.
    return log_writer_->GiveUpSpares();
  }
  void RestoreLogSpares() { log_writer_->RestoreSpares(); }
  /// Writes what is published to the segments.
  Status DrainLog() { return log_writer_->DrainOnce(); }

  /// Plan and LSN order. A change takes it with a ChangeScope.
  Mutex commit;
  /// Of changes in parts that are being written: they were admitted together with the rest of the
  /// log, which others use meanwhile.
  uint64_t bytes_in_parts GEARDB_GUARDED_BY(commit) = 0;
  /// Where appends in parts begin that are not finished.
  std::multiset<Lsn> open_groups GEARDB_GUARDED_BY(commit);
  /// Something leaves a table, or a limiter may admit more, by a record that has its LSN or an
  /// append that was refused; waited for with `commit`.
  CondVar room_made;
  std::atomic<bool> closed{false};
  /// Used of budgets.batch_bytes. Shared with the batches, which may outlive the database.
  const std::shared_ptr<std::atomic<uint64_t>> batch_bytes =
      std::make_shared<std::atomic<uint64_t>>(0);
  BatchPools batch_pools;

  // What refuses a call before it does any work. A change is admitted by its ChangeScope alone:
  // what these say may be old by then.

  /// FailedPrecondition in a fork of the process that opened it. Those below say so, too.
  Status CheckProcess() const;
  /// Cancelled: closed.
  Status CheckOpen() const;
  /// OK when changes may be made: FailedPrecondition (read-only) or Cancelled (closed).
  Status CheckWritable() const;
  /// Cancelled: closed, or the table was dropped.
  Status CheckTable(const TableCore& table) const;
  Status CheckNotDropped(const TableCore& table) const;

  /// Builds nothing, plans nothing: commits a finished body with no pieces. Returns its end.
  /// `table` is the one it is of, or null.
  Result<Lsn> Commit(const TableCore* table, Change* change, const CommitOptions& how);
  /// Fills and publishes a reserved record. Without a change it is a part: pieces alone.
  void Finish(const wal::Reservation& reservation, std::span<const wal::PieceSource> pieces,
              Change* change);
  /// Until everything that has an LSN is published: the state is what the plan says.
  Status CatchUp();
  /// Until the change that ends at `end` is acknowledged.
  Status Acknowledge(Lsn end, Ack ack, Deadline deadline = Deadline::Infinite());

  /// Logs that trajectories leave a table, and trims; they are out of its plan already. Cannot
  /// fail: the caller has seen, without releasing `commit` since, that there is room for
  /// RemovalSize. Returns the record's end.
  Lsn LogRemoval(ChangeScope* scope, const std::shared_ptr<TableCore>& table,
                 const Eviction& eviction, const RemovalCause& cause) GEARDB_REQUIRES(commit);
  /// What a LogRemoval of so many entries takes at most.
  static wal::RecordSize RemovalSize(size_t entries);
  /// Logs a new scale of a priority table's weights, and waits until it is published. Where it has
  /// to wait for room it releases `commit`, and logs nothing: the caller asks again.
  Status LogRescale(ChangeScope* scope, const std::shared_ptr<TableCore>& table,
                    uint32_t priority_table, int shift) GEARDB_REQUIRES(commit);
  /// What a LogRescale takes at most.
  static wal::RecordSize RescaleSize() { return wal::RecordSize::For(1024, {}); }

  /// Gives a table more ids and generations than it has, for `growth` more. Releases `commit` while
  /// it waits for the sync that makes them safe to use.
  Status ExtendRanges(ChangeScope* scope, TableCore* table, const Growth& growth)
      GEARDB_REQUIRES(commit);
  /// Logs the promise of ids and generations up to these, and some more.
  Status PromiseRanges(ChangeScope* scope, TableCore* table, uint64_t ids, uint64_t generations)
      GEARDB_REQUIRES(commit);

  /// A frame of the pool; where there is none, pages are dropped for `ahead` of them, and tables
  /// that are leaving are waited for. As HostArena::Allocate. No mutex that a publication needs is
  /// held, and no epoch guard.
  Result<FrameRef> TakeFrame(FramePool* pool, uint64_t ahead, Deadline deadline);

  std::shared_ptr<TableCore> FindTable(std::string_view name) const;
  /// With companions, which come behind their owners.
  std::vector<std::shared_ptr<TableCore>> AllTables() const;
  /// Those that users know.
  std::vector<std::shared_ptr<TableCore>> UserTables() const;
  std::shared_ptr<TableCore> TableById(TableId id) const;
  /// Makes an empty table, which nobody sees; used by CreateTable and by recovery.
  Result<std::shared_ptr<TableCore>> MakeTable(const TableSpec& spec, TableId id,
                                               Kept kept = Kept::kLeft,
                                               std::shared_ptr<Mutex> mutex = nullptr);
  /// What tables are made in: the budgets of the database, and who makes room in them.
  TableState::Memory MemoryOfTables(Kept kept, std::shared_ptr<Mutex> mutex);
  /// Makes those of a table whose state and plan are there, and are empty.
  Status MakeCompanions(const std::shared_ptr<TableCore>& table, Kept kept);
  /// Makes these the companions of a table, in the order of its layout's; null: dropped.
  static void UseCompanions(const std::shared_ptr<TableCore>& table,
                            std::vector<std::shared_ptr<TableCore>> companions);
  /// From here on it is there, with its companions. Whoever finds it finds it whole.
  void AddTable(std::shared_ptr<TableCore> table);
  void ForgetTable(TableId id);
  /// A dropped table gives its memory back once nobody has it any more: who has handles of it, or
  /// looks at all tables just now. Whether there is such a one: who finds no memory after that was
  /// true waits a moment and looks again.
  bool HasLeaving();
  void AwaitLeaving();
  TableId NextTableId() const;
  /// Tables that were dropped since the last call.
  std::vector<TableId> TakeDropped();
  bool HasDropped() const {
    MutexLock guard(&tables_mutex_);
    return !dropped_.empty();
  }
  /// Ids below `next` were those of tables that are gone.
  void SkipTableIds(TableId next) {
    MutexLock guard(&tables_mutex_);
    last_table_id_ = std::max(last_table_id_, next - 1);
  }

  /// Keeps the frames of so many pages for a table, in all its groups; 0 keeps none.
  void KeepFrames(TableState* state, uint64_t pages);

  void AddTag(Tag tag);
  std::vector<Tag> Tags() const;

  /// Refuses new changes, lets those under way finish, and seals the log. Idempotent. Does nothing
  /// in a fork.
  Status Close();

 private:
  friend class ChangeScope;
  /// Logs for each table that no number beyond those in use was handed out: the next open goes on
  /// right behind them. A seal alone does not say so, what came after it may be lost.
  void PromiseNothingMore() GEARDB_REQUIRES(commit);
  /// `leaves`: its memory comes free with its last handle.
  void ForgetTable(TableId id, bool leaves);

  mutable Mutex tables_mutex_;
  std::map<TableId, std::shared_ptr<TableCore>> tables_ GEARDB_GUARDED_BY(tables_mutex_);
  TableId last_table_id_ GEARDB_GUARDED_BY(tables_mutex_) = 0;
  bool recovered_ = false;  // See BeginWork.
  std::vector<TableId> dropped_ GEARDB_GUARDED_BY(tables_mutex_);
  std::vector<std::weak_ptr<const bool>> leaving_ GEARDB_GUARDED_BY(tables_mutex_);
  CondVar left_;  // Nobody says so: for waits of a moment.
  FrameStats frames_of_dropped_ GEARDB_GUARDED_BY(tables_mutex_);  // Counts alone.
  std::map<std::string, Tag, std::less<>> tags_ GEARDB_GUARDED_BY(tables_mutex_);
  std::unique_ptr<wal::LogWriter> log_writer_;
  Mutex close_mutex_;
  uint64_t changes_under_way_ GEARDB_GUARDED_BY(commit) = 0;  // Admitted scopes.
  CondVar changes_done_;  // There is none, and the database is closed; with `commit`.
};

}  // namespace geardb::engine

namespace geardb {

class Database::Impl : public engine::DatabaseCore {
 public:
  using DatabaseCore::DatabaseCore;
};

class Table::Impl {
 public:
  std::shared_ptr<engine::DatabaseCore> database;
  std::shared_ptr<engine::TableCore> table;
};

class PriorityTable::Impl {
 public:
  std::shared_ptr<engine::DatabaseCore> database;
  std::shared_ptr<engine::TableCore> table;
  uint32_t number = 0;
  PriorityTableSpec spec;

  engine::PriorityState& state() const { return table->state->priority(number); }
};

}  // namespace geardb
