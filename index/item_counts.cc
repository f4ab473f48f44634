#include "index/item_counts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "index/limits.h"

namespace geardb::index {
namespace {

constexpr size_t kCountsHeaderPart = 0;
constexpr size_t kCountsCountsPart = 1;

Status CheckMaxTimes(uint32_t max_times) {
  if (max_times <= ItemCounts::kMaxTimesMax) return Status::Ok();
  return Status::InvalidArgument("a maximum of ", max_times, " samples of an item; 0 to ",
                                 ItemCounts::kMaxTimesMax, " are possible");
}

}  // namespace

ItemCountsView::ItemCountsView(std::byte* region)
    : header_(reinterpret_cast<ItemCountsHeader*>(region)),
      counts_(reinterpret_cast<ItemCount*>(region + header_->counts_offset)) {}

Result<std::unique_ptr<ItemCounts>> ItemCounts::Create(IndexMemory* memory, std::string_view name,
                                                       const Options& options) {
  if (options.leaf_capacity == 0 || options.leaf_capacity > kLeafCapacityMax) {
    return Status::InvalidArgument("item counts '", name, "' for ", options.leaf_capacity,
                                   " leaves: 1 to ", kLeafCapacityMax, " are possible");
  }
  GEARDB_RETURN_IF_ERROR(CheckMaxTimes(options.max_times));
  GEARDB_ASSIGN_OR_RETURN(
      Region region,
      memory->Reserve(name, {sizeof(ItemCountsHeader), options.leaf_capacity * sizeof(ItemCount)}));
  GEARDB_RETURN_IF_ERROR(region.Commit(kCountsHeaderPart, sizeof(ItemCountsHeader)));
  auto* header = reinterpret_cast<ItemCountsHeader*>(region.base());
  header->leaf_capacity = options.leaf_capacity;
  header->counts_offset = region.part_offset(kCountsCountsPart);
  header->max_times = options.max_times;
  return std::unique_ptr<ItemCounts>(new ItemCounts(std::move(region)));
}

ItemCounts::ItemCounts(Region region) : region_(std::move(region)), view_(region_.base()) {}

Status ItemCounts::Reserve(uint64_t leaf_count) {
  if (leaf_count <= reserved()) return Status::Ok();
  if (leaf_count > view_.header_->leaf_capacity) {
    return Status::ResourceExhausted("'", region_.name(), "' has room for ",
                                     view_.header_->leaf_capacity, " leaves, not for ", leaf_count);
  }
  GEARDB_RETURN_IF_ERROR(region_.Commit(kCountsCountsPart, leaf_count * sizeof(ItemCount)));
  view_.header_->reserved = leaf_count;
  return Status::Ok();
}

ItemCounts::ReserveOutcome ItemCounts::Reserve(std::span<const uint64_t> leaves) {
  ReserveOutcome outcome;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const uint64_t leaf = leaves[i];
    GEARDB_CHECK(leaf < reserved());
    if (view_.IsFull(leaf)) {
      outcome.refused.push_back(i);
      continue;
    }
    uint16_t& count = view_.counts_[leaf].reserved;
    if (count < UINT16_MAX) ++count;
    if (view_.IsFull(leaf)) outcome.full.push_back(leaf);
  }
  return outcome;
}

void ItemCounts::TakeReservation(uint64_t leaf) {
  GEARDB_CHECK(leaf < reserved());
  uint16_t& count = view_.counts_[leaf].reserved;
  GEARDB_CHECK(count > 0);
  if (count < UINT16_MAX) --count;
}

bool ItemCounts::AddSample(uint64_t leaf) {
  GEARDB_CHECK(leaf < reserved());
  uint16_t& count = view_.counts_[leaf].sampled;
  if (count == UINT16_MAX) return false;
  ++count;
  return count == view_.max_times();
}

std::vector<uint64_t> ItemCounts::Confirm(std::span<const uint64_t> leaves) {
  std::vector<uint64_t> exhausted;
  for (const uint64_t leaf : leaves) {
    TakeReservation(leaf);
    if (AddSample(leaf)) exhausted.push_back(leaf);
  }
  return exhausted;
}

std::vector<uint64_t> ItemCounts::Cancel(std::span<const uint64_t> leaves) {
  std::vector<uint64_t> shown;
  for (const uint64_t leaf : leaves) {
    const bool full = view_.IsFull(leaf);
    TakeReservation(leaf);
    if (full && !view_.IsFull(leaf)) shown.push_back(leaf);
  }
  return shown;
}

std::vector<uint64_t> ItemCounts::Replay(std::span<const uint64_t> leaves) {
  std::vector<uint64_t> exhausted;
  for (const uint64_t leaf : leaves) {
    if (AddSample(leaf)) exhausted.push_back(leaf);
  }
  return exhausted;
}

void ItemCounts::Restore(uint64_t leaf, uint16_t sampled) {
  GEARDB_CHECK(leaf < reserved());
  view_.counts_[leaf] = {.sampled = sampled, .reserved = 0};
}

void ItemCounts::Reset(LeafRange range) {
  if (range.size() == 0) return;
  GEARDB_CHECK(range.end <= reserved());
  std::fill(view_.counts_ + range.begin, view_.counts_ + range.end, ItemCount());
}

Result<ItemCounts::Changes> ItemCounts::SetMaxTimes(uint32_t max_times) {
  GEARDB_RETURN_IF_ERROR(CheckMaxTimes(max_times));
  const uint32_t before = view_.max_times();
  Changes changes;
  for (uint64_t leaf = 0; leaf < reserved(); ++leaf) {
    const ItemCount& count = view_.counts_[leaf];
    const uint32_t taken = uint32_t{count.sampled} + count.reserved;
    const bool was = before > 0 && taken >= before;
    const bool is = max_times > 0 && taken >= max_times;
    if (is && !was) changes.full.push_back(leaf);
    if (was && !is) changes.shown.push_back(leaf);
  }
  view_.header_->max_times = max_times;
  return changes;
}

}  // namespace geardb::index
