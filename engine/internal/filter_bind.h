// A filter and a table become a program over the table's index memory.
#pragma once

#include <cstddef>
#include <string_view>

#include "engine/internal/filter_expression.h"
#include "engine/internal/table_layout.h"
#include "index/filter.h"
#include "index/trajectory_index.h"

namespace geardb::engine {

/// The program passes the slots of living trajectories that pass the filter; it stays good while
/// the index lives, also when that grows. To run it, the table's mutex is held. NotFound names a
/// column that is not there, InvalidArgument one that is per step or is of another type or shape
/// than the filter takes it for.
Result<index::FilterProgram> BindFilter(const Filter& filter, const TableLayout& layout,
                                        const index::TrajectoryIndex& trajectories);

/// What BindFilter says of a table, apart from what is in it.
Status CheckFilter(const Filter& filter, const TableLayout& layout);

/// Where the values of a per-trajectory column, an element of one or a field are, by slot; errors
/// are those of BindFilter.
Result<index::FilterColumn> BindOperand(const FilterOperand& operand, const TableLayout& layout,
                                        const index::TrajectoryIndex& trajectories);

/// Which element of a row an operand names: InvalidArgument, naming the column, unless it is a
/// scalar and the operand names none, or a vector that has the element.
Result<size_t> ElementOf(const FilterOperand& operand, const TableLayout& layout,
                         const Shape& shape);

}  // namespace geardb::engine
