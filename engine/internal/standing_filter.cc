#include "engine/internal/standing_filter.h"

#include <utility>

#include "base/check.h"
#include "engine/filter.h"
#include "engine/internal/filter_bind.h"
#include "engine/internal/filter_expression.h"
#include "engine/internal/stored_schema.h"

namespace geardb::engine {
namespace {

bool AsksTimesSampled(const FilterExpression& expression) {
  if (expression.operand.field == FilterField::kTimesSampled) return true;
  for (const FilterExpression& child : expression.children) {
    if (AsksTimesSampled(child)) return true;
  }
  return false;
}

void AddColumns(const FilterExpression& expression, std::vector<std::string>* names) {
  if (!expression.operand.column.empty()) names->push_back(expression.operand.column);
  for (const FilterExpression& child : expression.children) AddColumns(child, names);
}

}  // namespace

bool SameButFilter(const PriorityTableSpec& a, PriorityTableSpec b) {
  b.filter = a.filter;
  b.filter_action = a.filter_action;
  return a == b;
}

std::vector<std::string> ColumnsOfFilter(const std::string& text) {
  std::vector<std::string> names;
  if (!text.empty()) AddColumns(Filter::Parse(text).value().impl().expression, &names);
  return names;
}

Status CheckStandingFilter(const PriorityTableSpec& spec, const TableLayout& layout) {
  const std::string where = "the filter of priority table '" + spec.name + "'";
  if (spec.filter_action > kFilterActionLast) {
    return Status::InvalidArgument(where, " has an unknown action");
  }
  if (spec.filter.empty()) return Status::Ok();
  if (spec.filter.size() > kFilterTextMax) {
    return Status::InvalidArgument(where, " has ", spec.filter.size(),
                                   " characters; expected at most ", kFilterTextMax);
  }
  if (spec.selector == SelectorKind::kEpoch) {
    return Status::InvalidArgument(where, ": epochs take none");
  }
  const Result<Filter> filter = Filter::Parse(spec.filter);
  if (!filter.ok()) return filter.status().WithContext(where);
  if (AsksTimesSampled(filter->impl().expression)) {
    return Status::InvalidArgument(
        where, " names times_sampled, which changes with every batch: see max_times_sampled");
  }
  return CheckFilter(*filter, layout).WithContext(where);
}

Result<std::unique_ptr<StandingFilter>> StandingFilter::Create(index::IndexMemory* memory,
                                                               std::string_view name,
                                                               const Capacity& capacity) {
  std::unique_ptr<StandingFilter> filter(new StandingFilter);
  const std::string of = std::string(name) + " standing filter, ";
  GEARDB_ASSIGN_OR_RETURN(filter->failing_,
                          index::LeafSet::Create(memory, of + "trajectories", capacity.slots));
  GEARDB_ASSIGN_OR_RETURN(filter->filtered_,
                          index::LeafSet::Create(memory, of + "items", capacity.leaves));
  return filter;
}

void StandingFilter::Use(std::string_view text, const TableLayout& layout,
                         const index::TrajectoryIndex& trajectories) {
  program_.reset();
  if (text.empty()) return;
  auto program = BindFilter(Filter::Parse(text).value(), layout, trajectories);
  GEARDB_CHECK(program.ok());
  program_ = std::move(*program);
}

bool StandingFilter::NoteFails(Slot slot, bool fails) {
  if (failing_->Contains(slot) == fails) return false;
  if (fails) {
    failing_->Add(slot);
  } else {
    failing_->Forget({slot, uint64_t{slot} + 1});
  }
  return true;
}

}  // namespace geardb::engine
