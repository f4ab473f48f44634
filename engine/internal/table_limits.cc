// How limits see records: hand-overs, other limits, and trajectories that nobody can draw any more.

#include <algorithm>
#include <functional>
#include <utility>

#include "base/break.h"
#include "engine/internal/anchors.h"
#include "engine/internal/priority_limits.h"
#include "engine/internal/table_state.h"

namespace geardb::engine {

bool TableState::FindHanded(const PriorityState& priority, const fb::Handed& item) const {
  uint32_t generation = 0;
  return GenerationOfLeaf(priority, item.leaf(), &generation) && generation == item.generation() &&
         priority.selector().Contains(item.leaf());
}

namespace {

/// Of leaves that a hand-over names, those that were sampled before, or come before in it.
uint64_t CountSampledAgain(const PriorityState& priority, std::vector<uint64_t> leaves) {
  const uint64_t count = leaves.size();
  std::erase_if(leaves, [&](uint64_t leaf) { return priority.WasSampled(leaf); });
  // Mostly it is in their order.
  if (std::ranges::adjacent_find(leaves, std::greater_equal<>()) != leaves.end()) {
    std::sort(leaves.begin(), leaves.end());
    leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  }
  return count - leaves.size();
}

/// It will be drawn no more: exhausted, or covered by an epoch that removes what it has covered.
bool IsEnded(const PriorityState& priority, uint64_t leaf) {
  const bool removes = priority.epoch() != nullptr && priority.spec().epoch.remove_covered;
  return priority.IsExhausted(leaf) || (removes && priority.epoch()->IsCovered(leaf));
}

/// Of some leaves, each once, those that can be drawn.
std::vector<uint64_t> DrawableOf(const PriorityState& priority, std::vector<uint64_t> leaves) {
  std::sort(leaves.begin(), leaves.end());
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  std::erase_if(leaves, [&](uint64_t leaf) { return IsEnded(priority, leaf); });
  return leaves;
}

/// Of leaves that could be drawn, those that cannot any more.
std::vector<uint64_t> EndedOf(const PriorityState& priority, std::vector<uint64_t> leaves) {
  std::erase_if(leaves, [&](uint64_t leaf) { return !IsEnded(priority, leaf); });
  return leaves;
}

}  // namespace

void TableState::Apply(const fb::HandOver& hand_over, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  priority.next_draw = std::max(priority.next_draw, hand_over.draw_number() + 1);
  priority.next_ahead = std::max(priority.next_ahead, priority.next_draw);
  const bool regroups = hand_over.regroups() && priority.groups() != nullptr;
  uint64_t rows = 0;  // Of groups: their members.
  for (uint32_t i = 0; hand_over.sampled() != nullptr && i < hand_over.sampled()->size(); ++i) {
    const fb::Sampled& sampled = *hand_over.sampled()->Get(i);
    index::TrajectoryRecord* record = trajectories_->FindLive(sampled.slot(), sampled.generation());
    if (record != nullptr) record->times_sampled += sampled.count();
    if (record != nullptr && regroups) priority.groups()->Show(sampled.slot());
    rows += sampled.count();
  }
  if (priority.groups() != nullptr) rows = hand_over.items() ? hand_over.items()->size() : 0;
  priority.counters.sampled_items += rows;
  std::vector<uint64_t> leaves;
  uint64_t gone = 0;
  for (uint32_t i = 0; hand_over.items() != nullptr && i < hand_over.items()->size(); ++i) {
    const fb::Handed& item = *hand_over.items()->Get(i);
    if (FindHanded(priority, item)) {
      leaves.push_back(item.leaf());
    } else {
      ++gone;
    }
  }
  // Groups are named without a maximum, too: what is sampled then is not counted.
  if (priority.groups() != nullptr && !priority.bounded() && priority.epoch() == nullptr) {
    leaves.clear();
  }
  // What has left a queue has given its place back: it takes no second one. Nor do rows that were
  // drawn before it was a queue, in which all items wait, each once: those that name none, and
  // those of items that have been sampled since.
  const index::LimiterKind kind = priority.limiter().spec().kind;
  const bool is_queue = kind == index::LimiterKind::kQueue || kind == index::LimiterKind::kStack;
  if (is_queue && hand_over.items() == nullptr) gone = rows;
  if (is_queue) gone += CountSampledAgain(priority, leaves);
  if (kBreak.give_place_twice || !is_queue) gone = 0;
  std::vector<uint64_t> drawable;
  if (regroups) drawable = DrawableOf(priority, leaves);
  priority.Sample(rows - std::min(gone, rows), leaves);
  if (priority.epoch() != nullptr) {
    priority.epoch()->Cover({.epoch = hand_over.epoch(), .pass = hand_over.pass()}, leaves);
  }
  if (regroups) Regroup(EndedOf(priority, std::move(drawable)), priority_table);
}

void TableState::CancelDraw(size_t priority_table, DrawReservation* draw) {
  if (draw->rows == 0 || kBreak.keep_reserved) return;
  PriorityState& priority = *priorities_[priority_table];
  std::vector<uint64_t> leaves;
  for (const fb::Handed& item : draw->items) {
    if (FindHanded(priority, item)) leaves.push_back(item.leaf());
  }
  priority.CancelReserved(draw->rows, leaves, draw->mark);
  draw->rows = 0;
  draw->items.clear();
  draw->uncounted.clear();
  changed.NotifyAll();
}

void TableState::Apply(const fb::Configure& configure, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  std::vector<uint64_t> drawable;  // Groups.
  // Of other groups nobody notes whom they have shown: all members are there before they are drawn.
  const bool regroups = priority.groups() != nullptr && priority.groups()->TakesWhenReady();
  if (configure.regroups() && regroups) {
    priority.selector().ForEachMember({0, priority.groups()->reserved()},
                                      [&](uint64_t group) { drawable.push_back(group); });
    drawable = DrawableOf(priority, std::move(drawable));
  }
  // Whoever logged or read it has seen that it can be decoded.
  priority.Configure(*DecodeLimits(configure.limits()));
  Regroup(EndedOf(priority, std::move(drawable)), priority_table);
}

void TableState::Arrived(std::span<const uint64_t> admitted) {
  for (size_t i = 0; i < admitted.size(); ++i) priorities_[i]->admitted -= admitted[i];
}

bool TableState::RemovesFinished() const {
  return std::any_of(priorities_.begin(), priorities_.end(), [](const auto& priority) {
    const bool expires = priority->spec().filter_action == FilterAction::kExpire;
    if (priority->filter() != nullptr && expires) return true;
    if (priority->epoch() != nullptr && priority->spec().epoch.remove_covered) return true;
    return (priority->bounded() || priority->has_deleted()) &&
           RemovesExhausted(LimitsOf(priority->spec()));
  });
}

bool TableState::IsFinished(Slot slot) const {
  const index::TrajectoryRecord& record = trajectories().record(slot);
  if (record.state != index::TrajectoryState::kClosed) return false;
  for (const auto& priority : priorities_) {
    if (IsCovered(*priority, slot) || priority->Expires(slot)) return true;
  }
  bool removes = false;
  for (const auto& priority : priorities_) {
    if (ItemsMayCome(*this, *priority, slot)) return false;
    uint64_t exhausted = 0;  // Or deleted.
    bool drawable = false;
    const auto visit = [&](uint64_t leaf) {
      if (priority->IsExhausted(leaf)) {
        ++exhausted;
      } else {
        drawable = true;
      }
    };
    if (priority->draws_windows()) {
      const uint64_t steps = layout().steps_per_page();
      for (Lpn lpn = record.head_lpn; lpn != kNoLpn && !drawable; lpn = pages_->page(lpn).next) {
        const index::LeafRange leaves{lpn * steps, (lpn + 1) * steps};
        priority->selector().ForEachMember(leaves, visit);
        exhausted += priority->CountDeleted(leaves);
      }
    } else {
      const index::LeafRange leaves = LeavesOfTrajectory(*priority, slot);
      priority->selector().ForEachMember(leaves, visit);
      exhausted += priority->CountDeleted(leaves);
      // Its group may still be an item.
      const DrawGroups* const groups = priority->groups();
      drawable |= groups != nullptr && leaves.size() > 0 && !groups->IsReady(leaves.begin);
    }
    if (drawable) return false;
    removes |= exhausted > 0 && RemovesExhausted(LimitsOf(priority->spec()));
  }
  return removes;
}

RemovalCause TableState::CauseOfFinished(Slot slot) const {
  for (uint32_t number = 0; number < priorities_.size(); ++number) {
    if (!priorities_[number]->Expires(slot)) continue;
    return {.reason = RemovalReason::kFilter, .priority_table = number};
  }
  return {.reason = RemovalReason::kExhausted};
}

std::vector<Slot> TableState::FinishedTrajectories() const {
  std::vector<Slot> slots;
  if (!RemovesFinished()) return slots;
  trajectories_->ForEach([&](Slot slot, const index::TrajectoryRecord&) {
    if (IsFinished(slot)) slots.push_back(slot);
  });
  return slots;
}

void TableState::NoteFinished(Slot slot) {
  if (RemovesFinished() && IsFinished(slot)) AddFinished(slot);
}

void TableState::AddFinished(Slot slot) {
  const SlotOfTrajectory found{slot, trajectories().record(slot).generation};
  // The slot may have been that of another, as after an open, which leaves what it has replayed.
  const bool is_last = !finished_.empty() && finished_.back().slot == found.slot &&
                       finished_.back().generation == found.generation;
  if (!is_last) finished_.push_back(found);
}

std::vector<SlotOfTrajectory> TableState::TakeFinished() { return std::exchange(finished_, {}); }

void TableState::PutBackFinished(std::vector<SlotOfTrajectory> finished) {
  finished_.insert(finished_.end(), finished.begin(), finished.end());
}

}  // namespace geardb::engine
