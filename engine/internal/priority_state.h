// PriorityState: the published side of one priority table: its selector, its limits, where its
// draws stand, and its counters. Guarded by its table's mutex.
//
// Items come and go through Insert and Erase, which tell the limiter. What is *reserved*, and how
// many items were admitted, is in memory alone; all else is a function of the log's records.
//
// Invariant: an item is hidden iff it fails a standing filter, its trajectory could not be read, or
// there is a maximum of times that its samples and reservations reach.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/internal/draw_groups.h"
#include "engine/internal/epoch_state.h"
#include "engine/internal/standing_filter.h"
#include "engine/schema.h"
#include "engine/stats.h"
#include "index/change_watch.h"
#include "index/index_memory.h"
#include "index/item_counts.h"
#include "index/leaf_set.h"
#include "index/ordered_selector.h"
#include "index/prioritized_selector.h"
#include "index/rate_limiter.h"
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
  /// To read, draw, and set priorities; items come and go by the calls below.
  index::Selector& selector() { return *selector_; }
  const index::Selector& selector() const { return *selector_; }
  /// Null when the selector has no weights (HasWeights).
  index::PrioritizedSelector* prioritized() { return prioritized_; }
  const index::PrioritizedSelector* prioritized() const { return prioritized_; }

  /// Null unless the selector draws epochs.
  EpochState* epoch() { return epoch_.get(); }
  const EpochState* epoch() const { return epoch_.get(); }
  /// The pass that a draw of now is of; {0, 0} without epochs.
  EpochMark epoch_mark() const { return epoch_ == nullptr ? EpochMark() : epoch_->mark(); }
  /// Null unless its items are draw groups.
  DrawGroups* groups() { return groups_.get(); }
  const DrawGroups* groups() const { return groups_.get(); }
  /// Admission of groups, before there is any item.
  Status PrepareGroups(size_t key_column, uint64_t slot_capacity);
  /// A draw takes places of its items.
  bool reserves_items() const { return bounded() || epoch_ != nullptr; }
  /// Hand-overs name their items.
  bool names_items() const { return reserves_items() || groups_ != nullptr; }

  /// The raw priority that "max" stands for now.
  float max_priority() const;
  /// Of an item; 1 without priorities.
  float raw_priority(uint64_t leaf) const;
  /// Of an item: that of a row of the next draw, or 1 where items come in their order.
  double ProbabilityOf(uint64_t leaf) const;
  /// There are items for a batch of `rows`: one, or as many where they are distinct or bounded.
  bool CanDraw(uint64_t rows) const {
    return selector_->distinct() || bounded() ? selector_->drawable() >= rows
                                              : selector_->total() > 0;
  }

  // Items. Leaves are below the number that Reserve was given.

  /// Makes leaves below usable: the admission of all that follows.
  Status Reserve(uint64_t leaf_count);
  /// As of the selector, by which there are so many more items, and fewer.
  void Insert(index::LeafRange range, float raw_priority);
  void Insert(std::span<const uint64_t> leaves, std::span<const float> raw_priorities);
  void Erase(index::LeafRange range);
  /// New raw priorities, as of the selector.
  void Update(std::span<const uint64_t> leaves, std::span<const float> raw_priorities);
  /// Tells `watch` before an item, its priority, how often it was sampled, whether it is deleted or
  /// covered changes; null: nobody.
  void Watch(index::ChangeWatch* watch) {
    watch_ = watch;
    if (epoch_ != nullptr) epoch_->Watch(watch);
  }
  /// The rows of these leaves have gone: an Erase, after which other rows may have the leaves.
  void Leave(index::LeafRange range);
  uint64_t committed_bytes() const;

  /// Admission of Delete: the memory for which leaves were deleted.
  Status PrepareDelete();
  /// An item leaves, and its leaf will be no item until its row has gone.
  void Delete(uint64_t leaf);
  bool IsDeleted(uint64_t leaf) const { return deleted_ != nullptr && deleted_->Contains(leaf); }
  /// Deleted leaves below the number that Reserve was given.
  uint64_t CountDeleted(index::LeafRange range) const {
    return deleted_ == nullptr ? 0 : deleted_->Count(range);
  }
  template <typename Visit>
  void ForEachDeleted(const Visit& visit) const {
    if (has_deleted()) deleted_->members().ForEach({0, deleted_->reserved()}, visit);
  }
  bool has_deleted() const { return deleted_ != nullptr && deleted_->count() > 0; }

  // The standing filter.

  /// Admission of one: the memory for whom it fails, so many slots for now.
  Status PrepareFilter(uint64_t slot_capacity, uint64_t slot_count);
  /// Null where there never was one.
  StandingFilter* filter() { return filter_.get(); }
  const StandingFilter* filter() const { return filter_.get(); }
  /// Another one from here on: valid, and prepared. What fails is to be worked out anew.
  void SetFilter(const PriorityTableSpec& spec) {
    spec_.filter = spec.filter;
    spec_.filter_action = spec.filter_action;
  }
  /// A closed trajectory is to be removed, since it fails; not one that could not be read.
  bool Expires(Slot slot) const {
    return filter_ != nullptr && spec_.filter_action == FilterAction::kExpire &&
           filter_->Fails(slot) && !filter_->Passes(slot);
  }
  /// These items fail the filter now, or pass it again.
  void Filter(std::span<const uint64_t> leaves);
  void Unfilter(std::span<const uint64_t> leaves);

  // Limits.

  const index::RateLimiter& limiter() const { return limiter_; }
  /// Items are sampled a number of times, at most.
  bool bounded() const { return counts_ != nullptr && counts_->view().max_times() > 0; }
  /// Since when samples are counted.
  bool WasSampled(uint64_t leaf) const {
    return counts_ != nullptr && counts_->view().count(leaf).sampled > 0;
  }
  bool IsExhausted(uint64_t leaf) const { return bounded() && counts_->view().IsExhausted(leaf); }
  /// Items that can be sampled no more.
  uint64_t CountExhausted() const;
  /// Under a maximum: rows that items may be in before each is full, hidden ones not counted; at
  /// most `most`. It is a pass over the items.
  uint64_t PlacesLeft(uint64_t most) const;
  /// Some appends may have to wait.
  bool limits_inserts() const { return limiter_.spec().kind != index::LimiterKind::kMinSize; }
  /// Why `rows` may not be sampled, n items not inserted beside those admitted; text "" if they
  /// may.
  index::LimiterBlock BlockedSample(uint64_t rows) const {
    return limiter_.Blocked(index::LimiterSide::kSample, rows);
  }
  index::LimiterBlock BlockedInsert(uint64_t n) const;

  /// A draw as of the selector, of as many rows as CanDraw has seen. Its rows and items are
  /// reserved; rows that show an item more often than it may be are drawn again, by counters behind
  /// those of the draw.
  void DrawReserved(const index::DrawRequest& request, std::span<uint64_t> leaves,
                    std::span<double> probabilities);
  /// What was reserved by `rows` never will be sampled, or is about to be: by Sample. `leaves` are
  /// those of the rows' items that are there, where hand-overs name items; they were drawn in the
  /// pass `drawn`.
  void CancelReserved(uint64_t rows, std::span<const uint64_t> leaves, const EpochMark& drawn);
  /// So many rows were handed over, with these items.
  void Sample(uint64_t rows, std::span<const uint64_t> leaves);
  /// Admission of other limits: the memory for what they count.
  Status PrepareLimits(const PriorityLimits& limits);
  /// Other limits from here on: valid, and prepared.
  void Configure(const PriorityLimits& limits);

  /// Items of appends that were admitted and are not applied yet.
  uint64_t admitted = 0;
  /// A call of Next that waits.
  struct WaitingBatch {
    uint64_t rows = 0;     ///< That it takes of here at once.
    std::string own = {};  ///< What it waits for that is its sampler's alone, in words; or "".
    friend bool operator==(const WaitingBatch&, const WaitingBatch&) = default;
  };
  std::vector<WaitingBatch> batches_waiting;
  uint32_t appends_waiting = 0;  ///< For this limiter.

  Requirements required;

  // Where the draws stand.
  uint64_t seed = 0;
  uint64_t next_draw = 0;   ///< One past the last draw handed over: what the log says.
  uint64_t next_ahead = 0;  ///< One past the last draw made, handed over or not.

  int samplers = 0;  ///< That draw and are no observers.

  PriorityTableStats counters;  ///< Since the open; items and shift are filled in by Stats.

 private:
  friend class ItemsImage;

  PriorityState(index::IndexMemory* memory, PriorityTableSpec spec, uint64_t leaf_capacity);
  void WillChange(std::span<const uint64_t> leaves);
  void WillChange(index::LeafRange range) {
    if (watch_ != nullptr) watch_->BeforeChange(range.begin, range.end);
  }
  /// Hides those that are full.
  void HideFull(std::span<const uint64_t> leaves);
  /// Shows those that nothing else hides.
  void ShowUnfiltered(std::span<const uint64_t> leaves);

  index::IndexMemory* const memory_;
  const uint64_t leaf_capacity_;
  PriorityTableSpec spec_;
  index::RateLimiter limiter_;
  std::unique_ptr<index::ItemCounts> counts_;  // Null where there never was a maximum.
  std::unique_ptr<index::LeafSet> deleted_;    // Null before the first Delete.
  std::unique_ptr<index::Selector> selector_;
  index::PrioritizedSelector* prioritized_ = nullptr;
  index::OrderedSelector* ordered_ = nullptr;
  index::ChangeWatch* watch_ = nullptr;
  std::unique_ptr<EpochState> epoch_;
  std::unique_ptr<StandingFilter> filter_;  // Null before the first.
  std::unique_ptr<DrawGroups> groups_;
};

/// The order of a selector that has one.
std::optional<index::ItemOrder> OrderOf(SelectorKind kind);

}  // namespace geardb::engine
