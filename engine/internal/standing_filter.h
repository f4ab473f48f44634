// Standing filters: the condition of a priority table on trajectories, kept up to date with every
// change of them (PriorityTableSpec::filter).
//
// Invariants, once a record is applied, for each priority table with a filter:
// - a trajectory is in its failing set iff it is there and its filter does not pass it, or it could
//   not be read (TableState::HideUnreadable, which no record says either);
// - an item is in its filtered set iff its trajectory is in the failing set; those are hidden.
// But for what could not be read, both follow from what the log's records made of the index: no
// record says them, and who loads an image works them out anew.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/internal/table_layout.h"
#include "engine/schema.h"
#include "index/filter.h"
#include "index/index_memory.h"
#include "index/leaf_set.h"
#include "index/trajectory_index.h"

namespace geardb::engine {

class DatabaseCore;

/// InvalidArgument, or NotFound for a column, naming what is wrong with the filter of `spec`.
Status CheckStandingFilter(const PriorityTableSpec& spec, const TableLayout& layout);

/// Filters move on: an open compares all else.
bool SameButFilter(const PriorityTableSpec& a, PriorityTableSpec b);

/// The columns that the text of a valid filter names, some of them more than once.
std::vector<std::string> ColumnsOfFilter(const std::string& text);

/// The filter of one priority table, and whom it fails. Guarded as its PriorityState.
class StandingFilter {
 public:
  struct Capacity {
    uint64_t slots = 0;
    uint64_t leaves = 0;
  };
  /// Passes everything. `memory` outlives it.
  static Result<std::unique_ptr<StandingFilter>> Create(index::IndexMemory* memory,
                                                        std::string_view name,
                                                        const Capacity& capacity);
  /// Admission: what lies below is usable. ResourceExhausted names the budget.
  Status ReserveSlots(uint64_t slot_count) { return failing_->Reserve(slot_count); }
  Status ReserveLeaves(uint64_t leaf_count) { return filtered_->Reserve(leaf_count); }

  /// The filter from here on; empty for none. CheckStandingFilter has seen the text.
  void Use(std::string_view text, const TableLayout& layout,
           const index::TrajectoryIndex& trajectories);

  bool Passes(Slot slot) const { return !program_ || program_->Matches(slot); }
  bool Fails(Slot slot) const { return failing_->Contains(slot); }
  /// Notes whether a trajectory fails; true where that is new.
  bool NoteFails(Slot slot, bool fails);

  bool IsFiltered(uint64_t leaf) const { return filtered_->Contains(leaf); }
  /// Items that fail, or do so no more.
  void Add(uint64_t leaf) { filtered_->Add(leaf); }
  void Forget(index::LeafRange range) { filtered_->Forget(range); }
  const index::LeafSet& filtered() const { return *filtered_; }

  uint64_t committed_bytes() const {
    return failing_->committed_bytes() + filtered_->committed_bytes();
  }

 private:
  StandingFilter() = default;

  std::unique_ptr<index::LeafSet> failing_;   // Slots.
  std::unique_ptr<index::LeafSet> filtered_;  // Leaves of items.
  std::optional<index::FilterProgram> program_;
};

}  // namespace geardb::engine
