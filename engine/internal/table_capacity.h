// How many pages and trajectories a table may have: as many as an index budget holds where it holds
// nothing else. Structures lay out addresses for so many, of which a budget has not that many more
// than bytes; what they commit is what there is.
#pragma once

#include <algorithm>
#include <cstdint>

#include "index/index_memory.h"
#include "index/page_table.h"
#include "index/trajectory_index.h"

namespace geardb::engine {

/// Of numbers that take `bytes` each; at least a few, at most as many as there are numbers.
inline uint64_t NumbersIn(const index::IndexMemory& memory, uint64_t bytes) {
  return std::clamp<uint64_t>(memory.budget_bytes() / bytes, 1024, UINT32_MAX - 1);
}

/// A page takes its record, and one in each column group.
inline uint64_t LpnCapacityOf(const index::IndexMemory& memory) {
  return NumbersIn(memory, sizeof(index::PageRecord) + sizeof(index::GroupPageRecord));
}

/// A trajectory has a page, too.
inline uint64_t SlotCapacityOf(const index::IndexMemory& memory) {
  return NumbersIn(memory, sizeof(index::TrajectoryRecord) + sizeof(index::PageRecord) +
                               sizeof(index::GroupPageRecord));
}

}  // namespace geardb::engine
