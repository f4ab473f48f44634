#include "engine/internal/patch_rows.h"

#include <algorithm>
#include <tuple>

#include "engine/internal/episode.h"
#include "engine/internal/patch_values.h"

namespace geardb::engine {

// ---- Which rows.

Result<uint64_t> PatchRows::Take(int64_t rows) {
  const std::string& table = state_.layout().spec().name;
  const uint64_t item = items_++;
  if (values_.padded == 0) {
    const uint64_t begin = taken_;
    taken_ += static_cast<uint64_t>(rows);
    if (taken_ <= values_.entries) return begin;
    return Status::InvalidArgument("table '", table, "': values of ", values_.entries,
                                   " rows are given for more: ", taken_, " with those of entry ",
                                   item);
  }
  taken_ = values_.entries;
  if (item >= values_.entries) {
    return Status::InvalidArgument("table '", table, "': values of ", values_.entries,
                                   " entries are given for more");
  }
  if (static_cast<uint64_t>(rows) > values_.padded) {
    return Status::InvalidArgument("table '", table, "': entry ", item, " has ", rows,
                                   " rows; its values have ", values_.padded);
  }
  return item * values_.padded;
}

Status PatchRows::Add(Slot slot, int64_t first_row, int64_t rows) {
  GEARDB_ASSIGN_OR_RETURN(const uint64_t value_row, Take(rows));
  const index::TrajectoryRecord& record = state_.trajectories().record(slot);
  const auto end = static_cast<int64_t>(record.rows_end);
  if (first_row < 0 || first_row > end || rows > end - first_row) {
    return Status::InvalidArgument("table '", state_.layout().spec().name, "': entry ", items_ - 1,
                                   " names ", rows, " rows from ", first_row, " of trajectory ",
                                   record.id, ", which ends at row ", end);
  }
  const auto first = static_cast<int64_t>(record.first_row);
  const int64_t gone = std::clamp<int64_t>(first - first_row, 0, rows);
  stale_ += static_cast<uint64_t>(gone);
  if (gone == rows) return Status::Ok();
  targets_.push_back({.slot = slot,
                      .first_row = first_row + gone,
                      .rows = rows - gone,
                      .value_row = value_row + static_cast<uint64_t>(gone)});
  return Status::Ok();
}

Status PatchRows::AddStale(int64_t rows) {
  GEARDB_RETURN_IF_ERROR(Take(rows).status());
  stale_ += static_cast<uint64_t>(rows);
  return Status::Ok();
}

Status PatchRows::CheckWhole() const {
  const uint64_t used = values_.padded == 0 ? taken_ : items_;
  if (used == values_.entries) return Status::Ok();
  return Status::InvalidArgument("table '", state_.layout().spec().name, "': values of ",
                                 values_.entries, values_.padded == 0 ? " rows" : " entries",
                                 " are given for ", used);
}

Status CheckFilled(const TableState& state, std::span<const uint32_t> groups,
                   std::vector<PatchTarget> targets, FilledRows* filled) {
  std::sort(targets.begin(), targets.end(), [](const PatchTarget& a, const PatchTarget& b) {
    return std::tie(a.slot, a.first_row) < std::tie(b.slot, b.first_row);
  });
  const TableLayout& layout = state.layout();
  for (const uint32_t g : groups) {
    if (!layout.group(g).late) continue;
    for (const PatchTarget& target : targets) {
      const index::TrajectoryRecord& record = state.trajectories().record(target.slot);
      uint64_t& end =
          filled->try_emplace({target.slot, g}, state.Filled(g, target.slot)).first->second;
      if (static_cast<uint64_t>(target.first_row) > end) {
        return Status::InvalidArgument("table '", layout.spec().name, "': group '",
                                       layout.group(g).name, "' of trajectory ", record.id,
                                       " is filled up to row ", end, "; rows from ",
                                       target.first_row, " on would leave a gap");
      }
      end = std::max(end, static_cast<uint64_t>(target.first_row + target.rows));
    }
  }
  return Status::Ok();
}

Status ResolveSpans(const TableState& state, std::span<const RowSpan> spans, PatchRows* rows) {
  for (const RowSpan& span : spans) {
    if (span.rows < 0) {
      return Status::InvalidArgument("table '", state.layout().spec().name, "': a patch of ",
                                     span.rows, " rows");
    }
    const Slot slot = state.trajectories().FindById(span.id);
    if (slot == kNoSlot) {
      GEARDB_RETURN_IF_ERROR(rows->AddStale(span.rows));
      continue;
    }
    const auto end = static_cast<int64_t>(state.trajectories().record(slot).rows_end);
    const int64_t first = span.first_row < 0 ? span.first_row + end : span.first_row;
    GEARDB_RETURN_IF_ERROR(rows->Add(slot, first, span.rows));
  }
  return Status::Ok();
}

Status ResolveHandles(const TableState& state, const PriorityState& priority,
                      std::span<const ItemHandle> handles, PatchRows* rows) {
  const TableLayout& layout = state.layout();
  if (priority.groups() != nullptr) {
    return Status::InvalidArgument("priority table '", priority.spec().name,
                                   "' draws groups, whose handles name several trajectories; "
                                   "Table::Patch takes these by their ids");
  }
  for (const ItemHandle& handle : handles) {
    const auto length = static_cast<int64_t>(handle.length);
    uint32_t generation = 0;
    if (!state.GenerationOfLeaf(priority, handle.leaf, &generation) ||
        generation != handle.generation || !priority.selector().Contains(handle.leaf)) {
      GEARDB_RETURN_IF_ERROR(rows->AddStale(length));
      continue;
    }
    if (!priority.draws_windows()) {
      const auto slot = static_cast<Slot>(handle.leaf);
      const index::TrajectoryRecord& record = state.trajectories().record(slot);
      const int64_t end = state.StepsEnd(record);
      if (length < end - static_cast<int64_t>(record.first_row)) {
        return Status::InvalidArgument(
            "priority table '", priority.spec().name, "': a handle of ", length,
            " rows of trajectory ", record.id, ", which has ",
            end - static_cast<int64_t>(record.first_row),
            ": of a window within, which Table::Patch takes by its id and rows");
      }
      GEARDB_RETURN_IF_ERROR(rows->Add(slot, end - length, length));
      continue;
    }
    const Lpn lpn = layout.LpnOfLeaf(handle.leaf);
    const index::PageRecord& page = state.pages().page(lpn);
    const index::TrajectoryRecord& record = state.trajectories().record(page.slot);
    const auto row = static_cast<int64_t>(uint64_t{page.page_number} * layout.steps_per_page() +
                                          (handle.leaf & (layout.steps_per_page() - 1)));
    if (row < static_cast<int64_t>(record.first_row) ||
        row >= static_cast<int64_t>(record.rows_end)) {
      GEARDB_RETURN_IF_ERROR(rows->AddStale(length));
      continue;
    }
    // Where the draw has put the window.
    RowCursor cursor(state, record, lpn);
    const WindowRule& rule = priority.spec().window;
    const Episode episode = FindEpisode(&cursor, rule, row, PlacementReach(rule));
    const PlacedWindow window = PlaceWindow(rule, episode, row);
    GEARDB_RETURN_IF_ERROR(rows->Add(page.slot, window.anchor, length));
  }
  return Status::Ok();
}

// ---- Values.

Result<PatchValues> BindPatchValues(const TableLayout& layout, ColumnValues values) {
  PatchValues bound;
  const std::string& table = layout.spec().name;
  if (values.empty()) return Status::InvalidArgument("table '", table, "': a patch of no column");
  for (size_t i = 0; i < values.size(); ++i) {
    const ColumnValue& given = values[i];
    const auto number = layout.FindStepColumn(given.column);
    if (!number) {
      if (!layout.FindTrajectoryColumn(given.column)) return layout.NoSuchColumn(given.column);
      return Status::InvalidArgument("table '", table, "': column '", given.column,
                                     "' is per trajectory; SetColumns sets it");
    }
    for (const PatchValues::Bound& other : bound.columns) {
      if (other.column != *number) continue;
      return Status::InvalidArgument("table '", table, "': column '", given.column,
                                     "' is given twice");
    }
    const StepColumn& column = layout.step_columns()[*number];
    if (column.companion) {
      GEARDB_RETURN_IF_ERROR(BindRaggedPatch(layout, given, *number, &bound));
      continue;
    }
    const Shape& shape = given.value.shape;
    const int outer = shape.rank() - column.shape.rank();
    Shape wanted = outer == 1   ? column.shape.WithOuter({shape[0]})
                   : outer == 2 ? column.shape.WithOuter({shape[0], shape[1]})
                                : Shape();
    if (given.value.dtype != column.dtype || (outer != 1 && outer != 2) || !(shape == wanted) ||
        shape[0] < 0 || (outer == 2 && shape[1] < 1)) {
      return Status::InvalidArgument(
          "table '", table, "': column '", column.name, "' takes ", DTypeName(column.dtype),
          " of shape [rows, ...] or [items, rows, ...] with rows of ", column.shape.ToString(),
          ", not ", DTypeName(given.value.dtype), shape.ToString());
    }
    const auto entries = static_cast<uint64_t>(shape[0]);
    const uint64_t padded = outer == 2 ? static_cast<uint64_t>(shape[1]) : 0;
    if (given.value.bytes == nullptr && entries > 0) {
      return Status::InvalidArgument("table '", table, "': column '", column.name,
                                     "' has no bytes");
    }
    if (i > 0 && (entries != bound.entries || padded != bound.padded)) {
      return Status::InvalidArgument("table '", table, "': column '", column.name, "' is given as ",
                                     shape.ToString(), ", the one before it with ", bound.entries,
                                     bound.padded == 0 ? " rows" : " entries");
    }
    bound.entries = entries;
    bound.padded = padded;
    bound.columns.push_back({*number, static_cast<const std::byte*>(given.value.bytes)});
  }
  return bound;
}

}  // namespace geardb::engine
