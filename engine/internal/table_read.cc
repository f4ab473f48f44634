#include "engine/internal/table_read.h"

#include <algorithm>
#include <cstring>

#include "engine/internal/gather_rows.h"
#include "engine/internal/run_builder.h"
#include "engine/internal/value_read.h"

namespace geardb::engine {
namespace {

/// What is copied once the mutex is released.
struct RowsToCopy {
  RunBuilder runs;
  PageWaits waits;
  EpochRegistry::Guard guard;

  Status Copy(const HostArena& arena) { return GatherRows(&runs, &waits, arena); }
};

/// Begins an output of `count` rows of a step column.
void BeginColumn(const StepColumn& column, int64_t count, ColumnRows* rows, RunBuilder* runs) {
  rows->column = column.name;
  rows->dtype = column.dtype;
  rows->shape = column.shape.WithOuter({count});
  rows->bytes.resize(static_cast<size_t>(count) * column.row_bytes + 16);
  runs->BeginOutput({.destination = rows->bytes.data(), .stored = column.dtype});
}

/// Copies `count` rows from absolute row `row` on to place `at` of the output begun last.
void CopyFrom(RowCursor* cursor, size_t column, int64_t row, int64_t count, int64_t at,
              RowsToCopy* copies) {
  const uint64_t bytes = cursor->state().layout().step_columns()[column].row_bytes;
  CopyRows(cursor, {column, bytes, row, row + count}, {static_cast<uint64_t>(at) * bytes, bytes},
           &copies->runs, &copies->waits);
}

/// Python's slice.indices over rows [first, end).
struct Slice {
  int64_t begin = 0;
  int64_t count = 0;
};
Slice ResolveRange(const RowRange& range, int64_t first, int64_t end) {
  const bool forward = range.step > 0;
  const auto clamp = [&](int64_t bound) {
    if (bound < 0) bound += end;
    return forward ? std::clamp(bound, first, end) : std::clamp(bound, first - 1, end - 1);
  };
  const int64_t from = range.begin ? clamp(*range.begin) : (forward ? first : end - 1);
  const int64_t until = range.end ? clamp(*range.end) : (forward ? end : first - 1);
  Slice slice{from, 0};
  if (forward && until > from) slice.count = (until - from - 1) / range.step + 1;
  // Divided by a negative number, not by its opposite: the smallest number has none.
  if (!forward && from > until) slice.count = (until + 1 - from) / range.step + 1;
  return slice;
}

void TrimSpare(std::vector<ColumnRows>* outputs) {
  for (ColumnRows& rows : *outputs) rows.bytes.resize(rows.view().byte_count());
}

/// What a value of any length reads as: `count` rows, of which a copy is to fill the bytes.
void BeginValues(const CompanionColumn& column, uint64_t count, ColumnRows* rows,
                 RunBuilder* runs) {
  rows->column = column.name;
  rows->dtype = column.dtype;
  rows->shape =
      column.fixed() ? column.shape : column.shape.WithOuter({static_cast<int64_t>(count)});
  rows->bytes.resize(count * column.row_bytes + 16);
  runs->BeginOutput({.destination = rows->bytes.data(), .stored = column.dtype});
}

void ReadBlob(const TableState& state, size_t companion, Slot slot, ColumnRows* rows,
              RowsToCopy* copies) {
  const CompanionColumn& column = state.layout().companions()[companion];
  const RaggedRange range = RangeOfBlob(state, companion, slot);
  const uint64_t count = range.end - range.begin;
  BeginValues(column, column.fixed() ? 1 : count, rows, &copies->runs);
  if (count == 0 && column.fixed()) {
    FillElements(column.dtype, column.default_bits, std::span(rows->bytes).first(column.row_bytes));
  }
  if (count == 0) return;
  CopyRange(*state.companion(companion), slot, range, {.out_row_bytes = column.row_bytes},
            &copies->runs, &copies->waits);
}

/// The values that steps have of the ragged column with that number.
Status ReadRagged(const TableState& state, size_t number, std::span<const RaggedStep> steps,
                  ColumnRows* rows, RowsToCopy* copies) {
  const size_t companion = *state.layout().step_columns()[number].companion;
  const CompanionColumn& column = state.layout().companions()[companion];
  GEARDB_ASSIGN_OR_RETURN(const auto ranges, ReadRanges(steps, &copies->waits));
  rows->offsets = {0};
  for (const RaggedRange& range : ranges) {
    rows->offsets.push_back(rows->offsets.back() + static_cast<int64_t>(range.end - range.begin));
  }
  BeginValues(column, static_cast<uint64_t>(rows->offsets.back()), rows, &copies->runs);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const uint64_t at = static_cast<uint64_t>(rows->offsets[i]) * column.row_bytes;
    if (ranges[i].begin == ranges[i].end) continue;
    CopyRange(*state.companion(companion), steps[i].slot, ranges[i], {at, column.row_bytes},
              &copies->runs, &copies->waits);
  }
  return Status::Ok();
}

ColumnRows ReadTrajectoryColumn(const TableState& state, size_t column, Slot slot) {
  const TrajectoryColumn& found = state.layout().trajectory_columns()[column];
  ColumnRows rows;
  rows.column = found.name;
  rows.dtype = found.dtype;
  rows.shape = found.shape;
  const auto value = state.ValueOf(column, slot);
  rows.bytes.assign(value.begin(), value.end());
  return rows;
}

}  // namespace

