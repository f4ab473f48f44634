#include "engine/internal/batch_build.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/break.h"
#include "engine/internal/gather_rows.h"
#include "kernels/convert.h"

namespace geardb::engine {
namespace {

constexpr size_t kMaskCount = std::size(kMaskSuffixes);
constexpr size_t kNStepOutputs = std::size(kNStepNames);

int64_t OverOf(const CompiledView& view, const WindowRule& rule) {
  return view.Over(rule.extent.length) + (kBreak.window_one_too_long ? 1 : 0);
}

/// What an entry of a ragged view takes while it is looked up: where its rows are, and of which
/// step. Of the rows themselves it may have none.
constexpr uint64_t kRaggedEntryBytes = 128;

/// Asked before anything is multiplied: the bytes may be more than any number holds.
Status CheckEntries(const CompiledView& view, int64_t items, int64_t each,
                    const BatchBudget& budget) {
  const bool ragged = view.companion && !view.fixed;
  const uint64_t entry_bytes = ragged ? kRaggedEntryBytes : view.entry_bytes();
  const uint64_t entries_max = std::min(budget.limit, kViewBytesMax) / entry_bytes;
  if (each <= static_cast<int64_t>(entries_max) / items) return Status::Ok();
  return Status::ResourceExhausted("view '", view.name, "': ", items, " x ", each, " entries of ",
                                   entry_bytes, " bytes do not fit the batch budget of ",
                                   budget.limit, " bytes (budgets.batch_bytes)");
}

}  // namespace

void BatchBuilder::DrawRows(std::span<const DrawnLeaf> leaves) {
  row_draws_.Clear();
  if (row_draws_.empty()) return;
  for (size_t i = 0; i < items_.size(); ++i) {
    const DrawnItem& item = items_[i];
    RowCursor cursor = item.cursor();
    row_draws_.Add(item.part->rule, &cursor, item.window.anchor, leaves[i].key);
  }
}

// ---- Entries.

int64_t BatchBuilder::RowCountOf(const CompiledView& view, size_t item) const {
  if (view.draw) return view.count;
  if (!view.bootstrap) return view.RowCount(items_[item].rule->extent.length);
  return static_cast<int64_t>(bootstrap_first_[item + 1] - bootstrap_first_[item]);
}

Entry BatchBuilder::EntryAt(const CompiledView& view, size_t i, int64_t k) const {
  const DrawnItem& item = items_[i];
  // At no place of its own.
  if (view.draw) return Entry{EntryKind::kRepeat, row_draws_.row(*view.draw, i, k).row};
  if (view.bootstrap) {
    return Entry{EntryKind::kRow, bootstrap_rows_[bootstrap_first_[i] + static_cast<size_t>(k)]};
  }
  return ResolveEntry(*item.rule, item.episode, item.window, OverOf(view, *item.rule),
                      view.Relative(k));
}

PlaceRange BatchBuilder::PlacesOf(const CompiledView& view, size_t i) const {
  const int64_t count = RowCountOf(view, i);
  if (view.bootstrap || view.draw || !view.list.empty()) return PlaceRange{0, count};
  const DrawnItem& item = items_[i];
  return PresentPlaces(*item.rule, item.episode, item.window, OverOf(view, *item.rule),
                       ViewRange{view.begin, view.stride, count});
}

int64_t BatchBuilder::CountEntries(const CompiledView& view, size_t item) const {
  const PlaceRange places = PlacesOf(view, item);
  if (view.list.empty()) return places.end - places.begin;
  int64_t count = 0;
  for (int64_t k = places.begin; k < places.end; ++k) {
    count += EntryAt(view, item, k).kind != EntryKind::kAbsent ? 1 : 0;
  }
  return count;
}

void BatchBuilder::EmitRows(const CompiledView& view, RowCursor* cursor, int64_t begin, int64_t end,
                            uint64_t destination) {
  CopyRows(cursor, {view.column, view.row_bytes, begin, end}, {destination, view.out_row_bytes},
           &runs_, &waits_);
}

void BatchBuilder::EmitRow(const CompiledView& view, RowCursor* cursor, int64_t row,
                           uint64_t destination) {
  EmitRows(view, cursor, row, row + 1, destination);
}

void BatchBuilder::EmitStacked(const CompiledView& view, size_t i, RowCursor* cursor,
                               int64_t newest, uint64_t destination) {
  const DrawnItem& item = items_[i];
  const int64_t begin = view.draw ? row_draws_.episode(i).begin : item.episode.begin;
  for (int64_t row = newest - view.stack + 1; row <= newest; ++row) {
    if (row < begin && item.rule->left == EdgeRule::kPad) {
      runs_.Fill(destination, view.out_row_bytes);
    } else {
      EmitRow(view, cursor, std::max(row, begin), destination);
    }
    destination += view.out_row_bytes;
  }
}

int64_t BatchBuilder::EmitContiguous(const CompiledView& view, size_t i, int64_t first) {
  const DrawnItem& item = items_[i];
  RowCursor cursor = item.cursor();
  const int64_t rows = view.RowCount(item.rule->extent.length);
  const int64_t from = item.window.anchor + view.begin;
  const int64_t until = from + rows;
  const int64_t end = ShownEnd(item.episode, item.window, OverOf(view, *item.rule));
  // Left of the episode, inside, right of it.
  const int64_t inside_begin = std::clamp(item.episode.begin, from, until);
  const int64_t inside_end = std::clamp(end, inside_begin, until);
  uint64_t destination = static_cast<uint64_t>(first) * view.out_row_bytes;
  const auto edge = [&](int64_t count, int64_t sample) -> int64_t {
    if (count == 0) return 0;
    const Entry entry = ResolveEntry(*item.rule, item.episode, item.window,
                                     OverOf(view, *item.rule), sample - item.window.anchor);
    if (entry.kind == EntryKind::kAbsent) return 0;
    for (int64_t n = 0; n < count; ++n, destination += view.out_row_bytes) {
      if (entry.kind == EntryKind::kPad) {
        runs_.Fill(destination, view.out_row_bytes);
      } else {
        EmitRow(view, &cursor, entry.row, destination);
      }
    }
    return count;
  };
  int64_t emitted = edge(inside_begin - from, from);
  EmitRows(view, &cursor, inside_begin, inside_end, destination);
  destination += static_cast<uint64_t>(inside_end - inside_begin) * view.out_row_bytes;
  emitted += inside_end - inside_begin;
  emitted += edge(until - inside_end, until - 1);
  return emitted;
}

int64_t BatchBuilder::EmitEntries(const CompiledView& view, size_t i, int64_t first) {
  if (view.contiguous()) return EmitContiguous(view, i, first);
  RowCursor cursor = items_[i].cursor();
  const uint64_t entry_bytes = view.entry_bytes();
  uint64_t destination = static_cast<uint64_t>(first) * entry_bytes;
  int64_t emitted = 0;
  const PlaceRange places = PlacesOf(view, i);
  for (int64_t k = places.begin; k < places.end; ++k) {
    const Entry entry = EntryAt(view, i, k);
    if (entry.kind == EntryKind::kAbsent) continue;
    if (entry.kind == EntryKind::kPad) {
      runs_.Fill(destination, entry_bytes);
    } else if (view.stack > 1) {
      EmitStacked(view, i, &cursor, entry.row, destination);
    } else {
      EmitRow(view, &cursor, entry.row, destination);
    }
    destination += entry_bytes;
    ++emitted;
  }
  return emitted;
}

void BatchBuilder::WriteMasks(const CompiledView& view, size_t i, int64_t first,
                              BatchOutput* masks) {
  const DrawnItem& item = items_[i];
  RowCursor cursor = item.cursor();
  const int64_t steps_end = item.window.anchor + item.window.steps;
  const PlaceRange places = PlacesOf(view, i);
  int64_t at = first;
  for (int64_t k = places.begin; k < places.end; ++k) {
    const Entry entry = EntryAt(view, i, k);
    if (entry.kind == EntryKind::kAbsent) continue;
    const bool shows = entry.kind != EntryKind::kPad;
    const bool step = entry.kind == EntryKind::kRow && entry.row >= item.window.anchor &&
                      entry.row < steps_end && MayBeAnchor(&cursor, *item.rule, entry.row);
    const bool first_row = shows && IsFirstRow(&cursor, entry.row);
    const End end = shows ? EndOfRow(&cursor, entry.row) : End::kGo;
    masks[0].buffer.get()[at] = std::byte{shows};
    masks[1].buffer.get()[at] = std::byte{step};
    masks[2].buffer.get()[at] = std::byte{first_row};
    masks[3].buffer.get()[at] = static_cast<std::byte>(end);
    ++at;
  }
}

/// Most windows show all their rows, and lie in their anchor's page with them.
struct BatchBuilder::WindowRuns {
  const CompiledView* view = nullptr;
  int64_t rows = 0;  // None: each item is looked at by itself.
  int64_t over = 0;
  const TableLayout* layout = nullptr;
  TableFrames* frames = nullptr;
  size_t group = 0;            // The column's…
  uint64_t column_offset = 0;  // …place in its frames.

