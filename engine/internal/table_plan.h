// TablePlan: what the next record of a table may take. It runs ahead of the published TableState by
// the records that have their LSN and are not published yet, and decides everything that a record
// has to say: LPNs, slots, ids, generations, what must leave to make room.
//
// Everything here is guarded by the database's commit mutex, which is held from a decision to the
// reservation of the record's LSN: so decisions are in LSN order.
//
// Invariants:
// - `lpns` and `slots` hold what is in use after the last record that has an LSN.
// - Ids below `ids_end` and generations below `generations_end` were promised by a synced record:
//   none is ever handed out twice, even after power loss.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "engine/internal/eviction.h"
#include "engine/internal/number_array.h"
#include "engine/internal/table_state.h"
#include "index/heap_remover.h"
#include "index/lpn_allocator.h"
#include "index/remover.h"

namespace geardb::engine {

/// An open trajectory of a writer, as of the last record that has an LSN. Its rows are written by
/// the writer's thread; the plan looks at it under the commit mutex.
struct Lane {
  TrajectoryId id = 0;  ///< 0: none is open.
  Slot slot = kNoSlot;
  uint32_t generation = 0;
  int64_t rows_end = 0;
  Lpn tail_lpn = kNoLpn;
  uint32_t tail_generation = 0;
  /// Of the tail page, in each of the writer's appended groups.
  struct Tail {
    FrameRef frame;
    Lsn lsn = kNoLsn;             ///< Record of its newest piece.
    bool shows_defaults = false;  ///< Nobody has written in it: the frame is that of defaults.
  };
  std::vector<Tail> tail;
  /// What a Patch has made of the tail page, and the writer has yet to follow.
  struct MovedTail {
    uint32_t group = 0;
    Tail tail;
  };
  std::vector<MovedTail> moved;  ///< Guarded by the commit mutex, for everybody.
  bool episode_ended = true;     ///< Streams: the next row is the first of an episode.
  /// Per-trajectory values, one column after the other. Of columns that came later than the writer
  /// those up to the last that was set.
  std::vector<std::byte> columns;
  std::span<const std::byte> unset;  ///< What `columns` hold before any is set.
  uint32_t owner_generation = 0;     ///< Of a companion: of the owner's trajectory that it is of.
  bool without_writer = false;  ///< Of a companion: nobody sets `removed`, of the owner either.
  /// Set when the trajectory is removed, before its frames are retired.
  std::atomic<bool> removed{false};
  /// `moved` has something: set before the frames that were the tail's are retired.
  std::atomic<bool> has_moved{false};

  /// The page's last one counts.
  void Move(const MovedTail& to) {
    std::erase_if(moved, [&](const MovedTail& before) { return before.group == to.group; });
    moved.push_back(to);
    has_moved.store(true);
  }
  void ClearMoved() {
    moved.clear();
    has_moved.store(false);
  }
  void Reset() {
    id = 0;
    slot = kNoSlot;
    rows_end = 0;
    tail_lpn = kNoLpn;
    std::fill(tail.begin(), tail.end(), Tail{});
    ClearMoved();
    episode_ended = true;
    without_writer = false;
    columns.assign(unset.begin(), unset.end());
  }
};

/// Ids of trajectories lie below: no sum of ids and of what may be added to them overflows.
inline constexpr uint64_t kIdsEnd = uint64_t{1} << 62;

class TablePlan {
 public:
  static Result<std::unique_ptr<TablePlan>> Create(index::IndexMemory* memory, TableState* state);

  /// After recovery: takes over what the state holds; ids and generations go on behind all that may
  /// have been handed out. `created`: the table is new, and they begin at 1.
  Status TakeOver(bool created);

  // Companions (companion.h).

  /// In the order of the layout's, null for those of dropped columns; they stay as long as this
  /// uses them.
  void UseCompanions(std::vector<TablePlan*> companions);
  /// The companion's trajectory in the slot leaves, if one is there; its changes are published.
  void EmptyCompanion(size_t companion, Slot slot);
  /// All its trajectories do: its column is about to be dropped.
  void EmptyCompanion(size_t companion);
  /// Of a companion: the slot of the owner's trajectory, which is there.
  Slot TakeSlotOf(Slot owner, uint32_t generation);
  /// Of the frames of the companions' pages.
  uint64_t companion_bytes() const;

  /// InvalidArgument when `growth` alone is more than the table may ever hold.
  Status CheckFits(const Growth& growth) const;
  /// Whether a full table would be over its capacity with `growth`.
  bool Over(const Growth& growth) const;
  /// Where nothing leaves by itself: room for a call that writes its parts. `own` is what it has.
  void Promise(const Growth& growth, Growth* own);
  /// It needs it no more. False: it had none.
  bool TakeBack(Growth* own);
  /// What a call wants with all that others were promised.
  Growth WithPromised(const Growth& growth, const Growth& own) const;
  /// Takes out of the plan what was chosen under the same commit mutex; see EvictionChoice.
  void Take(const Eviction& eviction);
  /// Takes a trajectory out of the plan; its changes so far are published.
  fb::Removed Remove(Slot slot);
  /// Takes pages wholly below `first_row` out of the plan; its changes so far are published.
  fb::Trimmed Trim(Slot slot, uint64_t first_row);

