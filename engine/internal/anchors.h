// AnchorUpdate: brings the members of a priority table up to date after rows of a trajectory were
// added, ended or trimmed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/internal/episode.h"
#include "engine/internal/table_state.h"
#include "index/membership.h"

namespace geardb::engine {

/// How a trajectory changed, for the rows that may have become anchors or ceased to be.
struct RowsChange {
  Slot slot = kNoSlot;
  int64_t old_rows_end = 0;
  int64_t new_rows_end = 0;
  bool ended = false;  ///< An episode ended with the change.
};

/// Collects the leaves of one priority table that a record makes drawable, in order of rows, and
/// inserts them with their priorities at the end.
class AnchorUpdate {
 public:
  AnchorUpdate(TableState* state, size_t priority_table)
      : state_(state), number_(priority_table), priority_(&state->priority(priority_table)) {}

  /// Finds what the change makes drawable; removes what it makes undrawable. With `set_before`, the
  /// per-trajectory columns that were set before: where one that is required came with the change,
  /// rows from before it are found, too.
  void Add(const RowsChange& change, uint64_t set_before = UINT64_MAX);
  /// A required late group was filled up to row `before`, and is up to row `filled` now.
  void AddFilled(Slot slot, int64_t before, int64_t filled);
  /// Rows [begin, end) of a trajectory anew.
  void AddRows(Slot slot, int64_t begin, int64_t end);
  /// The trajectory as an item, if the priority table draws trajectories; if it draws groups, it
  /// joins one, which may be an item by that.
  void AddTrajectory(Slot slot);
  /// A group that takes members takes none any more.
  void AddSealed(uint64_t group, GroupEnd why);

  /// Number of leaves found.
  uint64_t count() const { return count_; }
  /// Inserts what was found with one raw priority, or with one each (in the order found).
  void Insert(float raw_priority);
  void Insert(std::span<const float> raw_priorities);
  /// Forgets what was found since the last Insert.
  void Clear();

 private:
  void Found(index::LeafRange leaves);
  /// Of what was inserted, what fails the standing filter.
  void HideFailing();

  TableState* state_;
  const size_t number_;
  PriorityState* priority_;
  std::vector<index::LeafRange> ranges_;
  uint64_t count_ = 0;
};

/// Whether a closed trajectory will have more items once it has what the priority table requires:
/// rows that no item needs, as one that plays the final row, may stay unfilled.
bool ItemsMayCome(const TableState& state, const PriorityState& priority, Slot slot);

}  // namespace geardb::engine
