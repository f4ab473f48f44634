// TakenWeights: what a draw without replacement has taken so far. Weights laid end to end in leaf
// order become shorter by every leaf taken; a point of what remains is moved to where it lies in
// the whole, so that the unchanged weight tree finds its leaf.
//
// Invariants: taken intervals do not overlap; a node's `sum` is that of its subtree; the tree is in
// order of `start`, and a heap of priorities that are a hash of `start`: its depth is that of
// random insertions, whatever the order in which intervals come.
#pragma once

#include <cstdint>
#include <vector>

namespace geardb::index {

class TakenWeights {
 public:
  /// Where `point`, counted over what remains, lies in the whole: in no interval that was taken.
  /// Expected O(log intervals).
  uint64_t Place(uint64_t point) const;
  /// Takes [start, start + weight) of the whole, weight above 0; it overlaps nothing taken.
  /// Expected O(log intervals). At most 2^32 - 2 intervals.
  void Take(uint64_t start, uint64_t weight);
  void Reserve(uint64_t intervals) { nodes_.reserve(intervals + 1); }

 private:
  struct Node {
    uint64_t start = 0;
    uint64_t weight = 0;
    uint64_t sum = 0;
    uint32_t left = 0;
    uint32_t right = 0;
    uint32_t priority = 0;
  };

  /// Divides the subtree `node` into what lies before `start` and what lies behind it.
  void Split(uint32_t node, uint64_t start, uint32_t* before, uint32_t* behind);
  void Sum(uint32_t node);

  std::vector<Node> nodes_ = {Node{}};  // The first stands for "none".
  uint32_t root_ = 0;
};

}  // namespace geardb::index