  int64_t FirstOf(const DrawnItem& item) const { return item.window.anchor + view->begin; }
  bool ShowsAll(const DrawnItem& item) const {
    return rows > 0 && FirstOf(item) >= item.episode.begin &&
           FirstOf(item) + rows <= ShownEnd(item.episode, item.window, over);
  }
  bool LiesInOnePage(const DrawnItem& item) const {
    const uint32_t page = layout->PageNumber(item.row);
    return item.lpn != kNoLpn && layout->PageNumber(FirstOf(item)) == page &&
           layout->PageNumber(FirstOf(item) + rows - 1) == page;
  }
  FrameRef ToRead(const DrawnItem& item, PageWaits* waits) const {
    const uint64_t offset = layout->OffsetInPage(FirstOf(item)) * view->row_bytes;
    return AdvanceInFrame(frames->ToRead(group, item.lpn, waits), column_offset + offset);
  }
};

BatchBuilder::WindowRuns BatchBuilder::RunsOfWindows(size_t v, const BatchPart& part) const {
  WindowRuns runs{.view = &part.plan->views[v]};
  if (part.rule == nullptr || !runs.view->contiguous()) return runs;
  runs.rows = runs.view->RowCount(part.rule->extent.length);
  runs.over = OverOf(*runs.view, *part.rule);
  runs.layout = &part.state->layout();
  runs.frames = &part.state->frames();
  runs.group = runs.layout->step_columns()[runs.view->column].group;
  runs.column_offset = runs.layout->RowOffset(runs.view->column, 0);
  return runs;
}

template <typename Visit>
void BatchBuilder::ForEachItem(size_t v, const Visit& visit) const {
  const BatchPart* part = nullptr;
  WindowRuns runs;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].part != part) {
      part = items_[i].part;
      runs = RunsOfWindows(v, *part);
    }
    visit(i, runs);
  }
}

