#include "engine/internal/column_setting.h"

#include <set>
#include <string>

namespace geardb::engine {

Result<ColumnSetting> BindColumns(const TableLayout& layout, ColumnValues values) {
  const std::string& table = layout.spec().name;
  std::set<size_t> seen;
  ColumnSetting setting;
  for (const ColumnValue& given : values) {
    const auto column = layout.FindTrajectoryColumn(given.column);
    if (!column) {
      if (!layout.FindStepColumn(given.column)) return layout.NoSuchColumn(given.column);
      return Status::InvalidArgument("table '", table, "': column '", given.column,
                                     "' is per step; it cannot be set");
    }
    const TrajectoryColumn& found = layout.trajectory_columns()[*column];
    const CompanionColumn* wide =
        found.companion ? &layout.companions()[*found.companion] : nullptr;
    const auto* value = static_cast<const std::byte*>(given.value.bytes);
    if (wide != nullptr && !wide->fixed()) {
      GEARDB_ASSIGN_OR_RETURN(const ValueRows rows, BindValues(table, *wide, given, {}));
      setting.companions.push_back({*found.companion, rows.rows, rows.total()});
    } else {
      const DType dtype = wide != nullptr ? wide->dtype : found.dtype;
      const Shape& shape = wide != nullptr ? wide->shape : found.shape;
      if (given.value.dtype != dtype || !(given.value.shape == shape)) {
        return Status::InvalidArgument("table '", table, "': column '", found.name, "' takes ",
                                       DTypeName(dtype), shape.ToString(), ", not ",
                                       DTypeName(given.value.dtype), given.value.shape.ToString());
      }
      if (value == nullptr) {
        return Status::InvalidArgument("table '", table, "': column '", found.name,
                                       "' has no bytes");
      }
      if (wide != nullptr) setting.companions.push_back({*found.companion, value, 1});
    }
    if (!seen.insert(*column).second) {
      return Status::InvalidArgument("table '", table, "': column '", found.name,
                                     "' is given twice");
    }
    if (wide != nullptr) {
      setting.counts.push_back(setting.companions.back().count);
      value = reinterpret_cast<const std::byte*>(&setting.counts.back());
    }
    setting.columns.push_back(*column);
    setting.values.push_back(value);
  }
  return setting;
}

}  // namespace geardb::engine