  // Taking. The numbers were admitted before (`AdmitNumbers`), so these cannot fail.
  Status AdmitNumbers(const Growth& growth);
  /// As AdmitNumbers, for LPNs and slots below these; with `ahead`, as TableState::Reserve.
  /// Recovery takes what its records name and no more, so that what fitted the index budget fits it
  /// again, whichever table had taken some ahead then. The state's mutex is held.
  Status ReserveNumbers(uint64_t lpn_count, uint64_t slot_count, bool ahead = false);
  Slot TakeSlot(Lane* lane, uint32_t generation);
  Lpn TakePage(uint32_t generation);
  TrajectoryId TakeId() { return next_id++; }
  uint32_t TakeGeneration() {
    // 0 means free; handles hold 32 bits.
    if (static_cast<uint32_t>(next_generation) == 0) ++next_generation;
    return static_cast<uint32_t>(next_generation++);
  }
  /// The least ends of promised ranges with which a growth can be taken.
  uint64_t IdsEndFor(const Growth& growth) const { return next_id + growth.trajectories; }
  uint64_t GenerationsEndFor(const Growth& growth) const {
    return next_generation + growth.trajectories + growth.pages + 1;  // One may be skipped.
  }
  bool HasIds(const Growth& growth) const {
    return IdsEndFor(growth) <= ids_end && GenerationsEndFor(growth) <= generations_end;
  }
  /// The end of a trajectory's newest record.
  void Note(Slot slot, Lsn end);
  /// Likewise, of a record that appends rows, or with which a writer takes or leaves it: its age.
  void NoteUse(Slot slot, Lsn end);
  void NoteClosed(Slot slot);
  /// Its writer has left the trajectory at this time; 0, as after recovery: before the open.
  void NoteOrphaned(Slot slot, int64_t at_us) { slots_in_use_[slot].orphaned_us = at_us; }
  int64_t orphaned_us(Slot slot) const { return slots_in_use_[slot].orphaned_us; }
  Lsn last_lsn(Slot slot) const { return slots_in_use_[slot].last_lsn; }
  /// The lane that has the trajectory in `slot` open; null when none has.
  Lane* OpenLane(Slot slot) const;
  /// Null: its writer leaves it. The record that says so has been noted.
  void SetOpenLane(Slot slot, Lane* lane);

  uint64_t rows() const { return rows_; }
  void AddRows(uint64_t count) { rows_ += count; }

  uint64_t next_id = 1;
  uint64_t ids_end = 1;
  uint64_t next_generation = 1;
  uint64_t generations_end = 1;
  /// Of the last record that promises more, from its reservation on: synced or not yet.
  uint64_t promised_ids_end = 1;
  uint64_t promised_generations_end = 1;
  Lsn promised_lsn = 0;  ///< The end of that record.
  /// Per priority table: the largest raw priority of any record that has an LSN, from 1.
  std::vector<float> max_priority;

 private:
  friend class EvictionChoice;
  struct PageInUse {
    uint32_t generation = 0;  // 0: free.
  };
  struct SlotInUse {
    Lsn last_lsn = 0;
    uint32_t generation = 0;  // 0: free.
    uint64_t first_row = 0;   // After its last trim, published or not.
    Lsn age = 0;              // Of the newest record by NoteUse.
    Lsn left_age = 0;         // Its age when its writer left it; 0: a writer has it.
    int64_t orphaned_us = 0;  // When that was, of an orphan.
  };
  struct PageOfAge {
    Lpn lpn;
    uint32_t generation;
  };
  /// A slot that a writer left; where the slot has been taken or left again since, it does not
  /// count.
  struct Left {
    Slot slot;
    uint32_t generation;
    Lsn age;
  };

  explicit TablePlan(TableState* state) : state_(state) {}
  /// Oldest row of a trajectory once every trim that was decided is published.
  uint64_t FirstRow(Slot slot) const GEARDB_REQUIRES(state_->mutex);
  void FreePage(Lpn lpn);
  void TrimCompanion(size_t companion, Slot slot, uint64_t first_row)
      GEARDB_REQUIRES(state_->mutex);
  void NoteLeft(Slot slot);
  /// Begins a choice of the remover, which is not null. All that has an LSN is published where it
  /// looks at priorities.
  void BeginChoice();
  void ReadPriorities();
  /// Drops entries of the lists by age that do not count any more, once they are more than half.
  void CompactPages();
  bool tracks_pages() const;
  Status FullStatus(const Growth& growth) const;
  struct Held {
    uint64_t rows = 0;
    uint64_t pages = 0;
    uint64_t companion_bytes = 0;
  };
  /// Whether it would be over a bound with that. One in bytes is nothing to a call that adds none:
  /// columns and values that came later may have passed it.
  bool OverInRows(const Held& held, const Growth& growth) const;

  TableState* const state_;
  std::vector<TablePlan*> companions_;
  const TablePlan* owner_ = nullptr;
  index::LpnAllocator lpns_;
  index::LpnAllocator slots_;
  NumberArray<PageInUse> pages_in_use_;
  NumberArray<SlotInUse> slots_in_use_;
  std::unordered_map<Slot, Lane*> open_lanes_;
  std::deque<PageOfAge> pages_by_age_;  // Kept when the table has a bound on rows or bytes.
  // Slots that no writer has, closed or orphaned, by age and within a record by generation: the
  // order that recovery finds. Kept when the table has a bound on trajectories.
  std::deque<Left> left_by_age_;
  /// Chooses among the slots that no writer has; null for none and fifo.
  std::unique_ptr<index::Remover> remover_;
  index::HeapRemover* heap_ = nullptr;  // The same, where it looks at priorities.
  size_t heap_table_ = 0;               // The priority table that it looks at.
  std::vector<Slot> unread_;            // Slots whose priorities it has not seen.
  uint64_t removed_ = 0;                // Trajectories that have left, ever.
  uint64_t rows_ = 0;
  Growth promised_;
};

}  // namespace geardb::engine
