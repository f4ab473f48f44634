#include "engine/internal/set_filter.h"

#include <map>
#include <vector>

#include "engine/internal/change_scope.h"
#include "engine/internal/set_priorities.h"
#include "engine/internal/table_change.h"

namespace geardb::engine {
namespace {

/// Those of the trajectories that are still to be removed, by the priority table that says so.
std::map<uint32_t, std::vector<TrajectoryId>> StillExpired(
    const TableState& state, const std::vector<SlotOfTrajectory>& expired) {
  std::map<uint32_t, std::vector<TrajectoryId>> ids;
  for (const SlotOfTrajectory& found : expired) {
    const index::TrajectoryRecord& record = state.trajectories().record(found.slot);
    const bool there =
        record.generation == found.generation && record.state == index::TrajectoryState::kClosed;
    for (uint32_t i = 0; there && i < state.priority_table_count(); ++i) {
      if (!state.priority(i).Expires(found.slot)) continue;
      ids[i].push_back(record.id);
      break;
    }
  }
  return ids;
}

void RemoveWhatFails(DatabaseCore* database, const std::shared_ptr<TableCore>& table) {
  std::vector<SlotOfTrajectory> expired;
  {
    MutexLock lock(&table->state->mutex);
    expired = table->state->TakeExpired();
  }
  for (bool again = !expired.empty(); again;) {
    again = false;
    std::map<uint32_t, std::vector<TrajectoryId>> ids;
    {
      MutexLock lock(&table->state->mutex);
      ids = StillExpired(*table->state, expired);
    }
    for (const auto& [number, removed] : ids) {
      const Status status = RemoveMany(
          database, table, removed, {.reason = RemovalReason::kFilter, .priority_table = number});
      if (status.ok()) continue;
      if (status.code() == StatusCode::kNotFound) {  // Somebody else has removed one meanwhile.
        again = true;
        continue;
      }
      MutexLock lock(&table->state->mutex);
      table->state->PutBackExpired(std::move(expired));
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
  RemoveWhatFails(database, table);
}

}  // namespace geardb::engine
