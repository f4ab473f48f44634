// WriteCall: a WriteBatch on its way into one record. engine/database.h (Write) is its public face.
//
//   1. check every operation against its table; copy rows into frames
//   2. commit mutex: find what the operations name, decide the appends, admit them all, wait for
//      room in the log; whatever has to wait begins again, and holds no place meanwhile
//   3. nothing fails any more: take out what leaves, numbers, the record's LSN
//   4. the pieces, publish (WriteChange), acknowledge
//
// Invariants: until step 3 nothing has changed but frames that nobody sees, and scales of weights;
// from the last decision of step 2 to the LSN the commit mutex is held.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/internal/append.h"
#include "engine/internal/column_setting.h"
#include "engine/internal/write_change.h"
#include "engine/internal/write_operations.h"

namespace geardb::engine {

/// InvalidArgument for a name that no tag may have.
Status CheckTagName(std::string_view name);

/// Rows of a companion for a trajectory of its owner: behind those that it has there.
struct OwnedRows {
  size_t companion = 0;
  Slot slot = kNoSlot;
  uint32_t generation = 0;  ///< Of the owner's.
  const std::byte* rows = nullptr;
  uint64_t count = 0;
};

/// See Writer::Impl::Append: calls with rows of companions.
Result<std::vector<Appended>> AppendWithCompanions(Writer::Impl* writer, Writer::Impl::Calls calls,
                                                   Writer::Impl::Priorities priorities,
                                                   const WriteOptions& options);

class WriteCall {
 public:
  /// All outlive it.
  WriteCall(DatabaseCore* database, const WriteBatch::Impl& batch, const WriteOptions& options);
  ~WriteCall();

  Result<WriteOutcome> Run();
  /// Calls of one writer, whose rows of companions go with them, instead of a batch: an error is
  /// that of the call. `batch` was empty.
  Result<std::vector<Appended>> Append(Writer::Impl* writer, Writer::Impl::Calls calls,
                                       Writer::Impl::Priorities priorities);
  /// Likewise: sets per-trajectory columns of a trajectory, and their rows in companions.
  Status SetColumns(const std::shared_ptr<TableCore>& table, ColumnSetting setting);
  /// Likewise: adds rows to companions of `table`, whose trajectories there are closed, or begin.
  /// Rows of what has left are passed over. Nobody else adds to these meanwhile.
  Status AppendOwned(const std::shared_ptr<TableCore>& table, std::span<const OwnedRows> rows);

 private:
  /// The rows of one operation among those of its table.
  struct AppendPart {
    size_t operation = 0;
    size_t first = 0;  ///< In TableAppend::calls.
    size_t count = 0;
    std::vector<InitialPriorities> given;
  };
  /// All appends to one table: one operation of the record.
  struct TableAppend {
    Writer::Impl* writer = nullptr;
    std::vector<AppendPart> parts;
    std::vector<LaneRows> calls;
    std::unordered_set<uint32_t> lanes;  ///< Of these.
    AppendPlan plan;
    // Initial priorities of all parts together.
    std::map<uint32_t, std::vector<float>> values;  ///< By number of priority table.
    std::vector<InitialPriorities> given;

    size_t operation() const { return parts[0].operation; }
  };
  /// All removals from one table.
  struct TableRemoval {
    std::shared_ptr<TableCore> table;
    std::vector<std::pair<size_t, TrajectoryId>> ids;  ///< With their operations.
    std::vector<Slot> slots;                           ///< Of these, each once.
    bool with_append = false;                          ///< They leave with its operation.
  };
  struct ItemSet {
    size_t operation = 0;
    const SetOperation* given = nullptr;
    std::vector<fb::Item> items;
    uint64_t stale = 0;
    float largest = 0;  ///< The plan's maximum with them.
  };
  struct ItemDelete {
    size_t operation = 0;
    const DeleteOperation* given = nullptr;
    std::vector<fb::Handed> items;
    uint64_t stale = 0;
  };
  /// Per-trajectory columns that are set.
  struct TableColumns {
    size_t operation = 0;
    std::shared_ptr<TableCore> table;
    ColumnSetting setting;
    Lane lane;  ///< As if a writer had it: slot and generation.
    std::vector<std::unique_ptr<Writer::Impl>> writers;  ///< Of companions.
  };
  /// One operation of the record.
  struct Recorded {
    enum class Kind { kSet, kDelete, kRemove, kColumns, kAppend, kTag } kind;
    size_t index = 0;  ///< Among those of its kind.
  };

