#include "engine/internal/set_filter.h"

#include <set>
#include <vector>

#include "engine/internal/change_scope.h"
#include "engine/internal/set_priorities.h"
#include "engine/internal/table_change.h"

namespace geardb::engine {
namespace {

/// Those of the trajectories that are still to be removed.
FinishedByCause StillFinished(const TableState& state,
                              const std::vector<SlotOfTrajectory>& finished)
    GEARDB_REQUIRES(state.mutex) {
  FinishedByCause ids;
  std::set<TrajectoryId> seen;
  for (const SlotOfTrajectory& found : finished) {
    const index::TrajectoryRecord& record = state.trajectories().record(found.slot);
    const bool there =
        record.generation == found.generation && record.state == index::TrajectoryState::kClosed;
    if (!there || !state.IsFinished(found.slot) || !seen.insert(record.id).second) continue;
    ids[state.CauseOfFinished(found.slot)].push_back(record.id);
  }
  return ids;
}

void RemoveWhatIsFinished(DatabaseCore* database, const std::shared_ptr<TableCore>& table,
                          Deadline deadline) {
  std::vector<SlotOfTrajectory> finished;
  {
    MutexLock lock(&table->state->mutex);
    finished = table->state->TakeFinished();
  }
  if (finished.empty()) return;
  const Status status = RemoveAllOf(
      database, table,
      [&](const TableState& state)
          GEARDB_REQUIRES(state.mutex) { return StillFinished(state, finished); },
      deadline);
  if (status.ok()) return;
  MutexLock lock(&table->state->mutex);
  table->state->PutBackFinished(std::move(finished));
  LeaveFollowUp(database, table.get(), Deadline::AfterMs(kFollowUpAgainMs));
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
  if (database.timekeeper != nullptr) {
    GEARDB_RETURN_IF_ERROR(database.timekeeper->Watch(
        {.name = impl->table->layout().spec().name, .priority_tables = {spec}}));
  }
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

void LeaveFollowUp(DatabaseCore* database, TableCore* table, Deadline at) {
  table->follow_up_due.store(true);
  if (database != nullptr && database->timekeeper != nullptr) database->timekeeper->FollowUpAt(at);
}

void FollowUp(DatabaseCore* database, const std::shared_ptr<TableCore>& table) {
  table->follow_up_due.store(false);
  RescaleWhereDue(database, table);
  RemoveWhatIsFinished(database, table, Deadline::AfterMs(kAdmissionMs));
}

void RemoveFinishedNow(DatabaseCore* database, const std::shared_ptr<TableCore>& table) {
  RemoveWhatIsFinished(database, table, Deadline::Now());
}

}  // namespace geardb::engine
