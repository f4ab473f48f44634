// TrajectoryIndex: the records of the trajectories of one partition, by slot, with their
// per-trajectory columns, and a hash from id to slot.
//
// Invariants: a slot is in the hash exactly when its record's state is not kFree; count() of them.
// The record and the columns of a slot that was never inserted are zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "index/change_watch.h"
#include "index/index_memory.h"

namespace geardb::index {

enum class TrajectoryState : uint8_t {
  kFree = 0,      ///< No trajectory.
  kOpen = 1,      ///< A writer goes on with it.
  kClosed = 2,    ///< Terminated, truncated or cut.
  kOrphaned = 3,  ///< Open, but its writer is gone.
};

/// Bits of TrajectoryRecord::flags.
inline constexpr uint8_t kFinalRowStored = 1;  ///< Row rows_end - 1 is the final row.

/// Columns of which TrajectoryRecord::columns_set knows; those beyond have no bit.
inline constexpr uint32_t kColumnsSetBits = 64;

/// What is known of one trajectory. Fixed layout, no pointers: other processes read it in place.
/// Rows are absolute.
struct TrajectoryRecord {
  TrajectoryId id = 0;
  uint64_t first_row = 0;  ///< The oldest row still there.
  uint64_t rows_end = 0;   ///< One past the last row stored, the final row included.
  int64_t created_us = 0;
  uint64_t times_sampled = 0;
  uint64_t columns_set = 0;  ///< Bit c: per-trajectory column c has a value.
  Lsn last_lsn = 0;          ///< Its age: of the newest record that appended to it or closed it, or
                             ///< with which a writer took or left it.
  uint32_t generation = 0;   ///< Of the slot; names this trajectory in item handles.
  uint32_t session = 0;      ///< Of the writer.
  uint32_t lane = 0;         ///< Of the writer: which of its environments.
  Lpn head_lpn = kNoLpn;     ///< First page, kNoLpn when there is none.
  Lpn tail_lpn = kNoLpn;     ///< Last page.
  TrajectoryState state = TrajectoryState::kFree;
  End end = End::kGo;  ///< How it ended, when it is closed.
  uint8_t flags = 0;
  uint8_t unused = 0;
};
static_assert(sizeof(TrajectoryRecord) == 80 && std::is_trivially_copyable_v<TrajectoryRecord>);

/// First bytes of a trajectory index's region. Fixed layout; offsets are from IndexMemory::base(),
/// since the hash moves when it grows.
struct TrajectoryIndexHeader {
  uint64_t reserved = 0;  ///< Slots that may be touched.
  uint64_t count = 0;
  uint64_t records_offset = 0;
  uint64_t hash_offset = 0;
  uint64_t hash_capacity = 0;  ///< Entries, a power of two; slot + 1 as u32, 0 is empty.
};

/// Reads a trajectory index from its bytes. Trivially copyable, owns nothing.
class TrajectoryView {
 public:
  /// `base` is where this process maps the IndexMemory, `offset` is TrajectoryIndex::offset().
  TrajectoryView(std::byte* base, uint64_t offset);

  /// The slot of a living trajectory, or kNoSlot.
  Slot FindById(TrajectoryId id) const;
  /// Where a FindById, or an Insert, of this id looks first is on its way into the cache.
  void PrefetchId(TrajectoryId id) const { __builtin_prefetch(hash() + HomeOf(id), 1); }
  /// slot < reserved().
  const TrajectoryRecord& record(Slot slot) const { return records()[slot]; }
  uint64_t count() const { return header_->count; }
  uint64_t reserved() const { return header_->reserved; }

 private:
  friend class TrajectoryIndex;
  TrajectoryRecord* records() const {
    return reinterpret_cast<TrajectoryRecord*>(base_ + header_->records_offset);
  }
  uint32_t* hash() const { return reinterpret_cast<uint32_t*>(base_ + header_->hash_offset); }
  /// Where `id` would begin to be looked for.
  uint64_t HomeOf(TrajectoryId id) const;

