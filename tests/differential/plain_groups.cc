// PlainTable's draw groups (schema.h, GroupSpec).
#include <algorithm>
#include <cstring>

#include "tests/differential/plain_table.h"

namespace geardb::differential {

int64_t PlainTable::GroupKey(const PlainPriority& priority,
                             const PlainTrajectory& trajectory) const {
  const PlainColumn& column = *FindColumn(priority.spec.group.key);
  const Value value = ValueOf(trajectory, column);
  int16_t key = 0;
  std::memcpy(&key, value->data(), sizeof(key));
  return key;
}

bool PlainTable::TakesMembers(const PlainPriority& priority, const ItemKey& key) const {
  const PlainGroup& group = priority.groups.at(key);
  if (group.stop != GroupStop::kNone || priority.deleted.contains(key)) return false;
  const auto item = priority.items.find(key);
  return item == priority.items.end() || !priority.exhausted(item->second);
}

/// Members leave with their trajectories, or with the last of their steps, and who is closed and
/// ready joins: in the order of lanes, else of ids.
void PlainTable::SettleGroups(PlainPriority* priority,
                              const std::map<TrajectoryId, int64_t>& lanes) const {
  std::set<TrajectoryId> members;
  for (auto& [key, group] : priority->groups) {
    std::erase_if(group.members, [&](TrajectoryId id) {
      const auto found = trajectories.find(id);
      return found == trajectories.end() || Anchors(priority->spec, found->second).empty();
    });
    members.insert(group.members.begin(), group.members.end());
  }
  std::erase_if(priority->groups, [](const auto& group) { return group.second.members.empty(); });
  std::vector<TrajectoryId> newcomers;
  for (const auto& [id, trajectory] : trajectories) {
    if (members.contains(id) || Anchors(priority->spec, trajectory).empty()) continue;
    if (IsReady(priority->spec, trajectory, 0)) newcomers.push_back(id);
  }
  const auto lane_of = [&](TrajectoryId id) { return lanes.contains(id) ? lanes.at(id) : 0; };
  std::stable_sort(newcomers.begin(), newcomers.end(),
                   [&](TrajectoryId a, TrajectoryId b) { return lane_of(a) < lane_of(b); });
  for (const TrajectoryId id : newcomers) JoinGroup(priority, trajectories.at(id));
}

void PlainTable::JoinGroup(PlainPriority* priority, const PlainTrajectory& newcomer) const {
  const GroupSpec& rule = priority->spec.group;
  const int64_t key = GroupKey(*priority, newcomer);
  PlainGroup* joined = nullptr;
  for (auto& [item, group] : priority->groups) {
    if (group.key != key || group.stop != GroupStop::kNone) continue;
    if (TakesMembers(*priority, item)) {
      joined = &group;
    } else {
      group.stop = GroupStop::kUndrawable;
    }
  }
  if (joined == nullptr) {
    joined = &priority->groups[{newcomer.id, 0}];
    joined->key = key;
    joined->first_us = now_us;
  }
  joined->members.push_back(newcomer.id);
  const bool complete = joined->members.size() == rule.count;
  const bool enough = rule.deadline_ms == 0 && joined->members.size() >= priority->at_least();
  if ((complete || enough) && joined->made_ready == 0) joined->made_ready = newcomer.id;
  if (complete) joined->stop = GroupStop::kComplete;
}

bool PlainTable::SealGroup(PlainPriority* priority, int64_t key) {
  for (auto& [item, group] : priority->groups) {
    if (group.key != key || !TakesMembers(*priority, item)) continue;
    group.stop = GroupStop::kSealed;
    if (group.made_ready == 0) group.made_ready = group.members.back();
    ++moment;
    Settle();
    return true;
  }
  return false;
}

uint64_t PlainTable::Regroup(PlainPriority* priority, const std::set<ItemKey>& ended) {
  std::map<TrajectoryId, int64_t> others;  // As if on lanes, in their order.
  for (const ItemKey& key : ended) {
    PlainGroup& group = priority->groups.at(key);
    if (group.stop == GroupStop::kNone) group.stop = GroupStop::kUndrawable;
    for (const TrajectoryId id : group.members) {
      if (!group.shown.contains(id)) others[id] = 0;
    }
    std::erase_if(group.members, [&](TrajectoryId id) { return others.contains(id); });
  }
  if (others.empty()) return 0;
  int64_t place = 0;
  for (auto& [id, lane] : others) lane = ++place;
  ++moment;
  Settle(others);
  return others.size();
}

uint64_t PlainTable::SealOverdueGroups(PlainPriority* priority) {
  const int64_t deadline_us = priority->spec.group.deadline_ms * 1000;
  uint64_t sealed = 0;
  for (auto& [item, group] : priority->groups) {
    const bool overdue = deadline_us > 0 && now_us - group.first_us >= deadline_us;
    if (!overdue || group.stop != GroupStop::kNone) continue;
    if (group.members.size() < priority->at_least()) continue;
    group.stop = GroupStop::kDeadline;
    group.made_ready = group.members.back();
    ++sealed;
  }
  ++moment;
  Settle();
  return sealed;
}

std::vector<TrajectoryId> PlainPriority::TrajectoriesOf(const ItemKey& key) const {
  if (!draws_groups()) return {key.first};
  const auto found = groups.find(key);
  return found == groups.end() ? std::vector<TrajectoryId>() : found->second.members;
}

std::optional<ItemKey> PlainPriority::ItemOf(TrajectoryId id, int64_t row) const {
  if (windows()) return ItemKey(id, row);
  if (!draws_groups()) return ItemKey(id, 0);
  for (const auto& [key, group] : groups) {
    if (std::find(group.members.begin(), group.members.end(), id) != group.members.end()) {
      return key;
    }
  }
  return std::nullopt;
}

std::vector<ItemKey> PlainPriority::ItemsInOrder() const {
  std::vector<ItemKey> keys;
  for (const auto& [key, item] : items) keys.push_back(key);
  std::sort(keys.begin(), keys.end(), [this](const ItemKey& a, const ItemKey& b) {
    return std::pair(TrajectoriesOf(a)[0], a.second) < std::pair(TrajectoriesOf(b)[0], b.second);
  });
  return keys;
}

RowId PlainPriority::NameOf(const ItemKey& key, uint64_t which) const {
  const std::vector<TrajectoryId> ids = TrajectoriesOf(key);
  if (ids.empty()) return {key.first, key.second};
  return {ids[which % ids.size()], key.second};
}

void PlainPriority::Show(TrajectoryId id) {
  const std::optional<ItemKey> key = draws_groups() ? ItemOf(id, 0) : std::nullopt;
  if (key) groups.at(*key).shown.insert(id);
}

std::set<ItemKey> PlainPriority::GroupsNotEnded() const {
  std::set<ItemKey> keys;
  for (const auto& [key, item] : items) {
    if (!has_ended(key)) keys.insert(key);
  }
  return keys;
}

GroupStats PlainPriority::CountGroups() const {
  GroupStats stats;
  for (const auto& [key, group] : groups) {
    stats.members += group.members.size();
    ++(group.made_ready == 0 ? stats.waiting : stats.ready);
    if (group.stop == GroupStop::kComplete) ++stats.complete;
    if (group.stop == GroupStop::kSealed) ++stats.sealed_by_hand;
    if (group.stop == GroupStop::kDeadline) ++stats.sealed_by_deadline;
  }
  return stats;
}

}  // namespace geardb::differential
