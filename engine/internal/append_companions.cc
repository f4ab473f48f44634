// A writer's rows of companions (companion.h): its lanes there follow its lanes here.

#include <algorithm>

#include "engine/internal/append.h"

namespace geardb {

using engine::Lane;
using engine::LaneRows;

bool Writer::Impl::UsesCompanions(Calls calls) const {
  return std::any_of(calls.begin(), calls.end(),
                     [](const LaneRows& call) { return !call.companions.empty(); });
}

Writer::Impl* Writer::Impl::CompanionFor(size_t companion, uint32_t number) {
  Impl* const writer = companions_[companion].get();
  if (writer == nullptr || writer->table_->dropped.load()) return nullptr;
  const Lane& lane = *lanes_[number];
  Lane& theirs = *writer->lanes_[number];
  if (lane.id == 0 || theirs.owner_generation != lane.generation) theirs.Reset();
  return writer;
}

uint64_t Writer::Impl::RowsOfCompanion(size_t companion, uint32_t number) {
  const Impl* const writer = CompanionFor(companion, number);
  return writer == nullptr ? 0 : static_cast<uint64_t>(writer->lanes_[number]->rows_end);
}

void Writer::Impl::EmptyCompanions(Calls calls, const AppendPlan& plan) {
  for (size_t i = 0; i < calls.size(); ++i) {
    if (plan.calls[i].opens) continue;
    for (size_t c = 0; c < calls[i].trajectory.size(); ++c) {
      const auto companion = layout().trajectory_columns()[c].companion;
      if (!companion || calls[i].trajectory[c] == nullptr) continue;
      table_->plan->EmptyCompanion(*companion, lanes_[calls[i].lane]->slot);
    }
  }
}

Status Writer::Impl::TakeOverOwned(const Lane& owner, Lane* lane) {
  lane->Reset();
  lane->owner_generation = owner.generation;
  const engine::TableState& state = *table_->state;
  if (owner.slot >= state.trajectories().reserved()) return Status::Ok();
  const index::TrajectoryRecord& record = state.trajectories().record(owner.slot);
  if (record.state == index::TrajectoryState::kFree) return Status::Ok();
  const Lpn tail = record.tail_lpn;
  GEARDB_ASSIGN_OR_RETURN(const FrameRef frame, state.frames().ReadNow(0, tail));
  lane->tail[0] = {.frame = frame, .lsn = state.pages().group_page(0, tail).newest_lsn};
  lane->tail_lpn = tail;
  lane->tail_generation = state.pages().page(tail).generation;
  lane->slot = owner.slot;
  lane->generation = record.generation;
  lane->rows_end = static_cast<int64_t>(record.rows_end);
  lane->id = record.id;
  return Status::Ok();
}

std::vector<Writer::Impl*> Writer::Impl::AppendedCompanions() const {
  std::vector<Impl*> writers;
  for (size_t k = 0; k < companions_.size(); ++k) {
    const engine::CompanionColumn& column = layout().companions()[k];
    if (!column.ragged() || companions_[k] == nullptr) continue;
    // Patches append to those of late groups.
    if (layout().group(layout().step_columns()[column.column].group).late) continue;
    writers.push_back(companions_[k].get());
  }
  return writers;
}

Status Writer::Impl::TakeOverCompanions(const Lane& lane, uint32_t number)
    GEARDB_THREAD_ANNOTATION(no_thread_safety_analysis) {  // They have the mutex of this table.
  const std::vector<Impl*> writers = AppendedCompanions();
  Status taken;
  size_t asked = 0;
  for (; asked < writers.size() && taken.ok(); ++asked) {
    const size_t i = asked;
    Lane* const theirs = writers[i]->lanes_[number].get();
    taken = writers[i]->TakeOverOwned(lane, theirs);
    if (!taken.ok()) theirs->Reset();
    // Until it is this writer's.
    if (theirs->id != 0) writers[i]->table_->state->frames().HoldAll(theirs->tail_lpn, true);
  }
  if (taken.ok()) return taken;
  // The others may know pages of before, which belong to somebody else by now.
  for (size_t i = 0; i < asked; ++i) {
    Lane* const theirs = writers[i]->lanes_[number].get();
    if (theirs->id != 0) writers[i]->table_->state->frames().HoldAll(theirs->tail_lpn, false);
    theirs->Reset();
  }
  return taken;
}

}  // namespace geardb
