#include "engine/internal/table_layout.h"

namespace geardb::engine {

TableLayout::TableLayout(TableSpec spec, TableId id) : spec_(std::move(spec)), id_(id) {
  std::vector<uint64_t> row_bytes;
  for (const Column& column : spec_.columns) {
    const uint64_t bytes =
        static_cast<uint64_t>(column.shape.elements()) * DTypeBytes(column.dtype);
    if (column.kind == ColumnKind::kPerTrajectory) {
      trajectory_columns_.push_back(
          TrajectoryColumn{column.name, column.dtype, column.shape, static_cast<uint32_t>(bytes)});
      continue;
    }
    step_columns_.push_back(
        StepColumn{column.name, column.dtype, column.shape, bytes, column.in_final_row});
    final_column_count_ += column.in_final_row ? 1 : 0;
    row_bytes.push_back(bytes);
  }
  if (spec_.stream) {
    flags_column_ = row_bytes.size();
    row_bytes.push_back(1);
  }
  spec_.steps_per_page = ChooseStepsPerPage(spec_);
  pages_ = PageLayout(row_bytes, spec_.steps_per_page);
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
