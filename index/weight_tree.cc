#include "index/weight_tree.h"

#include <algorithm>

#include "base/break.h"
#include "base/check.h"
#include "index/limits.h"

namespace geardb::index {
std::vector<uint64_t> WeightTree::PartBytes(const TreeShape& shape) {
  std::vector<uint64_t> parts;
  for (int level = 0; level < shape.level_count; ++level) {
    const uint64_t end =
        level + 1 < shape.level_count ? shape.level_offset[level + 1] : shape.bytes;
    parts.push_back(end - shape.level_offset[level]);
  }
  return parts;
}

WeightTree::WeightTree(const TreeShape& shape, Region* region, size_t first_part,
                       WeightTreeCounts* counts)
    : view_{region->part_base(first_part), shape},
      region_(region),
      first_part_(first_part),
      counts_(counts) {}

Status WeightTree::Reserve(uint64_t leaf_count) {
  uint64_t entries = leaf_count;
  for (int level = 0; level < view_.shape.level_count; ++level) {
    const uint64_t padded = AlignUp(std::max<uint64_t>(entries, 1), kTreeFanOut);
    GEARDB_RETURN_IF_ERROR(
        region_->Commit(first_part_ + static_cast<size_t>(level), padded * (level == 0 ? 4 : 8)));
    entries = padded / kTreeFanOut;
  }
  counts_->leaf_count = std::max(counts_->leaf_count, leaf_count);
  return Status::Ok();
}

void WeightTree::NoteChanges(const LeavesBefore& before, uint32_t after) {
  WeightTreeCounts& counts = *counts_;
  if (counts.nonzero == 0 && after != 0) {
    counts.smallest = after;
    counts.smallest_count = before.count;
  } else if (counts.smallest_count != 0) {
    uint64_t equal = counts.smallest_count - before.as_smallest;
    if (after != 0 && after < counts.smallest) {
      counts.smallest = after;
      equal = before.count;
    } else if (after == counts.smallest) {
      equal += before.count;
    }
    counts.smallest_count = equal;
  }
  counts.nonzero += (after != 0 ? before.count : 0) - before.nonzero;
}

uint64_t WeightTree::NoteChange(uint32_t before, uint32_t after) {
  NoteChanges({1, before != 0 ? 1u : 0u, before == counts_->smallest ? 1u : 0u}, after);
  return uint64_t{after} - before;
}

uint64_t WeightTree::SetGroup(uint64_t begin, uint64_t end, uint32_t weight) {
  uint32_t* const leaves = view_.leaves();
  const uint32_t smallest = counts_->smallest;
  uint64_t sum = 0;
  LeavesBefore before{.count = end - begin};
  for (uint64_t leaf = begin; leaf < end; ++leaf) {
    sum += leaves[leaf];
    before.nonzero += leaves[leaf] != 0 ? 1u : 0u;
    before.as_smallest += leaves[leaf] == smallest ? 1u : 0u;
    leaves[leaf] = weight;
  }
  NoteChanges(before, weight);
  return uint64_t{weight} * before.count - sum;
}

void WeightTree::Set(uint64_t leaf, uint32_t weight) { SetRange(leaf, leaf + 1, weight); }

void WeightTree::Set(std::span<const uint64_t> leaves, std::span<const uint32_t> weights) {
  for (size_t start = 0; start < leaves.size(); start += kChunk) {
    const size_t count = std::min(kChunk, leaves.size() - start);
    SetChunk(leaves.subspan(start, count), weights.subspan(start, count));
  }
}

void WeightTree::SetChunk(std::span<const uint64_t> leaves, std::span<const uint32_t> weights) {
  const size_t count = leaves.size();
  uint32_t* stored = view_.leaves();
  uint64_t* first_nodes = view_.nodes(1);
  uint64_t index[kChunk];
  uint64_t change[kChunk];
  for (size_t i = 0; i < count; ++i) {
    __builtin_prefetch(stored + leaves[i], 1);
    if (!bulk_) __builtin_prefetch(first_nodes + leaves[i] / kTreeFanOut, 1);
  }
  for (size_t i = 0; i < count; ++i) {
    const size_t from = kBreak.swap_update_order ? count - 1 - i : i;
    uint32_t& leaf = stored[leaves[from]];
    index[i] = leaves[from];
    if (!bulk_) change[i] = NoteChange(leaf, weights[from]);
    leaf = weights[from];
  }
  if (bulk_) return;
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += change[i];
  uint64_t last_index = counts_->leaf_count - 1;
  for (int level = 1; level < view_.shape.level_count; ++level) {
    uint64_t* nodes = view_.nodes(level);
    last_index /= kTreeFanOut;
    if (last_index == 0) {
      nodes[0] += sum;  // All changes meet here.
      continue;
    }
    for (size_t i = 0; i < count; ++i) {
      index[i] /= kTreeFanOut;
      nodes[index[i]] += change[i];
    }
  }
}

template <typename ChangeGroup>
void WeightTree::SetConsecutive(uint64_t begin, uint64_t end, ChangeGroup change_group) {
  constexpr uint64_t kSecondSpan = kTreeFanOut * kTreeFanOut;
  for (uint64_t start = begin; start < end;) {
    const uint64_t stop = std::min(end, (start / kSecondSpan + 1) * kSecondSpan);
    uint64_t sum = 0;
    for (uint64_t leaf = start; leaf < stop;) {
      const uint64_t group = leaf / kTreeFanOut;
      const uint64_t group_end = std::min(stop, (group + 1) * kTreeFanOut);
      const uint64_t change = change_group(leaf, group_end);
      view_.nodes(1)[group] += change;
      sum += change;
      leaf = group_end;
    }
    uint64_t index = start / kTreeFanOut;
    for (int level = 2; level < view_.shape.level_count; ++level) {
      index /= kTreeFanOut;
      view_.nodes(level)[index] += sum;
    }
    start = stop;
  }
}

void WeightTree::SetRange(uint64_t begin, uint64_t end, uint32_t weight) {
  if (bulk_) {
    std::fill(view_.leaves() + begin, view_.leaves() + end, weight);
    return;
  }
  SetConsecutive(begin, end, [this, weight](uint64_t first, uint64_t last) {
    return SetGroup(first, last, weight);
  });
}

void WeightTree::SetRun(uint64_t begin, std::span<const uint32_t> weights) {
  uint32_t* const leaves = view_.leaves();
  if (bulk_) {
    std::copy(weights.begin(), weights.end(), leaves + begin);
    return;
  }
  SetConsecutive(begin, begin + weights.size(), [=, this](uint64_t first, uint64_t last) {
    uint64_t change = 0;
    for (uint64_t leaf = first; leaf < last; ++leaf) {
      change += NoteChange(leaves[leaf], weights[leaf - begin]);
      leaves[leaf] = weights[leaf - begin];
    }
    return change;
  });
}

void WeightTree::EndBulk() {
  GEARDB_CHECK(bulk_);
  bulk_ = false;
  RebuildNodes();
}

void WeightTree::RebuildNodes() {
  const uint64_t leaf_count = counts_->leaf_count;
  uint64_t nonzero = 0;
  uint64_t entries = (leaf_count + kTreeFanOut - 1) / kTreeFanOut;
  for (uint64_t group = 0; group < entries; ++group) {
    const uint32_t* leaves = view_.leaves() + group * kTreeFanOut;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < kTreeFanOut; ++i) {
      sum += leaves[i];
      nonzero += leaves[i] != 0 ? 1 : 0;
    }
    view_.nodes(1)[group] = sum;
  }
  for (int level = 2; level < view_.shape.level_count; ++level) {
    const uint64_t* below = view_.nodes(level - 1);
    entries = (entries + kTreeFanOut - 1) / kTreeFanOut;
    for (uint64_t node = 0; node < entries; ++node) {
      uint64_t sum = 0;
      for (uint64_t i = 0; i < kTreeFanOut; ++i) sum += below[node * kTreeFanOut + i];
      view_.nodes(level)[node] = sum;
    }
  }
  counts_->nonzero = nonzero;
  counts_->smallest = 0;
  counts_->smallest_count = 0;
}

uint32_t WeightTree::Smallest() {
  if (counts_->nonzero == 0) return 0;
  if (counts_->smallest_count == 0) {
    uint32_t smallest = UINT32_MAX;
    uint64_t equal = 0;
    ForEachNonzero(view_, 0, counts_->leaf_count, [&](uint64_t, uint32_t weight) {
      if (weight < smallest) {
        smallest = weight;
        equal = 0;
      }
      equal += weight == smallest ? 1 : 0;
    });
    counts_->smallest = smallest;
    counts_->smallest_count = equal;
  }
  return counts_->smallest;
}

}  // namespace geardb::index
