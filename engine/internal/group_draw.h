// From drawn items to the rows of a part, where an item may be a group: what it shows, what it
// takes of a token budget, whom its draw counts for.
//
// The random numbers of a row are those of its item's place in the draw times the most members that
// a group has, plus its own place in the group: no two rows of a batch have the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/internal/part_draw.h"

namespace geardb::engine {

/// The rows of an item that was drawn whole: one, or one for each member of a group.
void AddItem(const BatchPart& part, const DrawnLeaf& drawn, double probability, PartRows* rows);

/// What an item takes of a token budget.
struct ItemTokens {
  int64_t rows = 0;     ///< Of the batch.
  int64_t sum = 0;      ///< Steps of all.
  int64_t longest = 0;  ///< Of one.
};
ItemTokens GroupTokens(const BatchPart& part, uint64_t group);

/// It is ready and can be drawn no more, exhausted or deleted: it takes no other members.
bool IsUndrawable(const PriorityState& priority, uint64_t group);

/// The members of the groups that rows are of, as often as the group was drawn.
std::vector<Slot> MembersOf(const DrawGroups& groups, std::span<const DrawnLeaf> rows);

/// "; 3 groups wait for members: …" where some do, else "".
std::string WaitingGroups(const PriorityState& priority);

}  // namespace geardb::engine
