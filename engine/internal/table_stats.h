// What tables hold and have done, and where their pages are, for Stats and for COUNTERS.
#pragma once

#include <string>
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

/// As PriorityTable::Stats and WhyBlocked, of a priority table of `state`, whose mutex is held.
PriorityTableStats StatsOf(const TableState& state, const PriorityState& priority);
BlockReport WhyBlocked(const TableState& state, const PriorityState& priority);

/// What keeps items from being drawn, for people: "of 5 items 3 are exhausted, 2 fail the filter".
/// Empty where nothing does. Likewise.
std::string WhyUndrawable(const TableState& state, const PriorityState& priority);
/// Whether a limiter is named for what waits: that there is no item at all is said as it is where
/// nobody asked for more. Likewise.
bool NamesLimiter(const PriorityState& priority);
/// Behind another reason: why there are no items, where there are none of the rows that there are;
/// else empty. Likewise.
std::string WhyNoItems(const TableState& state, const PriorityState& priority);

}  // namespace geardb::engine
