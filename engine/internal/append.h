// The way of rows into a table: from a writer's arrays into frames, and with one record into the
// log. engine/writer.h is its public face.
//
//   1. check every column: name, dtype, shape; nothing is changed by a call that is refused
//   2. take frames, copy the rows into them (no lock; nobody can see rows beyond a trajectory's
//   end)
//   3. commit mutex: room in the log, what must leave, LPNs, slots, ids, priorities; the LSN
//   4. copy the pieces from the frames to the ring, publish, wait for the acknowledgement
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/internal/append_plan.h"
#include "engine/internal/change_scope.h"
#include "engine/internal/core.h"
#include "engine/writer.h"

namespace geardb::engine {

class WriteCall;

/// The trajectory in the slot is not closed, and no writer has it: who had it left it, with a
/// record or where none could be logged. `commit` and the state's mutex are held.
bool IsOrphan(const TableCore& table, Slot slot);
/// When its writer left it, at the open at the earliest.
int64_t OrphanedUs(const DatabaseCore& database, const TableCore& table, Slot slot);

/// The record of an append.
class AppendChange final : public Change {
 public:
  AppendChange(DatabaseCore* database, std::shared_ptr<TableCore> table)
      : database_(database), table_(std::move(table)) {}
  std::vector<FrameRef> new_frames;     ///< PageFrames of it, in `layout`.
  std::vector<wal::PiecePlace> places;  ///< Likewise.
  const TableLayout* layout = nullptr;
  std::vector<uint64_t> admitted;  ///< AppendPlan::admitted of it.

 private:
  void Apply(Lsn lsn, Lsn end) override;
  DatabaseCore* database_;
  std::shared_ptr<TableCore> table_;
};

}  // namespace geardb::engine

namespace geardb {

class Writer::Impl {
 public:
  using AppendChange = engine::AppendChange;
  using Calls = std::span<const engine::LaneRows>;
  using Priorities = std::span<const InitialPriorities>;
  using AppendPlan = engine::AppendPlan;

  Impl(std::shared_ptr<engine::DatabaseCore> database, std::shared_ptr<engine::TableCore> table,
       const WriterOptions& options);
  ~Impl();

  /// After a reopen a table has no ids that a synced record promises: has some promised, so that no
  /// call waits for it. As far as that goes: where it fails, the first call says why.
  void PromiseNumbers();
  /// One atomic record for all of `calls`, each on a lane of its own.
  Result<std::vector<Appended>> Append(std::span<const engine::LaneRows> calls,
                                       std::span<const InitialPriorities> priorities, Ack ack);
  Result<std::vector<Appended>> AppendOnce(Calls calls, Priorities priorities, Ack ack,
                                           Deadline deadline);
  /// What every call is asked, with rows or without: the database, the table, the columns set.
  Status CheckCall(Calls calls, Ack ack) const;
  /// For a call that leaves nothing; of `calls`, none has a row that is stored.
  Status CheckNothing(Calls calls, Priorities priorities, Ack ack) const;
  Result<Appended> Cut(uint32_t lane);
  /// `left_until_us`: of one that is to be cut next; the log has room for that, too, and for an
  /// orphan whose writer left it later it is FailedPrecondition.
  Status Resume(TrajectoryId id, uint32_t lane, std::optional<int64_t> left_until_us = {});
  Result<TrajectoryId> Detach(uint32_t lane);

  const WriterOptions& options() const { return options_; }
  engine::DatabaseCore* database() const { return database_.get(); }
  Status CheckProcess() const { return database_->CheckProcess(); }
  bool forked() const { return database_->owner.forked(); }
  /// The table as it was when the writer was made: what it appends.
  const engine::TableLayout& layout() const { return *layout_; }
  engine::Lane& lane(uint32_t number) { return *lanes_[number]; }
  /// Some call has rows of a companion, or empties one.
  bool UsesCompanions(Calls calls) const;
  /// How many rows a ragged companion has of the lane's trajectory; of one that begins, or whose
  /// column was dropped, none.
  uint64_t RowsOfCompanion(size_t companion, uint32_t lane);
  /// NotFound or InvalidArgument, naming the priority table and the first wrong value.
  Status CheckPriorities(Priorities priorities) const;
  Ack AckOf(const std::optional<Ack>& wanted) const;
  /// Until a change on the caller's stack is acknowledged as this writer's calls are; at least
  /// published, since it must have been applied before it goes.
  Status AwaitOwn(Lsn end) const;
  /// A lane whose trajectory was removed is free again.
  void ForgetRemoved(engine::Lane* lane);

