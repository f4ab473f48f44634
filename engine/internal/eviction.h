// What leaves a full table: chosen first, without changing anything, and taken out of the plan once
// nothing can refuse the change that it makes room for.
//
// Invariants: a choice depends on the plan and the published state alone, and the same commit mutex
// is held from the choice to TablePlan::Take.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/operations_generated.h"

namespace geardb::engine {

class TablePlan;

/// What a record is about to add.
struct Growth {
  uint64_t rows = 0;
  uint64_t pages = 0;
  uint64_t trajectories = 0;
  uint64_t companion_bytes = 0;  ///< Of frames, in companions of the table.

  friend bool operator==(const Growth&, const Growth&) = default;
  void Add(const Growth& other) {
    rows += other.rows;
    pages += other.pages;
    trajectories += other.trajectories;
    companion_bytes += other.companion_bytes;
  }
  void Subtract(const Growth& other) {
    rows -= other.rows;
    pages -= other.pages;
    trajectories -= other.trajectories;
    companion_bytes -= other.companion_bytes;
  }
};

/// What leaves to make room; a trajectory is in it once.
struct Eviction {
  std::vector<fb::Removed> removed;
  std::vector<fb::Trimmed> trimmed;
  size_t size() const { return removed.size() + trimmed.size(); }
  /// Takes `count` entries (fewer when there are fewer) out of it, the first behind so many.
  Eviction Split(size_t count, size_t behind = 0);
};

/// Waits until everything below an LSN is published. Never needs the commit mutex.
using WaitPublished = std::function<Status(Lsn)>;

/// Chooses for one record. Another remover than fifo: what it gives, whole; then, and by FIFO:
/// trajectories no writer has, in the order in which they were left; pages in the order of their
/// first record, whole trajectories where no writer has them; then rows from the heads of open
/// trajectories, evenly, down to one row each.
class EvictionChoice {
 public:
  EvictionChoice(TablePlan* plan, const WaitPublished& wait);
  ~EvictionChoice();
  EvictionChoice(const EvictionChoice&) = delete;
  EvictionChoice& operator=(const EvictionChoice&) = delete;

  /// Until the table would hold `growth`, once those in `leaving` have left. ResourceExhausted
  /// naming the capacity when too little may leave, or what `wait` returns.
  Status Choose(const Growth& growth, Eviction* eviction, std::span<const Slot> leaving = {});

 private:
  struct Touched {
    bool removed = false;
    uint64_t first_row = 0;    // Of what is left.
    size_t trimmed_place = 0;  // In Eviction::trimmed.
  };

  /// Whose a published page is, and the row behind its last.
  struct PagePlace {
    Slot slot = kNoSlot;
    uint64_t next_row = 0;
  };

  bool Over(const Growth& growth) const;
  bool TooManyTrajectories(const Growth& growth) const;
  /// The next one that another remover than fifo gives.
  Status ChooseByRemover();
  Status ChooseOldestLeft();
  Status ChooseOldestPage();
  Status ChooseHeads(const Growth& growth);
  void Remove(Slot slot);
  void Trim(Slot slot, uint64_t first_row);
  PagePlace PlaceOf(Lpn lpn) const;
  uint64_t FirstRow(Slot slot) const;
  /// Of the frames of companions that leave with rows below `first_row`; what is chosen, or not
  /// published, of these included.
  uint64_t CompanionBytes(Slot slot, uint64_t first_row) const;
  bool Removed(Slot slot) const;
  /// Pages of a trajectory that hold its rows from `first_row` on.
  uint64_t PagesFrom(uint64_t first_row, uint64_t rows_end) const;

  TablePlan& plan_;
  const WaitPublished& wait_;
  Eviction* eviction_ = nullptr;
  std::unordered_map<Slot, Touched> touched_;
  bool began_ = false;  // The remover's choice.
  size_t left_at_ = 0;  // Entries of the plan's lists before these have been looked at.
  size_t page_at_ = 0;
  uint64_t rows_, pages_, slots_;  // What the table would hold,
  uint64_t companion_bytes_;       // and its companions.
};

}  // namespace geardb::engine
