// What tables hold and have done, and where their pages are, for Stats and for COUNTERS.
#pragma once

#include <vector>

#include "engine/internal/table_state.h"
#include "engine/stats.h"

namespace geardb::engine {

/// As Table::Stats. The mutex of `state` is not held.
TableStats StatsOf(const TableState& state);
/// As Table::Places; the time follows the number of pages. Likewise.
std::vector<GroupPlaces> PlacesOf(const TableState& state);
/// Of both, and of the priority tables. Likewise.
TableActivity ActivityOf(const TableState& state);

/// As PriorityTable::Stats and WhyBlocked. The mutex of its table is held.
PriorityTableStats StatsOf(const PriorityState& priority);
BlockReport WhyBlocked(const PriorityState& priority);

}  // namespace geardb::engine
