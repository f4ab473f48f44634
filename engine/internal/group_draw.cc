#include "engine/internal/group_draw.h"

#include <algorithm>

#include "engine/internal/episode.h"

namespace geardb::engine {

void AddItem(const BatchPart& part, const DrawnLeaf& drawn, double probability, PartRows* rows) {
  if (part.groups == nullptr) {
    rows->leaves.push_back(drawn);
    rows->probabilities.push_back(probability);
    return;
  }
  DrawnLeaf row = drawn;
  row.key.row = drawn.key.row * part.groups->spec().count;
  row.begins_group = true;
  part.groups->ForEachMember(drawn.leaf, [&](Slot slot) {
    row.slot = slot;
    rows->leaves.push_back(row);
    rows->probabilities.push_back(probability);
    ++row.key.row;
    row.begins_group = false;
  });
}

ItemTokens GroupTokens(const BatchPart& part, uint64_t group) {
  ItemTokens tokens;
  part.groups->ForEachMember(group, [&](Slot slot) {
    const index::TrajectoryRecord& record = part.state->trajectories().record(slot);
    const int64_t steps = TrajectoryRule(*part.state, record).extent.length;
    ++tokens.rows;
    tokens.sum += steps;
    tokens.longest = std::max(tokens.longest, steps);
  });
  return tokens;
}

bool IsUndrawable(const PriorityState& priority, uint64_t group) {
  return priority.groups()->IsReady(group) &&
         (priority.IsExhausted(group) || priority.IsDeleted(group));
}

std::vector<Slot> MembersOf(const DrawGroups& groups, std::span<const DrawnLeaf> rows) {
  std::vector<Slot> members;
  for (const DrawnLeaf& row : rows) {
    if (!row.begins_group) continue;
    groups.ForEachMember(row.leaf, [&](Slot slot) { members.push_back(slot); });
  }
  return members;
}

std::string WaitingGroups(const PriorityState& priority) {
  if (priority.groups() == nullptr) return "";
  const std::string waiting = priority.groups()->WaitingText();
  return waiting.empty() ? "" : "; " + waiting;
}

}  // namespace geardb::engine
