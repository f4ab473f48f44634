#include "engine/internal/append_bind.h"

#include <map>

#include "engine/internal/append.h"

namespace geardb::engine {
namespace {

/// How the values of a call are shaped: [outer..., row shape].
struct Outer {
  Shape dims;              // None for a single row, {rows} or {lanes} otherwise.
  bool any_count = false;  // The only dimension may be any number ≥ 1.
};

/// Which columns a set of values must name: all of a kind, or any.
enum class Wanted { kAllStepColumns, kFinalColumns, kSomeTrajectoryColumns };

/// What of a value does not fit a column of this dtype whose rows have `row_shape`.
Status WrongType(const TableLayout& layout, const ColumnValue& given, DType dtype,
                 const Shape& row_shape, const Outer& outer) {
  const TensorView& value = given.value;
  const std::string row =
      row_shape.rank() == 0 ? "one row is a scalar" : "one row has shape " + row_shape.ToString();
  if (value.dtype != dtype) {
    return Status::InvalidArgument("table '", layout.spec().name, "': column '", given.column,
                                   "' takes ", DTypeName(dtype), ", not ", DTypeName(value.dtype),
                                   " (", row, "; the value has shape ", value.shape.ToString(),
                                   ")");
  }
  std::string expected = outer.any_count ? "rows" : "";
  const auto append = [&](const Shape& shape) {
    for (const int64_t dim : shape.dims()) {
      expected += (expected.empty() ? "" : ", ") + std::to_string(dim);
    }
  };
  if (!outer.any_count) append(outer.dims);
  append(row_shape);
  return Status::InvalidArgument("table '", layout.spec().name, "': column '", given.column,
                                 "' takes ", DTypeName(dtype), "[", expected, "], not ",
                                 DTypeName(value.dtype), value.shape.ToString(), " (", row, ")");
}

/// Checks one value against its column, and learns the count from the first of a call.
Status CheckValue(const TableLayout& layout, const ColumnValue& given, DType dtype,
                  const Shape& row_shape, Outer* outer) {
  Shape expected = outer->dims;
  const int outer_rank = expected.rank();
  for (const int64_t dim : row_shape.dims()) expected.Append(dim);
  if (given.value.dtype != dtype || given.value.shape.rank() != expected.rank()) {
    return WrongType(layout, given, dtype, row_shape, *outer);
  }
  if (outer->any_count && outer_rank == 1) {
    const int64_t count = given.value.shape[0];
    if (count < 1) {
      return Status::InvalidArgument("table '", layout.spec().name, "': column '", given.column,
                                     "' has ", count, " rows; expected at least 1");
    }
    outer->dims = Shape({count});
    outer->any_count = false;
    return CheckValue(layout, given, dtype, row_shape, outer);
  }
  if (!(given.value.shape == expected)) return WrongType(layout, given, dtype, row_shape, *outer);
  if (given.value.bytes == nullptr) {
    return Status::InvalidArgument("table '", layout.spec().name, "': column '", given.column,
                                   "' has no bytes");
  }
  return Status::Ok();
}

/// What was given, by column number.
struct Bases {
  std::vector<const std::byte*> at;    ///< Base pointers; null where a column is not given.
  std::map<size_t, ValueRows> values;  ///< Of ragged columns, and blobs.

