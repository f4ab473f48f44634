// LeafSet: a set of leaves (or of slots) in index memory, one bit each: the items that were deleted
// by hand, those that a standing filter hides.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "index/index_memory.h"
#include "index/membership.h"

namespace geardb::index {

class LeafSet {
 public:
  /// `leaf_capacity` is 1…2^40; it bounds Reserve and costs address space alone. `memory` outlives
  /// it. InvalidArgument for another capacity.
  static Result<std::unique_ptr<LeafSet>> Create(IndexMemory* memory, std::string_view name,
                                                 uint64_t leaf_capacity);

  /// Makes leaves [0, leaf_count) usable. ResourceExhausted names the budget, and nothing has
  /// changed.
  Status Reserve(uint64_t leaf_count);
  uint64_t reserved() const { return reserved_; }

  /// Of a leaf below reserved(); true when it was not in the set.
  bool Add(uint64_t leaf);
  /// Takes the leaves of a range out.
  void Forget(LeafRange range);

  /// Leaves in the set.
  uint64_t count() const { return count_; }
  /// Of a leaf below reserved().
  bool Contains(uint64_t leaf) const { return count_ != 0 && bits_.Contains(leaf); }
  /// Those in a range below reserved().
  uint64_t Count(LeafRange range) const { return count_ == 0 ? 0 : bits_.Count(range); }
  /// A bit for each leaf below reserved().
  Membership members() const { return bits_; }
  uint64_t committed_bytes() const { return region_.committed_bytes(); }

 private:
  explicit LeafSet(Region region);

  Region region_;
  Membership bits_;
  uint64_t reserved_ = 0;
  uint64_t count_ = 0;
};

}  // namespace geardb::index
