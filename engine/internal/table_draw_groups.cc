// How draw groups see records: who joins and leaves them, what seals them, and what a standing
// filter says of a whole group.

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "engine/internal/anchors.h"
#include "engine/internal/group_draw.h"
#include "engine/internal/table_state.h"

namespace geardb::engine {
namespace {

template <typename Integer>
int64_t KeyFrom(std::span<const std::byte> bytes) {
  Integer value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return static_cast<int64_t>(value);
}

}  // namespace

int64_t KeyOfBytes(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kU8:
      return KeyFrom<uint8_t>(bytes);
    case DType::kI8:
      return KeyFrom<int8_t>(bytes);
    case DType::kU16:
      return KeyFrom<uint16_t>(bytes);
    case DType::kI16:
      return KeyFrom<int16_t>(bytes);
    case DType::kU32:
      return KeyFrom<uint32_t>(bytes);
    case DType::kI32:
      return KeyFrom<int32_t>(bytes);
    case DType::kU64:
      return KeyFrom<uint64_t>(bytes);
    default:
      return KeyFrom<int64_t>(bytes);  // ValidateDrawGroups has seen that it is an integer.
  }
}

int64_t TableState::GroupKeyOf(const DrawGroups& groups, Slot slot) const {
  const size_t column = groups.key_column();
  return KeyOfBytes(layout().trajectory_columns()[column].dtype, ValueOf(column, slot));
}

bool TableState::JoinGroup(PriorityState* priority, Slot slot, uint64_t* leaf) {
  DrawGroups& groups = *priority->groups();
  const index::TrajectoryRecord& record = trajectories().record(slot);
  const DrawGroups::Newcomer newcomer{
      .slot = slot,
      .generation = record.generation,
      .key = GroupKeyOf(groups, slot),
      .now_us = memory_.clock == nullptr ? 0 : memory_.clock->SteadyTimeUs()};
  const uint64_t taking = groups.FindTaking(newcomer.key);
  if (taking != DrawGroups::kNoGroup && IsUndrawable(*priority, taking)) {
    groups.Seal(taking, GroupEnd::kUndrawable);
  }
  const DrawGroups::Joined joined = groups.Join(newcomer);
  RefilterGroup(priority, joined.group);
  *leaf = joined.group;
  return joined.is_ready_now;
}

void TableState::LeaveGroup(size_t priority_table, Slot slot) {
  PriorityState& priority = *priorities_[priority_table];
  const uint64_t group = priority.groups()->GroupOf(slot);
  if (group == DrawGroups::kNoGroup) return;
  // Its last member takes the leaf with it, while the leaf still has its group.
  if (priority.groups()->CountOf(group) == 1) priority.Leave({group, group + 1});
  if (!priority.groups()->Leave(slot).is_gone) RefilterGroup(&priority, group);
}

bool TableState::GroupFails(const PriorityState& priority, uint64_t group) const {
  bool fails = false;
  priority.groups()->ForEachMember(group,
                                   [&](Slot slot) { fails |= priority.filter()->Fails(slot); });
  return fails;
}

void TableState::RefilterGroup(PriorityState* priority, uint64_t group) {
  if (priority->filter() == nullptr || !priority->selector().Contains(group)) return;
  const bool fails = GroupFails(*priority, group);
  if (fails == priority->filter()->IsFiltered(group)) return;
  if (fails) {
    priority->Filter({&group, 1});
  } else {
    priority->Unfilter({&group, 1});
  }
}

void TableState::NoteItem(size_t priority_table, uint64_t leaf) {
  if (followed_ != priority_table) return;
  const PriorityState& priority = *priorities_[priority_table];
  if (priority.groups() == nullptr) return NoteChanged(SlotOfLeaf(priority, leaf));
  priority.groups()->ForEachMember(leaf, [this](Slot slot) { NoteChanged(slot); });
}

SealOutcome TableState::Apply(const fb::SealGroups& seal, size_t priority_table) {
  PriorityState& priority = *priorities_[priority_table];
  DrawGroups* const groups = priority.groups();
  SealOutcome outcome;
  if (groups == nullptr || seal.groups() == nullptr) return outcome;
  for (const fb::Handed* named : *seal.groups()) {
    const uint64_t group = named->leaf();
    const bool takes = group < groups->reserved() && groups->TakesMembers(group) &&
                       groups->GenerationOf(group) == named->generation();
    if (!takes || (seal.by_deadline() && groups->CountOf(group) < groups->at_least())) continue;
    ++outcome.sealed;
    AnchorUpdate update(this, priority_table);
    update.AddSealed(group, seal.by_deadline() ? GroupEnd::kDeadline : GroupEnd::kSealed);
    update.Insert(PriorityOfSealed(priority, group));
  }
  return outcome;
}

void TableState::Regroup(std::span<const uint64_t> ended, size_t priority_table) {
  if (ended.empty()) return;
  PriorityState& priority = *priorities_[priority_table];
  DrawGroups& groups = *priority.groups();
  std::map<TrajectoryId, Slot> others;
  std::vector<Slot> shown;
  for (const uint64_t group : ended) {
    if (groups.TakesMembers(group)) groups.Seal(group, GroupEnd::kUndrawable);
    groups.ForEachMember(group, [&](Slot slot) {
      if (groups.WasShown(slot)) {
        shown.push_back(slot);
      } else {
        others[trajectories().record(slot).id] = slot;
      }
    });
  }
  for (const auto& [id, slot] : others) LeaveGroup(priority_table, slot);
  for (const auto& [id, slot] : others) {
    AnchorUpdate update(this, priority_table);
    update.AddTrajectory(slot);
    if (update.count() > 0) update.Insert(PriorityOfSealed(priority, groups.GroupOf(slot)));
  }
  // The batch that ends them need not be one that shows them.
  for (const Slot slot : shown) NoteFinished(slot);
}

float TableState::PriorityOfSealed(const PriorityState& priority, uint64_t group) const {
  const PriorityTableSpec& spec = priority.spec();
  if (spec.initial == InitialPriority::kConstant) return spec.initial_priority_value;
  if (spec.initial == InitialPriority::kMax) return priority.max_priority();
  const auto column = layout().FindTrajectoryColumn(spec.initial_priority_column);
  float value = 0;
  if (column) {
    std::memcpy(&value, ValueOf(*column, priority.groups()->LastOf(group)).data(), sizeof(value));
  }
  return index::ValidPriority(value) ? value : 0.0f;
}

}  // namespace geardb::engine