 private:
  /// Appends of a WriteBatch, together with its other operations.
  friend class engine::WriteCall;

  /// What the rows add, in the plan's `calls` and `growth`; returns how many pieces they make.
  uint64_t CountRows(Calls calls, engine::AppendPlan* plan) const;
  /// Whether the rows fit the table, the frame budget and a record when all else has left: asked
  /// before there is a plan of their size.
  Status CheckFits(const engine::AppendPlan& plan, uint64_t pieces) const;
  /// Step 2: which pages the rows fill; frames for them; the copy.
  void PlanPages(Calls calls, engine::AppendPlan* plan) const;
  Status TakeFrames(Calls calls, Deadline deadline, engine::AppendPlan* plan);
  Status CopyRows(Calls calls, Deadline deadline, engine::AppendPlan* plan);
  /// Those of page number `page` of the plan; `rows_done` of the call went into earlier ones.
  void CopyPage(Calls calls, const engine::AppendPlan& plan, size_t page, uint64_t rows_done);
  /// Behind a call, however often it was tried: the caller is told once that a trajectory of it is
  /// gone, and the lanes of all that are gone are free then.
  void ForgetRemoved(Calls calls, const Status& told);
  void FreeFrames(engine::AppendPlan* plan);
  /// The pieces of a large append go ahead of its record, in parts, once it is clear that nothing
  /// can refuse it. Far from the log's bound the commit mutex is released meanwhile.
  Status WriteParts(std::span<const wal::RecordSize> sizes, engine::ChangeScope* scope,
                    engine::AppendPlan* plan) GEARDB_REQUIRES(database_->commit);
  /// All of that.
  Status GoAheadInParts(Calls calls, Priorities priorities, engine::ChangeScope* scope,
                        engine::AppendPlan* plan) GEARDB_REQUIRES(database_->commit);
  /// Before a wait for others: what went ahead goes again, if it comes to that.
  void GiveUpParts(engine::AppendPlan* plan) GEARDB_REQUIRES(database_->commit);
  Status WritePart(const engine::PartOfPieces& part, engine::ChangeScope* scope,
                   engine::AppendPlan* plan) GEARDB_REQUIRES(database_->commit);
  /// Fills and publishes a part, and says in the plan where its pieces are.
  void FillPart(const wal::Reservation& reservation, const engine::PartOfPieces& part,
                engine::AppendPlan* plan);
  /// The sizes of all records of the append: parts, removals, its own.
  Result<std::vector<wal::RecordSize>> AdmitParts(Calls calls, Priorities priorities,
                                                  engine::ChangeScope* scope,
                                                  engine::AppendPlan* plan)
      GEARDB_REQUIRES(database_->commit);
  /// Those that are still to be reserved.
  Result<std::vector<wal::RecordSize>> Records(Priorities priorities,
                                               const engine::AppendPlan& plan) const;
  /// Of the records of removals that an eviction puts ahead of the append's own, which says
  /// `own_max` of them.
  std::vector<wal::RecordSize> RemovalsAhead(const engine::Eviction& eviction,
                                             size_t own_max) const;
  /// Step 3: waits for what has to be waited for, decides, and reserves. On an error nothing is
  /// left behind.
  Result<wal::Reservation> Reserve(Calls calls, Priorities priorities, Deadline deadline,
                                   engine::AppendPlan* plan, AppendChange* change);
  /// Whether the table takes the call, and what has to leave for it. Changes nothing that can be
  /// seen; with `*again` the commit mutex was released meanwhile.
  Status Decide(Calls calls, Priorities priorities, engine::ChangeScope* scope,
                engine::AppendPlan* plan, bool* again) GEARDB_REQUIRES(database_->commit);
  /// The two halves of Decide: ids, and what leaves; then items, numbers, limiters and scales.
  Status DecideRoom(Calls calls, engine::ChangeScope* scope, engine::AppendPlan* plan, bool* again)
      GEARDB_REQUIRES(database_->commit);
  Status DecideItems(Calls calls, Priorities priorities, engine::ChangeScope* scope,
                     engine::AppendPlan* plan, bool* again) GEARDB_REQUIRES(database_->commit);
  /// Decides, waits for room in the log, and takes out of the plan what leaves. Nothing can refuse
  /// the call after it.
  Status Admit(Calls calls, Priorities priorities, engine::ChangeScope* scope,
               engine::AppendPlan* plan, bool* again) GEARDB_REQUIRES(database_->commit);
  /// Waits for the limiters of all priority tables, and counts the items as admitted, in the plan.
  /// InvalidArgument for more than one of them ever admits. Once parts have gone ahead, for what
  /// has changed since.
  Status AdmitItems(Calls calls, engine::ChangeScope* scope, engine::AppendPlan* plan, bool* again)
      GEARDB_REQUIRES(database_->commit);
  /// Admits them all, or says which priority table does not, and why. The lanes were awaited.
  std::optional<uint32_t> TryAdmitItems(Calls calls, engine::AppendPlan* plan,
                                        index::LimiterBlock* block)
      GEARDB_REQUIRES(database_->commit);
  bool LimitsInserts() const GEARDB_REQUIRES(database_->commit);
  // Of draw groups; engine/internal/append_groups.cc.
  bool LimitsGroups() const GEARDB_REQUIRES(database_->commit);
  /// Groups that the calls make ready, of what is published. The state's mutex is held.
  uint64_t CountNewGroups(uint32_t priority_table, Calls calls) const;
  /// The key that the trajectory of a call ends with.
  int64_t IncomingKey(const engine::DrawGroups& groups, const engine::LaneRows& call) const;
  /// Items that were admitted will not come.
  void ReleaseItems(engine::AppendPlan* plan);
  /// Likewise, before a wait: others have waited for their places meanwhile.
  void ReturnPlaces(engine::AppendPlan* plan) GEARDB_REQUIRES(database_->commit);
  /// InvalidArgument for a per-trajectory column that is a priority and no good one.
  Status CheckColumns(Calls calls) const;
  /// NotFound when a lane's trajectory was removed.
  Status CheckLanes(Calls calls, engine::AppendPlan* plan) const;
  /// Of a lane without a writer: the page at its end is there still.
  bool HasTail(const engine::Lane& lane) const;
  /// What has to leave for the call, in `plan->eviction`. Nothing is taken out of the plan. Waits,
  /// where nothing leaves by itself, for somebody's removal.
  Status ChooseEviction(engine::ChangeScope* scope, engine::AppendPlan* plan, bool* again)
      GEARDB_REQUIRES(database_->commit);
  /// Takes it out of the plan. What does not go into the append's own record, of size `append`, is
  /// logged ahead of it.
  Status Evict(const wal::RecordSize& append, engine::ChangeScope* scope, engine::AppendPlan* plan)
      GEARDB_REQUIRES(database_->commit);
  /// Logs what leaves ahead of the append's own record, which then has room. The log is prepared
  /// for RemovalsAhead, and nobody else appends meanwhile.
  Status LogRemovalsAhead(size_t own_max, engine::ChangeScope* scope, engine::AppendPlan* plan)
      GEARDB_REQUIRES(database_->commit);
  /// How many of those go into the append's own record.
  size_t RemovedInRecordMax() const;
  /// Of a record that says of so many pieces no more than where they are.
  static wal::RecordSize LeastRecord(uint64_t pieces);
  /// InvalidArgument when the record of a call can never fit.
  Status CheckRecordFits(const engine::AppendPlan& plan, uint64_t pieces,
                         const wal::RecordSize& size) const;
  /// Of the append's own record, at most. InvalidArgument when it can never fit.
  Result<wal::RecordSize> SizeOf(Priorities priorities, const engine::AppendPlan& plan) const;
  /// Of its body alone, with so many of those that leave for it at most.
  uint64_t BodyMax(Priorities priorities, const engine::AppendPlan& plan, size_t own_max) const;
  /// InvalidArgument when so many priorities are not right for `items` items.
  static Status CheckItemCount(const InitialPriorities& given, uint64_t items);
  Status CheckItemCounts(Calls calls, Priorities priorities, engine::AppendPlan* plan)
      GEARDB_REQUIRES(database_->commit);
  /// Until the records so far of the lanes' trajectories are published.
  Status AwaitLanes(Calls calls) const GEARDB_REQUIRES(database_->commit);
  /// How many items of a priority table a call makes drawable; its lane was awaited.
  uint64_t NewItems(uint32_t priority_table, const engine::LaneRows& call,
                    const engine::AppendPlan& plan) const
      GEARDB_REQUIRES(database_->commit, table_->state->mutex);
  /// The largest raw priority that items of the calls may get.
  float LargestIncoming(uint32_t priority_table, Calls calls, Priorities priorities) const
      GEARDB_REQUIRES(database_->commit);
  /// Logs a rescale first where the weight of an item to come does not fit.
  Status RescaleIfDue(Calls calls, Priorities priorities, engine::ChangeScope* scope,
                      const engine::AppendPlan& plan, bool* again)
      GEARDB_REQUIRES(database_->commit);
  /// Takes the frames to which a Patch has moved the page that page `page` of the plan goes on in.
  /// False: there is none.
  bool FollowTail(Calls calls, size_t page, engine::AppendPlan* plan)
      GEARDB_REQUIRES(database_->commit);
  /// That of all pages, with their rows copied once more.
  void FollowPatches(Calls calls, engine::AppendPlan* plan) GEARDB_REQUIRES(database_->commit);
  void TakeNumbers(Calls calls, engine::AppendPlan* plan) GEARDB_REQUIRES(database_->commit);
  void BuildBody(Calls calls, Priorities priorities, const engine::AppendPlan& plan,
                 AppendChange* change) GEARDB_REQUIRES(database_->commit);
  flatbuffers::Offset<engine::fb::Append> EncodeAppend(Calls calls, Priorities priorities,
                                                       const engine::AppendPlan& plan,
                                                       flatbuffers::FlatBufferBuilder* builder)
      GEARDB_REQUIRES(database_->commit);
  std::vector<flatbuffers::Offset<engine::fb::NewItems>> BuildItems(
      Calls calls, Priorities priorities, flatbuffers::FlatBufferBuilder* builder)
      GEARDB_REQUIRES(database_->commit);
  /// Step 4 at `memory` ack: a large record is left to the database's filler.
  void FinishLater(const wal::Reservation& reservation, engine::AppendPlan* plan,
                   AppendChange* change);
  void AdvanceLanes(Calls calls, const engine::AppendPlan& plan, const wal::Reservation& record)
      GEARDB_REQUIRES(database_->commit);
  /// The record that ends a lane's trajectory as cut, or removes it.
  void BuildClose(const engine::Lane& lane, bool nothing_left, engine::Change* change)
      GEARDB_REQUIRES(database_->commit);
  /// What that record takes at most.
  wal::RecordSize CloseSize() const;
  /// Leaves what is open to whoever resumes it.
  void Orphan();
  /// Of as many lanes as one record names.
  Status Leave(std::span<const engine::Lane* const> lanes);
  struct WantedOrphan {
    TrajectoryId id = 0;
    std::optional<int64_t> left_until_us = {};
  };
  /// `no_frame`: set where a page that it goes on in has none, and nothing has changed.
  Status ResumeOnce(const WantedOrphan& orphan, uint32_t number, Deadline deadline, bool* no_frame);
  /// So that each group that a trajectory goes on in finds a frame for a page.
  Status MakeRoomForTail(Deadline deadline);
  /// Nothing has changed after an error.
  Status TakeOverOrphan(const WantedOrphan& orphan, uint32_t number)
      GEARDB_REQUIRES(database_->commit);
  Status TakeOverTail(engine::Lane* lane) GEARDB_REQUIRES(table_->state->mutex);
  /// The writers of the companions to which a lane's calls append.
  std::vector<Impl*> AppendedCompanions() const;
  /// What the ragged companions have of it; nothing has changed after an error.
  Status TakeOverCompanions(const engine::Lane& lane, uint32_t number)
      GEARDB_REQUIRES(table_->state->mutex);
  /// Makes a lane of a companion that of the trajectory in the owner's slot.
  Status TakeOverOwned(const engine::Lane& owner, engine::Lane* lane)
      GEARDB_REQUIRES(table_->state->mutex);
  /// The writer of a companion, with its lane for the trajectory that the table's own lane has.
  /// Null: its column was dropped.
  Impl* CompanionFor(size_t companion, uint32_t lane);
  /// What companions have of trajectories that get other values leaves their plans.
  void EmptyCompanions(Calls calls, const AppendPlan& plan) GEARDB_REQUIRES(database_->commit);
  /// What an item of the lane's trajectory gets when nobody says otherwise.
  float InitialPriorityOf(uint32_t priority_table, const engine::Lane& lane) const;

  std::shared_ptr<engine::DatabaseCore> database_;
  std::shared_ptr<engine::TableCore> table_;
  const engine::TableLayout* layout_;
  WriterOptions options_;
  std::vector<std::unique_ptr<engine::Lane>> lanes_;
  std::vector<std::unique_ptr<Impl>> companions_;  // Writers of the table's companions; null: none.
  std::unique_ptr<AppendChange> reused_;           // Of a call that has been waited for.
  std::unique_ptr<AppendPlan> reused_plan_;        // Cleared.
};

}  // namespace geardb
