// Copies of what a chunk of an image is made of, and the chunks made of them. Copying is a few
// memcpys of about 64 KiB and needs the table's mutex; making the chunk takes ten times as long and
// does not. So an image can be taken while the table changes (table_cut.h).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/internal/image_chunk.h"
#include "engine/internal/table_state.h"

namespace geardb::engine {

/// How many slots and LPNs a chunk is for: powers of two, by the bytes that each has.
struct ImageShape {
  explicit ImageShape(const TableLayout& layout, uint64_t chunk_bytes = kImageChunkBytes);

  uint64_t slots_per_chunk = 0;
  uint64_t lpns_per_chunk = 0;

  static uint64_t Chunks(uint64_t numbers, uint64_t per_chunk) {
    return (numbers + per_chunk - 1) / per_chunk;
  }
};

/// A late group in the log: an image says how far it is filled.
inline bool KeepsFilled(const GroupLayout& group) {
  return group.late && group.logged() && !group.dropped;
}
/// A group of which an image has something: a reopen finds nothing of the others.
inline bool IsInImage(const GroupLayout& group) {
  return (!group.late || group.logged()) && !group.dropped;
}

/// A chunk, and where the numbers of all chunks end.
struct ChunkOf {
  uint64_t chunk = 0;
  uint64_t numbers_end = 0;
};

/// Slots of a chunk, free ones included.
struct TrajectoriesCopy {
  TrajectoriesCopy() = default;
  /// Of the slots of a chunk. The state's mutex is held, and `layout` is one that it has or had.
  TrajectoriesCopy(const TableState& state, const TableLayout& layout, const ChunkOf& slots);
  Status Give(const TableLayout& layout, Lsn lsn, const ImageSink& sink) const;

  uint64_t chunk = 0;
  Slot first = 0;
  std::vector<index::TrajectoryRecord> records;
  std::vector<std::vector<std::byte>> columns;  ///< Per-trajectory ones, then of late groups.
};

/// LPNs of a chunk, free ones included.
struct PagesCopy {
  PagesCopy() = default;
  PagesCopy(const TableState& state, const TableLayout& layout, const ChunkOf& lpns);
  Status Give(const TableLayout& layout, Lsn lsn, const ImageSink& sink) const;

  uint64_t chunk = 0;
  Lpn first = 0;
  std::vector<index::PageRecord> pages;
  std::vector<std::vector<index::GroupPageRecord>> groups;  ///< Those that are in an image.
  std::vector<uint8_t> flags;                               ///< Of a stream.
};

}  // namespace geardb::engine
