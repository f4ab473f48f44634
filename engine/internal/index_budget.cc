#include "engine/internal/index_budget.h"

#include <memory>
#include <string>
#include <vector>

#include "base/concatenate.h"
#include "base/epoch.h"
#include "engine/internal/activity.h"
#include "wal/manifest.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kStepBytes = uint64_t{1} << 20;
constexpr uint64_t kBudgetBytesMax = uint64_t{1} << 44;
constexpr uint64_t kArenaBytes = uint64_t{2} << 20;  // Nothing is put there.

struct EmptyTable {
  std::unique_ptr<TableState> state;
  std::unique_ptr<TablePlan> plan;
};

Result<EmptyTable> Make(const TableState::Memory& memory, TableSpec spec) {
  const std::vector<PriorityTableSpec> priorities = std::move(spec.priority_tables);
  spec.priority_tables.clear();
  EmptyTable table;
  GEARDB_ASSIGN_OR_RETURN(table.state, TableState::Create(memory, spec, 1));
  GEARDB_ASSIGN_OR_RETURN(table.plan, TablePlan::Create(memory.index, table.state.get()));
  {
    MutexLock lock(&table.state->mutex);
    for (const PriorityTableSpec& priority : priorities) {
      GEARDB_RETURN_IF_ERROR(table.state->AddPriorityTable(priority));
    }
  }
  GEARDB_RETURN_IF_ERROR(table.plan->TakeOver(/*created=*/true));
  return table;
}

bool Fits(std::span<const TableSpec> tables, HostArena* arena, uint64_t used_bytes,
          uint64_t budget_bytes) {
  auto memory = index::IndexMemory::Create({.budget_bytes = budget_bytes});
  if (!memory.ok()) return false;
  std::vector<EmptyTable> made;
  for (const TableSpec& spec : tables) {
    auto table = Make({.index = memory->get(), .arena = arena}, spec);
    if (!table.ok()) return false;
    made.push_back(std::move(*table));
  }
  return used_bytes + (*memory)->used_bytes() <= budget_bytes;
}

}  // namespace

bool IsOfIndexBudget(const Status& refused) {
  return refused.code() == StatusCode::kResourceExhausted &&
         refused.message().find(kIndexBudgetName) != std::string_view::npos;
}

Status TryWhileTablesLeave(DatabaseCore* core, Deadline deadline,
                           const std::function<Status()>& attempt) {
  for (;;) {
    const bool leaving = core->HasLeaving();
    const Status status = attempt();
    if (!IsOfIndexBudget(status) || !leaving || deadline.passed()) return status;
    core->AwaitLeaving();
  }
}

Status NameIndexBudget(const Status& refused, const DatabaseCore& core, const TableSpec& wanted) {
  if (!IsOfIndexBudget(refused)) return refused;
  EpochRegistry epochs;
  GEARDB_ASSIGN_OR_RETURN(const auto arena,
                          HostArena::Create({.budget_bytes = kArenaBytes}, &epochs));
  std::vector<TableSpec> tables = {wanted};
  for (const auto& table : core.UserTables()) {
    if (table->layout().spec().name == wanted.name) continue;
    MutexLock lock(&table->state->mutex);
    tables.push_back(table->state->WholeSpec());
  }
  const uint64_t budget = core.index_memory->budget_bytes();
  const uint64_t used = core.index_memory->used_bytes();
  uint64_t enough = AlignUp(budget + 1, kStepBytes);
  while (enough <= kBudgetBytesMax && !Fits(tables, arena.get(), used, enough)) enough *= 2;
  const std::string what = Concatenate("table '", wanted.name, "' with ",
                                       wanted.priority_tables.size(), " priority tables");
  if (enough > kBudgetBytesMax) {
    return Status::ResourceExhausted(what, " does not fit beside the ", tables.size() - 1,
                                     " tables that there are, whatever budgets.index_bytes is: ",
                                     "drop some, or use another database");
  }
  return Status::ResourceExhausted(what, " does not fit budgets.index_bytes = ", budget,
                                   ", of which ", used, " are used: raise it to ", enough);
}

Status NameIndexBudget(const Status& refused, Env* env, const std::string& directory,
                       uint64_t budget_bytes) {
  if (!IsOfIndexBudget(refused) || budget_bytes > kBudgetBytesMax) return refused;
  const auto manifest = wal::ReadManifest(env, directory);
  if (!manifest.ok()) return refused;
  const DatabaseActivity last = ReadActivity(env, directory, manifest->Seed());
  const uint64_t used = last.stats.index.used_bytes;
  if (last.known && used > budget_bytes) {
    return Status::ResourceExhausted("database '", directory,
                                     "' does not fit budgets.index_bytes = ", budget_bytes,
                                     ": by the numbers that it wrote last, it used ", used,
                                     ": raise it to ", AlignUp(used + 1, kStepBytes), " at least");
  }
  const std::string known =
      last.known ? Concatenate(", though by the numbers that it wrote last it used ", used)
                 : ", and what it used is not known";
  return Status::ResourceExhausted("database '", directory,
                                   "' does not fit budgets.index_bytes = ", budget_bytes, known,
                                   ": raise it to ", 2 * budget_bytes, ", say");
}

}  // namespace geardb::engine
