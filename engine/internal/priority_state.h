// PriorityState: the published side of one priority table: its selector, where its draws stand, and
// its counters. Guarded by its table's mutex.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/schema.h"
#include "engine/stats.h"
#include "index/index_memory.h"
#include "index/ordered_selector.h"
#include "index/prioritized_selector.h"
#include "index/selector.h"

namespace geardb::engine {

/// What items of a priority table wait for.
struct Requirements {
  std::vector<uint32_t> groups;  ///< Late column groups.
  uint64_t columns = 0;          ///< Bit c: per-trajectory column c.

  bool empty() const { return groups.empty() && columns == 0; }
};

class PriorityState {
 public:
  static Result<std::unique_ptr<PriorityState>> Create(index::IndexMemory* memory,
                                                       const PriorityTableSpec& spec,
                                                       uint64_t leaf_capacity);

  const PriorityTableSpec& spec() const { return spec_; }
  bool draws_windows() const { return spec_.item == ItemKind::kWindow; }
  index::Selector& selector() { return *selector_; }
  const index::Selector& selector() const { return *selector_; }
  /// Null when the selector has no weights (HasWeights).
  index::PrioritizedSelector* prioritized() { return prioritized_; }
  const index::PrioritizedSelector* prioritized() const { return prioritized_; }

  /// The raw priority that "max" stands for now.
  float max_priority() const;
  /// Of an item; 1 without priorities.
  float raw_priority(uint64_t leaf) const;
  /// Of an item: that of a row of the next draw, or 1 where items come in their order.
  double ProbabilityOf(uint64_t leaf) const;
  /// There are items for a batch of `rows`: one, or as many distinct ones.
  bool CanDraw(uint64_t rows) const {
    return selector_->distinct() ? selector_->drawable() >= rows : selector_->total() > 0;
  }

  Requirements required;

  // Where the draws stand.
  uint64_t seed = 0;
  uint64_t next_draw = 0;   ///< One past the last draw handed over: what the log says.
  uint64_t next_ahead = 0;  ///< One past the last draw made, handed over or not.

  int samplers = 0;  ///< That draw and are no observers.

  PriorityTableStats counters;  ///< Since the open; items and shift are filled in by Stats.

 private:
  explicit PriorityState(PriorityTableSpec spec) : seed(spec.seed), spec_(std::move(spec)) {}

  PriorityTableSpec spec_;
  std::unique_ptr<index::Selector> selector_;
  index::PrioritizedSelector* prioritized_ = nullptr;
  index::OrderedSelector* ordered_ = nullptr;
};

/// The order of a selector that has one.
std::optional<index::ItemOrder> OrderOf(SelectorKind kind);

}  // namespace geardb::engine