  bool given(size_t column) const { return at[column] != nullptr; }
};
/// Where no pointer is looked at.
constexpr std::byte kGiven{};

/// Values of any length: as many as there are in the call, or one.
Status BindAny(const TableLayout& layout, size_t companion, const ColumnValue& given, Outer* outer,
               ValueRows* values) {
  ValueCount count;
  if (outer->dims.rank() > 0) {
    count = {.values = static_cast<uint64_t>(outer->dims[0]), .alone = false};
    if (outer->any_count) count.values = std::nullopt;
  }
  GEARDB_ASSIGN_OR_RETURN(
      *values, BindValues(layout.spec().name, layout.companions()[companion], given, count));
  if (outer->any_count) *outer = {Shape({static_cast<int64_t>(values->size())}), false};
  return Status::Ok();
}

Result<Bases> BindStepColumns(const TableLayout& layout, ColumnValues values, Wanted wanted,
                              Outer* outer) {
  const auto columns = layout.step_columns();
  Bases bases{.at = std::vector<const std::byte*>(columns.size(), nullptr), .values = {}};
  for (const ColumnValue& given : values) {
    const auto number = layout.FindStepColumn(given.column);
    if (!number || (wanted == Wanted::kFinalColumns && !columns[*number].in_final_row)) {
      if (!number && !layout.FindTrajectoryColumn(given.column)) {
        return layout.NoSuchColumn(given.column);
      }
      return Status::InvalidArgument("table '", layout.spec().name, "': column '", given.column,
                                     "' is ", number ? "not in the final row" : "per trajectory",
                                     "; it cannot be given here");
    }
    const engine::StepColumn& column = columns[*number];
    if (layout.group(column.group).late) {
      return Status::InvalidArgument("table '", layout.spec().name, "': column '", given.column,
                                     "' is in the late group '", layout.group(column.group).name,
                                     "'; Patch fills it");
    }
    if (bases.given(*number)) {
      return Status::InvalidArgument("table '", layout.spec().name, "': column '", given.column,
                                     "' is given twice");
    }
    if (column.companion) {
      GEARDB_RETURN_IF_ERROR(
          BindAny(layout, *column.companion, given, outer, &bases.values[*number]));
      bases.at[*number] = &kGiven;
      continue;
    }
    GEARDB_RETURN_IF_ERROR(CheckValue(layout, given, column.dtype, column.shape, outer));
    bases.at[*number] = static_cast<const std::byte*>(given.value.bytes);
  }
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].dropped || layout.group(columns[c].group).late) continue;
    const bool needed = wanted == Wanted::kAllStepColumns || columns[c].in_final_row;
    if (needed && !bases.given(c)) {
      return Status::InvalidArgument("table '", layout.spec().name, "': column '", columns[c].name,
                                     "' is missing",
                                     wanted == Wanted::kFinalColumns ? " from the final row" : "");
    }
  }
  return bases;
}

Result<Bases> BindTrajectoryColumns(const TableLayout& layout, ColumnValues values, Outer* outer) {
  const auto columns = layout.trajectory_columns();
  Bases bases{.at = std::vector<const std::byte*>(values.empty() ? 0 : columns.size(), nullptr),
              .values = {}};
  for (const ColumnValue& given : values) {
    const auto number = layout.FindTrajectoryColumn(given.column);
    if (!number) {
      if (!layout.FindStepColumn(given.column)) return layout.NoSuchColumn(given.column);
      return Status::InvalidArgument("table '", layout.spec().name, "': column '", given.column,
                                     "' is per step; it cannot be given here");
    }
    if (bases.given(*number)) {
      return Status::InvalidArgument("table '", layout.spec().name, "': column '", given.column,
                                     "' is given twice");
    }
    const engine::TrajectoryColumn& column = columns[*number];
    DType dtype = column.dtype;
    Shape shape = column.shape;
    if (column.companion) {
      const CompanionColumn& companion = layout.companions()[*column.companion];
      if (!companion.fixed()) {
        GEARDB_RETURN_IF_ERROR(
            BindAny(layout, *column.companion, given, outer, &bases.values[*number]));
        bases.at[*number] = &kGiven;
        continue;
      }
      dtype = companion.dtype;
      shape = companion.shape;
    }
    GEARDB_RETURN_IF_ERROR(CheckValue(layout, given, dtype, shape, outer));
    bases.at[*number] = static_cast<const std::byte*>(given.value.bytes);
  }
  return bases;
}

Status CheckEnd(const TableLayout& layout, End end) {
  if (static_cast<uint8_t>(end) > static_cast<uint8_t>(End::kSkip)) {
    return Status::InvalidArgument("table '", layout.spec().name, "': unknown end ",
                                   static_cast<int>(end));
  }
  return Status::Ok();
}

bool NeedsFinal(const TableLayout& layout, End end) {
  return layout.spec().final_row && (end == End::kTerminated || end == End::kTruncated);
}

/// Keeps numbers for as long as the call.
const std::byte* Keep(std::vector<uint64_t> numbers, LaneRows* call) {
  call->made.push_back(std::make_shared<const std::vector<uint64_t>>(std::move(numbers)));
  return reinterpret_cast<const std::byte*>(call->made.back()->data());
}

