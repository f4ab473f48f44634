#include "engine/internal/set_filter.h"

#include <map>
#include <set>
#include <vector>

#include "engine/internal/change_scope.h"
#include "engine/internal/set_priorities.h"
#include "engine/internal/table_change.h"

namespace geardb::engine {
namespace {

/// The priority table whose filter expires a trajectory; their number: none does.
uint32_t FindExpiring(const TableState& state, Slot slot) GEARDB_REQUIRES(state.mutex) {
  uint32_t number = 0;
  while (number < state.priority_table_count() && !state.priority(number).Expires(slot)) ++number;
  return number;
}

/// Those of the trajectories that are still to be removed, by the number of the priority table
/// whose filter expires them; behind all of these what nobody can draw any more.
std::map<uint32_t, std::vector<TrajectoryId>> StillFinished(
    const TableState& state, const std::vector<SlotOfTrajectory>& finished)
    GEARDB_REQUIRES(state.mutex) {
  std::map<uint32_t, std::vector<TrajectoryId>> ids;
  std::set<TrajectoryId> seen;
  for (const SlotOfTrajectory& found : finished) {
    const index::TrajectoryRecord& record = state.trajectories().record(found.slot);
    const bool there =
        record.generation == found.generation && record.state == index::TrajectoryState::kClosed;
    if (!there || !state.IsFinished(found.slot) || !seen.insert(record.id).second) continue;
    ids[FindExpiring(state, found.slot)].push_back(record.id);
  }
  return ids;
}

void RemoveWhatIsFinished(DatabaseCore* database, const std::shared_ptr<TableCore>& table) {
  std::vector<SlotOfTrajectory> finished;
  {
    MutexLock lock(&table->state->mutex);
    finished = table->state->TakeFinished();
  }
  for (bool again = !finished.empty(); again;) {
    again = false;
    std::map<uint32_t, std::vector<TrajectoryId>> ids;
    uint32_t filters_end = 0;
    {
      MutexLock lock(&table->state->mutex);
      ids = StillFinished(*table->state, finished);
      filters_end = static_cast<uint32_t>(table->state->priority_table_count());
    }
    for (const auto& [number, removed] : ids) {
      RemovalCause cause{.reason = RemovalReason::kExhausted};
      if (number < filters_end) {
        cause = {.reason = RemovalReason::kFilter, .priority_table = number};
      }
      const Status status = RemoveMany(database, table, removed, cause);
      if (status.ok()) continue;
      if (status.code() == StatusCode::kNotFound) {  // Somebody else has removed one meanwhile.
        again = true;
        continue;
      }
      MutexLock lock(&table->state->mutex);
      table->state->PutBackFinished(std::move(finished));
      return;
    }
  }
}

}  // namespace

Status SetStandingFilter(PriorityTable::Impl* impl, const std::string& filter,
                         FilterAction action) {
  DatabaseCore& database = *impl->database;
  TableState& state = *impl->table->state;
  GEARDB_RETURN_IF_ERROR(database.CheckWritable());
  GEARDB_RETURN_IF_ERROR(database.CheckTable(*impl->table));
  PriorityTableSpec spec = impl->spec;
  spec.filter = filter;
  spec.filter_action = action;
  FunctionChange change(nullptr);
  change.set_apply([&](Lsn, Lsn end) {
    ApplyLock lock(&state, end);
    state.Apply(*change.operation()->change_as_SetFilter(), impl->number);
    state.changed.NotifyAll();
  });
  const auto stored = filter.empty() ? 0 : change.body.CreateString(filter);
  change.FinishBody({.table = impl->table->layout().id(), .priority_table = impl->number},
                    fb::Change::SetFilter,
                    fb::CreateSetFilter(change.body, stored, static_cast<uint8_t>(action)).Union());
  const wal::RecordSize size = wal::RecordSize::For(change.body_bytes().size(), {});
  wal::Reservation reservation;
  {
    ChangeScope scope(&database, impl->table.get(), {});
    bool waited = false;
    GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&size, 1}, {}, &waited));
    GEARDB_RETURN_IF_ERROR(scope.status());
    // Nobody drops a column that it names from here on.
    GEARDB_RETURN_IF_ERROR(CheckStandingFilter(spec, impl->table->layout()));
    {
      MutexLock lock(&state.mutex);
      GEARDB_RETURN_IF_ERROR(state.PrepareFilter(impl->number));
    }
    reservation = scope.Reserve({.size = size});
  }
  database.Finish(reservation, {}, &change);
  GEARDB_RETURN_IF_ERROR(database.Acknowledge(reservation.end, Ack::kLog));
  FollowUp(&database, impl->table);
  return Status::Ok();
}

void FollowUp(DatabaseCore* database, const std::shared_ptr<TableCore>& table) {
  table->follow_up_due.store(false);
  RescaleWhereDue(database, table);
  RemoveWhatIsFinished(database, table);
}

}  // namespace geardb::engine
