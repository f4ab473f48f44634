#include "index/taken_weights.h"

#include "base/check.h"

namespace geardb::index {
namespace {

/// Any hash will do that no weights are made for. Source: the finalizer of MurmurHash3.
uint32_t PriorityOf(uint64_t start) {
  start = (start ^ (start >> 33)) * 0xFF51AFD7ED558CCDu;
  start = (start ^ (start >> 33)) * 0xC4CEB9FE1A85EC53u;
  return static_cast<uint32_t>(start >> 32);
}

}  // namespace

uint64_t TakenWeights::Place(uint64_t point) const {
  uint64_t taken_before = 0;
  for (uint32_t at = root_; at != 0;) {
    const Node& node = nodes_[at];
    const uint64_t before = taken_before + nodes_[node.left].sum;
    if (node.start - before <= point) {
      taken_before = before + node.weight;
      at = node.right;
    } else {
      at = node.left;
    }
  }
  return point + taken_before;
}

void TakenWeights::Take(uint64_t start, uint64_t weight) {
  GEARDB_CHECK(nodes_.size() < UINT32_MAX);
  const auto added = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(
      Node{.start = start, .weight = weight, .sum = weight, .priority = PriorityOf(start)});
  uint32_t* link = &root_;
  while (*link != 0 && nodes_[*link].priority >= nodes_[added].priority) {
    Node& node = nodes_[*link];
    node.sum += weight;
    link = start < node.start ? &node.left : &node.right;
  }
  Split(*link, start, &nodes_[added].left, &nodes_[added].right);
  *link = added;
  Sum(added);
}

void TakenWeights::Split(uint32_t node, uint64_t start, uint32_t* before, uint32_t* behind) {
  if (node == 0) {
    *before = 0;
    *behind = 0;
    return;
  }
  if (nodes_[node].start < start) {
    *before = node;
    Split(nodes_[node].right, start, &nodes_[node].right, behind);
  } else {
    *behind = node;
    Split(nodes_[node].left, start, before, &nodes_[node].left);
  }
  Sum(node);
}

void TakenWeights::Sum(uint32_t node) {
  Node& it = nodes_[node];
  it.sum = it.weight + nodes_[it.left].sum + nodes_[it.right].sum;
}

}  // namespace geardb::index
