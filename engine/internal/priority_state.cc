#include "engine/internal/priority_state.h"

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
      break;
  }
  return std::nullopt;
}

Result<std::unique_ptr<PriorityState>> PriorityState::Create(index::IndexMemory* memory,
                                                             const PriorityTableSpec& spec,
                                                             uint64_t leaf_capacity) {
  std::unique_ptr<PriorityState> state(new PriorityState(spec));
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
  } else {
    GEARDB_ASSIGN_OR_RETURN(state->selector_,
                            index::UniformSelector::Create(memory, spec.name, leaf_capacity));
  }
  return state;
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
  return ordered_ != nullptr ? 1.0 : 1.0 / static_cast<double>(selector_->total());
}

}  // namespace geardb::engine