  // Step 1.

  Status Bind();
  Status Bind(size_t operation, const AppendOperation& append);
  Status Bind(size_t operation, const SetOperation& set);
  Status Bind(size_t operation, const DeleteOperation& deleted);
  Status Bind(size_t operation, const RemoveOperation& remove);
  Status Bind(size_t operation, const SetColumnsOperation& set);
  Status Bind(size_t operation, const TagOperation& tag);
  /// Columns of a trajectory are set by one operation, and it is not removed.
  Status CheckColumnsOnce() const;
  Status CheckDatabase(const DatabaseCore* database, std::string_view what) const;
  /// Adds the rows to those of the writer's table.
  Status AddRows(size_t operation, Writer::Impl* writer,
                 const std::vector<InitialPriorities>& given, std::span<const LaneRows> calls);
  /// Likewise what they have for the table's companions; engine/internal/write_companions.cc.
  Status AddCompanionRows(size_t operation, Writer::Impl* writer, const LaneRows& call);
  /// A column that was dropped meanwhile gets no values.
  void LeaveOutDropped() GEARDB_REQUIRES(database_->commit);
  /// Of frames that companions of a table get.
  uint64_t CompanionGrowth(const TableCore& owner) const;
  /// From steps 1 to 4 with what was bound.
  Status RunBound();
  /// `status`, which is of an operation of the batch.
  Status OfOperation(size_t operation, const Status& status) const;
  Status TakeFrames();
  void GiveBack();
  /// Frees the lanes of trajectories that have left, where the caller was told of those.
  void ForgetRemoved(const Status& told);
  Status TakeFrames(TableAppend* append);

  // Step 2; engine/internal/write_decide.cc.

  Status Reserve();
  Status Decide(ChangeScope* scope, bool* again) GEARDB_REQUIRES(database_->commit);
  Status CheckTables() const;
  /// That appends to the trajectory, if one does.
  std::optional<uint32_t> LaneOf(const TableCore& table, TrajectoryId id) const
      GEARDB_REQUIRES(database_->commit);
  Status FindRemoved(TableRemoval* removal) GEARDB_REQUIRES(database_->commit);
  /// The trajectory whose columns are set: it is there, nothing is appended to it, and what is set
  /// is good.
  Status FindColumns(TableColumns* columns) GEARDB_REQUIRES(database_->commit);
  static uint64_t ColumnsBytesMax(const TableColumns& columns);
  void CommitColumns(const TableColumns& columns) GEARDB_REQUIRES(database_->commit);
  flatbuffers::Offset<fb::Operation> EncodeColumns(const TableColumns& columns, WriteChange* change)
      GEARDB_REQUIRES(database_->commit);
  /// The items of `names` that are there: `add(i, leaf, generation)` for each; returns how many are
  /// not.
  template <typename Add>
  uint64_t FindItems(PriorityTable::Impl* table, const ItemNames& names, Add add) const;
  Status FindItems() GEARDB_REQUIRES(database_->commit);
  Status DecideAppends(ChangeScope* scope, bool* again) GEARDB_REQUIRES(database_->commit);
  /// What other operations remove or set columns of leaves with the record that says so.
  void KeepWithRecord(TableAppend* append) const GEARDB_REQUIRES(database_->commit);
  /// The initial priority of what a call brings without one of its own.
  float InitialOf(const Writer::Impl& writer, uint32_t number, const LaneRows& call) const
      GEARDB_REQUIRES(database_->commit);
  /// Initial priorities of the parts of an append as those of one call.
  Status MergePriorities(TableAppend* append) GEARDB_REQUIRES(database_->commit);
  Status DecideItems(ChangeScope* scope, bool* again) GEARDB_REQUIRES(database_->commit);
  Status AwaitRoom(ChangeScope* scope, bool* again) GEARDB_REQUIRES(database_->commit);
  /// Whether there was something.
  bool ReleaseAdmitted();
  /// Upper bound of what its items and priorities take, before they are looked for.
  uint64_t ItemBytesMax() const;
  /// Upper bound of the body; operations that say nothing are left out of `recorded_`.
  uint64_t BodyMax();
  /// Of the parts, and the record itself.
  std::vector<wal::RecordSize> Records(uint64_t body_bytes) const;
  /// How much of what leaves for an append the record says at most. The rest goes ahead of it.
  size_t EvictedInRecordMax(const TableAppend& append) const;
  /// Of the records that go ahead of it so.
  std::vector<wal::RecordSize> RemovalsAhead() const;

