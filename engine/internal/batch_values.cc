// Outputs of a batch that show values of any length: blobs and wide per-trajectory columns of the
// items, ragged columns of their rows.

#include <algorithm>

#include "engine/internal/batch_build.h"
#include "engine/internal/value_read.h"

namespace geardb::engine {

Status BatchBuilder::CopyValues(const CompiledView& view, std::span<const ValueRange> values,
                                BatchOutput* output) {
  output->offsets.assign(1, 0);
  // Below 2^31 rows of an output each, of which no memory holds more than a batch has.
  const uint64_t rows_max = std::min(budget_.limit, kViewBytesMax) / view.out_row_bytes;
  uint64_t total = 0;
  for (const ValueRange& value : values) {
    total += value.end - value.begin;
    output->offsets.push_back(static_cast<int64_t>(total));
    if (total <= rows_max) continue;
    return Status::ResourceExhausted("view '", view.name, "': ", total, " rows of ",
                                     view.out_row_bytes, " bytes do not fit the batch budget of ",
                                     budget_.limit, " bytes (budgets.batch_bytes)");
  }
  output->dtype = view.delivered;
  output->shape = view.row_shape.WithOuter({static_cast<int64_t>(total)});
  GEARDB_RETURN_IF_ERROR(output->buffer.Resize(total * view.out_row_bytes + 16, budget_));
  runs_.BeginOutput({.destination = output->buffer.get(),
                     .pattern = view.pad_bits,
                     .pattern_bytes = static_cast<uint32_t>(DTypeBytes(view.delivered)),
                     .convert = view.convert,
                     .stored = view.stored});
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueRange& value = values[i];
    if (value.begin == value.end) continue;
    const RowsOutput into{static_cast<uint64_t>(output->offsets[i]) * view.out_row_bytes,
                          view.out_row_bytes};
    CopyRange(*value.companion, value.slot, {value.begin, value.end}, into, &runs_, &waits_);
  }
  return Status::Ok();
}

Status BatchBuilder::BuildBlob(size_t v, BatchOutput* output) {
  const CompiledView& view = plan().views[v];
  std::vector<ValueRange> values;
  for (size_t i = 0; i < items_.size(); ++i) {
    const TableState& state = *items_[i].part->state;
    const size_t companion = *ViewOf(v, i).companion;
    const RaggedRange range = RangeOfBlob(state, companion, items_[i].slot);
    values.push_back({state.companion(companion), items_[i].slot, range.begin, range.end});
  }
  if (!view.fixed) return CopyValues(view, values, output);
  output->dtype = view.delivered;
  output->shape = view.row_shape.WithOuter({static_cast<int64_t>(values.size())});
  GEARDB_RETURN_IF_ERROR(output->buffer.Resize(values.size() * view.out_row_bytes + 16, budget_));
  runs_.BeginOutput({.destination = output->buffer.get(),
                     .pattern = view.pad_bits,
                     .pattern_bytes = static_cast<uint32_t>(DTypeBytes(view.delivered)),
                     .convert = view.convert,
                     .stored = view.stored});
  for (size_t i = 0; i < values.size(); ++i) {
    const RowsOutput into{i * view.out_row_bytes, view.out_row_bytes};
    if (values[i].begin == values[i].end) {
      // Tables of other parts have defaults of their own.
      const uint64_t unset = ViewOf(v, i).pad_bits;
      if (unset == view.pad_bits) {
        runs_.Fill(into.destination, view.out_row_bytes);
      } else {
        FillElements(view.delivered, unset,
                     {output->buffer.get() + into.destination, view.out_row_bytes});
      }
    } else {
      // One row, whatever the companion says it has.
      const RaggedRange row{values[i].begin, values[i].begin + 1};
      CopyRange(*values[i].companion, values[i].slot, row, into, &runs_, &waits_);
    }
  }
  return Status::Ok();
}

Status BatchBuilder::BuildRagged(size_t v, Batch::Rep* rep, size_t first_output) {
  const CompiledView& view = plan().views[v];
  BatchOutput& output = rep->outputs[first_output];
  Placement placed;
  GEARDB_RETURN_IF_ERROR(PlaceEntries(v, &output, &placed));
  std::vector<RaggedStep> steps;
  std::vector<size_t> entries;  // Of each step.
  for (size_t i = 0; i < items_.size(); ++i) {
    const CompiledView& of = ViewOf(v, i);
    const PlaceRange places = PlacesOf(of, i);
    int64_t at = placed.firsts[i];
    for (int64_t k = places.begin; k < places.end; ++k) {
      const Entry entry = EntryAt(of, i, k);
      if (entry.kind == EntryKind::kAbsent) continue;
      const size_t place = static_cast<size_t>(at++);
      if (entry.kind == EntryKind::kPad) continue;
      steps.push_back({items_[i].part->state, items_[i].slot, entry.row, of.column});
      entries.push_back(place);
    }
    output.lengths.push_back(at - placed.firsts[i]);
  }
  GEARDB_ASSIGN_OR_RETURN(const auto ranges, ReadRanges(steps, &waits_));
  std::vector<ValueRange> values(static_cast<size_t>(placed.entries));
  for (size_t i = 0; i < steps.size(); ++i) {
    const TableState& state = *steps[i].state;
    const size_t companion = *state.layout().step_columns()[steps[i].column].companion;
    values[entries[i]] = {state.companion(companion), steps[i].slot, ranges[i].begin,
                          ranges[i].end};
  }
  GEARDB_RETURN_IF_ERROR(CopyValues(view, values, &output));
  if (view.masks) {
    GEARDB_RETURN_IF_ERROR(MakeMasks(view, placed, &rep->outputs[first_output + 1]));
  }
  FinishMasks(v, placed, rep, first_output);
  return Status::Ok();
}

}  // namespace geardb::engine
