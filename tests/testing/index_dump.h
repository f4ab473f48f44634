// All that a database knows beside the bytes of pages, as text: two that are the same are written
// alike, wherever they lie in memory and whatever is reserved in them.
#pragma once

#include <string>

#include "engine/internal/core.h"

namespace geardb::testing {

/// Tables, trajectories, pages, items with their probabilities, limits, and what is drawn. In a
/// recovery sums are built for it, and the recovery can go on. Frames are not shown.
std::string DumpIndex(const engine::DatabaseCore& core);
/// Of one table; its mutex is held.
std::string DumpTable(engine::TableState* state) GEARDB_REQUIRES(state->mutex);

}  // namespace geardb::testing
