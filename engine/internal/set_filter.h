// What follows from standing filters: another one, and the removal of what they expire.
#pragma once

#include <memory>
#include <string>

#include "engine/internal/core.h"

namespace geardb::engine {

/// See PriorityTable::SetFilter.
Status SetStandingFilter(PriorityTable::Impl* impl, const std::string& filter, FilterAction action);

/// What a change has left to do, seen to by whoever made it: weights that should have another scale
/// (RescaleWhereDue), trajectories that a filter has expired. Where the log refuses it, it stays
/// for the next change, or the next open.
void FollowUp(DatabaseCore* database, const std::shared_ptr<TableCore>& table);
/// How long a removal that was refused waits for the next try, where no call comes.
inline constexpr int64_t kFollowUpAgainMs = 1000;
/// Says that there is some, for who comes next; and for the timekeeper at that time, unless
/// `database` is null. The state's mutex may be held.
void LeaveFollowUp(DatabaseCore* database, TableCore* table, Deadline at);
/// Of that, the removal alone, and no wait for room.
void RemoveFinishedNow(DatabaseCore* database, const std::shared_ptr<TableCore>& table);

}  // namespace geardb::engine
