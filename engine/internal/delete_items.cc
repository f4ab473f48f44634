#include "engine/internal/delete_items.h"

#include <algorithm>

#include "engine/internal/change_scope.h"
#include "engine/internal/set_priorities.h"
#include "engine/internal/table_change.h"

namespace geardb::engine {
namespace {

/// How many items one record takes.
uint64_t ItemsMax(const DatabaseCore& database) {
  return (database.log->record_bytes_max() - 2048) / sizeof(fb::Handed);
}

/// Logs it; `*outcome` is what it came to when it is published.
Result<Lsn> LogDelete(PriorityTable::Impl* impl, std::span<const fb::Handed> items,
                      DeleteOutcome* outcome) {
  DatabaseCore& database = *impl->database;
  TableState& state = *impl->table->state;
  FunctionChange change([&, items](Lsn, Lsn end) {
    ApplyLock lock(&state, end);
    *outcome = state.ApplyDelete(items, impl->number);
    state.changed.NotifyAll();
  });
  const auto stored = change.body.CreateVectorOfStructs(items.data(), items.size());
  change.FinishBody({.table = impl->table->layout().id(), .priority_table = impl->number},
                    fb::Change::DeleteItems, fb::CreateDeleteItems(change.body, stored).Union());
  const wal::RecordSize size = wal::RecordSize::For(change.body_bytes().size(), {});
  // As a removal: it may go on where appends wait for room.
  const CommitOptions how{.urgency = wal::Urgency::kReserve,
                          .deadline = Deadline::AfterMs(kAdmissionMs)};
  wal::Reservation reservation;
  {
    ChangeScope scope(&database, impl->table.get(), how);
    bool waited = false;
    GEARDB_RETURN_IF_ERROR(scope.AwaitRoom({&size, 1}, how, &waited));
    GEARDB_RETURN_IF_ERROR(scope.status());
    {
      MutexLock lock(&state.mutex);
      GEARDB_RETURN_IF_ERROR(impl->state().PrepareDelete());
    }
    reservation = scope.Reserve({.size = size});
    database.room_made.NotifyAll();  // The places of what was never sampled.
  }
  database.Finish(reservation, {}, &change);
  GEARDB_RETURN_IF_ERROR(database.Acknowledge(reservation.end, Ack::kLog));
  return reservation.end;
}

}  // namespace

DeleteOutcome TableState::ApplyDelete(std::span<const fb::Handed> items, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  DeleteOutcome outcome;
  std::vector<Slot> slots;
  for (const fb::Handed& item : items) {
    if (!FindHanded(priority, item)) {
      ++outcome.items.stale;
      continue;
    }
    ++outcome.items.applied;
    NoteItem(priority_table, item.leaf());
    if (priority.groups() != nullptr) {
      priority.groups()->ForEachMember(item.leaf(), [&](Slot slot) { slots.push_back(slot); });
    } else {
      slots.push_back(SlotOfLeaf(priority, item.leaf()));
    }
    priority.Delete(item.leaf());
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  for (const Slot slot : slots) {
    outcome.touched.emplace_back(slot, trajectories_->record(slot).generation, 0);
  }
  return outcome;
}

Result<SetOutcome> CommitDelete(PriorityTable::Impl* impl, std::span<const fb::Handed> items,
                                uint64_t stale_already) {
  DatabaseCore* const database = impl->database.get();
  GEARDB_RETURN_IF_ERROR(database->CheckWritable());
  GEARDB_RETURN_IF_ERROR(database->CheckTable(*impl->table));
  if (items.empty()) return SetOutcome{.stale = stale_already};
  if (items.size() > ItemsMax(*database)) {
    return Status::InvalidArgument(
        "priority table '", impl->spec.name, "' of table '", impl->table->layout().spec().name,
        "': ", items.size(), " items cannot be deleted at once; at most ", ItemsMax(*database),
        " fit a record of this log (a quarter of its ring)");
  }
  DeleteOutcome outcome;
  GEARDB_ASSIGN_OR_RETURN(const Lsn end, LogDelete(impl, items, &outcome));
  RescaleIfDue(database, impl->table, impl->number);
  RemoveFinished(database, impl->table, outcome.touched);
  return SetOutcome{.applied = outcome.items.applied,
                    .stale = outcome.items.stale + stale_already,
                    .end_lsn = end};
}

}  // namespace geardb::engine
