// Whether what an image says of a table can be: what the engine relies on beyond single fields.
// Chunks have checksums where they are stored, which prove that they are what was written and not
// that it makes sense; a table that passes here can be drawn from and changed like one that was
// replayed, whatever its image says. All take time in the size of the table alone.
#pragma once

#include <cstdint>

#include "engine/internal/image_chunk.h"
#include "engine/internal/table_state.h"

namespace geardb::engine {

/// Fields of a trajectory's record, apart from its pages. Empty, or why it cannot be.
std::string CheckTrajectory(const TableLayout& layout, const index::TrajectoryRecord& record,
                            Lsn lsn);

/// Fields of a page of a group, which has `rows` rows from row `first` on, of a trajectory whose
/// late group is filled up to row `filled`. Empty, or why it cannot be.
struct PageOfTrajectory {
  uint64_t first = 0;
  uint64_t rows = 0;
  uint64_t filled = 0;
};
std::string CheckGroupPage(const GroupLayout& group, const index::GroupPageRecord& record,
                           const PageOfTrajectory& page, Lsn lsn);

/// Flags of the rows of a stream's trajectory, one for each: episodes follow one another as appends
/// make them. Counts final rows. Empty, or why they cannot be.
std::string CheckRowFlags(const TableState& state, const index::TrajectoryRecord& record,
                          uint64_t* final_rows);

/// Every member of a priority table is its item: a leaf that is there, and an anchor or a closed
/// trajectory with a step; and every deleted leaf is there. Pages are linked. Corruption names the
/// leaf, and its chunk, in an image whose chunks have `chunk_bytes`.
Status CheckItems(const TableState& state, uint32_t priority_table, uint64_t chunk_bytes)
    GEARDB_REQUIRES(state.mutex);

}  // namespace geardb::engine
