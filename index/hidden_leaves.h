// HiddenLeaves: the members of a selector that are not drawn for now, one bit per leaf. The bits
// take no memory before somebody asks to hide (ReserveBits).
//
// Invariants: HiddenHeader::count is the number of set bits; a set bit is that of a member (its
// owner sees to that); bits of leaves below the owner's reserved() are committed once any are.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "index/index_memory.h"
#include "index/membership.h"

namespace geardb::index {

/// Lies in its owner's header. Fixed layout.
struct HiddenHeader {
  uint64_t offset = 0;    ///< Of the bits, from the beginning of the owner's region.
  uint64_t reserved = 0;  ///< 1 once there are bits.
  uint64_t count = 0;     ///< Hidden leaves.
};

/// Reads the bits. Trivially copyable, owns nothing.
class HiddenView {
 public:
  HiddenView(std::byte* region, const HiddenHeader* header)
      : header_(header), bits_(region + header->offset) {}

  uint64_t count() const { return header_->count; }
  /// Of a leaf below the owner's reserved().
  bool Contains(uint64_t leaf) const { return count() != 0 && bits_.Contains(leaf); }
  /// To be read only while count() is above 0.
  const Membership& bits() const { return bits_; }

 private:
  friend class HiddenLeaves;
  const HiddenHeader* header_;
  Membership bits_;
};

/// Their writer. Part `part` of the owner's region holds the bits.
class HiddenLeaves {
 public:
  HiddenLeaves(Region* region, size_t part, HiddenHeader* header)
      : region_(region), part_(part), header_(header), view_(region->base(), header) {}

  /// Makes bits for leaves [0, leaf_count): from now on there are some. ResourceExhausted names the
  /// budget, and nothing has changed.
  Status ReserveBits(uint64_t leaf_count);
  /// The same where there are bits already; otherwise there is nothing to do.
  Status Grow(uint64_t leaf_count);

  /// The bits of one leaf; true when it changed. There are bits (ReserveBits).
  bool Set(uint64_t leaf);
  bool Clear(uint64_t leaf);
  /// Leaves of the range that are members no more.
  void Forget(LeafRange range);

  const HiddenView& view() const { return view_; }

 private:
  Region* region_;
  size_t part_;
  HiddenHeader* header_;
  HiddenView view_;
};

}  // namespace geardb::index
