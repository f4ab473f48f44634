// Room for pages that have to be in memory at once, and are brought in where nobody can wait.
#pragma once

#include <span>

#include "base/clock.h"
#include "base/status.h"
#include "engine/internal/arena.h"

namespace geardb::engine {

class DatabaseCore;

/// Waits until each of `pools`, of which some may be the same, has had a free frame at once, by
/// dropping pages where there is none; from then on others may take them. ResourceExhausted. No
/// mutex is held.
Status MakeRoomForOneEach(DatabaseCore* database, std::span<FramePool* const> pools,
                          Deadline deadline);

}  // namespace geardb::engine
