// An image of one table: its index as of one LSN, in chunks that do not depend on where anything
// lies in memory. What is in it is what its records have made of it, and no more: nothing that is
// reserved or under way, no frames, and nothing of volatile groups, as if the log had been replayed
// up to that LSN. What follows from the rest (lists of pages, the hash of ids, sums, free numbers,
// what is hidden) is built anew by the load (table_image_load.h).
//
// The pause. SaveTable needs the table's mutex throughout: about a second for 10^7 items. Every
// chunk is a function of the state alone and of nothing that another chunk has, so they can be
// saved one by one under one cut: begin under the mutex (the head, and that nothing is saved yet),
// then chunk after chunk, with writers that first save the chunk of what they are about to change.
// Nobody does that yet.
#pragma once

#include <cstdint>

#include "engine/internal/image_chunk.h"
#include "engine/internal/table_plan.h"
#include "engine/internal/table_state.h"

namespace geardb::engine {

/// What a plan knows that its state does not.
struct PlanNumbers {
  uint64_t next_id = 1;
  uint64_t ids_end = 1;
  uint64_t next_generation = 1;
  uint64_t generations_end = 1;

  friend bool operator==(const PlanNumbers&, const PlanNumbers&) = default;
};
/// With the commit mutex held. They are those of an image as of the log's end, and only of that:
/// whoever saves has published all that has an LSN, without releasing the commit mutex since.
PlanNumbers NumbersOf(const TablePlan& plan);

/// How many slots and LPNs a chunk is for: powers of two, by the bytes that each has.
struct ImageShape {
  explicit ImageShape(const TableLayout& layout);

  uint64_t slots_per_chunk = 0;
  uint64_t lpns_per_chunk = 0;

  static uint64_t Chunks(uint64_t numbers, uint64_t per_chunk) {
    return (numbers + per_chunk - 1) / per_chunk;
  }
};

/// Which of the index's columns says how far a late group is filled.
size_t FilledColumn(const TableLayout& layout, size_t group);
/// A late group in the log: an image says how far it is filled.
inline bool KeepsFilled(const GroupLayout& group) { return group.late && group.logged(); }

/// Gives all chunks to `sink`, the head first; ends with the first status of its that is no OK.
/// The same state gives the same bytes.
Status SaveTable(const TableState& state, const PlanNumbers& numbers, Lsn lsn,
                 const ImageSink& sink) GEARDB_REQUIRES(state.mutex);

}  // namespace geardb::engine
