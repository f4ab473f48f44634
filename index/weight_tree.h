// WeightTree: changes and batched draws of the weight tree whose layout base/tree_view.h gives.
//
// Invariants: every node is the sum of its 32 children, except between BeginBulk and EndBulk;
// counts().nonzero is the number of leaves above zero; entries never set are zero, so a tree holds
// the same bytes for the same leaves whatever the order of changes that led there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/tree_view.h"
#include "index/index_memory.h"

namespace geardb::index {

/// What is counted beside the tree, in its memory. Fixed layout.
struct WeightTreeCounts {
  uint64_t nonzero = 0;         ///< Leaves above zero: the n of an importance weight.
  uint64_t leaf_count = 0;      ///< Leaves committed; those from here on may not be touched.
  uint64_t smallest_count = 0;  ///< Leaves equal to `smallest`; 0: `smallest` is not known.
  uint32_t smallest = 0;        ///< The smallest weight above zero, when known.
  uint32_t unused = 0;
};
static_assert(sizeof(WeightTreeCounts) == 32);

/// Calls `visit(leaf, weight)` for leaves above zero in [begin, end), in order, passing over
/// subtrees whose sum is zero.
template <typename Visit>
void ForEachNonzero(const TreeView& view, uint64_t begin, uint64_t end, Visit visit);

/// The writer of one tree. It lives in consecutive parts of a region of its owner's, one part per
/// level, and keeps its counts where the owner says. Not thread-safe: the owner orders it.
class WeightTree {
 public:
  /// The sizes of the parts that a tree of this capacity needs, level by level.
  static std::vector<uint64_t> PartBytes(const TreeShape& shape);

  WeightTree() = default;
  /// `region` has the tree's parts from `first_part` on; `counts` lies in committed, zeroed index
  /// memory. Both outlive the tree.
  WeightTree(const TreeShape& shape, Region* region, size_t first_part, WeightTreeCounts* counts);

  /// Makes leaves [0, leaf_count) usable. The only call that can fail: ResourceExhausted.
  Status Reserve(uint64_t leaf_count);

  /// Sets one leaf.
  void Set(uint64_t leaf, uint32_t weight);
  /// Sets many; of equal leaves the last wins. Both spans have one length.
  void Set(std::span<const uint64_t> leaves, std::span<const uint32_t> weights);
  /// Sets leaves [begin, end) to one weight.
  void SetRange(uint64_t begin, uint64_t end, uint32_t weight);
  /// Sets leaves from `begin` on, one after the other.
  void SetRun(uint64_t begin, std::span<const uint32_t> weights);

  /// Until EndBulk changes reach the leaves only: for recovery, and for a rescale.
  void BeginBulk() { bulk_ = true; }
  bool in_bulk() const { return bulk_; }
  /// Sums all nodes bottom-up, once.
  void EndBulk();
  /// Recomputes all nodes and counts from the leaves.
  void RebuildNodes();

  uint32_t leaf(uint64_t leaf) const { return view_.leaves()[leaf]; }
  uint64_t total() const { return view_.total(); }
  uint64_t nonzero() const { return counts_->nonzero; }
  uint64_t leaf_count() const { return counts_->leaf_count; }
  /// The smallest weight above zero, 0 for an empty tree. Known, or found by a pass over all leaves
  /// after the last leaf of that weight has changed.
  uint32_t Smallest();

  const TreeView& view() const { return view_; }

 private:
  /// What leaves were that all become one weight.
  struct LeavesBefore {
    uint64_t count = 0;
    uint64_t nonzero = 0;
    uint64_t as_smallest = 0;  ///< Equal to the smallest weight, as far as that is known.
  };
  /// Notes in the counts that they do.
  void NoteChanges(const LeavesBefore& before, uint32_t after);
  /// Notes a leaf's change in the counts and returns by how much sums change (mod 2^64).
  uint64_t NoteChange(uint32_t before, uint32_t after);
  /// Sets leaves of one group to one weight, and returns likewise.
  uint64_t SetGroup(uint64_t begin, uint64_t end, uint32_t weight);
  /// Calls `change_group(first, last)` for the groups' parts of [begin, end), and adds what it
  /// returns to the nodes above.
  template <typename ChangeGroup>
  void SetConsecutive(uint64_t begin, uint64_t end, ChangeGroup change_group);
  void SetChunk(std::span<const uint64_t> leaves, std::span<const uint32_t> weights);

  TreeView view_;
  Region* region_ = nullptr;
  size_t first_part_ = 0;
  WeightTreeCounts* counts_ = nullptr;
  bool bulk_ = false;
};

template <typename Visit>
void ForEachNonzero(const TreeView& view, uint64_t begin, uint64_t end, Visit visit) {
  uint64_t leaf = begin;
  while (leaf < end) {
    // Step over the largest aligned subtrees of zero that start here.
    int level = 0;
    uint64_t index = leaf;
    while (level + 2 < view.shape.level_count && index % kTreeFanOut == 0 &&
           view.nodes(level + 1)[index / kTreeFanOut] == 0) {
      ++level;
      index /= kTreeFanOut;
    }
    if (level > 0) {
      leaf = (index + 1) << (static_cast<uint32_t>(level) * kTreeFanOutShift);
      continue;
    }
    const uint32_t weight = view.leaves()[leaf];
    if (weight != 0) visit(leaf, weight);
    ++leaf;
  }
}

}  // namespace geardb::index