void BatchBuilder::EmitItems(size_t v, const Placement& placed, BatchOutput* output) {
  output->lengths.resize(items_.size());
  ForEachItem(v, [&](size_t i, const WindowRuns& runs) {
    const DrawnItem& item = items_[i];
    const int64_t first = placed.firsts[i];
    const auto at = static_cast<uint64_t>(first);
    int64_t count = runs.rows;
    if (runs.ShowsAll(item) && runs.LiesInOnePage(item)) {
      const auto rows = static_cast<uint64_t>(runs.rows);
      const uint64_t out_row_bytes = runs.view->out_row_bytes;
      runs_.Copy(runs.ToRead(item, &waits_), rows * runs.view->row_bytes, at * out_row_bytes,
                 rows * out_row_bytes);
    } else {
      count = EmitEntries(*runs.view, i, first);
    }
    output->lengths[i] = count;
    if (layout_ == BatchLayout::kPacked || count == placed.longest) return;
    const uint64_t entry_bytes = runs.view->entry_bytes();
    runs_.Fill((at + static_cast<uint64_t>(count)) * entry_bytes,
               static_cast<uint64_t>(placed.longest - count) * entry_bytes);
  });
}

// ---- Outputs.

Status BatchBuilder::BuildTrajectoryColumn(size_t v, BatchOutput* output) {
  const CompiledView& view = plan().views[v];
  output->dtype = view.delivered;
  output->shape = view.row_shape.WithOuter({static_cast<int64_t>(items_.size())});
  GEARDB_RETURN_IF_ERROR(output->buffer.Resize(items_.size() * view.out_row_bytes, budget_));
  for (size_t i = 0; i < items_.size(); ++i) {
    const TableState& state = *items_[i].part->state;
    const auto value = state.ValueOf(ViewOf(v, i).column, items_[i].slot);
    std::byte* into = output->buffer.get() + i * view.out_row_bytes;
    if (view.convert == GatherConvert::kToF32) {
      ConvertToFloat(view.stored, value.data(), view.row_bytes / DTypeBytes(view.stored),
                     reinterpret_cast<float*>(into));
    } else {
      std::memcpy(into, value.data(), view.row_bytes);
    }
  }
  return Status::Ok();
}

