#include "engine/internal/remover_rule.h"

#include <algorithm>

#include "engine/internal/table_state.h"

namespace geardb::engine {

std::string_view RemoverName(Remover remover) {
  constexpr std::string_view kNames[] = {"none", "fifo", "lifo", "uniform", "min_heap", "max_heap"};
  return kNames[static_cast<size_t>(remover)];
}

std::string DescribeRemover(const TableSpec& spec) {
  std::string text(RemoverName(spec.remover));
  if (RemovesByPriority(spec.remover)) text += " by '" + spec.remover_priority_table + "'";
  if (spec.remover == Remover::kUniform || spec.remover_seed != 0) {
    text += " with seed " + std::to_string(spec.remover_seed);
  }
  return text;
}

Status ValidateRemover(const TableSpec& spec) {
  if (spec.remover > kRemoverLast) {
    return Status::InvalidArgument("table '", spec.name, "' has an unknown remover");
  }
  const std::string& named = spec.remover_priority_table;
  if (named.empty() != RemovesByPriority(spec.remover)) return Status::Ok();
  if (named.empty()) {
    return Status::InvalidArgument("table '", spec.name, "' has remover ",
                                   RemoverName(spec.remover),
                                   " and names no remover_priority_table");
  }
  return Status::InvalidArgument("table '", spec.name, "' names remover_priority_table '", named,
                                 "', at which remover ", RemoverName(spec.remover),
                                 " does not look");
}

Status CheckRemoverTable(const TableSpec& spec) {
  if (!RemovesByPriority(spec.remover)) return Status::Ok();
  const auto found = std::find_if(
      spec.priority_tables.begin(), spec.priority_tables.end(),
      [&](const PriorityTableSpec& one) { return one.name == spec.remover_priority_table; });
  if (found == spec.priority_tables.end()) {
    return Status::InvalidArgument("table '", spec.name, "' names remover_priority_table '",
                                   spec.remover_priority_table,
                                   "', which is none of its priority tables");
  }
  if (HasPriorities(found->selector)) return Status::Ok();
  return Status::InvalidArgument("table '", spec.name, "' names remover_priority_table '",
                                 found->name, "', whose selector has no priorities");
}

Result<size_t> FindRemoverTable(const TableState& state) {
  const TableSpec& spec = state.layout().spec();
  for (size_t i = 0; i < state.priority_table_count(); ++i) {
    const PriorityTableSpec& one = state.priority(i).spec();
    if (one.name == spec.remover_priority_table && HasPriorities(one.selector)) return i;
  }
  return Status::Corruption("table '", spec.name, "' is stored with a remover by priority in '",
                            spec.remover_priority_table,
                            "', which is no priority table with priorities");
}

}  // namespace geardb::engine
