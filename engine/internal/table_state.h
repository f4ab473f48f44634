// TableState: what a table is, as of the published end of the log. Everything a draw or a read
// looks at is here; it changes only by applying log records, in LSN order, live and at recovery
// alike.
//
// Invariants:
// - A step's leaf is set in a priority table's members iff the row is an anchor of it
//   (base/window.h), or the closed trajectory in that slot is its item.
// - The bytes of a page that is in a list are in a frame, or are where TableFrames finds them; all
//   that decides anything is in index memory.
// - The state is a function of the log's records alone: no clock, no address, no timing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/window.h"
#include "engine/internal/arena.h"
#include "engine/internal/change_signal.h"
#include "engine/internal/patched_rows.h"
#include "engine/internal/priority_state.h"
#include "engine/internal/removal_log.h"
#include "engine/internal/table_frames.h"
#include "engine/internal/table_layout.h"
#include "engine/operations_generated.h"
#include "index/leaf_set.h"
#include "index/page_table.h"
#include "index/trajectory_index.h"
#include "wal/log_writer.h"

namespace geardb::engine {

/// Frames that an append brings: for each page that it writes rows into, in the order of the rows,
/// one for each of `layout`'s appended groups; not valid where the page goes on in the frame that
/// it has there.
struct PageFrames {
  const TableLayout* layout = nullptr;  ///< That the writer knew.
  std::span<const FrameRef> frames;
  std::span<const wal::PiecePlace> places;  ///< Of the pieces, likewise.

  FrameRef FrameOf(size_t page, size_t group) const { return frames[PlaceOf(page, group)]; }
  const wal::PiecePlace& PieceOf(size_t page, size_t group) const {
    return places[PlaceOf(page, group)];
  }

 private:
  size_t PlaceOf(size_t page, size_t group) const {
    return page * layout->appended_groups().size() + group;
  }
};

/// What a draw holds until it is handed over or given up.
struct DrawReservation {
  uint64_t rows = 0;
  std::vector<fb::Handed> items = {};  ///< Of each row; empty where nobody counts them.
  /// Groups that were drawn without a maximum: the hand-over names them, they hold no place.
  std::vector<fb::Handed> uncounted = {};
  EpochMark mark = {};  ///< Of the pass in which it was drawn.
};

/// What setting priorities came to.
struct PriorityOutcome {
  uint64_t applied = 0;
  uint64_t stale = 0;
};

/// What deleting items came to.
struct DeleteOutcome {
  PriorityOutcome items;
  std::vector<fb::Sampled> touched = {};  ///< Their trajectories, each once.
};

/// What sealing draw groups came to.
struct SealOutcome {
  uint64_t sealed = 0;  ///< That took members; the others did not any more.
};

/// A trajectory, as long as its slot has the generation.
struct SlotOfTrajectory {
  Slot slot = kNoSlot;
  uint32_t generation = 0;
};

/// The published state of one table. All calls but the first few need `mutex` held.
class TableState {
 public:
  struct Memory {
    index::IndexMemory* index = nullptr;
    HostArena* arena = nullptr;
    PageLoader* loader = nullptr;                         ///< Null: no page loses its frame.
    std::function<void(FramePool*)> make_room = nullptr;  ///< See TableFrames::Memory.
    Kept kept = Kept::kLeft;                              ///< For the frames that it takes at once.
    const Clock* clock = nullptr;                         ///< See DrawGroups; null: time stands.
    std::shared_ptr<Mutex> mutex = nullptr;               ///< Of a companion: its owner's.
    bool may_be_cold = false;                             ///< See TableFrames::Memory.
  };
  static Result<std::unique_ptr<TableState>> Create(const Memory& memory, const TableSpec& spec,
                                                    TableId id);
  static Result<std::unique_ptr<TableState>> Create(const Memory& memory, TableHistory history,
                                                    TableId id);
  ~TableState();

  /// Shared with its companions; it stays as long as one of these.
  const std::shared_ptr<Mutex> shared_mutex;
  Mutex& mutex;
  /// End of the last record of this table that was applied, by an ApplyLock; 0 after an open. It
  /// may be published a moment later.
  Lsn applied_end GEARDB_GUARDED_BY(mutex) = 0;
  /// Notified when something may have become drawable.
  ChangeSignal changed;

