// What the numbers of a step mean: kinds of tables, priority tables, limits, and bytes of rows.
// Database and model are given the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/options.h"
#include "engine/sampler.h"
#include "engine/schema.h"
#include "tests/differential/program.h"

namespace geardb::differential {

using Bytes = std::vector<std::byte>;

/// The lanes of a table's two writers; at most so many trajectories are open in a table.
inline constexpr uint32_t kLanesOfWriter[] = {1, 3};
inline constexpr uint32_t kLanes = 4;
/// Rows of one call on a lane.
inline constexpr uint64_t kRowsMax = 6;
/// Pages that any call fits, one row each, with a final row and the page that it begins in.
inline constexpr uint64_t kPagesOfCall = kRowsMax + 2;

/// Its values have any number of rows.
constexpr bool AnyLength(const Column& column) {
  return column.kind == ColumnKind::kRagged || column.kind == ColumnKind::kBlob;
}
/// Some value of a column: the same for the same seed. What is read as a priority is one.
Bytes RowOf(const Column& column, uint64_t seed);
/// The number in every element; of values of any length none.
Bytes RowOfNumber(const Column& column, double number);
/// A row of defaults.
inline Bytes DefaultRow(const Column& column) { return RowOfNumber(column, column.default_value); }
/// An element as View::to_f32 and NStep read it.
float NumberAt(DType dtype, const std::byte* element);
/// Multiples of 1/4, so that α = 1 makes exact weights; sometimes 0.
float PriorityOf(uint64_t seed);

/// How a store is opened, always so: with a log of a few segments. Nothing runs by itself.
DatabaseOptions OptionsKind(uint64_t kind);
/// Of every kind there is: final rows, streams, column groups (late, volatile), rows so wide that
/// they fill the budgets, capacities with all removers, times.
TableSpec TableKind(const std::string& name, uint64_t kind);
/// Of any edge rules; those of streams may cross ends.
WindowRule WindowKind(bool stream, Choices* choices);
/// Over a table of that kind: all items, selectors, edge rules, initial priorities, requirements,
/// limits and filters.
PriorityTableSpec PriorityTableKind(const std::string& name, const TableSpec& table, uint64_t kind);
/// Rows of a view inside of what the rule promises: all of the length part, a list, or a range that
/// may go backwards.
ViewRows RowsKind(const PriorityTableSpec& rule, Choices* choices);
/// Limits that suit the selector.
PriorityLimits LimitsKind(const PriorityTableSpec& spec, bool bounded_table, Choices* choices);
/// Something may have to leave it, or wait.
bool IsBounded(const TableSpec& spec);
/// The text of a filter, "" for none.
std::string FilterKind(Choices* choices, bool standing);

}  // namespace geardb::differential
