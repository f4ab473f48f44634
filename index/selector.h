// Selector: the choice behind a priority table. It holds a set of leaves (items) and draws from
// them by Philox counters. One selector per file; each has a trivially copyable view beside it, by
// which other processes draw from the same bytes.
//
// The draw is frozen: row i of draw d takes r = MulHi64(PhiloxRandom64(seed, d, i, kItem), total())
// and the leaf in which r falls when the weights are laid end to end in leaf order. It depends on
// the set and its weights alone, not on capacity, nor on the order in which items came. Without
// replacement, what earlier rows of the draw took is left out of the weights and of their total.
// Ordered selectors (fifo, lifo, heaps) take no random numbers: row i is the i-th best.
//
// A member may be *hidden*: it keeps its priority and its place in the order, is in members() and
// in count(), but not in drawable() and total(), and is never drawn. Hiding ends with Show, and
// with Erase: what is inserted afterwards is visible. Insert and Update of a hidden member change
// its priority and leave it hidden.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "index/membership.h"

namespace geardb::index {

/// Which random numbers a draw takes.
struct DrawRequest {
  uint64_t seed = 0;
  uint64_t draw_number = 0;
  uint32_t first_row = 0;  ///< Counter of the first row; rows follow one another.
};

/// A set of leaves with weights. Not thread-safe: the owner orders writers and readers. All calls
/// but Reserve take leaves below reserved() and cannot fail.
class Selector {
 public:
  virtual ~Selector() = default;

  /// Makes leaves [0, leaf_count) usable: the admission of all that follows. ResourceExhausted
  /// names the budget; the selector is then as before.
  virtual Status Reserve(uint64_t leaf_count) = 0;
  virtual uint64_t reserved() const = 0;

  /// Adds leaves with one raw priority, or with one each; leaves that are members already take
  /// the new priority and keep their place in the order, and of equal leaves the last wins. Returns
  /// how many are new. Raw priorities are finite and not negative (ValidPriority); selectors
  /// without priorities (uniform, fifo, lifo, epoch) do not look at them.
  virtual uint64_t Insert(LeafRange range, float raw_priority) = 0;
  virtual uint64_t Insert(std::span<const uint64_t> leaves,
                          std::span<const float> raw_priorities) = 0;
  /// Removes the members of the range; returns how many there were.
  virtual uint64_t Erase(LeafRange range) = 0;
  /// Gives members a new raw priority; of equal leaves the last wins. Leaves that are no members
  /// are passed over. Returns how many entries were applied.
  virtual uint64_t Update(std::span<const uint64_t> leaves,
                          std::span<const float> raw_priorities) = 0;

  /// Makes Hide usable: the admission of its memory, now and in every later Reserve. Before it, a
  /// selector pays nothing for what is not hidden. ResourceExhausted names the budget; the selector
  /// is then as before.
  virtual Status ReserveHidden() = 0;
  /// Hides members, or shows them again, after ReserveHidden. Leaves that are no members, or are so
  /// already, are passed over. Returns how many changed.
  virtual uint64_t Hide(std::span<const uint64_t> leaves) = 0;
  virtual uint64_t Show(std::span<const uint64_t> leaves) = 0;
  /// False for what is no member.
  virtual bool IsHidden(uint64_t leaf) const = 0;

  /// Draws leaves.size() rows, and returns how many of them it has written, from the first on: all
  /// with replacement, or none when total() is 0; when distinct(), as many as there are leaves to
  /// draw beyond the rows before `first_row`. `probabilities` is empty or of the same size: weight
  /// over total() before the draw, 1 for ordered selectors.
  virtual uint64_t Draw(const DrawRequest& request, std::span<uint64_t> leaves,
                        std::span<double> probabilities) const = 0;
  /// The rows of one draw are different leaves.
  virtual bool distinct() const = 0;

  /// Members, also those that cannot be drawn.
  virtual uint64_t count() const = 0;
  /// Members that can be drawn: the n of an importance weight.
  virtual uint64_t drawable() const = 0;
  /// Sum of the fixed-point weights; drawable() where all that can be drawn weighs the same, or is
  /// drawn in order.
  virtual uint64_t total() const = 0;

  /// Between the two, changes do not touch the sums, nothing is drawn, and total() and drawable()
  /// mean nothing; the second builds all sums once. For recovery. Hide and Show may be called, too.
  virtual void BeginBulk() = 0;
  virtual void EndBulk() = 0;

  /// Index memory that it has committed.
  virtual uint64_t committed_bytes() const = 0;

  /// The set. Valid for leaves below reserved().
  virtual Membership members() const = 0;

  bool Contains(uint64_t leaf) const { return leaf < reserved() && members().Contains(leaf); }
  /// Calls `visit(leaf)` for the members in the range, in order.
  template <typename Visit>
  void ForEachMember(LeafRange range, Visit visit) const {
    if (range.end > reserved()) range.end = reserved();
    members().ForEach(range, visit);
  }
};

/// Finite and not negative.
constexpr bool ValidPriority(float raw_priority) {
  return raw_priority >= 0.0f && raw_priority <= 3.402823466e38f;
}

}  // namespace geardb::index
