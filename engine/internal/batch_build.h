// BatchBuilder: from drawn leaves to a batch: what every view shows of each, and the runs that the
// gather copies. The rows may be of several parts, whose views show the same.
//
// Invariants: everything it reads of the tables is read under their mutexes; the runs it leaves
// refer to frames that the caller's epoch guard keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/internal/batch_items.h"
#include "engine/internal/batch_rep.h"
#include "engine/internal/run_builder.h"
#include "engine/internal/view_plan.h"

namespace geardb::engine {

class BatchBuilder {
 public:
  /// `parts` stay where they are, one or more.
  BatchBuilder(std::span<const BatchPart> parts, BatchLayout layout, BatchBudget budget)
      : parts_(parts),
        layout_(layout),
        budget_(budget),
        row_draws_(&plan().row_draws, plan().DrawnStack()) {}

  /// Charges the arrays of a batch of `item_count`, before they are made.
  Status Charge(size_t item_count, Batch::Rep* rep) const;
  /// Fills `rep` for `leaves`, but for probabilities and weights, and leaves the copying to
  /// `Plan()`. The tables' mutexes are held. ResourceExhausted when the batch does not fit its
  /// budget.
  Status Build(std::span<const DrawnLeaf> leaves, Batch::Rep* rep);

  /// Pages that are being brought in, or are to be.
  const PageWaits& waits() const { return waits_; }
  /// Bytes that Gather copies from frames.
  uint64_t gather_bytes() { return runs_.bytes(); }
  /// The copies that are left to do: as GatherRows.
  Status Gather(const HostArena& arena);
  std::span<const DrawnItem> items() const { return items_; }

 private:
  struct NStepRows;
  struct NStepOutputs;

  /// Of the first part: what all have alike.
  const ViewPlan& plan() const { return *parts_[0].plan; }
  /// View v of the plans, as of an item's part.
  const CompiledView& ViewOf(size_t v, size_t item) const {
    return items_[item].part->plan->views[v];
  }
  void DrawRows(std::span<const DrawnLeaf> leaves);
  Status BuildTrajectoryColumn(size_t v, BatchOutput* output);
  // Of columns with companions; engine/internal/batch_values.cc.
  Status BuildBlob(size_t v, BatchOutput* output);
  Status BuildRagged(size_t v, Batch::Rep* rep, size_t first_output);
  /// Copies these rows, one behind the other, into the output, and fills its offsets.
  struct ValueRange {
    const TableState* companion = nullptr;
    Slot slot = kNoSlot;
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  Status CopyValues(const CompiledView& view, std::span<const ValueRange> values,
                    BatchOutput* output);

  /// What a view shows of the windows of a part, where that is one run of each.
  struct WindowRuns;
  WindowRuns RunsOfWindows(size_t v, const BatchPart& part) const;
  /// Calls visit(i, what of view v the windows of the part of item i show) for all items in turn.
  template <typename Visit>
  void ForEachItem(size_t v, const Visit& visit) const;

  /// Where the entries of a view are.
  struct Placement {
    int64_t longest = 0;          ///< Padded: entries of each item.
    int64_t total = 0;            ///< Packed: of all.
    int64_t entries = 0;          ///< In the output, padding included.
    std::vector<int64_t> firsts;  ///< Of each item.
  };
  Status PlaceEntries(size_t v, BatchOutput* output, Placement* placed) const;
  /// The shape of an output with so many entries of `row`.
  Shape ShapeOf(const CompiledView& view, const Placement& placed, const Shape& row) const;
  Status MakeMasks(const CompiledView& view, const Placement& placed, BatchOutput* masks) const;
  void FinishMasks(size_t v, const Placement& placed, Batch::Rep* rep, size_t first_output);
  Status BuildView(size_t v, Batch::Rep* rep, size_t first_output);
  /// The rows of all items, from where they are placed on, and how many each has.
  void EmitItems(size_t v, const Placement& placed, BatchOutput* output);
  Status BuildNStep(Batch::Rep* rep, size_t first_output);
  Status ReadNStepRows(NStepRows* rows);
  /// The first `sums` rows of item i, each a sum of its own.
  void SumNSteps(const NStepRows& rows, size_t i, int64_t sums, const NStepOutputs& into);

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

  const std::span<const BatchPart> parts_;
  const BatchLayout layout_;
  const BatchBudget budget_;
  BatchItems resolved_;
  std::span<const DrawnItem> items_;     // Of it.
  std::vector<int64_t> bootstrap_rows_;  // Of each item, one after the other.
  std::vector<size_t> bootstrap_first_;  // Where those of an item begin.
  RowDraws row_draws_;
  RunBuilder runs_;
  PageWaits waits_;
};

}  // namespace geardb::engine
