// The draw groups of a priority table in an image: which there are, and their members. Whether a
// group is an item, with what weight, is in the chunks of its items.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/image_generated.h"
#include "engine/internal/draw_groups.h"
#include "engine/internal/image_chunk.h"
#include "engine/internal/table_state.h"

namespace geardb::engine {

/// What the chunks have: as it is when an image begins.
struct GroupsShape {
  GroupsShape(const DrawGroups& groups, uint64_t slots, uint64_t chunk_bytes = kImageChunkBytes);

  uint64_t groups = 0;            ///< Numbers lie below: there are as many as slots.
  uint64_t groups_per_chunk = 0;  ///< A power of two.

  uint64_t chunks() const { return (groups + groups_per_chunk - 1) / groups_per_chunk; }
};

/// The groups of a chunk.
struct GroupsCopy {
  uint64_t chunk = 0;
  std::vector<DrawGroups::Stored> groups = {};
  std::vector<uint32_t> counts = {};  ///< Members of each.
  std::vector<Slot> members = {};     ///< Of all, one group's behind each other.
  std::vector<uint8_t> shown = {};    ///< Of each of them, DrawGroups::WasShown.
};

/// The groups of one priority table being saved or loaded.
class GroupsImage {
 public:
  /// `chunk_bytes` are those of its image's chunks.
  GroupsImage(TableId table, uint32_t number, uint64_t chunk_bytes = kImageChunkBytes)
      : table_(table), number_(number), chunk_bytes_(chunk_bytes) {}

  ImageChunk Chunk(uint64_t chunk) const {
    return {table_, ImageKind::kDrawGroups, uint64_t{number_} << 32 | chunk};
  }
  /// With the table's mutex.
  static GroupsCopy Copy(const DrawGroups& groups, const GroupsShape& shape, uint64_t chunk);
  /// Makes a chunk of the copy. Needs no mutex.
  Status Give(const GroupsCopy& copy, Lsn lsn, const ImageSink& sink) const;
  /// Into a priority table without groups, once the trajectories are there. Corruption names a
  /// chunk.
  Status Load(const fb::PriorityTableHead& head, Lsn lsn, const ImageSource& source,
              const TableState& state, DrawGroups* groups) const;
  /// Whether the groups are those that records could have made, and the items such groups.
  Status Check(const TableState& state, const PriorityState& priority) const;

 private:
  const TableId table_;
  const uint32_t number_;
  const uint64_t chunk_bytes_;
};

}  // namespace geardb::engine