Status BatchBuilder::PlaceEntries(size_t v, BatchOutput* output, Placement* placed) const {
  const CompiledView& view = plan().views[v];
  const auto n = static_cast<int64_t>(items_.size());
  const bool packed = layout_ == BatchLayout::kPacked;
  int64_t longest = 0;
  ForEachItem(v, [&](size_t i, const WindowRuns& runs) {
    longest = std::max(longest, runs.rows > 0 ? runs.rows : RowCountOf(*runs.view, i));
  });
  if (view.bootstrap && !view.drop_axis) {
    for (const DrawnItem& item : items_) longest = std::max(longest, item.rule->extent.length);
  }

  if (!packed) GEARDB_RETURN_IF_ERROR(CheckEntries(view, n, longest, budget_));

  // Where each item's entries begin.
  output->lengths.clear();
  output->cu_seqlens.clear();
  placed->firsts.resize(items_.size());
  int64_t total = 0;
  ForEachItem(v, [&](size_t i, const WindowRuns& runs) {
    placed->firsts[i] = packed ? total : static_cast<int64_t>(i) * longest;
    if (!packed) return;
    output->cu_seqlens.push_back(total);
    total += runs.ShowsAll(items_[i]) ? runs.rows : CountEntries(*runs.view, i);
  });
  if (packed) output->cu_seqlens.push_back(total);
  placed->longest = longest;
  placed->total = total;
  placed->entries = packed ? total : n * longest;
  return packed ? CheckEntries(view, 1, total, budget_) : Status::Ok();
}

Shape BatchBuilder::ShapeOf(const CompiledView& view, const Placement& placed,
                            const Shape& row) const {
  const auto n = static_cast<int64_t>(items_.size());
  if (layout_ == BatchLayout::kPacked) return row.WithOuter({placed.total});
  return view.drop_axis ? row.WithOuter({n}) : row.WithOuter({n, placed.longest});
}

Status BatchBuilder::MakeMasks(const CompiledView& view, const Placement& placed,
                               BatchOutput* masks) const {
  for (size_t m = 0; view.masks && m < kMaskCount; ++m) {
    BatchOutput& mask = masks[m];
    mask.dtype = m + 1 == kMaskCount ? DType::kU8 : DType::kBool;
    mask.shape = ShapeOf(view, placed, Shape());
    GEARDB_RETURN_IF_ERROR(mask.buffer.Resize(static_cast<uint64_t>(placed.entries) + 1, budget_));
    std::memset(mask.buffer.get(), 0, static_cast<size_t>(placed.entries));
  }
  return Status::Ok();
}

void BatchBuilder::FinishMasks(size_t v, const Placement& placed, Batch::Rep* rep,
                               size_t first_output) {
  if (!plan().views[v].masks) return;
  const BatchOutput& output = rep->outputs[first_output];
  for (size_t i = 0; i < items_.size(); ++i) {
    WriteMasks(ViewOf(v, i), i, placed.firsts[i], &rep->outputs[first_output + 1]);
  }
  for (size_t m = 0; m < kMaskCount; ++m) {
    rep->outputs[first_output + 1 + m].lengths = output.lengths;
    rep->outputs[first_output + 1 + m].cu_seqlens = output.cu_seqlens;
  }
}

