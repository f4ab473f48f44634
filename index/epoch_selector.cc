#include "index/epoch_selector.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "index/distinct_draw.h"
#include "index/limits.h"

namespace geardb::index {
namespace {

constexpr size_t kEpochHeaderPart = 0;
constexpr size_t kEpochMembersPart = 1;
constexpr size_t kEpochCutPart = 2;
constexpr size_t kEpochRemainingPart = 3;
constexpr size_t kEpochHiddenPart = 4;
constexpr size_t kEpochTreePart = 5;

EpochHeader* EpochHeaderAt(std::byte* region) { return reinterpret_cast<EpochHeader*>(region); }

}  // namespace

EpochView::EpochView(std::byte* region)
    : header_(EpochHeaderAt(region)),
      members_(region + header_->members_offset),
      cut_(region + header_->cut_offset),
      remaining_(region + header_->remaining_offset),
      hidden_(region, &header_->hidden),
      tree_{region + header_->tree_offset,
            TreeShape::ForCapacity(BucketCount(header_->leaf_capacity))} {}

uint64_t EpochView::Draw(const DrawRequest& request, std::span<uint64_t> leaves,
                         std::span<double> probabilities) const {
  const VisibleSet set = drawable();
  const uint64_t drawn = DrawDistinct(
      request, total(), leaves.size(),
      [&](uint64_t rank) {
        return TreeHit{.leaf = SelectVisible(tree_, set, rank), .weight = 1, .remainder = 0};
      },
      [&](uint64_t row, const TreeHit& hit) { leaves[row] = hit.leaf; });
  if (drawn > 0 && !probabilities.empty()) {
    std::fill_n(probabilities.begin(), drawn, 1.0 / static_cast<double>(total()));
  }
  return drawn;
}

Result<std::unique_ptr<EpochSelector>> EpochSelector::Create(IndexMemory* memory,
                                                             std::string_view name,
                                                             uint64_t leaf_capacity) {
  if (leaf_capacity == 0 || leaf_capacity > kLeafCapacityMax) {
    return Status::InvalidArgument("epoch selector '", name, "' for ", leaf_capacity,
                                   " leaves: 1 to ", kLeafCapacityMax, " are possible");
  }
  std::vector<uint64_t> parts = {sizeof(EpochHeader)};
  parts.insert(parts.end(), kEpochTreePart - kEpochMembersPart, Membership::Bytes(leaf_capacity));
  for (const uint64_t bytes :
       WeightTree::PartBytes(TreeShape::ForCapacity(BucketCount(leaf_capacity)))) {
    parts.push_back(bytes);
  }
  GEARDB_ASSIGN_OR_RETURN(Region region, memory->Reserve(name, parts));
  GEARDB_RETURN_IF_ERROR(region.Commit(kEpochHeaderPart, sizeof(EpochHeader)));
  EpochHeader* header = EpochHeaderAt(region.base());
  header->leaf_capacity = leaf_capacity;
  header->members_offset = region.part_offset(kEpochMembersPart);
  header->cut_offset = region.part_offset(kEpochCutPart);
  header->remaining_offset = region.part_offset(kEpochRemainingPart);
  header->hidden.offset = region.part_offset(kEpochHiddenPart);
  header->tree_offset = region.part_offset(kEpochTreePart);
  return std::unique_ptr<EpochSelector>(new EpochSelector(std::move(region)));
}

EpochSelector::EpochSelector(Region region)
    : region_(std::move(region)),
      view_(region_.base()),
      hidden_(&region_, kEpochHiddenPart, &view_.header_->hidden),
      tree_(view_.tree_.shape, &region_, kEpochTreePart, &view_.header_->tree_counts) {}

Status EpochSelector::Reserve(uint64_t leaf_count) {
  if (leaf_count <= reserved()) return Status::Ok();
  for (const size_t part : {kEpochMembersPart, kEpochCutPart, kEpochRemainingPart}) {
    GEARDB_RETURN_IF_ERROR(region_.Commit(part, Membership::Bytes(leaf_count)));
  }
  GEARDB_RETURN_IF_ERROR(hidden_.Grow(leaf_count));
  GEARDB_RETURN_IF_ERROR(tree_.Reserve(BucketCount(leaf_count)));
  view_.header_->reserved = leaf_count;
  return Status::Ok();
}

void EpochSelector::BeginEpoch() {
  EpochHeader& header = *view_.header_;
  view_.cut_.CopyFrom(view_.members_, reserved());
  header.cut = header.count;
  ++header.epoch;
  header.pass = 1;
  PutAllBack();
}

void EpochSelector::BeginPass() {
  ++view_.header_->pass;
  PutAllBack();
}

void EpochSelector::PutAllBack() {
  view_.remaining_.CopyFrom(view_.cut_, reserved());
  view_.header_->remaining = view_.header_->cut;
  RecountBuckets(view_.drawable(), {0, reserved()}, &tree_);
}

uint64_t EpochSelector::Take(std::span<const uint64_t> leaves) {
  uint64_t changed = 0;
  for (const uint64_t leaf : leaves) {
    if (leaf >= reserved() || !view_.remaining_.Clear(leaf)) continue;
    ++changed;
    RecountBuckets(view_.drawable(), {leaf, leaf + 1}, &tree_);
  }
  view_.header_->remaining -= changed;
  return changed;
}

void EpochSelector::TakeAll() {
  view_.remaining_.ClearRange({0, reserved()});
  view_.header_->remaining = 0;
  RecountBuckets(view_.drawable(), {0, reserved()}, &tree_);
}

uint64_t EpochSelector::GiveBack(std::span<const uint64_t> leaves) {
  uint64_t changed = 0;
  for (const uint64_t leaf : leaves) {
    if (leaf >= reserved() || !view_.cut_.Contains(leaf) || !view_.remaining_.Set(leaf)) continue;
    ++changed;
    RecountBuckets(view_.drawable(), {leaf, leaf + 1}, &tree_);
  }
  view_.header_->remaining += changed;
  return changed;
}

void EpochSelector::RestoreCut(std::span<const uint64_t> leaves) {
  for (const uint64_t leaf : leaves) {
    GEARDB_CHECK(Contains(leaf));
    view_.header_->cut += view_.cut_.Set(leaf) ? 1u : 0u;
  }
}

void EpochSelector::RestoreNumbers(uint64_t epoch, uint64_t pass) {
  view_.header_->epoch = epoch;
  view_.header_->pass = pass;
}

uint64_t EpochSelector::Insert(LeafRange range, float /*raw_priority*/) {
  GEARDB_CHECK(range.end <= reserved());
  const uint64_t added = view_.members_.SetRange(range);
  view_.header_->count += added;
  return added;
}

uint64_t EpochSelector::Insert(std::span<const uint64_t> leaves,
                               std::span<const float> raw_priorities) {
  GEARDB_CHECK(leaves.size() == raw_priorities.size());
  uint64_t added = 0;
  for (const uint64_t leaf : leaves) {
    GEARDB_CHECK(leaf < reserved());
    added += view_.members_.Set(leaf) ? 1u : 0u;
  }
  view_.header_->count += added;
  return added;
}

uint64_t EpochSelector::Erase(LeafRange range) {
  range.end = std::min(range.end, reserved());
  EpochHeader& header = *view_.header_;
  hidden_.Forget(range);
  const uint64_t removed = view_.members_.ClearRange(range);
  header.count -= removed;
  header.cut -= view_.cut_.ClearRange(range);
  const uint64_t remained = view_.remaining_.ClearRange(range);
  header.remaining -= remained;
  if (remained > 0) RecountBuckets(view_.drawable(), range, &tree_);
  return removed;
}

uint64_t EpochSelector::Update(std::span<const uint64_t> leaves,
                               std::span<const float> raw_priorities) {
  GEARDB_CHECK(leaves.size() == raw_priorities.size());
  uint64_t applied = 0;
  for (const uint64_t leaf : leaves) applied += Contains(leaf) ? 1u : 0u;
  return applied;
}

uint64_t EpochSelector::Hide(std::span<const uint64_t> leaves) {
  uint64_t changed = 0;
  for (const uint64_t leaf : leaves) {
    if (!Contains(leaf) || !hidden_.Set(leaf)) continue;
    ++changed;
    RecountBuckets(view_.drawable(), {leaf, leaf + 1}, &tree_);
  }
  return changed;
}

uint64_t EpochSelector::Show(std::span<const uint64_t> leaves) {
  uint64_t changed = 0;
  for (const uint64_t leaf : leaves) {
    if (leaf >= reserved() || !hidden_.Clear(leaf)) continue;
    ++changed;
    RecountBuckets(view_.drawable(), {leaf, leaf + 1}, &tree_);
  }
  return changed;
}

}  // namespace geardb::index
