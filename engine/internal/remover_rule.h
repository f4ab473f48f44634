// What a table says of its remover: whether it can be, and in words.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/schema.h"

namespace geardb::engine {

class TableState;

/// "fifo" and so on.
std::string_view RemoverName(Remover remover);
/// With what belongs to it: "min_heap by 'per'", "uniform with seed 7".
std::string DescribeRemover(const TableSpec& spec);

/// InvalidArgument for an unknown remover, one by priority that names no priority table, or another
/// that does.
Status ValidateRemover(const TableSpec& spec);
/// InvalidArgument where the priority table that it names is none of the spec's, or has no
/// priorities.
Status CheckRemoverTable(const TableSpec& spec);
/// The number of the priority table that a remover by priority names. Corruption where it is not
/// there: nobody creates such a table. The state's mutex is held.
Result<size_t> FindRemoverTable(const TableState& state);

}  // namespace geardb::engine