TrajectoryRecord DescribeTrajectory(const TableState& state,
                                    const index::TrajectoryRecord& record) {
  return TrajectoryRecord{.id = record.id,
                          .state = static_cast<TrajectoryState>(record.state),
                          .end = record.end,
                          .first_row = static_cast<int64_t>(record.first_row),
                          .rows_end = static_cast<int64_t>(record.rows_end),
                          .steps_end = state.StepsEnd(record),
                          .created_us = record.created_us,
                          .times_sampled = record.times_sampled};
}

Result<std::vector<ColumnRows>> ReadRows(DatabaseCore* database, const TableCore& table,
                                         TrajectoryId id, std::span<const std::string_view> columns,
                                         const RowRange& range) {
  GEARDB_RETURN_IF_ERROR(database->CheckTable(table));
  if (range.step == 0) return Status::InvalidArgument("a row range has step 0");
  std::vector<std::string_view> names(columns.begin(), columns.end());
  std::vector<ColumnRows> outputs;
  RowsToCopy copies;
  {
    MutexLock lock(&table.state->mutex);
    const TableLayout& layout = table.layout();
    for (const StepColumn& column : layout.step_columns()) {
      if (columns.empty() && !column.dropped) names.push_back(column.name);
    }
    outputs.resize(names.size());
    const TableState& state = *table.state;
    const Slot slot = state.trajectories().FindById(id);
    if (slot == kNoSlot) {
      return Status::NotFound("table '", layout.spec().name, "' has no trajectory ", id);
    }
    const index::TrajectoryRecord& record = state.trajectories().record(slot);
    const Slice slice = ResolveRange(range, static_cast<int64_t>(record.first_row),
                                     static_cast<int64_t>(record.rows_end));
    for (size_t c = 0; c < names.size(); ++c) {
      if (const auto column = layout.FindTrajectoryColumn(names[c])) {
        const auto companion = layout.trajectory_columns()[*column].companion;
        if (companion) {
          ReadBlob(state, *companion, slot, &outputs[c], &copies);
        } else {
          outputs[c] = ReadTrajectoryColumn(state, *column, slot);
        }
        continue;
      }
      const auto column = layout.FindStepColumn(names[c]);
      if (!column) return layout.NoSuchColumn(names[c]);
      if (layout.step_columns()[*column].companion) {
        std::vector<RaggedStep> steps;
        for (int64_t k = 0; k < slice.count; ++k) {
          steps.push_back({&state, slot, slice.begin + k * range.step, *column});
        }
        GEARDB_RETURN_IF_ERROR(ReadRagged(state, *column, steps, &outputs[c], &copies));
        continue;
      }
      BeginColumn(layout.step_columns()[*column], slice.count, &outputs[c], &copies.runs);
      RowCursor cursor(state, record);
      const int64_t each = range.step == 1 ? slice.count : 1;
      for (int64_t k = 0; k < slice.count; k += each) {
        CopyFrom(&cursor, *column, slice.begin + k * range.step, each, k, &copies);
      }
    }
    copies.guard = database->epochs.Enter();
  }
  GEARDB_RETURN_IF_ERROR(copies.Copy(*database->arena));
  TrimSpare(&outputs);
  return outputs;
}

