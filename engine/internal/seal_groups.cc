#include "engine/internal/seal_groups.h"

#include <algorithm>

#include "engine/internal/change_scope.h"
#include "engine/internal/group_draw.h"
#include "engine/internal/set_priorities.h"

namespace geardb::engine {
namespace {

/// Logs it; what it came to when it is published.
Result<SealOutcome> LogSeal(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                            uint32_t priority_table, std::span<const fb::Handed> groups,
                            bool by_deadline) {
  TableState& state = *table->state;
  SealOutcome outcome;
  FunctionChange change(nullptr);
  change.set_apply([&](Lsn, Lsn end) {
    ApplyLock lock(&state, end);
    outcome = state.Apply(*change.operation()->change_as_SealGroups(), priority_table);
    state.changed.NotifyAll();
  });
  const auto stored = change.body.CreateVectorOfStructs(groups.data(), groups.size());
  change.FinishBody({.table = table->layout().id(), .priority_table = priority_table},
                    fb::Change::SealGroups,
                    fb::CreateSealGroups(change.body, stored, by_deadline).Union());
  // An append that would have completed one of them begins another, and needs no place.
  GEARDB_ASSIGN_OR_RETURN(
      const Lsn end,
      database->Commit(table.get(), &change,
                       {.deadline = Deadline::AfterMs(kAdmissionMs), .makes_room = true}));
  GEARDB_RETURN_IF_ERROR(database->Acknowledge(end, Ack::kLog));
  RescaleIfDue(database, table, priority_table);
  return outcome;
}

Status CheckGroups(const DatabaseCore& database, const TableCore& table, uint32_t priority_table) {
  GEARDB_RETURN_IF_ERROR(database.CheckWritable());
  GEARDB_RETURN_IF_ERROR(database.CheckTable(table));
  MutexLock lock(&table.state->mutex);
  const PriorityTableSpec& spec = table.state->priority(priority_table).spec();
  if (spec.item == ItemKind::kGroup) return Status::Ok();
  return Status::InvalidArgument("priority table '", spec.name, "' of table '",
                                 table.layout().spec().name, "' has no groups to seal: its items ",
                                 "are ", ItemKindName(spec.item), "s");
}

}  // namespace

Status SealGroup(PriorityTable::Impl* impl, int64_t key) {
  DatabaseCore* const database = impl->database.get();
  const TableState& state = *impl->table->state;
  GEARDB_RETURN_IF_ERROR(CheckGroups(*database, *impl->table, impl->number));
  // It may have come by an append whose record is still being filled.
  GEARDB_RETURN_IF_ERROR(database->CatchUp());
  const Status none = Status::NotFound("priority table '", impl->spec.name, "' of table '",
                                       impl->table->layout().spec().name, "' has no group of key ",
                                       key, " that takes members");
  fb::Handed group;
  {
    MutexLock lock(&state.mutex);
    const DrawGroups& groups = *impl->state().groups();
    const uint64_t number = groups.FindTaking(key);
    if (number == DrawGroups::kNoGroup || IsUndrawable(impl->state(), number)) return none;
    group = fb::Handed(number, groups.GenerationOf(number));
  }
  GEARDB_ASSIGN_OR_RETURN(const SealOutcome outcome,
                          LogSeal(database, impl->table, impl->number, {&group, 1}, false));
  return outcome.sealed > 0 ? Status::Ok() : none;
}

Result<uint64_t> SealOverdueGroups(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                                   uint32_t priority_table, const GoesOn& goes_on) {
  GEARDB_RETURN_IF_ERROR(CheckGroups(*database, *table, priority_table));
  const uint64_t groups_max = (database->log->record_bytes_max() - 2048) / sizeof(fb::Handed);
  std::vector<fb::Handed> overdue;
  {
    MutexLock lock(&table->state->mutex);
    const DrawGroups& groups = *table->state->priority(priority_table).groups();
    const int64_t deadline_ms = groups.spec().deadline_ms;
    if (deadline_ms == 0) return uint64_t{0};
    const int64_t until_us = database->clock->SteadyTimeUs() - deadline_ms * 1000;
    groups.ForEachTaking([&](uint64_t group) {
      const int64_t since_us = std::max(groups.FirstUs(group), database->opened_us);
      if (since_us > until_us || groups.CountOf(group) < groups.at_least()) return;
      overdue.emplace_back(group, groups.GenerationOf(group));
    });
  }
  // They become ready in the order in which they began, whatever order they were found in.
  std::sort(overdue.begin(), overdue.end(), [](const fb::Handed& a, const fb::Handed& b) {
    return a.generation() < b.generation();
  });
  uint64_t sealed = 0;
  for (size_t begin = 0; begin < overdue.size() && goes_on(); begin += groups_max) {
    const size_t count = std::min<size_t>(groups_max, overdue.size() - begin);
    GEARDB_ASSIGN_OR_RETURN(
        const SealOutcome outcome,
        LogSeal(database, table, priority_table, std::span(overdue).subspan(begin, count), true));
    sealed += outcome.sealed;
  }
  return sealed;
}

}  // namespace geardb::engine
