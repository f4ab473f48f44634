#include "engine/internal/table_layout.h"

#include <algorithm>
#include <cstring>

#include "kernels/convert.h"

namespace geardb::engine {

void FillElements(DType dtype, uint64_t bits, std::span<std::byte> into) {
  const size_t bytes = DTypeBytes(dtype);
  for (size_t at = 0; at < into.size(); at += bytes) std::memcpy(into.data() + at, &bits, bytes);
}

TableLayout::TableLayout(TableSpec spec, TableId id) : spec_(std::move(spec)), id_(id) {
  spec_.steps_per_page = ChooseStepsPerPage(spec_);
  groups_.emplace_back();
  for (const ColumnGroup& group : spec_.groups) {
    groups_.push_back({.name = group.name, .late = group.late, .is_volatile = group.is_volatile});
  }
  std::vector<std::vector<uint64_t>> row_bytes(groups_.size());
  for (const Column& column : spec_.columns) {
    const uint64_t bytes =
        static_cast<uint64_t>(column.shape.elements()) * DTypeBytes(column.dtype);
    const uint64_t default_bits = ElementBits(column.dtype, column.default_value);
    if (column.kind == ColumnKind::kPerTrajectory) {
      trajectory_columns_.push_back(TrajectoryColumn{column.name, column.dtype, column.shape,
                                                     static_cast<uint32_t>(bytes), default_bits});
      unset_trajectory_.resize(unset_trajectory_.size() + bytes);
      FillElements(column.dtype, default_bits, std::span(unset_trajectory_).last(bytes));
      continue;
    }
    const auto group = static_cast<uint32_t>(
        std::find_if(groups_.begin(), groups_.end(),
                     [&](const GroupLayout& known) { return known.name == column.group; }) -
        groups_.begin());
    groups_[group].columns.push_back(step_columns_.size());
    step_columns_.push_back({.name = column.name,
                             .dtype = column.dtype,
                             .shape = column.shape,
                             .row_bytes = bytes,
                             .in_final_row = column.in_final_row,
                             .group = group,
                             .place = static_cast<uint32_t>(row_bytes[group].size()),
                             .default_bits = default_bits});
    final_column_count_ += column.in_final_row ? 1 : 0;
    row_bytes[group].push_back(bytes);
  }
  if (spec_.stream) {
    flags_column_ = row_bytes[0].size();
    row_bytes[0].push_back(1);
  }
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    groups_[g].pages = PageLayout(row_bytes[g], spec_.steps_per_page);
    const uint64_t step_bytes = groups_[g].pages.bytes_per_step();
    page_bytes_ += groups_[g].pages.frame_bytes();
    bytes_per_step_ += step_bytes;
    piece_bytes_max_ = std::max(piece_bytes_max_, step_bytes * spec_.steps_per_page);
    if (groups_[g].late) continue;
    appended_groups_.push_back(g);
    if (groups_[g].logged()) logged_groups_.push_back(g);
  }
}

std::optional<size_t> TableLayout::FindStepColumn(std::string_view name) const {
  for (size_t i = 0; i < step_columns_.size(); ++i) {
    if (step_columns_[i].name == name) return i;
  }
  return std::nullopt;
}

std::optional<size_t> TableLayout::FindTrajectoryColumn(std::string_view name) const {
  for (size_t i = 0; i < trajectory_columns_.size(); ++i) {
    if (trajectory_columns_[i].name == name) return i;
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

}  // namespace geardb::engine
