// What a remover by priority asks of a table's state: which trajectories are worth how much.

#include <algorithm>

#include "engine/internal/table_state.h"

namespace geardb::engine {

void TableState::FollowPriorities(size_t priority_table) { followed_ = priority_table; }

void TableState::NoteChanged(Slot slot) {
  if (slot >= is_changed_.size()) is_changed_.resize(trajectories_->reserved());
  if (is_changed_[slot]) return;
  is_changed_[slot] = true;
  changed_slots_.push_back(slot);
}

void TableState::TakeChangedPriorities(std::vector<Slot>* slots) {
  for (const Slot slot : changed_slots_) {
    is_changed_[slot] = false;
    slots->push_back(slot);
  }
  changed_slots_.clear();
}

float TableState::LargestPriority(size_t priority_table, Slot slot) const {
  const PriorityState& priority = *priorities_[priority_table];
  float largest = 0;
  const auto visit = [&](uint64_t leaf) {
    largest = std::max(largest, priority.raw_priority(leaf));
  };
  if (!priority.draws_windows()) {
    priority.selector().ForEachMember(LeavesOfTrajectory(priority, slot), visit);
    return largest;
  }
  const uint64_t steps = layout().steps_per_page();
  const index::TrajectoryRecord& record = trajectories_->record(slot);
  for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = pages_->page(lpn).next) {
    priority.selector().ForEachMember({lpn * steps, (lpn + 1) * steps}, visit);
  }
  return largest;
}

}  // namespace geardb::engine
