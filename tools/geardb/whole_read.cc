#include "tools/geardb/whole_read.h"

#include <algorithm>
#include <string_view>

namespace geardb::cli {
namespace {

constexpr int64_t kRowsAtOnce = 1024;

}  // namespace

WholeRead::WholeRead(Table* table) : table_(table) {
  const TableSpec spec = table->spec();
  for (const auto& column : spec.columns) {
    auto& names = IsPerStep(column.kind) ? of_steps_ : of_trajectories_;
    names.push_back(column.name);
  }
}

Status WholeRead::Read(const TrajectoryRecord& trajectory) const {
  const std::vector<std::string_view> of_steps(of_steps_.begin(), of_steps_.end());
  for (int64_t row = trajectory.first_row; row < trajectory.rows_end && !of_steps.empty();
       row += kRowsAtOnce) {
    const RowRange range{.begin = row, .end = std::min(row + kRowsAtOnce, trajectory.rows_end)};
    GEARDB_RETURN_IF_ERROR(table_->Read(trajectory.id, of_steps, range).status());
  }
  // One by one: each may be large.
  for (const std::string_view column : of_trajectories_) {
    GEARDB_RETURN_IF_ERROR(table_->Read(trajectory.id, std::span(&column, 1), {}).status());
  }
  return Status::Ok();
}

}  // namespace geardb::cli