  std::byte* base_;
  TrajectoryIndexHeader* header_;
};

/// The writer. Not thread-safe: the owner orders it. Only Create, AddColumn and Reserve can fail.
class TrajectoryIndex {
 public:
  struct Options {
    uint64_t slot_capacity = 0;                   ///< 1…2^32 - 2; costs address space alone.
    std::span<const uint32_t> column_bytes = {};  ///< Row sizes of per-trajectory columns, 1…64.
  };
  static Result<std::unique_ptr<TrajectoryIndex>> Create(IndexMemory* memory, std::string_view name,
                                                         const Options& options);

  /// Adds a per-trajectory column of `bytes` (1…64) for each slot, zero for those that are there.
  /// Its number is how many there were before it.
  Status AddColumn(uint32_t bytes);
  /// Takes back an AddColumn, the last one that has not been taken back.
  void RemoveLastColumn();
  /// Makes slots [0, slot_count) usable, and the hash large enough for all of them. The hash may
  /// move (readers are ordered by the owner); records and columns never do.
  Status Reserve(uint64_t slot_count);
  uint64_t reserved() const { return view_.reserved(); }

  /// Begins a trajectory in a free slot: its record is fresh but for these three, its state kOpen,
  /// its columns zero. `id` is not in the index.
  struct NewTrajectory {
    Slot slot = kNoSlot;
    uint32_t generation = 0;
    TrajectoryId id = 0;
  };
  TrajectoryRecord& Insert(const NewTrajectory& trajectory);
  /// Frees the slot. Its record keeps id and generation, for messages, and has state kFree.
  void Erase(Slot slot);

  /// To be changed.
  TrajectoryRecord& record(Slot slot) {
    WillChange(slot);
    return view_.records()[slot];
  }
  const TrajectoryRecord& record(Slot slot) const { return view_.records()[slot]; }
  Slot FindById(TrajectoryId id) const { return view_.FindById(id); }
  /// The living trajectory in `slot` if it has this generation, else null.
  TrajectoryRecord* FindLive(Slot slot, uint32_t generation);

  /// Tells `watch` before a record or a column of a slot changes, or is given out to be changed;
  /// null: nobody. Who only reads asks a const index.
  void Watch(ChangeWatch* watch) { watch_ = watch; }

  size_t column_count() const { return column_bytes_.size(); }
  /// The value of a column in a slot: column_bytes[c] bytes.
  std::span<std::byte> column(size_t column, Slot slot);
  std::span<const std::byte> column(size_t column, Slot slot) const;

  uint64_t count() const { return view_.count(); }
  /// Index memory that it has committed.
  uint64_t committed_bytes() const;
  const TrajectoryView& view() const { return view_; }
  /// Where the view begins, from IndexMemory::base().
  uint64_t offset() const { return region_.offset(); }

  /// Calls `visit(slot, record)` for all trajectories in order of slots.
  template <typename Visit>
  void ForEach(Visit visit) const {
    uint64_t left = count();
    for (uint64_t slot = 0; slot < reserved() && left > 0; ++slot) {
      const TrajectoryRecord& found = record(static_cast<Slot>(slot));
      if (found.state == TrajectoryState::kFree) continue;
      --left;
      visit(static_cast<Slot>(slot), found);
    }
  }

 private:
  TrajectoryIndex(IndexMemory* memory, Region region, uint64_t slot_capacity);
  Status GrowHash(uint64_t slot_count);
  void HashInsert(Slot slot);
  void HashErase(Slot slot);
  void WillChange(Slot slot) {
    if (watch_ != nullptr) watch_->BeforeChange(slot, uint64_t{slot} + 1);
  }

  IndexMemory* const memory_;
  const uint64_t slot_capacity_;
  Region region_;  // parts: header, records
  std::vector<Region> columns_;
  Region hash_region_;
  TrajectoryView view_;
  std::vector<uint32_t> column_bytes_;
  ChangeWatch* watch_ = nullptr;
};

}  // namespace geardb::index