  /// As of the last change of the columns. It stays, with all before it, as long as this: whoever
  /// has bound columns or groups by number can go on with the layout that it knows.
  const TableLayout& layout() const { return *layout_.load(std::memory_order_acquire); }
  /// Which pages have frames. What a call of it changes is no part of what the table is.
  TableFrames& frames() const { return *frames_; }
  FramePool* pool(size_t group) const { return frames_->pool(group); }
  const HostArena& arena() const { return *memory_.arena; }

  // Companions (companion.h); engine/internal/table_companions.cc. They change with the columns,
  // under the mutex.

  /// In the order of the layout's, null for those of dropped columns; they stay as long as this
  /// uses them.
  void UseCompanions(std::vector<TableState*> companions);
  /// Null where its column was dropped.
  TableState* companion(size_t number) const { return companions_[number]; }
  /// All its trajectories leave: its column is about to be dropped.
  void EmptyCompanion(size_t number) GEARDB_REQUIRES(mutex);
  std::span<TableState* const> companions() const { return companions_; }
  /// The table that this is a companion of; null: none.
  const TableState* owner() const { return owner_; }
  /// What the companions' frames take, of all pages.
  uint64_t companion_frame_bytes() const;
  /// Of a ragged companion: its pages, from the head on, all of whose rows are of steps before
  /// `first_row`, a row of the owner's trajectory in the slot, once that begins there: what its
  /// records say, by the LSNs of its pages. They leave with the owner's pages below it.
  uint64_t RaggedPagesBelow(size_t companion, Slot slot, uint64_t first_row) const;
  /// Of all companions: the bytes of the frames of such pages, or of all with UINT64_MAX.
  uint64_t CompanionBytesBelow(Slot slot, uint64_t first_row) const;

  // Admission: the only calls that can fail. Caller holds `mutex`.

  /// Makes LPNs and slots below these usable in every structure; with `ahead`, and where the index
  /// budget allows it, some more, so that not every append asks for some.
  Status Reserve(uint64_t lpn_count, uint64_t slot_count, bool ahead);
  /// Adds an empty priority table; apply CreatePriorityTable to fill it.
  Status AddPriorityTable(const PriorityTableSpec& spec);
  /// The memory for a standing filter of a priority table.
  Status PrepareFilter(size_t priority_table);

  // Columns that come and leave; engine/internal/table_columns.cc. Whoever changes them holds the
  // commit mutex, or is recovery.

  const TableHistory& history() const { return history_; }
  TableHistory HistoryNow() const GEARDB_EXCLUDES(mutex) {
    MutexLock lock(&mutex);
    return history_;
  }
  /// The layout after the first `version` changes, of those there were.
  const TableLayout& LayoutAt(uint32_t version) GEARDB_REQUIRES(mutex);
  /// What a change needs, before anybody sees it.
  struct ColumnChange;
  /// Takes memory and frames for what `after` has and history() has not. ResourceExhausted, with
  /// nothing left behind.
  Result<std::unique_ptr<ColumnChange>> PrepareColumns(TableHistory after) GEARDB_EXCLUDES(mutex);
  /// Columns that come hold their defaults, in all that is there. What leaves is not found any
  /// more; the frames of groups of which nothing is left are retired. With `has_writers` the last
  /// pages of open trajectories keep theirs for writers who do not know yet.
  void ApplyColumns(std::unique_ptr<ColumnChange> change, bool has_writers = true)
      GEARDB_REQUIRES(mutex);

  // Applying. `lsn` is that of the record.

