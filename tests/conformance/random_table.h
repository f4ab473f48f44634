// Random tables: their columns, capacities and priority tables, and what the model is told of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/schema.h"
#include "tests/conformance/capacity_model.h"
#include "tests/conformance/random_choice.h"
#include "tests/conformance/window_model.h"

namespace geardb::conformance {

/// A table's spec, and its per-step and per-trajectory columns by their places in the spec.
struct RandomTable {
  TableSpec spec;
  std::vector<size_t> step_columns;
  std::vector<size_t> trajectory_columns;

  const Column& step_column(size_t i) const { return spec.columns[step_columns[i]]; }
  const Column& trajectory_column(size_t i) const { return spec.columns[trajectory_columns[i]]; }
  /// Index among the per-step (or per-trajectory) columns; these names always exist: "obs",
  /// "reward" (any number), "discount" (f32), "life" (bool or u8), "goal", "first_priority" (f32).
  size_t StepColumn(std::string_view name) const;
  size_t TrajectoryColumn(std::string_view name) const;
  /// Writers do not give it.
  bool IsLate(const Column& column) const;
};

RandomTable MakeRandomTable(RandomChoice* choice);
/// One with a priority table for every pair of edge rules, all over small windows.
RandomTable MakeTableOfAllRules(RandomChoice* choice);

/// One line for the trace of a failure.
std::string DescribeTable(const RandomTable& table);
std::string DescribePriorityTable(const PriorityTableSpec& spec);

/// The same things in the model's words.
ModelTable ModelTableOf(const RandomTable& table);
ModelCapacity ModelCapacityOf(const RandomTable& table);
ModelRule ModelRuleOf(const PriorityTableSpec& spec);

/// Random elements of a column's row: any bits for integers; numbers for floats, no NaN.
Bytes RandomRow(const Column& column, RandomChoice* choice);

/// A row that nobody wrote.
Bytes DefaultRow(const Column& column);

size_t RowBytesOf(const Column& column);

}  // namespace geardb::conformance
