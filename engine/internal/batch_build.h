// BatchBuilder: from drawn leaves to a batch: which trajectory, row and episode each is, what every
// view shows of it, and the runs that the gather copies.
//
// Invariants: everything it reads of the table is read under the table's mutex; the runs it leaves
// refer to frames that the caller's epoch guard keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/internal/batch_rep.h"
#include "engine/internal/run_builder.h"
#include "engine/internal/view_plan.h"

namespace geardb::engine {

/// One item of a batch, resolved.
struct DrawnItem {
  Slot slot = kNoSlot;
  Lpn lpn = kNoLpn;  ///< Page of the anchor; kNoLpn: look it up.
  int64_t row = 0;
  const WindowRule* rule = nullptr;  ///< The priority table's, or of trajectory_rules_.
  Episode episode;
  PlacedWindow window;
};

class BatchBuilder {
 public:
  BatchBuilder(const ViewPlan* plan, BatchLayout layout, BatchBudget budget)
      : plan_(plan),
        layout_(layout),
        budget_(budget),
        row_draws_(&plan->row_draws, plan->DrawnStack()) {}

  /// Fills `rep` for `leaves` and leaves the copying to `Plan()`. The table's mutex is held.
  /// Charges the arrays of a batch of `item_count`, before they are made.
  Status Charge(size_t item_count, Batch::Rep* rep) const;
  /// The leaves are those of the rows from `first` on. ResourceExhausted when the batch does not
  /// fit its budget.
  Status Build(const TableState& state, const PriorityState& priority,
               std::span<const uint64_t> leaves, const DrawKey& first, Batch::Rep* rep);

  /// The copies that are left to do.
  GatherPlan Plan() { return runs_.Plan(); }
  const std::vector<DrawnItem>& items() const { return items_; }

 private:
  struct NStepRows;

  void ResolveItems(const PriorityState& priority, std::span<const uint64_t> leaves,
                    Batch::Rep* rep);
  void DrawRows(const PriorityState& priority, const DrawKey& first);
  Status BuildTrajectoryColumn(const CompiledView& view, BatchOutput* output);
  Status BuildView(const CompiledView& view, Batch::Rep* rep, size_t first_output);
  Status BuildNStep(const CompiledNStep& n_step, Batch::Rep* rep, size_t first_output);
  NStepRows ReadNStepRows(const CompiledNStep& n_step, const DrawnItem& item);

  /// The entry at place k of a view of item i.
  Entry EntryAt(const CompiledView& view, size_t item, int64_t k) const;
  int64_t RowCountOf(const CompiledView& view, size_t item) const;
  /// The places that may have an entry: all others have none.
  PlaceRange PlacesOf(const CompiledView& view, size_t item) const;
  int64_t CountEntries(const CompiledView& view, size_t item) const;
  /// Writes the entries of one item from output row `first` on; returns how many there are.
  int64_t EmitEntries(const CompiledView& view, size_t item, int64_t first);
  int64_t EmitContiguous(const CompiledView& view, size_t item, int64_t first);
  void EmitRow(const CompiledView& view, RowCursor* cursor, int64_t row, uint64_t destination);
  void EmitRows(const CompiledView& view, RowCursor* cursor, int64_t begin, int64_t end,
                uint64_t destination);
  void EmitStacked(const CompiledView& view, size_t item, RowCursor* cursor, int64_t newest,
                   uint64_t destination);
  void WriteMasks(const CompiledView& view, size_t item, int64_t first, BatchOutput* masks);

  const ViewPlan* const plan_;
  const BatchLayout layout_;
  const BatchBudget budget_;
  const TableState* state_ = nullptr;
  std::vector<DrawnItem> items_;
  std::vector<WindowRule> trajectory_rules_;  // Of items that are trajectories.
  std::vector<int64_t> bootstrap_rows_;       // Of each item, one after the other.
  std::vector<size_t> bootstrap_first_;       // Where those of an item begin.
  RowDraws row_draws_;
  RunBuilder runs_;
};

}  // namespace geardb::engine
