#include "index/ordered_selector.h"

#include <array>
#include <utility>
#include <vector>

#include "base/check.h"
#include "index/limits.h"

namespace geardb::index {
namespace {

constexpr size_t kOrderedHeaderPart = 0;
constexpr size_t kOrderedMembersPart = 1;
constexpr size_t kOrderedTreePart = 2;

OrderedHeader* OrderedHeaderAt(std::byte* region) {
  return reinterpret_cast<OrderedHeader*>(region);
}

}  // namespace

OrderedView::OrderedView(std::byte* region)
    : header_(OrderedHeaderAt(region)),
      members_(region + header_->members_offset),
      tree_{region + header_->tree_offset, KeyTreeShape::ForCapacity(header_->leaf_capacity)} {}

uint64_t OrderedView::Draw(const DrawRequest& request, std::span<uint64_t> leaves,
                           std::span<double> probabilities) const {
  const uint64_t drawn = tree_.Best(kVisibleKey, request.first_row, leaves);
  if (!probabilities.empty()) std::fill_n(probabilities.begin(), drawn, 1.0);
  return drawn;
}

Result<std::unique_ptr<OrderedSelector>> OrderedSelector::Create(IndexMemory* memory,
                                                                 std::string_view name,
                                                                 const Options& options) {
  const uint64_t most = LeafCapacityMax(options.order);
  if (options.leaf_capacity == 0 || options.leaf_capacity > most) {
    return Status::InvalidArgument("ordered selector '", name, "' for ", options.leaf_capacity,
                                   " leaves: 1 to ", most, " are possible");
  }
  GEARDB_CHECK(options.next_sequence <= UINT32_MAX);
  std::vector<uint64_t> parts = {sizeof(OrderedHeader), Membership::Bytes(options.leaf_capacity)};
  for (const uint64_t bytes :
       KeyTree::PartBytes(KeyTreeShape::ForCapacity(options.leaf_capacity))) {
    parts.push_back(bytes);
  }
  GEARDB_ASSIGN_OR_RETURN(Region region, memory->Reserve(name, parts));
  GEARDB_RETURN_IF_ERROR(region.Commit(kOrderedHeaderPart, sizeof(OrderedHeader)));
  OrderedHeader* header = OrderedHeaderAt(region.base());
  header->leaf_capacity = options.leaf_capacity;
  header->order = options.order;
  header->next_sequence = options.next_sequence;
  header->members_offset = region.part_offset(kOrderedMembersPart);
  header->tree_offset = region.part_offset(kOrderedTreePart);
  header->max_priority = 1.0f;
  return std::unique_ptr<OrderedSelector>(new OrderedSelector(std::move(region)));
}

OrderedSelector::OrderedSelector(Region region)
    : region_(std::move(region)),
      view_(region_.base()),
      tree_(view_.tree_.shape, &region_, kOrderedTreePart) {}

Status OrderedSelector::Reserve(uint64_t leaf_count) {
  if (leaf_count <= reserved()) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(region_.Commit(kOrderedMembersPart, Membership::Bytes(leaf_count)));
  GEARDB_RETURN_IF_ERROR(tree_.Reserve(leaf_count));
  view_.header_->reserved = leaf_count;
  return Status::Ok();
}

void OrderedSelector::MakeSequences(uint64_t members) {
  if (members > SequenceLimit(order()) - view_.header_->next_sequence) NumberAnew();
}

void OrderedSelector::NumberAnew() {
  // No heap has more than 2^31 leaves: sequence number and leaf fit 63 bits.
  GEARDB_CHECK(OrdersByPriority(order()));
  constexpr uint64_t kLeafBits = 31;
  std::vector<uint64_t> by_age;
  by_age.reserve(count());
  ForEachMember({0, reserved()}, [&](uint64_t leaf) {
    by_age.push_back(SequenceOfKey(order(), tree_.key(leaf)) << kLeafBits | leaf);
  });
  std::sort(by_age.begin(), by_age.end());
  const bool in_bulk = tree_.in_bulk();
  if (!in_bulk) tree_.BeginBulk();
  for (uint64_t i = 0; i < by_age.size(); ++i) {
    const uint64_t leaf = by_age[i] & ((uint64_t{1} << kLeafBits) - 1);
    const uint64_t visible = tree_.key(leaf) & kVisibleKey;
    const uint64_t key = MakeKey(order(), raw_priority(leaf), i);
    tree_.Set(leaf, (key & kKeyMask) | visible);
  }
  if (!in_bulk) tree_.EndBulk();
  view_.header_->next_sequence = by_age.size();
}

uint64_t OrderedSelector::KeyFor(uint64_t leaf, float raw_priority, uint64_t* added) {
  if (view_.members_.Set(leaf)) {
    ++*added;
    return MakeKey(order(), raw_priority, view_.header_->next_sequence++);
  }
  const uint64_t before = tree_.key(leaf);
  if (!OrdersByPriority(order())) return before;
  const uint64_t key = MakeKey(order(), raw_priority, SequenceOfKey(order(), before));
  return (key & kKeyMask) | (before & kVisibleKey);
}

uint64_t OrderedSelector::Insert(LeafRange range, float raw_priority) {
  GEARDB_CHECK(range.end <= reserved());
  if (range.size() == 0) return 0;
  OrderedHeader& header = *view_.header_;
  if (OrdersByPriority(order())) {
    GEARDB_CHECK(ValidPriority(raw_priority));
    header.max_priority = std::max(header.max_priority, raw_priority);
  }
  uint64_t added = 0;
  std::array<uint64_t, kChunk> keys;
  for (uint64_t begin = range.begin; begin < range.end; begin += kChunk) {
    const uint64_t count = std::min<uint64_t>(kChunk, range.end - begin);
    MakeSequences(count);
    for (uint64_t i = 0; i < count; ++i) keys[i] = KeyFor(begin + i, raw_priority, &added);
    tree_.SetRun(begin, std::span(keys).first(count));
  }
  header.count += added;
  return added;
}

uint64_t OrderedSelector::Insert(std::span<const uint64_t> leaves,
                                 std::span<const float> raw_priorities) {
  GEARDB_CHECK(leaves.size() == raw_priorities.size());
  OrderedHeader& header = *view_.header_;
  uint64_t added = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    GEARDB_CHECK(leaves[i] < reserved());
    if (OrdersByPriority(order())) {
      GEARDB_CHECK(ValidPriority(raw_priorities[i]));
      header.max_priority = std::max(header.max_priority, raw_priorities[i]);
    }
    MakeSequences(1);
    uint64_t new_here = 0;
    tree_.Set(leaves[i], KeyFor(leaves[i], raw_priorities[i], &new_here));
    header.count += new_here;
    added += new_here;
  }
  return added;
}

