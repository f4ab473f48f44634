// The items of a priority table in an image: members, raw priorities, their places in the order,
// times sampled; which leaves are deleted, and which an epoch has in its cut and has not covered;
// and what a priority table counts beside them. Sums, and what is hidden, follow from these and are
// not stored.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/image_generated.h"
#include "engine/internal/image_chunk.h"
#include "engine/internal/priority_state.h"

namespace geardb::engine {

/// What the chunks of a priority table have: as it is when an image begins.
struct ItemsShape {
  explicit ItemsShape(const PriorityState& priority, uint64_t chunk_bytes = kImageChunkBytes);

  uint64_t leaves = 0;            ///< That are reserved.
  uint64_t leaves_per_chunk = 0;  ///< A power of two: chunk k has those from k times as many on.
  std::optional<index::ItemOrder> order;
  bool raw = false;             ///< Raw priorities.
  uint64_t sequence_bytes = 0;  ///< Places in the order.
  bool sampled = false;         ///< Times sampled.
  bool deleted = false;         ///< Leaves whose items were deleted.
  bool epoch = false;           ///< The cut, and what remains of it.

  uint64_t chunks() const { return (leaves + leaves_per_chunk - 1) / leaves_per_chunk; }
};

/// The leaves of a chunk, items or not.
struct ItemsCopy {
  uint64_t chunk = 0;
  std::vector<uint64_t> words;  ///< A bit for each leaf, as in Membership.
  std::vector<float> raw;       ///< Of selectors with weights.
  std::vector<uint64_t> keys;   ///< Of selectors with an order.
  std::vector<index::ItemCount> counts;
  std::vector<uint64_t> deleted;  ///< As `words`; and these.
  std::vector<uint64_t> cut;
  std::vector<uint64_t> remaining;  ///< And what is reserved.
};

/// One priority table being saved or loaded.
class ItemsImage {
 public:
  /// `chunk_bytes` are those of its image's chunks.
  ItemsImage(TableId table, uint32_t number, uint64_t chunk_bytes = kImageChunkBytes)
      : table_(table), number_(number), chunk_bytes_(chunk_bytes) {}

  ImageChunk Chunk(uint64_t chunk) const {
    return {table_, ImageKind::kItems, uint64_t{number_} << 32 | chunk};
  }

  /// That of a leaf.
  ImageChunk ChunkOf(const PriorityState& priority, uint64_t leaf) const {
    return Chunk(leaf / ItemsShape(priority, chunk_bytes_).leaves_per_chunk);
  }

  // Saving; the table's mutex is held.

  static flatbuffers::Offset<fb::PriorityTableHead> SaveHead(
      flatbuffers::FlatBufferBuilder* builder, const PriorityState& priority);
  static ItemsCopy Copy(const PriorityState& priority, const ItemsShape& shape, uint64_t chunk);
  static bool CountsTimes(const PriorityState& priority);
  /// The next place in the order, where there is one.
  static uint64_t NextSequence(const PriorityState& priority);
  /// Makes a chunk of the copy. Needs no mutex.
  Status Give(const ItemsShape& shape, const ItemsCopy& copy, Lsn lsn, const ImageSink& sink) const;

  // Loading into a priority table without items, made from the head's spec, in a bulk. Every error
  // names a chunk; that the items may be items is for CheckItems of image_check.h.

  /// What the head says, and all chunks.
  Status Load(const fb::PriorityTableHead& head, Lsn lsn, const ImageSource& source,
              PriorityState* priority);

 private:
  struct Members;
  struct LeafBits;

  Status Prepare(const fb::PriorityTableHead& head, PriorityState* priority) const;
  Status LoadChunk(ChunkReader* reader, uint64_t chunk, PriorityState* priority);
  /// Adds items with what the next of `members` have.
  Status AddItems(const ImageChunk& chunk, std::span<const uint64_t> leaves, Members* members,
                  PriorityState* priority);
  /// Leaves of a chunk that are no items any more, and those that an epoch has.
  Status AddDeleted(const ImageChunk& chunk, const LeafBits& deleted, PriorityState* priority);
  Status AddEpoch(const ImageChunk& chunk, const LeafBits& cut, const LeafBits& remaining,
                  PriorityState* priority);
  /// The passes of an epoch are such as records make.
  Status FinishEpoch(const fb::PriorityTableHead& head, PriorityState* priority) const;
  Status Finish(const fb::PriorityTableHead& head, PriorityState* priority);
  /// No two members have the same place in the order.
  Status CheckSequences();
  template <typename... Parts>
  Status BadHead(const PriorityState& priority, const Parts&... why) const {
    return BadChunk({table_, ImageKind::kTable, 0}, "priority table '", priority.spec().name,
                    "': ", why...);
  }

  const TableId table_;
  const uint32_t number_;
  const uint64_t chunk_bytes_;
  bool deleted_ = false;  // Chunks have deleted leaves.
  float largest_ = 1.0f;  // Raw priority of a member.
  uint64_t next_sequence_ = 0;
  std::vector<uint64_t> sequences_;  // Of all members that were loaded, where they have an order.
};

}  // namespace geardb::engine
