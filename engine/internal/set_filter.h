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
/// Of that, the removal alone, and no wait for room.
void RemoveFinishedNow(DatabaseCore* database, const std::shared_ptr<TableCore>& table);

}  // namespace geardb::engine
