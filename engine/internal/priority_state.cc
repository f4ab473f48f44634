#include "engine/internal/priority_state.h"

#include "index/uniform_selector.h"

namespace geardb::engine {

PriorityState::PriorityState(PriorityTableSpec spec, std::unique_ptr<index::Selector> selector,
                             index::PrioritizedSelector* prioritized)
    : seed(spec.seed),
      spec_(std::move(spec)),
      selector_(std::move(selector)),
      prioritized_(prioritized) {}

Result<std::unique_ptr<PriorityState>> PriorityState::Create(index::IndexMemory* memory,
                                                             const PriorityTableSpec& spec,
                                                             uint64_t leaf_capacity) {
  std::unique_ptr<index::Selector> selector;
  index::PrioritizedSelector* prioritized = nullptr;
  if (spec.selector == SelectorKind::kUniform) {
    GEARDB_ASSIGN_OR_RETURN(selector,
                            index::UniformSelector::Create(memory, spec.name, leaf_capacity));
  } else {
    GEARDB_ASSIGN_OR_RETURN(
        auto made, index::PrioritizedSelector::Create(
                       memory, spec.name, {.leaf_capacity = leaf_capacity, .alpha = spec.alpha}));
    prioritized = made.get();
    selector = std::move(made);
  }
  return std::unique_ptr<PriorityState>(new PriorityState(spec, std::move(selector), prioritized));
}

}  // namespace geardb::engine
