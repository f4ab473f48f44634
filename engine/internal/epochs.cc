#include "engine/internal/epochs.h"

#include "engine/internal/anchors.h"
#include "engine/internal/table_change.h"

namespace geardb::engine {

void TableState::Apply(const fb::BeginEpoch& begin, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  if (DrawGroups* const groups = priority.groups(); groups != nullptr && begin.seals()) {
    std::vector<uint64_t> in_cut;
    groups->ForEachTaking([&](uint64_t group) {
      if (groups->IsReady(group)) in_cut.push_back(group);
    });
    for (const uint64_t group : in_cut) groups->Seal(group, GroupEnd::kCut);
  }
  if (EpochState* epoch = priority.epoch()) epoch->Begin();
}

void TableState::Apply(const fb::EndPass& end, size_t priority_table) {
  if (EpochState* epoch = priorities_[priority_table]->epoch()) {
    epoch->EndPass({.epoch = end.epoch(), .pass = end.pass()});
  }
}

bool TableState::IsCovered(const PriorityState& priority, Slot slot) const {
  const EpochState* epoch = priority.epoch();
  if (epoch == nullptr || !priority.spec().epoch.remove_covered) return false;
  const index::TrajectoryRecord& record = trajectories_->record(slot);
  if (ItemsMayCome(*this, priority, slot)) return false;
  bool any = false;
  bool all = true;
  const auto visit = [&](uint64_t leaf) {
    any = true;
    all = all && epoch->IsCovered(leaf);
  };
  if (!priority.draws_windows()) {
    priority.selector().ForEachMember(LeavesOfTrajectory(priority, slot), visit);
    return any && all;
  }
  const uint64_t steps = layout().steps_per_page();
  for (Lpn lpn = record.head_lpn; lpn != kNoLpn && all; lpn = pages_->page(lpn).next) {
    priority.selector().ForEachMember({lpn * steps, (lpn + 1) * steps}, visit);
  }
  return any && all;
}

Status BeginEpoch(PriorityTable::Impl* impl) {
  DatabaseCore& database = *impl->database;
  TableState& state = *impl->table->state;
  GEARDB_RETURN_IF_ERROR(database.CheckWritable());
  GEARDB_RETURN_IF_ERROR(database.CheckTable(*impl->table));
  if (impl->spec.selector != SelectorKind::kEpoch) {
    return Status::InvalidArgument("priority table '", impl->spec.name, "' of table '",
                                   impl->table->layout().spec().name,
                                   "' has no epochs: its selector is another");
  }
  FunctionChange change(nullptr);
  change.set_apply([&](Lsn, Lsn end) {
    ApplyLock lock(&state, end);
    state.Apply(*change.operation()->change_as_BeginEpoch(), impl->number);
    state.changed.NotifyAll();
  });
  change.FinishBody({.table = impl->table->layout().id(), .priority_table = impl->number},
                    fb::Change::BeginEpoch,
                    fb::CreateBeginEpoch(change.body, /*seals=*/true).Union());
  GEARDB_ASSIGN_OR_RETURN(const Lsn end, database.Commit(impl->table.get(), &change, {}));
  return database.Acknowledge(end, Ack::kLog);
}

Status EndPass(PriorityTable::Impl* impl, const EpochMark& ended, Deadline deadline) {
  DatabaseCore& database = *impl->database;
  TableState& state = *impl->table->state;
  FunctionChange change(nullptr);
  change.set_apply([&](Lsn, Lsn end) {
    ApplyLock lock(&state, end);
    state.Apply(*change.operation()->change_as_EndPass(), impl->number);
    state.changed.NotifyAll();
  });
  change.FinishBody({.table = impl->table->layout().id(), .priority_table = impl->number},
                    fb::Change::EndPass,
                    fb::CreateEndPass(change.body, ended.epoch, ended.pass).Union());
  GEARDB_ASSIGN_OR_RETURN(const Lsn end,
                          database.Commit(impl->table.get(), &change, {.deadline = deadline}));
  GEARDB_RETURN_IF_ERROR(database.Acknowledge(end, Ack::kLog));
  RemoveAllFinishedOf(&database, impl->table);
  return Status::Ok();
}

}  // namespace geardb::engine