  /// `frames` hold the rows already.
  void Apply(const fb::Append& append, Lsn lsn, const PageFrames& frames);
  void Apply(const fb::Close& close, Lsn lsn);
  void Apply(const fb::Adopt& adopt, Lsn lsn);
  /// `priority_table`: that of the operation, which the reason may speak of.
  void Apply(const fb::Remove& remove, uint32_t priority_table);
  /// What an append says before its rows.
  void Leave(const fb::Append& append);
  /// What a Remove says; either may be null.
  void Leave(const flatbuffers::Vector<const fb::Removed*>* removed,
             const flatbuffers::Vector<const fb::Trimmed*>* trimmed, const RemovalCause& cause);
  void Apply(const fb::SetColumns& set);
  /// `lsn` is kNoLsn where all groups are volatile. The old frames are retired.
  void ApplyPatch(const PatchedRows& patched, Lsn lsn);
  /// The row below which a trajectory has what a priority table requires; INT64_MAX where that is
  /// all there. `with_columns` count as set.
  int64_t ReadyEnd(const PriorityState& priority, Slot slot, uint64_t with_columns = 0) const;
  void Apply(const fb::CreatePriorityTable& create, size_t priority_table);
  /// What a SetPriorities says, of items here or gone.
  PriorityOutcome ApplySet(std::span<const fb::Item> items, size_t priority_table);
  /// `values` in order of leaf, or one for all.
  PriorityOutcome ApplySetAll(std::span<const float> values, size_t priority_table);
  void Apply(const fb::Rescale& rescale, size_t priority_table);
  void Apply(const fb::HandOver& hand_over, size_t priority_table);
  void Apply(const fb::RestartDraws& restart, size_t priority_table);
  /// Its limits are valid, and were prepared.
  void Apply(const fb::Configure& configure, size_t priority_table);
  /// It is valid, and was prepared.
  void Apply(const fb::SetFilter& set, size_t priority_table);
  void Apply(const fb::BeginEpoch& begin, size_t priority_table);
  void Apply(const fb::EndPass& end, size_t priority_table);
  /// What a DeleteItems says, of items here or gone; it was prepared.
  DeleteOutcome ApplyDelete(std::span<const fb::Handed> items, size_t priority_table);
  /// Groups here or gone; of those that are there and take members.
  SealOutcome Apply(const fb::SealGroups& seal, size_t priority_table);
  /// Items that were admitted, by priority table, are there now, or never will be.
  void Arrived(std::span<const uint64_t> admitted);
  /// What a draw reserved is free again; a hand-over does that before it is applied.
  void CancelDraw(size_t priority_table, DrawReservation* draw);
  /// Recovery: between the two, sums of weights are not kept up to date.
  void BeginBulk();
  void EndBulk();
  /// Recovery: what was counted while replaying does not count as "since the open".
  void ResetCounters();
  /// InvalidArgument when a per-trajectory column is where a priority table takes its items'
  /// initial priorities from, and `value` is none.
  Status CheckColumnValue(size_t column, const void* value) const GEARDB_REQUIRES(mutex);

  /// Recovery: what was open has lost its writer. Returns how many trajectories nobody has now.
  uint64_t OrphanOpenTrajectories();

  /// Tells these before slots and pages change (index/change_watch.h); null: nobody.
  void WatchChanges(index::ChangeWatch* trajectories, index::ChangeWatch* pages) {
    trajectories_->Watch(trajectories);
    pages_->Watch(pages);
  }

  // Reading.

  const index::TrajectoryIndex& trajectories() const { return *trajectories_; }
  const index::PageTable& pages() const { return *pages_; }
  size_t priority_table_count() const { return priorities_.size(); }
  /// The layout's spec, which names no priority table, with those that there are. A copy.
  TableSpec WholeSpec() const GEARDB_REQUIRES(mutex);
  /// Whether the weights of a priority table should have another scale.
  bool ScaleDue() const GEARDB_REQUIRES(mutex);
  /// There is something for FollowUp.
  bool FollowUpDue() const GEARDB_REQUIRES(mutex) { return ScaleDue() || !finished_.empty(); }
  PriorityState& priority(size_t number) { return *priorities_[number]; }
  const PriorityState& priority(size_t number) const { return *priorities_[number]; }

