// KeyTree: which leaf has the largest key, and the n leaves with the largest keys in order. A
// tournament tree over one u64 key for each leaf, fan-out 32, over caller-supplied bytes, with
// offsets only.
//
// Level 0 is the array of keys, 0 where a leaf has none; an entry of level k is the largest of
// kTreeFanOut entries of level k - 1; the top level has one. Every level lies at an offset that
// depends on the capacity alone, so that leaves can be committed as a table grows.
//
// Invariants: an entry equals the largest of those below it, except between BeginBulk and EndBulk;
// entries never set are 0; no two leaves have the same key above 0 (callers see to it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/tree_view.h"
#include "index/index_memory.h"
#include "index/membership.h"

namespace geardb::index {

/// Number of levels, and where each begins, for a capacity in leaves.
struct KeyTreeShape {
  uint64_t leaf_capacity = 0;
  uint64_t level_offset[kTreeLevelsMax] = {};   ///< Bytes; multiples of 4096.
  uint64_t level_entries[kTreeLevelsMax] = {};  ///< Entries of each level, padded to the fan-out.
  int level_count = 0;                          ///< At least 2: keys, then winners up to the root.
  uint64_t bytes = 0;                           ///< Of the whole tree.

  /// The shape for `leaf_capacity` leaves, 1…2^35.
  static KeyTreeShape ForCapacity(uint64_t leaf_capacity);
};

/// A key tree over bytes at `base`. Copied by value; owns nothing. A reader must be ordered against
/// writers by its caller.
struct KeyTreeView {
  std::byte* base = nullptr;
  KeyTreeShape shape;

  uint64_t* keys(int level) const {
    return reinterpret_cast<uint64_t*>(base + shape.level_offset[level]);
  }
  /// The largest key of all; 0 when there is none.
  uint64_t best() const { return keys(shape.level_count - 1)[0]; }

  /// Writes the leaves with the largest keys of at least `floor` (above 0), the largest first,
  /// after passing over the first `skip` of them. Returns how many it wrote: fewer than
  /// leaves.size() when there are no more. O(log n) a leaf, also for each one passed over.
  uint64_t Best(uint64_t floor, uint64_t skip, std::span<uint64_t> leaves) const;
};

/// The writer of one tree. It lives in consecutive parts of a region of its owner's, one part per
/// level. Not thread-safe: the owner orders it.
class KeyTree {
 public:
  /// The sizes of the parts that a tree of this capacity needs, level by level.
  static std::vector<uint64_t> PartBytes(const KeyTreeShape& shape);

  /// `region` has the tree's parts from `first_part` on and outlives the tree.
  KeyTree(const KeyTreeShape& shape, Region* region, size_t first_part);

  /// Makes leaves [0, leaf_count) usable. The only call that can fail: ResourceExhausted.
  Status Reserve(uint64_t leaf_count);

  /// Sets one leaf's key; 0 takes it away.
  void Set(uint64_t leaf, uint64_t key);
  /// Sets leaves from `begin` on, one after the other.
  void SetRun(uint64_t begin, std::span<const uint64_t> keys);
  /// Takes the keys of a range away.
  void Clear(LeafRange range);

  uint64_t key(uint64_t leaf) const { return view_.keys(0)[leaf]; }
  const KeyTreeView& view() const { return view_; }

  /// Until EndBulk changes reach the keys only, and best() and Best() mean nothing.
  void BeginBulk() { bulk_ = true; }
  bool in_bulk() const { return bulk_; }
  /// Finds all winners bottom-up, once.
  void EndBulk();

 private:
  /// Finds the winners above the leaves of a range anew.
  void Replay(LeafRange range);

  KeyTreeView view_;
  Region* region_;
  size_t first_part_;
  uint64_t leaf_count_ = 0;
  bool bulk_ = false;
};

}  // namespace geardb::index