Result<ColumnRows> ReadStepValues(DatabaseCore* database, const TableCore& table, TrajectoryId id,
                                  size_t number) {
  ColumnRows output;
  RowsToCopy copies;
  {
    MutexLock lock(&table.state->mutex);
    const TableState& state = *table.state;
    const StepColumn& column = state.layout().step_columns()[number];
    if (column.dropped) return state.layout().NoSuchColumn(column.name);
    const Slot slot = state.trajectories().FindById(id);
    std::vector<RaggedStep> steps;
    if (slot != kNoSlot) {
      const index::TrajectoryRecord& record = state.trajectories().record(slot);
      RowCursor cursor(state, record);
      const bool has_flags = state.layout().flags_column().has_value();
      for (auto row = static_cast<int64_t>(record.first_row); row < state.StepsEnd(record); ++row) {
        if (!has_flags || !IsFinalRow(&cursor, row)) steps.push_back({&state, slot, row, number});
      }
    }
    GEARDB_RETURN_IF_ERROR(ReadRagged(state, number, steps, &output, &copies));
    copies.guard = database->epochs.Enter();
  }
  GEARDB_RETURN_IF_ERROR(copies.Copy(*database->arena));
  return output;
}

Result<std::vector<ColumnRows>> GatherRows(DatabaseCore* database, const TableCore& table,
                                           std::span<const GatherColumn> columns) {
  GEARDB_RETURN_IF_ERROR(database->CheckTable(table));
  std::vector<ColumnRows> outputs(columns.size());
  RowsToCopy copies;
  {
    MutexLock lock(&table.state->mutex);
    const TableLayout& layout = table.layout();
    const TableState& state = *table.state;
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto column = layout.FindStepColumn(columns[c].column);
      if (!column) {
        if (!layout.FindTrajectoryColumn(columns[c].column)) {
          return layout.NoSuchColumn(columns[c].column);
        }
        return Status::InvalidArgument("table '", layout.spec().name, "': column '",
                                       columns[c].column, "' is per trajectory; Read it");
      }
      const bool ragged = layout.step_columns()[*column].companion.has_value();
      std::vector<RaggedStep> steps;
      if (!ragged) {
        BeginColumn(layout.step_columns()[*column], static_cast<int64_t>(columns[c].rows.size()),
                    &outputs[c], &copies.runs);
      }
      std::optional<RowCursor> cursor;
      Slot slot = kNoSlot;
      for (size_t k = 0; k < columns[c].rows.size(); ++k) {
        const RowId& wanted = columns[c].rows[k];
        if (!cursor || cursor->record().id != wanted.id) {
          slot = state.trajectories().FindById(wanted.id);
          if (slot == kNoSlot) {
            return Status::InvalidArgument("table '", layout.spec().name, "': entry ", k,
                                           " names trajectory ", wanted.id, ", which is not there");
          }
          cursor.emplace(state, state.trajectories().record(slot));
        }
        const auto first = static_cast<int64_t>(cursor->record().first_row);
        const auto end = static_cast<int64_t>(cursor->record().rows_end);
        const int64_t row = wanted.row < 0 ? wanted.row + end : wanted.row;
        if (row < first || row >= end) {
          return Status::InvalidArgument("table '", layout.spec().name, "': entry ", k,
                                         " names row ", wanted.row, " of trajectory ", wanted.id,
                                         ", which has rows ", first, " to ", end - 1);
        }
        if (ragged) {
          steps.push_back({&state, slot, row, *column});
        } else {
          CopyFrom(&*cursor, *column, row, 1, static_cast<int64_t>(k), &copies);
        }
      }
      if (ragged) {
        GEARDB_RETURN_IF_ERROR(ReadRagged(state, *column, steps, &outputs[c], &copies));
      }
    }
    copies.guard = database->epochs.Enter();
  }
  GEARDB_RETURN_IF_ERROR(copies.Copy(*database->arena));
  TrimSpare(&outputs);
  return outputs;
}

}  // namespace geardb::engine
