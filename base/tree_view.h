// The layout of a weight tree, written once, and the descent through it: host and device code, over
// caller-supplied bytes, with offsets only.
//
// Level 0 is an array of u32 leaves (fixed-point weights); a node of level k is the u64 sum of
// kTreeFanOut entries of level k - 1; the top level has one node, the total. Every level lies at
// an offset that depends on the capacity alone, so that leaves can be committed as a table grows.
//
// Invariants: a node equals the sum of its children; entries beyond the leaves in use are 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/philox.h"
#include "base/types.h"

namespace geardb {

inline constexpr uint64_t kTreeFanOut = 32;
inline constexpr uint32_t kTreeFanOutShift = 5;
inline constexpr int kTreeLevelsMax = 8;  ///< Leaves and up to 7 levels of nodes: 2^35 leaves.

/// Number of levels, and where each begins, for a capacity in leaves.
struct TreeShape {
  uint64_t leaf_capacity = 0;
  uint64_t level_offset[kTreeLevelsMax] = {};   ///< Bytes; multiples of 4096.
  uint64_t level_entries[kTreeLevelsMax] = {};  ///< Entries of each level, padded to the fan-out.
  int level_count = 0;                          ///< At least 2: leaves, then nodes up to the root.
  uint64_t bytes = 0;                           ///< Of the whole tree.

  /// The shape for `leaf_capacity` leaves, 1…2^35.
  static constexpr TreeShape ForCapacity(uint64_t leaf_capacity) {
    TreeShape shape;
    shape.leaf_capacity = leaf_capacity;
    uint64_t entries = leaf_capacity;
    uint64_t offset = 0;
    for (int level = 0; level < kTreeLevelsMax; ++level) {
      const uint64_t padded = (entries + kTreeFanOut - 1) / kTreeFanOut * kTreeFanOut;
      shape.level_offset[level] = offset;
      shape.level_entries[level] = padded;
      offset = AlignUp(offset + padded * (level == 0 ? 4 : 8), 4096);
      shape.level_count = level + 1;
      if (level > 0 && entries == 1) break;
      entries = padded / kTreeFanOut;
    }
    shape.bytes = offset;
    return shape;
  }
};

/// Where a descent ended: the leaf, and what was left of the random number there.
struct TreeHit {
  uint64_t leaf = 0;
  uint32_t weight = 0;     ///< The leaf's fixed-point weight q.
  uint64_t remainder = 0;  ///< In [0, weight).
};

/// A weight tree over bytes at `base`. Copied by value; owns nothing. A reader must be ordered
/// against writers by its caller.
struct TreeView {
  std::byte* base = nullptr;
  TreeShape shape;

  GEARDB_HOST_DEVICE uint32_t* leaves() const { return reinterpret_cast<uint32_t*>(base); }
  /// Nodes of level `level`, 1…level_count - 1.
  GEARDB_HOST_DEVICE uint64_t* nodes(int level) const {
    return reinterpret_cast<uint64_t*>(base + shape.level_offset[level]);
  }
  GEARDB_HOST_DEVICE uint64_t total() const { return nodes(shape.level_count - 1)[0]; }

  /// The leaf in which `point`, in [0, total()), falls when the weights are laid end to end.
  GEARDB_HOST_DEVICE TreeHit Descend(uint64_t point) const {
    uint64_t index = 0;
    for (int level = shape.level_count - 2; level >= 1; --level) {
      const uint64_t* children = nodes(level) + index * kTreeFanOut;
      uint64_t child = 0;
      while (child + 1 < kTreeFanOut && point >= children[child]) point -= children[child++];
      index = index * kTreeFanOut + child;
    }
    const uint32_t* children = leaves() + index * kTreeFanOut;
    uint64_t child = 0;
    while (child + 1 < kTreeFanOut && point >= children[child]) point -= children[child++];
    return TreeHit{index * kTreeFanOut + child, children[child], point};
  }
};

}  // namespace geardb
