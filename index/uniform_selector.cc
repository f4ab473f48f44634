#include "index/uniform_selector.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/check.h"
#include "index/draw_points.h"
#include "index/limits.h"
#include "index/tree_descent.h"

namespace geardb::index {
namespace {

constexpr size_t kUniformHeaderPart = 0;
constexpr size_t kUniformMembersPart = 1;
constexpr size_t kUniformHiddenPart = 2;
constexpr size_t kUniformTreePart = 3;

UniformHeader* UniformHeaderAt(std::byte* region) {
  return reinterpret_cast<UniformHeader*>(region);
}

}  // namespace

UniformView::UniformView(std::byte* region)
    : header_(UniformHeaderAt(region)),
      members_(region + header_->members_offset),
      hidden_(region, &header_->hidden),
      tree_{region + header_->tree_offset,
            TreeShape::ForCapacity(BucketCount(header_->leaf_capacity))} {}

uint64_t UniformView::Select(uint64_t rank) const { return SelectVisible(tree_, visible(), rank); }

uint64_t UniformView::Draw(const DrawRequest& request, std::span<uint64_t> leaves,
                           std::span<double> probabilities) const {
  const uint64_t all = total();
  if (all == 0) return 0;
  const VisibleSet set = visible();
  std::array<uint64_t, kChunk> points;
  std::array<TreeHit, kChunk> hits;
  for (size_t start = 0; start < leaves.size(); start += kChunk) {
    const size_t count = std::min(kChunk, leaves.size() - start);
    const DrawRequest chunk{request.seed, request.draw_number,
                            request.first_row + static_cast<uint32_t>(start)};
    DrawPoints(chunk, all, std::span(points).first(count));
    DescendBatch(tree_, std::span(points).first(count), std::span(hits).first(count));
    for (size_t i = 0; i < count; ++i) set.PrefetchBucket(hits[i].leaf);
    for (size_t i = 0; i < count; ++i) {
      leaves[start + i] =
          set.SelectInBucket(hits[i].leaf, static_cast<uint32_t>(hits[i].remainder));
    }
  }
  const double probability = 1.0 / static_cast<double>(all);
  std::fill(probabilities.begin(), probabilities.end(), probability);
  return leaves.size();
}

Result<std::unique_ptr<UniformSelector>> UniformSelector::Create(IndexMemory* memory,
                                                                 std::string_view name,
                                                                 uint64_t leaf_capacity) {
  if (leaf_capacity == 0 || leaf_capacity > kLeafCapacityMax) {
    return Status::InvalidArgument("uniform selector '", name, "' for ", leaf_capacity,
                                   " leaves: 1 to ", kLeafCapacityMax, " are possible");
  }
  std::vector<uint64_t> parts = {sizeof(UniformHeader), Membership::Bytes(leaf_capacity),
                                 Membership::Bytes(leaf_capacity)};
  for (const uint64_t bytes :
       WeightTree::PartBytes(TreeShape::ForCapacity(BucketCount(leaf_capacity)))) {
    parts.push_back(bytes);
  }
  GEARDB_ASSIGN_OR_RETURN(Region region, memory->Reserve(name, parts));
  GEARDB_RETURN_IF_ERROR(region.Commit(kUniformHeaderPart, sizeof(UniformHeader)));
  UniformHeader* header = UniformHeaderAt(region.base());
  header->leaf_capacity = leaf_capacity;
  header->members_offset = region.part_offset(kUniformMembersPart);
  header->hidden.offset = region.part_offset(kUniformHiddenPart);
  header->tree_offset = region.part_offset(kUniformTreePart);
  return std::unique_ptr<UniformSelector>(new UniformSelector(std::move(region)));
}

UniformSelector::UniformSelector(Region region)
    : region_(std::move(region)),
      view_(region_.base()),
      hidden_(&region_, kUniformHiddenPart, &view_.header_->hidden),
      tree_(view_.tree_.shape, &region_, kUniformTreePart, &view_.header_->tree_counts) {}

Status UniformSelector::Reserve(uint64_t leaf_count) {
  if (leaf_count <= reserved()) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(region_.Commit(kUniformMembersPart, Membership::Bytes(leaf_count)));
  GEARDB_RETURN_IF_ERROR(hidden_.Grow(leaf_count));
  GEARDB_RETURN_IF_ERROR(tree_.Reserve(BucketCount(leaf_count)));
  view_.header_->reserved = leaf_count;
  return Status::Ok();
}

uint64_t UniformSelector::Insert(LeafRange range, float /*raw_priority*/) {
  GEARDB_CHECK(range.end <= reserved());
  const uint64_t changed = view_.members_.SetRange(range);
  view_.header_->count += changed;
  if (changed > 0) RecountBuckets(view_.visible(), range, &tree_);
  return changed;
}

uint64_t UniformSelector::Insert(std::span<const uint64_t> leaves,
                                 std::span<const float> raw_priorities) {
  GEARDB_CHECK(leaves.size() == raw_priorities.size());
  uint64_t changed = 0;
  for (const uint64_t leaf : leaves) {
    GEARDB_CHECK(leaf < reserved());
    changed += view_.members_.Set(leaf) ? 1u : 0u;
  }
  RecountBuckets(view_.visible(), leaves, &tree_);
  view_.header_->count += changed;
  return changed;
}

uint64_t UniformSelector::Erase(LeafRange range) {
  range.end = std::min(range.end, reserved());
  hidden_.Forget(range);
  const uint64_t changed = view_.members_.ClearRange(range);
  view_.header_->count -= changed;
  if (changed > 0) RecountBuckets(view_.visible(), range, &tree_);
  return changed;
}

uint64_t UniformSelector::Update(std::span<const uint64_t> leaves,
                                 std::span<const float> raw_priorities) {
  GEARDB_CHECK(leaves.size() == raw_priorities.size());
  uint64_t applied = 0;
  for (const uint64_t leaf : leaves) applied += Contains(leaf) ? 1u : 0u;
  return applied;
}

uint64_t UniformSelector::Hide(std::span<const uint64_t> leaves) {
  uint64_t changed = 0;
  for (const uint64_t leaf : leaves) {
    if (!Contains(leaf) || !hidden_.Set(leaf)) continue;
    ++changed;
    RecountBuckets(view_.visible(), {leaf, leaf + 1}, &tree_);
  }
  return changed;
}

uint64_t UniformSelector::Show(std::span<const uint64_t> leaves) {
  uint64_t changed = 0;
  for (const uint64_t leaf : leaves) {
    if (leaf >= reserved() || !hidden_.Clear(leaf)) continue;
    ++changed;
    RecountBuckets(view_.visible(), {leaf, leaf + 1}, &tree_);
  }
  return changed;
}

}  // namespace geardb::index
