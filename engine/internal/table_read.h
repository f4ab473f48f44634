// Reading a table without drawing: records, rows by range, any rows.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/internal/core.h"
#include "engine/table.h"

namespace geardb::engine {

/// The public record of a trajectory. The state's mutex is held.
TrajectoryRecord DescribeTrajectory(const TableState& state, const index::TrajectoryRecord& record);

/// See Table::Read.
Result<std::vector<ColumnRows>> ReadRows(DatabaseCore* database, const TableCore& table,
                                         TrajectoryId id, std::span<const std::string_view> columns,
                                         const RowRange& range);

/// The values of a ragged column, by its number, in all steps of a trajectory, one behind the
/// other; of one that has left, none. NotFound where the column was dropped.
Result<ColumnRows> ReadStepValues(DatabaseCore* database, const TableCore& table, TrajectoryId id,
                                  size_t number);

/// See Table::Gather.
Result<std::vector<ColumnRows>> GatherRows(DatabaseCore* database, const TableCore& table,
                                           std::span<const GatherColumn> columns);

}  // namespace geardb::engine