  // Step 3; likewise.

  Status WriteParts(ChangeScope* scope) GEARDB_REQUIRES(database_->commit);
  Status WriteRemovalsAhead(ChangeScope* scope) GEARDB_REQUIRES(database_->commit);
  void Commit(ChangeScope* scope) GEARDB_REQUIRES(database_->commit);
  /// Reserves a record with operations [first, first + count) of `recorded_`.
  void Record(ChangeScope* scope, size_t first, size_t count) GEARDB_REQUIRES(database_->commit);
  flatbuffers::Offset<fb::Operation> Encode(const Recorded& recorded, WriteChange* change)
      GEARDB_REQUIRES(database_->commit);
  void CollectPieces();

  // Step 4.

  WriteOutcome Outcome() const;
  void GiveUp();
  /// What single calls see to once they have returned.
  void SeeToTables(bool written);

  DatabaseCore* const database_;
  const WriteBatch::Impl& batch_;
  const Deadline deadline_;
  Ack ack_;
  FrameQueue::Hold hold_;

  std::vector<TableAppend> appends_;
  std::vector<TableRemoval> removals_;
  std::vector<ItemSet> sets_;
  std::vector<ItemDelete> deletes_;
  const TagOperation* tag_ = nullptr;
  std::deque<TableColumns> columns_;
  /// Rows that are added to companions alone.
  struct OwnedAppend {
    std::shared_ptr<TableCore> table;
    std::vector<std::unique_ptr<Lane>> lanes;  ///< As if a writer had what owns them.
    std::vector<std::unique_ptr<Writer::Impl>> writers;
    /// Pages that keep their frames until rows are added to them.
    struct Held {
      TableState* state = nullptr;
      Lpn lpn = kNoLpn;
      uint32_t generation = 0;
    };
    std::vector<Held> held;
  };
  std::unique_ptr<OwnedAppend> owned_;
  Status BindOwned(std::span<const OwnedRows> rows);
  /// Those of one companion, on lanes of its writer.
  Result<std::vector<LaneRows>> TakeOverOwned(std::span<const OwnedRows> rows,
                                              Writer::Impl* writer);
  /// NotFound: one that owns rows has left.
  Status CheckOwned() const;
  /// The record that has their rows ends there.
  void NoteOwned(Lsn end);
  void LetGoOwned();
  bool alone_ = false;  ///< No batch: one call.

  std::vector<Recorded> recorded_;
  std::vector<Eviction> removed_;  ///< Of `removals_`, once they are out of the plan.
  bool in_parts_ = false;
  uint32_t parts_ = 0;
  Lsn group_lsn_ = 0;
  std::vector<wal::PieceSource> pieces_;
  std::vector<uint64_t> piece_bytes_;
  /// A record on its way; one, but in the tree that splits batches.
  struct OnItsWay {
    std::unique_ptr<WriteChange> change;
    wal::Reservation reservation;
    std::vector<Recorded> recorded;
    size_t first_piece = 0;
    size_t pieces = 0;
  };
  std::vector<OnItsWay> records_;
};

}  // namespace geardb::engine
