// How standing filters see records: whoever changes a trajectory says so by Refilter, before new
// items of it come. What could not be read is hidden by the same way.

#include <set>
#include <utility>

#include "base/break.h"
#include "base/check.h"
#include "engine/internal/anchors.h"
#include "engine/internal/stored_schema.h"
#include "engine/internal/table_capacity.h"
#include "engine/internal/table_state.h"

namespace geardb::engine {

template <typename Visit>
void TableState::ForEachRangeOf(const PriorityState& priority, Slot slot,
                                const Visit& visit) const {
  if (!priority.draws_windows()) {
    const index::LeafRange leaves = LeavesOfTrajectory(priority, slot);
    if (leaves.size() > 0) visit(leaves);
    return;
  }
  const uint64_t steps = layout().steps_per_page();
  const index::TrajectoryRecord& record = trajectories().record(slot);
  for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = pages_->page(lpn).next) {
    visit(index::LeafRange{lpn * steps, (lpn + 1) * steps});
  }
}

void TableState::Refilter(Slot slot) {
  const index::TrajectoryRecord& record = trajectories().record(slot);
  bool expires = false;
  for (const auto& priority : priorities_) {
    if (priority->filter() == nullptr) continue;
    Refilter(priority.get(), slot);
    expires |= priority->Expires(slot);
  }
  if (expires && record.state == index::TrajectoryState::kClosed) AddFinished(slot);
}

void TableState::Refilter(PriorityState* priority, Slot slot) {
  const bool fails = IsUnreadable(slot) || !priority->filter()->Passes(slot);
  if (!priority->filter()->NoteFails(slot, fails) || kBreak.filter_new_items_alone) return;
  if (priority->groups() != nullptr) {
    const index::LeafRange group = LeavesOfTrajectory(*priority, slot);
    if (group.size() > 0) RefilterGroup(priority, group.begin);
    return;
  }
  std::vector<uint64_t> leaves;
  ForEachRangeOf(*priority, slot, [&](index::LeafRange range) {
    priority->selector().ForEachMember(range, [&](uint64_t leaf) { leaves.push_back(leaf); });
  });
  if (fails) {
    priority->Filter(leaves);
  } else {
    priority->Unfilter(leaves);
  }
}

void TableState::UseFilter(size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  if (priority.filter() == nullptr) return;
  priority.filter()->Use(priority.spec().filter, layout(), *trajectories_);
  trajectories_->ForEach([&](Slot slot, const index::TrajectoryRecord&) { Refilter(slot); });
}

void TableState::Apply(const fb::SetFilter& set, size_t priority_table) {
  PriorityTableSpec spec = priorities_[priority_table]->spec();
  // Whoever logged or read it has seen that it can be decoded.
  GEARDB_CHECK(DecodeFilter(set.filter(), set.action(), &spec).ok());
  priorities_[priority_table]->SetFilter(spec);
  UseFilter(priority_table);
}

// ---- What could not be read.

Status TableState::HideUnreadable(Slot slot) {
  if (unreadable_ == nullptr) {
    GEARDB_ASSIGN_OR_RETURN(
        auto unreadable,
        index::LeafSet::Create(memory_.index, layout().spec().name + " unreadable trajectories",
                               SlotCapacityOf(*memory_.index)));
    GEARDB_RETURN_IF_ERROR(unreadable->Reserve(trajectories_->reserved()));
    unreadable_ = std::move(unreadable);
  }
  for (size_t i = 0; i < priorities_.size(); ++i) GEARDB_RETURN_IF_ERROR(PrepareFilter(i));
  unreadable_->Add(slot);
  Refilter(slot);
  return Status::Ok();
}

template <typename Visit>
void TableState::ForEachUnreadableRange(const PriorityState& priority, const Visit& visit) const {
  if (unreadable_ == nullptr || unreadable_->count() == 0) return;
  std::set<uint64_t> groups;  // Several trajectories may be of one.
  unreadable_->members().ForEach({0, unreadable_->reserved()}, [&](uint64_t slot) {
    ForEachRangeOf(priority, static_cast<Slot>(slot), [&](index::LeafRange range) {
      if (priority.groups() == nullptr || groups.insert(range.begin).second) visit(range);
    });
  });
}

uint64_t TableState::UnreadableItems(const PriorityState& priority) const {
  uint64_t items = 0;
  ForEachUnreadableRange(priority, [&](index::LeafRange range) {
    items += priority.selector().members().Count(range);
  });
  return items;
}

bool TableState::IsUnreadableItem(const PriorityState& priority, uint64_t leaf) const {
  if (priority.groups() == nullptr) return IsUnreadable(SlotOfLeaf(priority, leaf));
  bool any = false;
  priority.groups()->ForEachMember(leaf, [&](Slot slot) { any |= IsUnreadable(slot); });
  return any;
}

bool TableState::UnreadableRemain(const PriorityState& priority) const {
  uint64_t remain = 0;
  ForEachUnreadableRange(priority, [&](index::LeafRange range) {
    remain += priority.epoch()->selector().remaining_members().Count(range);
  });
  return remain > 0;
}

// ---- New items.

void AnchorUpdate::HideFailing() {
  const StandingFilter* filter = priority_->filter();
  if (filter == nullptr) return;
  std::vector<uint64_t> leaves;
  for (const index::LeafRange& range : ranges_) {
    for (uint64_t leaf = range.begin; leaf < range.end; ++leaf) {
      const bool fails = priority_->groups() != nullptr
                             ? state_->GroupFails(*priority_, leaf)
                             : filter->Fails(state_->SlotOfLeaf(*priority_, leaf));
      if (fails) leaves.push_back(leaf);
    }
  }
  priority_->Filter(leaves);
}

}  // namespace geardb::engine