void OrderedSelector::Restore(std::span<const uint64_t> leaves,
                              std::span<const float> raw_priorities,
                              std::span<const uint64_t> sequences) {
  GEARDB_CHECK(leaves.size() == raw_priorities.size() && leaves.size() == sequences.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    GEARDB_CHECK(leaves[i] < reserved() && sequences[i] < SequenceLimit(order()));
    GEARDB_CHECK(view_.members_.Set(leaves[i]));
    tree_.Set(leaves[i], MakeKey(order(), raw_priorities[i], sequences[i]));
  }
  view_.header_->count += leaves.size();
}

uint64_t OrderedSelector::Erase(LeafRange range) {
  range.end = std::min(range.end, reserved());
  if (range.size() == 0) return 0;
  OrderedHeader& header = *view_.header_;
  if (header.hidden > 0) {
    view_.members_.ForEach(range,
                           [&](uint64_t leaf) { header.hidden -= IsHidden(leaf) ? 1u : 0u; });
  }
  const uint64_t removed = view_.members_.ClearRange(range);
  if (removed > 0) tree_.Clear(range);
  header.count -= removed;
  return removed;
}

uint64_t OrderedSelector::Update(std::span<const uint64_t> leaves,
                                 std::span<const float> raw_priorities) {
  GEARDB_CHECK(leaves.size() == raw_priorities.size());
  OrderedHeader& header = *view_.header_;
  uint64_t applied = 0;
  uint64_t none = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!Contains(leaves[i])) continue;
    ++applied;
    if (!OrdersByPriority(order())) continue;
    GEARDB_CHECK(ValidPriority(raw_priorities[i]));
    header.max_priority = std::max(header.max_priority, raw_priorities[i]);
    tree_.Set(leaves[i], KeyFor(leaves[i], raw_priorities[i], &none));
  }
  return applied;
}

uint64_t OrderedSelector::Hide(std::span<const uint64_t> leaves) {
  uint64_t changed = 0;
  for (const uint64_t leaf : leaves) {
    if (!Contains(leaf) || IsHidden(leaf)) continue;
    tree_.Set(leaf, tree_.key(leaf) & kKeyMask);
    ++changed;
  }
  view_.header_->hidden += changed;
  return changed;
}

uint64_t OrderedSelector::Show(std::span<const uint64_t> leaves) {
  uint64_t changed = 0;
  for (const uint64_t leaf : leaves) {
    if (!IsHidden(leaf)) continue;
    tree_.Set(leaf, tree_.key(leaf) | kVisibleKey);
    ++changed;
  }
  view_.header_->hidden -= changed;
  return changed;
}

}  // namespace geardb::index
