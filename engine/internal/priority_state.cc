#include "engine/internal/priority_state.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/concatenate.h"
#include "engine/internal/priority_limits.h"
#include "index/uniform_selector.h"

namespace geardb::engine {

std::optional<index::ItemOrder> OrderOf(SelectorKind kind) {
  switch (kind) {
    case SelectorKind::kFifo:
      return index::ItemOrder::kOldestFirst;
    case SelectorKind::kLifo:
      return index::ItemOrder::kNewestFirst;
    case SelectorKind::kMinHeap:
      return index::ItemOrder::kSmallestFirst;
    case SelectorKind::kMaxHeap:
      return index::ItemOrder::kLargestFirst;
    case SelectorKind::kUniform:
    case SelectorKind::kPrioritized:
    case SelectorKind::kWithoutReplacement:
    case SelectorKind::kEpoch:
      break;
  }
  return std::nullopt;
}

PriorityState::PriorityState(index::IndexMemory* memory, PriorityTableSpec spec,
                             uint64_t leaf_capacity)
    : seed(spec.seed),
      memory_(memory),
      leaf_capacity_(leaf_capacity),
      spec_(std::move(spec)),
      limiter_(LimiterSpec(spec_.limiter)) {}

Result<std::unique_ptr<PriorityState>> PriorityState::Create(index::IndexMemory* memory,
                                                             const PriorityTableSpec& spec,
                                                             uint64_t leaf_capacity) {
  std::unique_ptr<PriorityState> state(new PriorityState(memory, spec, leaf_capacity));
  if (const std::optional<index::ItemOrder> order = OrderOf(spec.selector)) {
    GEARDB_ASSIGN_OR_RETURN(
        auto made, index::OrderedSelector::Create(
                       memory, spec.name, {.leaf_capacity = leaf_capacity, .order = *order}));
    state->ordered_ = made.get();
    state->selector_ = std::move(made);
  } else if (HasWeights(spec.selector)) {
    GEARDB_ASSIGN_OR_RETURN(
        auto made,
        index::PrioritizedSelector::Create(
            memory, spec.name,
            {.leaf_capacity = leaf_capacity,
             .alpha = spec.alpha,
             .without_replacement = spec.selector == SelectorKind::kWithoutReplacement}));
    state->prioritized_ = made.get();
    state->selector_ = std::move(made);
  } else if (spec.selector == SelectorKind::kEpoch) {
    GEARDB_ASSIGN_OR_RETURN(auto made,
                            index::EpochSelector::Create(memory, spec.name, leaf_capacity));
    state->epoch_ = std::make_unique<EpochState>(made.get(), spec.epoch);
    state->selector_ = std::move(made);
  } else {
    GEARDB_ASSIGN_OR_RETURN(state->selector_,
                            index::UniformSelector::Create(memory, spec.name, leaf_capacity));
  }
  const uint32_t max_times = MaxTimes(LimitsOf(spec));
  if (max_times > 0) {
    GEARDB_RETURN_IF_ERROR(state->PrepareLimits(LimitsOf(spec)));
    GEARDB_CHECK(state->counts_->SetMaxTimes(max_times).ok());  // It is valid.
  }
  return state;
}

// ---- Items.

Status PriorityState::Reserve(uint64_t leaf_count) {
  if (counts_ != nullptr) GEARDB_RETURN_IF_ERROR(counts_->Reserve(leaf_count));
  if (deleted_ != nullptr) GEARDB_RETURN_IF_ERROR(deleted_->Reserve(leaf_count));
  if (filter_ != nullptr) GEARDB_RETURN_IF_ERROR(filter_->ReserveLeaves(leaf_count));
  if (groups_ != nullptr) GEARDB_RETURN_IF_ERROR(groups_->Reserve(leaf_count));
  return selector_->Reserve(leaf_count);
}

void PriorityState::WillChange(std::span<const uint64_t> leaves) {
  if (watch_ == nullptr) return;
  for (const uint64_t leaf : leaves) watch_->BeforeChange(leaf, leaf + 1);
}

void PriorityState::Update(std::span<const uint64_t> leaves,
                           std::span<const float> raw_priorities) {
  WillChange(leaves);
  selector_->Update(leaves, raw_priorities);
}

void PriorityState::Insert(index::LeafRange range, float raw_priority) {
  WillChange(range);
  limiter_.Insert(selector_->Insert(range, raw_priority));
}

void PriorityState::Insert(std::span<const uint64_t> leaves,
                           std::span<const float> raw_priorities) {
  WillChange(leaves);
  limiter_.Insert(selector_->Insert(leaves, raw_priorities));
}

void PriorityState::Erase(index::LeafRange range) {
  WillChange(range);
  uint64_t unsampled = 0;
  if (counts_ != nullptr) {
    selector_->ForEachMember(range, [&](uint64_t leaf) {
      if (counts_->view().count(leaf).sampled == 0) ++unsampled;
    });
  }
  const uint64_t items = selector_->Erase(range);
  if (items > 0 && counts_ != nullptr) counts_->Reset(range);
  if (items > 0 && epoch_ != nullptr) epoch_->Erased(range);
  if (items > 0 && filter_ != nullptr) filter_->Forget(range);
  // Also those that are reserved: their place is given back, and their row will be no sample of a
  // queue. So it is the same where a log is replayed.
  limiter_.Delete({.items = items, .unsampled = unsampled});
}

void PriorityState::Leave(index::LeafRange range) {
  Erase(range);
  if (deleted_ != nullptr) deleted_->Forget(range);
}

Status PriorityState::PrepareDelete() {
  if (deleted_ != nullptr) return Status::Ok();
  GEARDB_ASSIGN_OR_RETURN(
      auto deleted, index::LeafSet::Create(memory_, spec_.name + " deleted items", leaf_capacity_));
  GEARDB_RETURN_IF_ERROR(deleted->Reserve(selector_->reserved()));
  deleted_ = std::move(deleted);
  return Status::Ok();
}

void PriorityState::Delete(uint64_t leaf) {
  Erase({leaf, leaf + 1});
  deleted_->Add(leaf);
}

uint64_t PriorityState::committed_bytes() const {
  return selector_->committed_bytes() + (counts_ ? counts_->committed_bytes() : 0) +
         (deleted_ ? deleted_->committed_bytes() : 0) + (filter_ ? filter_->committed_bytes() : 0) +
         (groups_ ? groups_->committed_bytes() : 0);
}

uint64_t PriorityState::CountExhausted() const {
  uint64_t exhausted = 0;
  if (!bounded()) return exhausted;
  selector_->ForEachMember({0, selector_->reserved()},
                           [&](uint64_t leaf) { exhausted += IsExhausted(leaf) ? 1u : 0u; });
  return exhausted;
}

uint64_t PriorityState::PlacesLeft(uint64_t most) const {
  uint64_t places = 0;
  if (!bounded()) return places;
  const index::ItemCountsView& counts = counts_->view();
  selector_->ForEachMember({0, selector_->reserved()}, [&](uint64_t leaf) {
    const bool drawable =
        !selector_->IsHidden(leaf) && (prioritized() == nullptr || raw_priority(leaf) > 0);
    if (!drawable || places >= most) return;
    const index::ItemCount& count = counts.count(leaf);
    places += counts.max_times() - count.sampled - count.reserved;
  });
  return std::min(places, most);
}

Status PriorityState::PrepareGroups(size_t key_column, uint64_t slot_capacity) {
  GEARDB_ASSIGN_OR_RETURN(
      groups_, DrawGroups::Create(memory_, spec_.name, spec_.group, key_column, slot_capacity));
  return Status::Ok();
}

// ---- The standing filter.

Status PriorityState::PrepareFilter(uint64_t slot_capacity, uint64_t slot_count) {
  if (filter_ != nullptr) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(selector_->ReserveHidden());
  GEARDB_ASSIGN_OR_RETURN(
      auto filter, StandingFilter::Create(memory_, spec_.name,
                                          {.slots = slot_capacity, .leaves = leaf_capacity_}));
  if (slot_count > 0) GEARDB_RETURN_IF_ERROR(filter->ReserveSlots(slot_count));
  if (selector_->reserved() > 0) {
    GEARDB_RETURN_IF_ERROR(filter->ReserveLeaves(selector_->reserved()));
  }
  filter_ = std::move(filter);
  return Status::Ok();
}

void PriorityState::Filter(std::span<const uint64_t> leaves) {
  for (const uint64_t leaf : leaves) filter_->Add(leaf);
  selector_->Hide(leaves);
}

void PriorityState::Unfilter(std::span<const uint64_t> leaves) {
  for (const uint64_t leaf : leaves) filter_->Forget({leaf, leaf + 1});
  ShowUnfiltered(leaves);
}

void PriorityState::ShowUnfiltered(std::span<const uint64_t> leaves) {
  std::vector<uint64_t> shown;
  for (const uint64_t leaf : leaves) {
    const bool full = bounded() && counts_->view().IsFull(leaf);
    if (!full && (filter_ == nullptr || !filter_->IsFiltered(leaf))) shown.push_back(leaf);
  }
  selector_->Show(shown);
}

// ---- Limits.

index::LimiterBlock PriorityState::BlockedInsert(uint64_t n) const {
  index::RateLimiter with = limiter_;
  with.Insert(admitted);
  return with.Blocked(index::LimiterSide::kInsert, n);
}

void PriorityState::HideFull(std::span<const uint64_t> leaves) {
  std::vector<uint64_t> full;
  for (const uint64_t leaf : leaves) {
    if (counts_->view().IsFull(leaf)) full.push_back(leaf);
  }
  selector_->Hide(full);
}

void PriorityState::DrawReserved(const index::DrawRequest& request, std::span<uint64_t> leaves,
                                 std::span<double> probabilities) {
  GEARDB_CHECK(selector_->Draw(request, leaves, probabilities) == leaves.size());
  limiter_.Reserve(leaves.size());
  if (epoch_ != nullptr) epoch_->Reserve(leaves);
  if (!bounded()) return;
  index::ItemCounts::ReserveOutcome outcome = counts_->Reserve(leaves);
  selector_->Hide(outcome.full);
  std::vector<size_t> places = outcome.refused;  // In the batch.
  index::DrawRequest next = request;
  next.first_row += static_cast<uint32_t>(leaves.size());
  std::vector<uint64_t> again;
  std::vector<double> weights;
  while (!places.empty()) {
    // Each row that finds its item makes at most one full: there are as many left as rows.
    again.resize(places.size());
    weights.resize(probabilities.empty() ? 0 : places.size());
    GEARDB_CHECK(selector_->Draw(next, again, weights) == again.size());
    next.first_row += static_cast<uint32_t>(again.size());
    outcome = counts_->Reserve(again);
    selector_->Hide(outcome.full);
    for (size_t i = 0; i < again.size(); ++i) {
      leaves[places[i]] = again[i];
      if (!probabilities.empty()) probabilities[places[i]] = weights[i];
    }
    for (size_t& refused : outcome.refused) refused = places[refused];
    places = std::move(outcome.refused);
  }
}

void PriorityState::CancelReserved(uint64_t rows, std::span<const uint64_t> leaves,
                                   const EpochMark& drawn) {
  limiter_.Cancel(rows);
  if (epoch_ != nullptr) epoch_->Cancel(drawn, leaves);
  if (counts_ == nullptr) return;
  std::vector<uint64_t> held;
  for (const uint64_t leaf : leaves) {
    // A place whose item left and came back has no reservation of this draw.
    if (counts_->view().count(leaf).reserved == 0) continue;
    for (const uint64_t shown : counts_->Cancel({&leaf, 1})) held.push_back(shown);
  }
  ShowUnfiltered(held);
}

void PriorityState::Sample(uint64_t rows, std::span<const uint64_t> leaves) {
  limiter_.Reserve(rows);
  limiter_.Confirm(rows);
  if (counts_ == nullptr) return;
  WillChange(leaves);
  counts_->Replay(leaves);
  if (bounded()) HideFull(leaves);
}

Status PriorityState::PrepareLimits(const PriorityLimits& limits) {
  if (MaxTimes(limits) == 0 || counts_ != nullptr) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(selector_->ReserveHidden());
  GEARDB_ASSIGN_OR_RETURN(
      auto counts, index::ItemCounts::Create(memory_, spec_.name + " times sampled",
                                             {.leaf_capacity = leaf_capacity_, .max_times = 0}));
  if (selector_->reserved() > 0) {
    GEARDB_RETURN_IF_ERROR(counts->Reserve(selector_->reserved()));
  }
  counts_ = std::move(counts);
  return Status::Ok();
}

void PriorityState::Configure(const PriorityLimits& limits) {
  const auto is_queue = [](const index::RateLimiterSpec& spec) {
    return spec.kind == index::LimiterKind::kQueue || spec.kind == index::LimiterKind::kStack;
  };
  const bool was_queue = is_queue(limiter_.spec());
  GEARDB_CHECK(limiter_.Configure(LimiterSpec(limits.limiter)).ok());  // They are valid.
  SetLimits(limits, &spec_);
  if (counts_ == nullptr) return;
  if (!was_queue && is_queue(limiter_.spec())) {
    // A new queue holds all that is there, as if nothing of it had been sampled. What batches ahead
    // hold they hold still, each for itself.
    std::vector<uint64_t> hidden;
    std::vector<uint64_t> reserved;  // Each leaf as often as that.
    selector_->ForEachMember({0, selector_->reserved()}, [&](uint64_t leaf) {
      if (selector_->IsHidden(leaf)) hidden.push_back(leaf);
      reserved.insert(reserved.end(), counts_->view().count(leaf).reserved, leaf);
    });
    WillChange(index::LeafRange{0, counts_->reserved()});
    counts_->Reset({0, counts_->reserved()});
    GEARDB_CHECK(counts_->SetMaxTimes(0).ok());  // No reservation is refused.
    counts_->Reserve(reserved);
    const auto changes = counts_->SetMaxTimes(MaxTimes(limits));
    GEARDB_CHECK(changes.ok());
    ShowUnfiltered(hidden);
    selector_->Hide(changes->full);
    return;
  }
  const auto changes = counts_->SetMaxTimes(MaxTimes(limits));
  GEARDB_CHECK(changes.ok());
  selector_->Hide(changes->full);
  ShowUnfiltered(changes->shown);
}

float PriorityState::max_priority() const {
  if (prioritized_ != nullptr) return prioritized_->max_priority();
  return ordered_ != nullptr ? ordered_->max_priority() : 1.0f;
}

float PriorityState::raw_priority(uint64_t leaf) const {
  if (prioritized_ != nullptr) return prioritized_->raw_priority(leaf);
  return ordered_ != nullptr ? ordered_->raw_priority(leaf) : 1.0f;
}

double PriorityState::ProbabilityOf(uint64_t leaf) const {
  if (prioritized_ != nullptr) return prioritized_->view().Probability(leaf);
  if (selector_->IsHidden(leaf)) return 0.0;
  if (epoch_ != nullptr && !epoch_->Remains(leaf)) return 0.0;
  return ordered_ != nullptr ? 1.0 : 1.0 / static_cast<double>(selector_->total());
}

}  // namespace geardb::engine