/// The given values [first, first + rows) of a ragged column, and those of the final row, where it
/// has any, for a call whose other columns are bound.
void AddRagged(Writer::Impl* impl, size_t column, const ValueRows& values, size_t first,
               const ValueRows* final, LaneRows* call) {
  const TableLayout& layout = impl->layout();
  const size_t companion = *layout.step_columns()[column].companion;
  const uint64_t row_bytes = layout.companions()[companion].row_bytes;
  const uint64_t before = impl->RowsOfCompanion(companion, call->lane);
  const uint64_t skipped = values.offsets[first];
  std::vector<uint64_t> ranges;
  for (size_t i = first; i < first + call->rows; ++i) {
    ranges.push_back(before + values.offsets[i] - skipped);
    ranges.push_back(before + values.offsets[i + 1] - skipped);
  }
  CompanionRows rows{.companion = companion,
                     .rows = values.rows + skipped * row_bytes,
                     .count = values.offsets[first + call->rows] - skipped};
  call->columns[column] = Keep(std::move(ranges), call);
  if (final != nullptr) {
    const size_t at = final->size() == 1 ? 0 : call->lane;
    const uint64_t count = final->count(at);
    const uint64_t end = before + rows.count;
    call->final_columns[column] = Keep({end, end + count}, call);
    if (count > 0) {
      auto joined = std::make_shared<std::vector<std::byte>>();
      const std::byte* last = final->rows + final->offsets[at] * row_bytes;
      joined->reserve((rows.count + count) * row_bytes);
      joined->insert(joined->end(), rows.rows, rows.rows + rows.count * row_bytes);
      joined->insert(joined->end(), last, last + count * row_bytes);
      rows.rows = joined->data();
      rows.count += count;
      rows.made = std::move(joined);
    }
  }
  call->companions.push_back(std::move(rows));
}

/// All ragged columns of a call.
void AddRagged(Writer::Impl* impl, const Bases& bases, size_t first, const Bases& final,
               LaneRows* call) {
  for (const auto& [column, values] : bases.values) {
    const auto last = final.values.find(column);
    const bool has_final = !call->final_columns.empty() && last != final.values.end();
    AddRagged(impl, column, values, first, has_final ? &last->second : nullptr, call);
  }
}

/// The per-trajectory values of lane `i`, of those of all that are given; of one lane alone, 0.
void AddTrajectory(const TableLayout& layout, const Bases& bases, size_t i, LaneRows* call) {
  call->trajectory.resize(bases.at.size(), nullptr);
  for (size_t c = 0; c < bases.at.size(); ++c) {
    if (!bases.given(c)) continue;
    const TrajectoryColumn& column = layout.trajectory_columns()[c];
    if (!column.companion) {
      call->trajectory[c] = bases.at[c] + i * column.bytes;
      continue;
    }
    const CompanionColumn& companion = layout.companions()[*column.companion];
    CompanionRows rows{.companion = *column.companion};
    if (companion.fixed()) {
      rows.rows = bases.at[c] + i * companion.row_bytes;
      rows.count = 1;
    } else {
      const ValueRows& values = bases.values.at(c);
      rows.rows = values.rows + values.offsets[i] * companion.row_bytes;
      rows.count = values.count(i);
    }
    call->trajectory[c] = Keep({rows.count}, call);
    call->companions.push_back(std::move(rows));
  }
}

/// Of the calls that append to one lane.
Result<BoundAppend> BindLane(Writer::Impl* impl, ColumnValues rows, Outer outer,
                             const AppendOptions& options) {
  const TableLayout& layout = impl->layout();
  GEARDB_RETURN_IF_ERROR(CheckLane(impl, options.lane));
  GEARDB_RETURN_IF_ERROR(CheckEnd(layout, options.end));
  if (options.end == End::kSkip) {
    return Status::InvalidArgument("table '", layout.spec().name,
                                   "': skip is for AppendLanes; leave out the call instead");
  }
  GEARDB_RETURN_IF_ERROR(impl->CheckPriorities(options.priorities));
  LaneRows call{.lane = options.lane, .end = options.end};
  GEARDB_ASSIGN_OR_RETURN(Bases bases,
                          BindStepColumns(layout, rows, Wanted::kAllStepColumns, &outer));
  call.columns = std::move(bases.at);
  call.rows = static_cast<uint64_t>(outer.dims.elements());
  Outer single;
  Bases final;
  if (NeedsFinal(layout, options.end)) {
    GEARDB_ASSIGN_OR_RETURN(final,
                            BindStepColumns(layout, options.final, Wanted::kFinalColumns, &single));
    call.final_columns = std::move(final.at);
  } else if (!options.final.empty()) {
    return Status::InvalidArgument("table '", layout.spec().name,
                                   "': a final row is given, but the call does not end with "
                                   "terminated or truncated in a table with final_row");
  }
  GEARDB_ASSIGN_OR_RETURN(const Bases trajectory,
                          BindTrajectoryColumns(layout, options.trajectory, &single));
  AddRagged(impl, bases, 0, final, &call);
  AddTrajectory(layout, trajectory, 0, &call);
  const bool nothing_left = layout.spec().final_row && !layout.spec().stream &&
                            options.end == End::kCut && impl->lane(options.lane).id == 0 &&
                            call.rows == 1;
  BoundAppend bound;
  (nothing_left ? bound.nothing : bound.calls).push_back(std::move(call));
  return bound;
}

}  // namespace

