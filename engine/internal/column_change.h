// Columns that are added to a table, and dropped from it, while it is used: Table::AddColumns and
// Table::DropColumns. Each call is one record.
//
// A change happens between two states of the table: all that has its LSN before is published first
// (so nobody holds what it would have to wait for), and what comes after finds it. Calls that are
// under way meanwhile go on with the columns that they knew: a writer for good, its records say
// which; a patch, since the two wait for one another; readers until they let go of the mutex.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "engine/internal/core.h"
#include "engine/internal/table_history.h"

namespace geardb::engine {

/// See Table::AddColumns and Table::DropColumns.
Status AddColumns(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                  std::span<const Column> columns, std::span<const ColumnGroup> groups);
Status DropColumns(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                   std::span<const std::string_view> names);

/// Makes `come` further companions of the table, and lets those numbered `leave` go; as
/// DatabaseCore::UseCompanions.
void ChangeCompanions(const std::shared_ptr<TableCore>& table,
                      std::span<const std::shared_ptr<TableCore>> come,
                      std::span<const size_t> leave) GEARDB_REQUIRES(table->state->mutex);

/// FailedPrecondition where a priority table needs a column or group that `after` has not any more.
Status CheckDroppable(const TableState& state, const TableHistory& after)
    GEARDB_REQUIRES(state.mutex);

}  // namespace geardb::engine