Status BatchBuilder::BuildView(size_t v, Batch::Rep* rep, size_t first_output) {
  const CompiledView& view = plan().views[v];
  BatchOutput& output = rep->outputs[first_output];
  Placement placed;
  GEARDB_RETURN_IF_ERROR(PlaceEntries(v, &output, &placed));
  const uint64_t entry_bytes = view.entry_bytes();
  output.dtype = view.delivered;
  output.shape = ShapeOf(view, placed,
                         view.stack > 1 ? view.row_shape.WithOuter({view.stack}) : view.row_shape);
  GEARDB_RETURN_IF_ERROR(
      output.buffer.Resize(static_cast<uint64_t>(placed.entries) * entry_bytes + 16, budget_));
  if (view.masks) {
    GEARDB_RETURN_IF_ERROR(MakeMasks(view, placed, &rep->outputs[first_output + 1]));
  }
  runs_.BeginOutput({.destination = output.buffer.get(),
                     .pattern = view.pad_bits,
                     .pattern_bytes = static_cast<uint32_t>(DTypeBytes(view.delivered)),
                     .convert = view.convert,
                     .stored = view.stored});
  EmitItems(v, placed, &output);
  FinishMasks(v, placed, rep, first_output);
  return Status::Ok();
}

Status BatchBuilder::Charge(size_t item_count, Batch::Rep* rep) const {
  const uint64_t builder_bytes = sizeof(DrawnItem) + sizeof(uint64_t) + row_draws_.item_bytes();
  const uint64_t item_bytes = Batch::Rep::ItemBytes(plan().views.size() + (plan().n_step ? 1 : 0) +
                                                    plan().row_draws.size());
  return rep->items.Raise(item_count * (item_bytes + builder_bytes), budget_);
}

Status BatchBuilder::Build(std::span<const DrawnLeaf> leaves, Batch::Rep* rep) {
  runs_.Clear();
  waits_.Clear();
  const size_t n = leaves.size();
  rep->handles.resize(n);
  rep->ids.resize(n);
  rep->anchors.resize(n);
  rep->lengths.resize(n);
  rep->trajectory_lengths.resize(n);
  rep->ends.resize(n);
  rep->times_sampled.resize(n);
  rep->sources.resize(n);
  resolved_.Resolve(parts_, leaves, rep);
  items_ = resolved_.items();
  DrawRows(leaves);
  if (rep->outputs.empty()) {  // Else they are those of another batch of this sampler.
    for (std::string& name : plan().OutputNames()) rep->outputs.emplace_back().name = name;
  }
  size_t at = 0;
  if (plan().n_step) {
    GEARDB_RETURN_IF_ERROR(BuildNStep(rep, at));
    at += kNStepOutputs;
  }
  for (size_t draw = 0; draw < plan().row_draws.size(); ++draw, at += kRowDrawOutputs) {
    GEARDB_RETURN_IF_ERROR(row_draws_.Write(
        draw, layout_, budget_,
        std::span<BatchOutput, kRowDrawOutputs>(&rep->outputs[at], kRowDrawOutputs)));
  }
  for (size_t v = 0; v < plan().views.size(); ++v) {
    const CompiledView& view = plan().views[v];
    if (view.per_trajectory && view.companion) {
      GEARDB_RETURN_IF_ERROR(BuildBlob(v, &rep->outputs[at]));
    } else if (view.per_trajectory) {
      GEARDB_RETURN_IF_ERROR(BuildTrajectoryColumn(v, &rep->outputs[at]));
    } else if (view.companion) {
      GEARDB_RETURN_IF_ERROR(BuildRagged(v, rep, at));
    } else {
      GEARDB_RETURN_IF_ERROR(BuildView(v, rep, at));
    }
    at += view.masks ? 1 + kMaskCount : 1;
  }
  return Status::Ok();
}

Status BatchBuilder::Gather(const HostArena& arena) {
  const Status status = GatherRows(&runs_, &waits_, arena);
  if (status.ok()) waits_.Clear();
  return status;
}

}  // namespace geardb::engine
