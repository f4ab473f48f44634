// Database::CreateTable. Each call is one record.
#pragma once

#include <memory>

#include "engine/internal/core.h"

namespace geardb::engine {

/// See Database::CreateTable.
Result<std::shared_ptr<TableCore>> CreateTable(DatabaseCore* database, const TableSpec& spec);

}  // namespace geardb::engine