Status CheckLane(Writer::Impl* impl, uint32_t lane) {
  GEARDB_RETURN_IF_ERROR(impl->CheckProcess());
  if (lane < impl->options().lanes) return Status::Ok();
  return Status::InvalidArgument("table '", impl->layout().spec().name, "': lane ", lane,
                                 " of a writer with ", impl->options().lanes, " lanes");
}

Result<BoundAppend> BindAppend(Writer::Impl* impl, AppendKind kind, ColumnValues rows,
                               const AppendOptions& options) {
  const TableLayout& layout = impl->layout();
  if (kind == AppendKind::kOneRow) return BindLane(impl, rows, Outer{}, options);
  if (kind == AppendKind::kTrajectory) {
    GEARDB_RETURN_IF_ERROR(CheckLane(impl, options.lane));
    if (options.end == End::kGo) {
      return Status::InvalidArgument("table '", layout.spec().name,
                                     "': a whole trajectory must end; its end is go");
    }
    Lane& lane = impl->lane(options.lane);
    impl->ForgetRemoved(&lane);
    const bool busy = layout.spec().stream ? !lane.episode_ended : lane.id != 0;
    if (busy) {
      return Status::FailedPrecondition("table '", layout.spec().name, "': lane ", options.lane,
                                        " has ", layout.spec().stream ? "an episode of " : "",
                                        "trajectory ", lane.id, " open");
    }
  }
  return BindLane(impl, rows, Outer{Shape({1}), true}, options);
}

Result<BoundAppend> BindAppendLanes(Writer::Impl* impl, ColumnValues rows,
                                    const AppendLanesOptions& options) {
  const TableLayout& layout = impl->layout();
  const uint32_t lanes = impl->options().lanes;
  GEARDB_RETURN_IF_ERROR(impl->CheckProcess());
  if (!options.ends.empty() && options.ends.size() != lanes) {
    return Status::InvalidArgument("table '", layout.spec().name, "': ", options.ends.size(),
                                   " ends for ", lanes, " lanes");
  }
  bool any_final = false;
  for (const End end : options.ends) {
    GEARDB_RETURN_IF_ERROR(CheckEnd(layout, end));
    any_final |= NeedsFinal(layout, end);
  }
  GEARDB_RETURN_IF_ERROR(impl->CheckPriorities(options.priorities));
  Outer outer{Shape({lanes}), false};
  GEARDB_ASSIGN_OR_RETURN(const Bases bases,
                          BindStepColumns(layout, rows, Wanted::kAllStepColumns, &outer));
  Bases final_bases;
  if (any_final) {
    GEARDB_ASSIGN_OR_RETURN(final_bases,
                            BindStepColumns(layout, options.final, Wanted::kFinalColumns, &outer));
  } else if (!options.final.empty() && !layout.spec().final_row) {
    return Status::InvalidArgument("table '", layout.spec().name,
                                   "': final rows are given, but the table has no final_row");
  }
  GEARDB_ASSIGN_OR_RETURN(const Bases trajectory_bases,
                          BindTrajectoryColumns(layout, options.trajectory, &outer));

  BoundAppend bound;
  bound.calls.reserve(lanes);
  for (uint32_t i = 0; i < lanes; ++i) {
    const End end = options.ends.empty() ? End::kGo : options.ends[i];
    if (end == End::kSkip) continue;
    const bool nothing_left = layout.spec().final_row && !layout.spec().stream &&
                              end == End::kCut && impl->lane(i).id == 0;
    LaneRows call{.lane = i, .rows = 1, .end = end};
    call.columns.resize(bases.at.size());
    if (NeedsFinal(layout, end)) call.final_columns.resize(bases.at.size(), nullptr);
    for (size_t c = 0; c < bases.at.size(); ++c) {
      if (!bases.given(c) || bases.values.count(c) > 0) continue;  // Late; or ragged.
      const uint64_t row_bytes = layout.step_columns()[c].row_bytes;
      call.columns[c] = bases.at[c] + i * row_bytes;
      if (!call.final_columns.empty() && final_bases.given(c)) {
        call.final_columns[c] = final_bases.at[c] + i * row_bytes;
      }
    }
    AddRagged(impl, bases, i, final_bases, &call);
    AddTrajectory(layout, trajectory_bases, i, &call);
    (nothing_left ? bound.nothing : bound.calls).push_back(std::move(call));
  }
  return bound;
}

}  // namespace geardb::engine