  static index::PageList ListOf(const index::TrajectoryRecord& record) {
    return {record.head_lpn, record.tail_lpn};
  }
  /// One past the last step, before any rule of a priority table: rows_end less a stored final row.
  int64_t StepsEnd(const index::TrajectoryRecord& record) const {
    return static_cast<int64_t>(record.rows_end) -
           ((record.flags & index::kFinalRowStored) != 0 ? 1 : 0);
  }
  bool IsTrajectoryItem(const index::TrajectoryRecord& record) const;
  /// The frame of a page in a group; not valid where it has lost it.
  FrameRef FrameOf(size_t group, Lpn lpn) const { return frames_->FrameOf(group, lpn); }
  /// The first byte of a row of a step column, in the page that has it: see TableFrames::ToRead.
  FrameRef RowToRead(size_t column, Lpn lpn, uint32_t offset_in_page, PageWaits* waits) const {
    const TableLayout& now = layout();
    const FrameRef frame = frames_->ToRead(now.step_columns()[column].group, lpn, waits);
    return FrameRef{frame.bits + now.RowOffset(column, offset_in_page)};
  }
  /// The value of a per-trajectory column.
  std::span<const std::byte> ValueOf(size_t column, Slot slot) const {
    return trajectories().column(layout().trajectory_columns()[column].place, slot);
  }
  /// The row up to which a late group of a trajectory is filled.
  uint64_t Filled(size_t group, Slot slot) const;
  /// The frame that shows a group's defaults in every row: of all its pages in which nobody has
  /// written. Not valid for a group whose pages are all written when they begin.
  FrameRef default_frame(size_t group) const { return frames_->default_frame(group); }
  /// Copies that frame, where there is one, into one that nobody reads.
  void CopyDefaults(size_t group, FrameRef into) const {
    frames_->CopyDefaults(group, memory_.arena->Resolve(into));
  }
  /// The leaf of a row that is there, or UINT64_MAX.
  uint64_t LeafOfRow(const index::TrajectoryRecord& record, int64_t row) const;
  /// The leaf that (slot, row) has in a priority table, whether or not it is an item.
  uint64_t LeafOfItem(const PriorityState& priority, Slot slot, int64_t row) const;
  /// The generation that names a leaf of a priority table now; false when its place is free.
  bool GenerationOfLeaf(const PriorityState& priority, uint64_t leaf, uint32_t* generation) const;

  /// The trajectory of a leaf of a priority table, whose place is not free; of a group its first.
  Slot SlotOfLeaf(const PriorityState& priority, uint64_t leaf) const {
    if (priority.groups() != nullptr) return priority.groups()->FirstOf(leaf);
    return priority.draws_windows() ? pages_->page(layout().LpnOfLeaf(leaf)).slot
                                    : static_cast<Slot>(leaf);
  }
  /// The leaf of the item that a trajectory is, or is in, item or not; for priority tables that
  /// draw no windows. An empty range where there is none.
  static index::LeafRange LeavesOfTrajectory(const PriorityState& priority, Slot slot) {
    const uint64_t leaf = priority.groups() == nullptr ? slot : priority.groups()->GroupOf(slot);
    return leaf == DrawGroups::kNoGroup ? index::LeafRange{0, 0} : index::LeafRange{leaf, leaf + 1};
  }

  // Of draw groups; engine/internal/table_draw_groups.cc.

  /// A trajectory that may be drawn joins a group. True, and its leaf, where that makes it an item.
  bool JoinGroup(PriorityState* priority, Slot slot, uint64_t* leaf);
  /// The key that a trajectory has now.
  int64_t GroupKeyOf(const DrawGroups& groups, Slot slot) const;
  /// The raw priority that a group begins with when it is sealed.
  float PriorityOfSealed(const PriorityState& priority, uint64_t group) const;
  /// A member fails the standing filter.
  bool GroupFails(const PriorityState& priority, uint64_t group) const;

  // Of a remover by priority.

  /// From now on remembers of which trajectories the items of a priority table, or their
  /// priorities, change.
  void FollowPriorities(size_t priority_table);
  /// Adds their slots to `slots`, each at most once, and forgets them.
  void TakeChangedPriorities(std::vector<Slot>* slots);
  /// The largest raw priority of the items of a trajectory; 0 where it has none.
  float LargestPriority(size_t priority_table, Slot slot) const;
  void NotePriorities(size_t priority_table, Slot slot) {
    if (followed_ == priority_table) NoteChanged(slot);
  }
  /// Likewise of all that have a part in an item.
  void NoteItem(size_t priority_table, uint64_t leaf);

  // Of standing filters.

