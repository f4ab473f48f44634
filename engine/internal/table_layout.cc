#include "engine/internal/table_layout.h"

#include <algorithm>
#include <cstring>

#include "engine/internal/companion.h"
#include "index/trajectory_index.h"
#include "kernels/convert.h"

namespace geardb::engine {

void FillElements(DType dtype, uint64_t bits, std::span<std::byte> into) {
  const size_t bytes = DTypeBytes(dtype);
  for (size_t at = 0; at < into.size(); at += bytes) std::memcpy(into.data() + at, &bits, bytes);
}

TableLayout::TableLayout(TableSpec spec, TableId id)
    : TableLayout(TableHistory(std::move(spec)), 0, id) {}

TableLayout::TableLayout(const TableHistory& history, uint32_t version, TableId id)
    : version_(version), spec_(history.SpecAt(version)), id_(id) {
  groups_.emplace_back();
  for (const GroupHistory& known : history.groups) {
    if (known.added > version) break;
    groups_.push_back({.name = known.group.name,
                       .late = known.group.late,
                       .is_volatile = known.group.is_volatile,
                       .added = known.added > 0,
                       .dropped = true});
  }
  std::vector<std::vector<uint64_t>> row_bytes(groups_.size());
  for (const ColumnHistory& known : history.columns) {
    if (known.added > version) break;
    AddColumn(known, !known.IsThere(version), &row_bytes);
  }
  if (spec_.stream) {
    flags_column_ = row_bytes[0].size();
    row_bytes[0].push_back(1);
  }
  for (uint32_t g = 0; g < groups_.size(); ++g) LayOutGroup(g, row_bytes[g]);
  PlaceColumns(history);
}

size_t TableLayout::AddCompanion(const ColumnHistory& known, size_t number) {
  const Column& column = known.column;
  const auto behind = static_cast<TableId>(id_ + 1 + companions_.size());
  companions_.push_back({.name = column.name,
                         .kind = column.kind,
                         .dtype = column.dtype,
                         .shape = column.shape,
                         .row_bytes = RowBytes(column),
                         .default_bits = ElementBits(column.dtype, column.default_value),
                         .column = number,
                         .spec = CompanionSpec(spec_, column),
                         .id = known.companion != 0 ? known.companion : behind,
                         .dropped = !known.IsThere(version_)});
  return companions_.size() - 1;
}

void TableLayout::AddColumn(const ColumnHistory& known, bool dropped,
                            std::vector<std::vector<uint64_t>>* row_bytes) {
  Column column = known.column;
  std::optional<size_t> companion;
  if (HasCompanion(column)) {
    const bool per_step = IsPerStep(column.kind);
    companion = AddCompanion(known, per_step ? step_columns_.size() : trajectory_columns_.size());
    column.dtype = DType::kU64;
    column.shape = per_step ? Shape({sizeof(RaggedRange) / sizeof(uint64_t)}) : Shape();
    column.default_value = 0;
  }
  const uint64_t bytes = static_cast<uint64_t>(column.shape.elements()) * DTypeBytes(column.dtype);
  const uint64_t default_bits = ElementBits(column.dtype, column.default_value);
  if (!IsPerStep(column.kind)) {
    trajectory_columns_.push_back({.name = column.name,
                                   .dtype = column.dtype,
                                   .shape = column.shape,
                                   .bytes = static_cast<uint32_t>(bytes),
                                   .default_bits = default_bits,
                                   .dropped = dropped,
                                   .companion = companion});
    unset_trajectory_.resize(unset_trajectory_.size() + bytes);
    FillElements(column.dtype, default_bits, std::span(unset_trajectory_).last(bytes));
    return;
  }
  GroupLayout& group = groups_[known.group];
  group.dropped &= dropped;
  group.columns.push_back(step_columns_.size());
  std::vector<uint64_t>& of_group = (*row_bytes)[known.group];
  step_columns_.push_back({.name = column.name,
                           .dtype = column.dtype,
                           .shape = column.shape,
                           .row_bytes = bytes,
                           .in_final_row = column.in_final_row,
                           .group = known.group,
                           .place = static_cast<uint32_t>(of_group.size()),
                           .default_bits = default_bits,
                           .dropped = dropped,
                           .companion = companion});
  final_column_count_ += column.in_final_row && !dropped ? 1 : 0;
  of_group.push_back(bytes);
}

void TableLayout::LayOutGroup(uint32_t number, std::span<const uint64_t> row_bytes) {
  GroupLayout& group = groups_[number];
  group.pages = PageLayout(row_bytes, spec_.steps_per_page);
  if (group.dropped) {
    dropped_groups_.push_back(number);
    return;
  }
  const uint64_t step_bytes = group.pages.bytes_per_step();
  page_bytes_ += group.pages.frame_bytes();
  bytes_per_step_ += step_bytes;
  piece_bytes_max_ = std::max(piece_bytes_max_, step_bytes * spec_.steps_per_page);
  if (group.late) return;
  appended_groups_.push_back(number);
  if (group.logged()) logged_groups_.push_back(number);
}

void TableLayout::PlaceColumns(const TableHistory& history) {
  // In the order of the changes that they came with; of one change, columns before groups.
  std::vector<uint32_t> column_added;
  for (const ColumnHistory& known : history.columns) {
    if (!IsPerStep(known.column.kind)) column_added.push_back(known.added);
  }
  size_t column = 0;
  size_t group = 1;
  while (column < trajectory_columns_.size() || group < groups_.size()) {
    const bool takes_column =
        column < trajectory_columns_.size() &&
        (group == groups_.size() || column_added[column] <= history.groups[group - 1].added);
    if (takes_column) {
      trajectory_columns_[column].place = place_bytes_.size();
      place_bytes_.push_back(trajectory_columns_[column++].bytes);
      continue;
    }
    GroupLayout& of_group = groups_[group++];
    if (!of_group.late) continue;
    of_group.filled_place = place_bytes_.size();
    place_bytes_.push_back(sizeof(uint64_t));
  }
}

std::optional<size_t> TableLayout::FindStepColumn(std::string_view name) const {
  for (size_t i = 0; i < step_columns_.size(); ++i) {
    if (!step_columns_[i].dropped && step_columns_[i].name == name) return i;
  }
  return std::nullopt;
}

std::optional<size_t> TableLayout::FindTrajectoryColumn(std::string_view name) const {
  for (size_t i = 0; i < trajectory_columns_.size(); ++i) {
    if (!trajectory_columns_[i].dropped && trajectory_columns_[i].name == name) return i;
  }
  return std::nullopt;
}

std::optional<uint32_t> TableLayout::FindGroup(std::string_view name) const {
  for (uint32_t g = 1; g < groups_.size(); ++g) {
    if (!groups_[g].dropped && groups_[g].name == name) return g;
  }
  return std::nullopt;
}

Status TableLayout::NoSuchColumn(std::string_view name) const {
  std::string names;
  for (const Column& column : spec_.columns) {
    names += (names.empty() ? "" : ", ") + column.name;
  }
  return Status::NotFound("table '", spec_.name, "' has no column '", name, "'; it has ", names);
}

std::optional<uint32_t> FindRequirableGroup(const TableLayout& layout, std::string_view name) {
  const auto group = layout.FindGroup(name);
  const bool requirable = group && layout.group(*group).late && layout.group(*group).logged();
  return requirable ? group : std::nullopt;
}

Status CheckRequiredNames(const TableSpec& table, const PriorityTableSpec& spec) {
  for (const std::string& name : spec.required) {
    const bool is_group = std::ranges::any_of(
        table.groups, [&](const ColumnGroup& group) { return group.name == name; });
    const bool is_column = std::ranges::any_of(table.columns, [&](const Column& column) {
      return column.name == name && !IsPerStep(column.kind);
    });
    if (!is_group || !is_column) continue;
    return Status::InvalidArgument("table '", table.name, "': priority table '", spec.name,
                                   "' requires '", name,
                                   "', which would be a column group and a per-trajectory column");
  }
  return Status::Ok();
}

Status CheckRequiredNumbers(const TableLayout& layout, const PriorityTableSpec& spec) {
  for (const std::string& name : spec.required) {
    const auto column = layout.FindTrajectoryColumn(name);
    if (FindRequirableGroup(layout, name) || !column || *column < index::kColumnsSetBits) continue;
    return Status::InvalidArgument("priority table '", spec.name, "' requires column '", name,
                                   "', per-trajectory column number ", *column,
                                   ", dropped ones counted; only the first ",
                                   index::kColumnsSetBits, " can be required");
  }
  return Status::Ok();
}

}  // namespace geardb::engine
