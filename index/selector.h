// Selector: the choice behind a priority table. It holds a set of leaves (items) and draws from
// them by Philox counters. One selector per file; each has a trivially copyable view beside it, by
// which other processes draw from the same bytes.
//
// The draw is frozen: row i of draw d takes r = MulHi64(PhiloxRandom64(seed, d, i, kItem), total())
// and the leaf in which r falls when the weights are laid end to end in leaf order. It depends on
// the set and its weights alone, not on capacity, nor on the order in which items came.
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
  /// the new priority, and of equal leaves the last wins. Returns how many are new. Raw priorities
  /// are finite and not negative (ValidPriority); the uniform selector does not look at them.
  virtual uint64_t Insert(LeafRange range, float raw_priority) = 0;
  virtual uint64_t Insert(std::span<const uint64_t> leaves,
                          std::span<const float> raw_priorities) = 0;
  /// Removes the members of the range; returns how many there were.
  virtual uint64_t Erase(LeafRange range) = 0;
  /// Gives members a new raw priority; of equal leaves the last wins. Leaves that are no members
  /// are passed over. Returns how many entries were applied.
  virtual uint64_t Update(std::span<const uint64_t> leaves,
                          std::span<const float> raw_priorities) = 0;

  /// Draws leaves.size() rows with replacement. `probabilities` is empty or of the same size.
  /// False, and nothing written, when total() is 0.
  virtual bool Draw(const DrawRequest& request, std::span<uint64_t> leaves,
                    std::span<double> probabilities) const = 0;

  /// Members, also those of weight 0.
  virtual uint64_t count() const = 0;
  /// Members that can be drawn: the n of an importance weight.
  virtual uint64_t drawable() const = 0;
  /// Sum of the fixed-point weights; the number of members for the uniform selector.
  virtual uint64_t total() const = 0;

  /// Between the two, changes do not touch the sums, nothing is drawn, and total() and drawable()
  /// mean nothing; the second builds all sums once. For recovery.
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
