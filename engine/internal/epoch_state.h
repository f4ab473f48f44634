// EpochState: where the epochs of a priority table stand: what a draw has reserved, what hand-overs
// have covered, when a pass ends and the next begins. Guarded by its table's mutex.
//
// What is covered follows from the log: an item is when the HandOver that names it, with the epoch
// and pass in which it was drawn, is applied. Reservations are in memory alone.
//
// Invariants: reserved items are in the cut and are not drawn; what is in the cut and neither
// remaining nor reserved is covered. So what remains or is reserved is what a replay of the log
// finds remaining, and a pass ends live by the record with which it ends in a replay.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "engine/schema.h"
#include "engine/stats.h"
#include "index/change_watch.h"
#include "index/epoch_selector.h"

namespace geardb::engine {

/// A pass of an epoch; {0, 0} before the first.
struct EpochMark {
  uint64_t epoch = 0;
  uint64_t pass = 0;

  friend bool operator==(const EpochMark&, const EpochMark&) = default;
};

class EpochState {
 public:
  /// `selector` outlives it.
  EpochState(index::EpochSelector* selector, const EpochSpec& spec)
      : selector_(selector), spec_(spec) {}

  EpochMark mark() const { return {selector_->epoch(), selector_->pass()}; }
  /// Nothing is left to draw or to hand over until another epoch begins.
  bool exhausted() const;
  /// Where nothing can be drawn for that, or since the rest is drawn, why, for people; else "".
  std::string WhyUndrawable() const;
  /// Drawn and not handed over, of this pass.
  uint64_t reserved() const { return reserved_.size(); }
  /// The cut, and what of it is not covered.
  const index::EpochSelector& selector() const { return *selector_; }
  const std::set<uint64_t>& reserved_leaves() const { return reserved_; }
  /// Tells `watch` before what is covered, or in the cut, changes; but for an erase, which the
  /// owner tells. Null: nobody. What a reservation takes is not covered.
  void Watch(index::ChangeWatch* watch) { watch_ = watch; }

  /// May be drawn next.
  bool Remains(uint64_t leaf) const { return selector_->Remains(leaf); }
  /// In the last pass, and handed over in it.
  bool IsCovered(uint64_t leaf) const;
  EpochStats Stats() const;

  /// Items that remain were drawn.
  void Reserve(std::span<const uint64_t> leaves);
  /// What was drawn in that pass is given back, or about to be covered.
  void Cancel(const EpochMark& drawn, std::span<const uint64_t> leaves);

  // What the log says.

  void Begin();
  /// Items that were drawn in that pass were handed over.
  void Cover(const EpochMark& drawn, std::span<const uint64_t> leaves);
  /// The rest of that pass is covered without being shown.
  void EndPass(const EpochMark& ended);
  /// Members of a range have left the selector.
  void Erased(index::LeafRange range);

 private:
  bool PassIsOver() const { return selector_->remaining() == 0 && reserved_.empty(); }
  /// Begins the next pass where this one is over.
  void Advance();
  void WillChangeAll();

  index::EpochSelector* const selector_;
  const EpochSpec spec_;
  std::set<uint64_t> reserved_;
  index::ChangeWatch* watch_ = nullptr;
};

}  // namespace geardb::engine
