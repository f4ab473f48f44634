// Changes to a table that come from outside of writers and samplers.
#pragma once

#include <memory>
#include <span>

#include "engine/internal/core.h"
#include "engine/table.h"

namespace geardb::engine {

/// See Table::Remove, Table::Truncate, Table::SetColumns, Table::CreatePriorityTable.
Status RemoveTrajectories(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                          std::span<const TrajectoryId> ids);
Status TruncateTrajectory(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                          const RowId& first);
Status SetTrajectoryColumns(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                            TrajectoryId id, ColumnValues values);
Status CreatePriorityTable(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                           const PriorityTableSpec& spec);

}  // namespace geardb::engine