  /// The filter that a priority table's spec has now: whom it fails is worked out anew.
  void UseFilter(size_t priority_table);
  /// Some priority table removes what is exhausted, covered or filtered out.
  bool RemovesFinished() const;
  /// Whether a trajectory is to be removed, since nobody can draw it any more
  /// (PriorityTableSpec::remove_when_exhausted), an epoch has covered it
  /// (EpochSpec::remove_covered), or a standing filter expires it.
  bool IsFinished(Slot slot) const;
  /// Why: the first filter that expires it, or else kExhausted.
  RemovalCause CauseOfFinished(Slot slot) const;
  /// All of them. Looks at every trajectory, if any may be.
  std::vector<Slot> FinishedTrajectories() const;
  /// Of these, those that became so by changes that name no samples or deleted items: an end, a
  /// trim, what a filter or a priority table asks for. Found since the last call.
  std::vector<SlotOfTrajectory> TakeFinished();
  void PutBackFinished(std::vector<SlotOfTrajectory> finished);

  // Of trajectories that could not be read, and may be after another open.

  /// Hides all items of a trajectory until the next open, those that are yet to come, too, as a
  /// standing filter would. ResourceExhausted: there is no index memory for it.
  Status HideUnreadable(Slot slot);
  bool IsUnreadable(Slot slot) const {
    return unreadable_ != nullptr && unreadable_->Contains(slot);
  }
  /// How many items of a priority table that hides; whether this is one.
  uint64_t UnreadableItems(const PriorityState& priority) const;
  bool IsUnreadableItem(const PriorityState& priority, uint64_t leaf) const;
  /// Some of them are left in the pass of its epoch.
  bool UnreadableRemain(const PriorityState& priority) const;

  /// Index memory behind the table: records, pages, selectors.
  uint64_t index_bytes() const;

  // Counts.
  uint64_t rows() const { return rows_; }
  uint64_t steps() const { return steps_; }
  uint64_t page_count() const { return page_count_; }
  /// Of the frames that all pages would have, in all groups; those that show defaults are not
  /// counted.
  uint64_t frame_bytes() const { return frame_bytes_; }
  uint64_t open_count() const { return open_count_; }
  uint64_t appended_rows() const { return appended_rows_; }
  const RemovalLog& removals() const { return removals_; }
  uint64_t trimmed_rows() const { return trimmed_rows_; }

 private:
  friend class AnchorUpdate;
  friend class TableImageLoad;

  TableState(const Memory& memory, TableHistory history, TableId id);
  const TableLayout* FirstLayout(TableId id);

