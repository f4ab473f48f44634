#include "index/prioritized_selector.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/fixed_math.h"
#include "index/distinct_draw.h"
#include "index/draw_points.h"
#include "index/limits.h"
#include "index/powers.h"
#include "index/tree_descent.h"

namespace geardb::index {
namespace {

constexpr size_t kPrioritizedHeaderPart = 0;
constexpr size_t kPrioritizedMembersPart = 1;
constexpr size_t kPrioritizedRawPart = 2;
constexpr size_t kPrioritizedHiddenPart = 3;
constexpr size_t kPrioritizedTreePart = 4;
constexpr uint64_t kWeightedCapacityMax = uint64_t{1} << 35;
constexpr double kWeightMax = 4294967295.0;
constexpr uint64_t kFadedMean = 256;
constexpr int kRaiseMin = 4;
/// A maximum far above the rest, which each new member takes and the next update of it gives up,
/// would otherwise cost a pass over all for each.
constexpr uint64_t kMembersOfSmall = 4096;
constexpr uint64_t kChangesForRaise = 16;

PrioritizedHeader* PrioritizedHeaderAt(std::byte* region) {
  return reinterpret_cast<PrioritizedHeader*>(region);
}

/// weight·2^shift, exactly (but for subnormal results).
double Scale(double weight, int shift) {
  return weight * std::bit_cast<double>(static_cast<uint64_t>(shift + 1023) << 52);
}

size_t ExponentOf(float raw_priority) {
  return (std::bit_cast<uint32_t>(raw_priority) >> 23) & 0xFF;
}

}  // namespace

int ChooseShift(double max_weight) {
  if (!(max_weight > 0.0)) return kShiftInitial;
  // max_weight lies in [2^e, 2^(e + 1)).
  const int e = static_cast<int>((std::bit_cast<uint64_t>(max_weight) >> 52) & 0x7FF) - 1023;
  return std::clamp(27 - e, kShiftMin, kShiftMax);
}

PrioritizedView::PrioritizedView(std::byte* region)
    : header_(PrioritizedHeaderAt(region)),
      members_(region + header_->members_offset),
      raw_(reinterpret_cast<float*>(region + header_->raw_offset)),
      tree_{region + header_->tree_offset, TreeShape::ForCapacity(header_->leaf_capacity)} {}

uint64_t PrioritizedView::Draw(const DrawRequest& request, std::span<uint64_t> leaves,
                               std::span<double> probabilities) const {
  if (distinct()) return DrawWithoutReplacement(request, leaves, probabilities);
  const uint64_t all = total();
  if (all == 0) return 0;
  const double divisor = static_cast<double>(all);
  std::array<uint64_t, kChunk> points;
  std::array<TreeHit, kChunk> hits;
  for (size_t start = 0; start < leaves.size(); start += kChunk) {
    const size_t count = std::min(kChunk, leaves.size() - start);
    const DrawRequest chunk{request.seed, request.draw_number,
                            request.first_row + static_cast<uint32_t>(start)};
    DrawPoints(chunk, all, std::span(points).first(count));
    DescendBatch(tree_, std::span(points).first(count), std::span(hits).first(count));
    for (size_t i = 0; i < count; ++i) leaves[start + i] = hits[i].leaf;
    if (probabilities.empty()) continue;
    for (size_t i = 0; i < count; ++i) {
      probabilities[start + i] = static_cast<double>(hits[i].weight) / divisor;
    }
  }
  return leaves.size();
}

uint64_t PrioritizedView::DrawWithoutReplacement(const DrawRequest& request,
                                                 std::span<uint64_t> leaves,
                                                 std::span<double> probabilities) const {
  const auto divisor = static_cast<double>(total());
  return DrawDistinct(
      request, total(), leaves.size(), [this](uint64_t point) { return tree_.Descend(point); },
      [&](uint64_t row, const TreeHit& hit) {
        leaves[row] = hit.leaf;
        if (!probabilities.empty()) probabilities[row] = static_cast<double>(hit.weight) / divisor;
      });
}

double PrioritizedView::Probability(uint64_t leaf) const {
  const uint64_t all = total();
  if (all == 0) return 0.0;
  return static_cast<double>(tree_.leaves()[leaf]) / static_cast<double>(all);
}

Result<std::unique_ptr<PrioritizedSelector>> PrioritizedSelector::Create(IndexMemory* memory,
                                                                         std::string_view name,
                                                                         const Options& options) {
  if (options.leaf_capacity == 0 || options.leaf_capacity > kWeightedCapacityMax) {
    return Status::InvalidArgument("prioritized selector '", name, "' for ", options.leaf_capacity,
                                   " leaves: 1 to ", kWeightedCapacityMax, " are possible");
  }
  if (!(options.alpha >= 0.0 && options.alpha <= 4.0)) {
    return Status::InvalidArgument("prioritized selector '", name, "' with alpha ", options.alpha,
                                   ": 0 to 4 is possible");
  }
  std::vector<uint64_t> parts = {
      sizeof(PrioritizedHeader), Membership::Bytes(options.leaf_capacity),
      options.leaf_capacity * sizeof(float), Membership::Bytes(options.leaf_capacity)};
  for (const uint64_t bytes :
       WeightTree::PartBytes(TreeShape::ForCapacity(options.leaf_capacity))) {
    parts.push_back(bytes);
  }
  GEARDB_ASSIGN_OR_RETURN(Region region, memory->Reserve(name, parts));
  GEARDB_RETURN_IF_ERROR(region.Commit(kPrioritizedHeaderPart, sizeof(PrioritizedHeader)));
  PrioritizedHeader* header = PrioritizedHeaderAt(region.base());
  header->leaf_capacity = options.leaf_capacity;
  header->members_offset = region.part_offset(kPrioritizedMembersPart);
  header->raw_offset = region.part_offset(kPrioritizedRawPart);
  header->hidden.offset = region.part_offset(kPrioritizedHiddenPart);
  header->without_replacement = options.without_replacement ? 1 : 0;
  header->tree_offset = region.part_offset(kPrioritizedTreePart);
  header->alpha = options.alpha;
  header->shift = kShiftInitial;
  header->max_priority = 1.0f;
  header->changed = UINT32_MAX;
  return std::unique_ptr<PrioritizedSelector>(new PrioritizedSelector(std::move(region)));
}

PrioritizedSelector::PrioritizedSelector(Region region)
    : region_(std::move(region)),
      view_(region_.base()),
      hidden_(&region_, kPrioritizedHiddenPart, &view_.header_->hidden),
      tree_(view_.tree_.shape, &region_, kPrioritizedTreePart, &view_.header_->tree_counts) {}

Status PrioritizedSelector::Reserve(uint64_t leaf_count) {
  if (leaf_count <= reserved()) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(region_.Commit(kPrioritizedMembersPart, Membership::Bytes(leaf_count)));
  GEARDB_RETURN_IF_ERROR(region_.Commit(kPrioritizedRawPart, leaf_count * sizeof(float)));
  GEARDB_RETURN_IF_ERROR(hidden_.Grow(leaf_count));
  GEARDB_RETURN_IF_ERROR(tree_.Reserve(leaf_count));
  view_.header_->reserved = leaf_count;
  return Status::Ok();
}

uint64_t PrioritizedSelector::Insert(LeafRange range, float raw_priority) {
  GEARDB_CHECK(range.end <= reserved() && ValidPriority(raw_priority));
  if (range.size() == 0) return 0;
  PrioritizedHeader& header = *view_.header_;
  const uint64_t before = view_.members_.Count(range);
  if (before > 0) ForgetRaw(range);
  view_.members_.SetRange(range);
  header.members_by_exponent[ExponentOf(raw_priority)] += range.size();
  header.count += range.size() - before;
  header.max_priority = std::max(header.max_priority, raw_priority);
  std::fill(view_.raw_ + range.begin, view_.raw_ + range.end, raw_priority);
  const double weight = WeightOf(raw_priority);
  if (!MaxWeightFits(weight)) header.saturated = 1;
  tree_.SetRange(range.begin, range.end, QuantizeWeight(weight, header.shift));
  ZeroHidden(range);
  CountChanges(range.size());
  return range.size() - before;
}

uint64_t PrioritizedSelector::Insert(std::span<const uint64_t> leaves,
                                     std::span<const float> raw_priorities) {
  GEARDB_CHECK(leaves.size() == raw_priorities.size());
  PrioritizedHeader& header = *view_.header_;
  uint64_t added = 0;
  for (size_t start = 0; start < leaves.size(); start += kChunk) {
    const size_t count = std::min(kChunk, leaves.size() - start);
    for (const uint64_t leaf : leaves.subspan(start, count)) {
      GEARDB_CHECK(leaf < reserved());
      if (!view_.members_.Set(leaf)) continue;
      // A member of raw priority 0 for the moment, which ApplyChunk replaces.
      view_.raw_[leaf] = 0.0f;
      ++header.members_by_exponent[0];
      ++added;
    }
    ApplyChunk(leaves.subspan(start, count), raw_priorities.subspan(start, count));
  }
  header.count += added;
  CountChanges(leaves.size());
  return added;
}

uint64_t PrioritizedSelector::Erase(LeafRange range) {
  range.end = std::min(range.end, reserved());
  if (range.size() == 0) return 0;
  ForgetRaw(range);
  hidden_.Forget(range);
  const uint64_t removed = view_.members_.ClearRange(range);
  if (removed > 0) tree_.SetRange(range.begin, range.end, 0);
  view_.header_->count -= removed;
  CountChanges(removed);
  return removed;
}

uint64_t PrioritizedSelector::Update(std::span<const uint64_t> leaves,
                                     std::span<const float> raw_priorities) {
  GEARDB_CHECK(leaves.size() == raw_priorities.size());
  std::array<uint64_t, kChunk> member_leaves;
  std::array<float, kChunk> member_raw;
  uint64_t applied = 0;
  for (size_t start = 0; start < leaves.size(); start += kChunk) {
    const size_t count = std::min(kChunk, leaves.size() - start);
    for (const uint64_t leaf : leaves.subspan(start, count)) {
      if (leaf >= reserved()) continue;
      view_.members_.Prefetch(leaf);
      __builtin_prefetch(view_.raw_ + leaf, 1);
      __builtin_prefetch(view_.tree_.leaves() + leaf, 1);
    }
    size_t members = 0;
    for (size_t i = start; i < start + count; ++i) {
      member_leaves[members] = leaves[i];
      member_raw[members] = raw_priorities[i];
      members += Contains(leaves[i]) ? 1u : 0u;
    }
    ApplyChunk(std::span(member_leaves).first(members), std::span(member_raw).first(members));
    applied += members;
  }
  CountChanges(applied);
  return applied;
}

void PrioritizedSelector::CountChanges(uint64_t members) {
  uint32_t& changed = view_.header_->changed;
  changed += static_cast<uint32_t>(std::min<uint64_t>(members, UINT32_MAX - changed));
}

void PrioritizedSelector::ForgetRaw(LeafRange range) {
  PrioritizedHeader& header = *view_.header_;
  view_.members_.ForEach(
      range, [&](uint64_t leaf) { --header.members_by_exponent[ExponentOf(view_.raw_[leaf])]; });
}

void PrioritizedSelector::ApplyChunk(std::span<const uint64_t> leaves,
                                     std::span<const float> raw_priorities) {
  PrioritizedHeader& header = *view_.header_;
  std::array<double, kChunk> weights;
  std::array<uint32_t, kChunk> fixed;
  const size_t count = leaves.size();
  Powers(raw_priorities, header.alpha, std::span(weights).first(count));
  double largest = 0.0;
  float largest_raw = header.max_priority;
  const bool hides = header.hidden.count != 0;
  for (size_t i = 0; i < count; ++i) {
    GEARDB_CHECK(ValidPriority(raw_priorities[i]));
    float& raw = view_.raw_[leaves[i]];
    --header.members_by_exponent[ExponentOf(raw)];
    ++header.members_by_exponent[ExponentOf(raw_priorities[i])];
    raw = raw_priorities[i];
    largest_raw = std::max(largest_raw, raw_priorities[i]);
    largest = std::max(largest, weights[i]);
    fixed[i] = QuantizeWeight(weights[i], header.shift);
    if (hides && hidden_.view().Contains(leaves[i])) fixed[i] = 0;
  }
  header.max_priority = largest_raw;
  if (!MaxWeightFits(largest)) header.saturated = 1;
  tree_.Set(leaves, std::span(fixed).first(count));
}

void PrioritizedSelector::ZeroHidden(LeafRange range) {
  if (hidden_.view().count() == 0) return;
  hidden_.view().bits().ForEach(range, [this](uint64_t leaf) { tree_.Set(leaf, 0); });
}

uint64_t PrioritizedSelector::Hide(std::span<const uint64_t> leaves) {
  uint64_t changed = 0;
  for (const uint64_t leaf : leaves) {
    if (!Contains(leaf) || !hidden_.Set(leaf)) continue;
    ++changed;
    tree_.Set(leaf, 0);
  }
  return changed;
}

uint64_t PrioritizedSelector::Show(std::span<const uint64_t> leaves) {
  uint64_t changed = 0;
  for (const uint64_t leaf : leaves) {
    if (leaf >= reserved() || !hidden_.Clear(leaf)) continue;
    ++changed;
    tree_.Set(leaf, QuantizeWeight(WeightOf(raw_priority(leaf)), shift()));
  }
  return changed;
}

double PrioritizedSelector::WeightOf(float raw_priority) const {
  return Pow(static_cast<double>(raw_priority), alpha());
}

bool PrioritizedSelector::MaxWeightFits(double weight) const {
  return Scale(weight, shift()) <= kWeightMax;
}

double PrioritizedSelector::SmallestProbability() {
  if (total() == 0) return 0.0;
  return static_cast<double>(tree_.Smallest()) / static_cast<double>(total());
}

double PrioritizedSelector::LargestWeightBound() const {
  const uint64_t* members = view_.header_->members_by_exponent;
  for (int exponent = 254; exponent > 0; --exponent) {
    if (members[exponent] == 0) continue;
    // Raw priorities of this exponent are below 2^(exponent - 126).
    return Exp2(alpha() * static_cast<double>(exponent - 126));
  }
  // Zero, or subnormal: below 2^-126.
  return members[0] == 0 ? 0.0 : Exp2(alpha() * -126.0);
}

std::optional<int> PrioritizedSelector::AdviseShift(double incoming_max) const {
  const bool cut = saturated() || !MaxWeightFits(incoming_max);
  // What is hidden may be shown again by what nobody asks behind; of zeros alone there is no scale.
  const bool faded = drawable() > 0 ? total() / drawable() < kFadedMean
                                    : count() > view_.header_->members_by_exponent[0];
  if (!cut && !faded) return std::nullopt;  // Asked after every append: mostly it ends here.
  const double largest = std::max(incoming_max, LargestWeightBound());
  const int wanted = ChooseShift(largest);
  // What was cut may be gone.
  if (cut && wanted < shift() && !MaxWeightFits(largest)) return wanted;
  const bool waits =
      count() > kMembersOfSmall && view_.header_->changed < count() / kChangesForRaise;
  if (faded && !waits && wanted >= std::min(shift() + kRaiseMin, kShiftMax) && wanted > shift()) {
    return wanted;
  }
  return std::nullopt;
}

PrioritizedSelector::WeightScale PrioritizedSelector::scale() const {
  const PrioritizedHeader& header = *view_.header_;
  return {header.shift, header.max_priority, header.saturated != 0, header.changed};
}

void PrioritizedSelector::RestoreScale(const WeightScale& scale) {
  PrioritizedHeader& header = *view_.header_;
  GEARDB_CHECK(scale.shift == header.shift && ValidPriority(scale.max_priority));
  header.max_priority = scale.max_priority;
  header.saturated = scale.saturated ? 1 : 0;
  header.changed = scale.changed;
}

void PrioritizedSelector::Rescale(int shift) {
  GEARDB_CHECK(shift >= kShiftMin && shift <= kShiftMax);
  PrioritizedHeader& header = *view_.header_;
  if (shift > header.shift) header.changed = 0;
  header.shift = shift;
  header.saturated = 0;
  std::array<uint64_t, kChunk> leaves;
  std::array<float, kChunk> raw;
  size_t filled = 0;
  const auto apply = [&] {
    ApplyChunk(std::span(leaves).first(filled), std::span(raw).first(filled));
    filled = 0;
  };
  const bool in_bulk = tree_.in_bulk();
  if (!in_bulk) tree_.BeginBulk();
  ForEachMember(LeafRange{0, reserved()}, [&](uint64_t leaf) {
    leaves[filled] = leaf;
    raw[filled] = view_.raw_[leaf];
    if (++filled == kChunk) apply();
  });
  apply();
  if (!in_bulk) tree_.EndBulk();
}

}  // namespace geardb::index
