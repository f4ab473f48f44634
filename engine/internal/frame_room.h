// Room for pages that have to be in memory at once, and are brought in where nobody can wait.
#pragma once

#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/internal/arena.h"

namespace geardb::engine {

class DatabaseCore;

/// A frame of each of `pools`, of which some may be the same, at once, by dropping pages where
/// there is none. ResourceExhausted; what was taken before is in `frames`, too. No mutex is held.
Status TakeOneEach(DatabaseCore* database, std::span<FramePool* const> pools, Deadline deadline,
                   std::vector<FrameRef>* frames);

/// Waits until each of `pools`, of which some may be the same, has had a free frame at once, by
/// dropping pages where there is none; from then on others may take them. ResourceExhausted. No
/// mutex is held.
Status MakeRoomForOneEach(DatabaseCore* database, std::span<FramePool* const> pools,
                          Deadline deadline);

}  // namespace geardb::engine