  /// An epoch of the priority table, which removes what it has covered, has covered all items of
  /// the closed trajectory.
  bool IsCovered(const PriorityState& priority, Slot slot) const;
  /// Whether the item is there.
  bool FindHanded(const PriorityState& priority, const fb::Handed& item) const;
  /// The trajectory of a companion in the slot leaves, if one is there.
  void EmptyCompanion(size_t companion, Slot slot);
  void TrimCompanions(const index::TrajectoryRecord& record, Slot slot);
  void CloseCompanions(Slot slot, End end);
  void AdoptOne(const fb::Adopted& adopted, Lsn lsn);
  void AdoptCompanions(const fb::Adopted& adopted, Lsn lsn);
  void RemoveTrajectory(const fb::Removed& removed, const RemovalCause& cause);
  void Trim(const fb::Trimmed& trimmed);
  void ReleaseHeadPage(index::TrajectoryRecord* record);
  void Open(const fb::Opened& opened, Lsn lsn);
  /// Adds pages and rows, of which `*page` pages were written into before; returns the number of
  /// pages that were taken from `pages`.
  size_t ExtendRows(const fb::Rows& rows, Lsn lsn, const fb::NewPage* pages,
                    const PageFrames& frames, size_t* page);
  /// Rows of a page that were written.
  struct WrittenRows {
    Lpn lpn = kNoLpn;
    uint32_t first = 0;
    uint32_t end = 0;
  };
  void WriteGroups(const WrittenRows& rows, Lsn lsn, const PageFrames& frames, size_t page);
  void RetireFrames(Lpn lpn);
  /// The page is no open trajectory's last any more: nobody needs its frames in groups that were
  /// dropped.
  void ReleaseDropped(Lpn lpn);
  void CloseTrajectory(Slot slot, End end, bool last_row_is_final);
  /// Items of a trajectory in the priority tables that were waiting for columns of it, of which
  /// `before` were set; `items` as in fb::SetColumns.
  void InsertReady(Slot slot, uint64_t before,
                   const flatbuffers::Vector<flatbuffers::Offset<fb::NewItems>>* items);
  void SetColumnValues(const flatbuffers::Vector<const fb::ColumnSet*>* sets,
                       const flatbuffers::Vector<uint8_t>* values);
  /// Streams: the next row of the trajectory is the first of an episode.
  bool BeginsEpisode(const index::TrajectoryRecord& record) const;
  void NoteChanged(Slot slot);
  /// The trajectory has changed: what its standing filters say of it now.
  void Refilter(Slot slot);
  void Refilter(PriorityState* priority, Slot slot);
  /// The trajectory has changed otherwise, and may be finished by now.
  void NoteFinished(Slot slot);
  void AddFinished(Slot slot);
  /// Groups that can be drawn no more take no members any more; those that nobody was shown leave
  /// them and join anew, in the order of their ids.
  void Regroup(std::span<const uint64_t> ended, size_t priority_table);
  /// The members of a group, or what its filter says of them, have changed.
  void RefilterGroup(PriorityState* priority, uint64_t group);
  /// A trajectory is no member any more.
  void LeaveGroup(size_t priority_table, Slot slot);
  /// Calls `visit` with the ranges of leaves that items of a trajectory have.
  template <typename Visit>
  void ForEachRangeOf(const PriorityState& priority, Slot slot, const Visit& visit) const;
  /// Likewise of all that could not be read; of groups each once.
  template <typename Visit>
  void ForEachUnreadableRange(const PriorityState& priority, const Visit& visit) const;
  /// Sets the flags byte of a stored row of a stream.
  void SetRowFlags(const index::TrajectoryRecord& record, int64_t row, uint8_t flags);

  const Memory memory_;
  TableHistory history_;
  std::vector<std::unique_ptr<const TableLayout>> layouts_;  // By version; null: not asked for yet.
  std::atomic<const TableLayout*> layout_;                   // The last of them.
  std::shared_ptr<index::TrajectoryIndex> trajectories_;
  std::unique_ptr<index::PageTable> pages_;
  std::unique_ptr<TableFrames> frames_;  // Of these: goes before them.
  std::vector<TableState*> companions_;
  const TableState* owner_ = nullptr;
  std::vector<std::unique_ptr<PriorityState>> priorities_;
  size_t followed_ = SIZE_MAX;                  // A priority table.
  std::unique_ptr<index::LeafSet> unreadable_;  // Slots; null before the first.
  std::vector<Slot> changed_slots_;             // Since TakeChangedPriorities.
  std::vector<bool> is_changed_;                // By slot: it is one of these.
  uint64_t rows_ = 0;
  uint64_t steps_ = 0;
  uint64_t page_count_ = 0;
  uint64_t frame_bytes_ = 0;
  uint64_t open_count_ = 0;
  uint64_t appended_rows_ = 0;
  RemovalLog removals_;
  std::vector<SlotOfTrajectory> finished_;
  uint64_t trimmed_rows_ = 0;
};

/// Columns that are about to come, and to leave.
struct TableState::ColumnChange {
  explicit ColumnChange(TableHistory after_in) : after(std::move(after_in)) {}
  TableHistory after;
  std::unique_ptr<const TableLayout> layout;
  std::vector<TableFrames::NewGroup> groups;
};

/// Holds a state's mutex while a record that ends at `end` is applied.
class GEARDB_THREAD_ANNOTATION(scoped_lockable) ApplyLock {
 public:
  ApplyLock(TableState* state, Lsn end) GEARDB_THREAD_ANNOTATION(acquire_capability(state->mutex))
      : state_(state) {
    state_->mutex.Lock();
    state_->applied_end = end;
  }
  ~ApplyLock() GEARDB_THREAD_ANNOTATION(release_capability()) { state_->mutex.Unlock(); }
  ApplyLock(const ApplyLock&) = delete;
  ApplyLock& operator=(const ApplyLock&) = delete;

 private:
  TableState* const state_;
};

}  // namespace geardb::engine
