#include "index/key_tree.h"

#include <algorithm>

#include "base/check.h"

namespace geardb::index {
namespace {

uint64_t LargestOf(const uint64_t* group) {
  uint64_t largest = 0;
  for (uint64_t i = 0; i < kTreeFanOut; ++i) largest = std::max(largest, group[i]);
  return largest;
}

/// An entry of the tree whose subtree has given no leaf yet.
struct Contender {
  uint64_t key = 0;
  uint64_t index = 0;
  int level = 0;

  friend bool operator<(const Contender& a, const Contender& b) { return a.key < b.key; }
};

/// Where `key` is in a group, and the largest key below it with its place; 0 for none.
struct GroupPlaces {
  uint64_t at = 0;
  uint64_t next_key = 0;
  uint64_t next = 0;
};

GroupPlaces FindInGroup(const uint64_t* group, uint64_t key) {
  GroupPlaces found;
  for (uint64_t i = 0; i < kTreeFanOut; ++i) {
    if (group[i] == key) found.at = i;
    if (group[i] < key && group[i] > found.next_key) {
      found.next_key = group[i];
      found.next = i;
    }
  }
  return found;
}

}  // namespace

KeyTreeShape KeyTreeShape::ForCapacity(uint64_t leaf_capacity) {
  KeyTreeShape shape;
  shape.leaf_capacity = leaf_capacity;
  uint64_t entries = leaf_capacity;
  uint64_t offset = 0;
  for (int level = 0; level < kTreeLevelsMax; ++level) {
    const uint64_t padded = AlignUp(entries, kTreeFanOut);
    shape.level_offset[level] = offset;
    shape.level_entries[level] = padded;
    offset = AlignUp(offset + padded * sizeof(uint64_t), 4096);
    shape.level_count = level + 1;
    if (level > 0 && entries == 1) break;
    entries = padded / kTreeFanOut;
  }
  shape.bytes = offset;
  return shape;
}

uint64_t KeyTreeView::Best(uint64_t floor, uint64_t skip, std::span<uint64_t> leaves) const {
  // Of each group that was looked into, the best entry that has given no leaf yet contends. The
  // winner hands its place to the next best of its group, and is followed down to its leaf; in each
  // group on the way the second best comes to contend. Keys differ, so "next" is the next smaller.
  const int top = shape.level_count - 1;
  std::vector<Contender> contenders;
  const auto push = [&](const Contender& contender) {
    if (contender.key < floor) return;
    contenders.push_back(contender);
    std::push_heap(contenders.begin(), contenders.end());
  };
  push({best(), 0, top});
  uint64_t passed = 0;
  uint64_t written = 0;
  while (written < leaves.size() && !contenders.empty()) {
    std::pop_heap(contenders.begin(), contenders.end());
    Contender winner = contenders.back();
    contenders.pop_back();
    if (winner.level < top) {
      const uint64_t first = winner.index / kTreeFanOut * kTreeFanOut;
      const GroupPlaces places = FindInGroup(keys(winner.level) + first, winner.key);
      push({places.next_key, first + places.next, winner.level});
    }
    while (winner.level > 0) {
      --winner.level;
      const uint64_t first = winner.index * kTreeFanOut;
      const GroupPlaces places = FindInGroup(keys(winner.level) + first, winner.key);
      push({places.next_key, first + places.next, winner.level});
      winner.index = first + places.at;
    }
    if (passed++ >= skip) leaves[written++] = winner.index;
  }
  return written;
}

std::vector<uint64_t> KeyTree::PartBytes(const KeyTreeShape& shape) {
  std::vector<uint64_t> parts;
  for (int level = 0; level < shape.level_count; ++level) {
    const uint64_t end =
        level + 1 < shape.level_count ? shape.level_offset[level + 1] : shape.bytes;
    parts.push_back(end - shape.level_offset[level]);
  }
  return parts;
}

KeyTree::KeyTree(const KeyTreeShape& shape, Region* region, size_t first_part)
    : view_{region->part_base(first_part), shape}, region_(region), first_part_(first_part) {}

Status KeyTree::Reserve(uint64_t leaf_count) {
  uint64_t entries = leaf_count;
  for (int level = 0; level < view_.shape.level_count; ++level) {
    const uint64_t padded = AlignUp(std::max<uint64_t>(entries, 1), kTreeFanOut);
    GEARDB_RETURN_IF_ERROR(
        region_->Commit(first_part_ + static_cast<size_t>(level), padded * sizeof(uint64_t)));
    entries = padded / kTreeFanOut;
  }
  leaf_count_ = std::max(leaf_count_, leaf_count);
  return Status::Ok();
}

void KeyTree::Set(uint64_t leaf, uint64_t key) {
  uint64_t* entry = view_.keys(0) + leaf;
  uint64_t before = *entry;
  *entry = key;
  if (bulk_) return;
  uint64_t index = leaf;
  // Upwards while the winner changes.
  for (int level = 1; level < view_.shape.level_count && before != key; ++level) {
    index /= kTreeFanOut;
    uint64_t& winner = view_.keys(level)[index];
    const uint64_t winner_before = winner;
    if (key > winner) {
      winner = key;
    } else if (winner == before) {
      winner = LargestOf(view_.keys(level - 1) + index * kTreeFanOut);
    }
    before = winner_before;
    key = winner;
  }
}

void KeyTree::SetRun(uint64_t begin, std::span<const uint64_t> keys) {
  std::copy(keys.begin(), keys.end(), view_.keys(0) + begin);
  if (!bulk_) Replay({begin, begin + keys.size()});
}

void KeyTree::Clear(LeafRange range) {
  if (range.size() == 0) return;
  std::fill(view_.keys(0) + range.begin, view_.keys(0) + range.end, 0);
  if (!bulk_) Replay(range);
}

void KeyTree::EndBulk() {
  GEARDB_CHECK(bulk_);
  bulk_ = false;
  Replay({0, leaf_count_});
}

void KeyTree::Replay(LeafRange range) {
  if (range.size() == 0) return;
  uint64_t first = range.begin;
  uint64_t last = range.end - 1;
  for (int level = 1; level < view_.shape.level_count; ++level) {
    first /= kTreeFanOut;
    last /= kTreeFanOut;
    const uint64_t* below = view_.keys(level - 1);
    uint64_t* winners = view_.keys(level);
    for (uint64_t i = first; i <= last; ++i) winners[i] = LargestOf(below + i * kTreeFanOut);
  }
}

}  // namespace geardb::index
