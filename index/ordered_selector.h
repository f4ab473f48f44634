// OrderedSelector: members are given in order: fifo, lifo, and heaps by raw priority (top-k is the
// first k of a max heap). One key for each member (item_order.h) in a KeyTree.
//
// Order of insertion: leaves of one range, and of one array, are inserted one after the other; an
// Insert of a member keeps its place. Fifo and lifo have no priorities: Update and Insert only
// count. A member of raw priority 0 is drawn from a heap like any other.
//
// Invariants: a leaf's key is above 0 iff it is a member, and has kVisibleKey iff it is not hidden;
// sequence numbers of members differ and are below next_sequence.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "index/index_memory.h"
#include "index/item_order.h"
#include "index/key_tree.h"
#include "index/selector.h"

namespace geardb::index {

/// First bytes of an ordered selector's region; the offsets are from there. Fixed layout.
struct OrderedHeader {
  uint64_t leaf_capacity = 0;
  uint64_t reserved = 0;       ///< Leaves that may be touched.
  uint64_t count = 0;          ///< Members.
  uint64_t hidden = 0;         ///< Of those.
  uint64_t next_sequence = 0;  ///< What the next new member gets.
  uint64_t members_offset = 0;
  uint64_t tree_offset = 0;
  ItemOrder order = ItemOrder::kOldestFirst;
  float max_priority = 1.0f;
};

/// Reads an ordered selector from its bytes, at any address. Trivially copyable, owns nothing.
class OrderedView {
 public:
  /// `region` is where the selector's region begins in this process.
  explicit OrderedView(std::byte* region);

  /// As Selector::Draw: row i is the i-th best visible member, its probability 1.
  uint64_t Draw(const DrawRequest& request, std::span<uint64_t> leaves,
                std::span<double> probabilities) const;

  uint64_t count() const { return header_->count; }
  uint64_t drawable() const { return header_->count - header_->hidden; }
  uint64_t reserved() const { return header_->reserved; }
  ItemOrder order() const { return header_->order; }
  Membership members() const { return members_; }
  /// Of a member; 1 without priorities.
  float raw_priority(uint64_t leaf) const { return RawPriorityOfKey(order(), tree_.keys(0)[leaf]); }
  /// By leaf, up to reserved(): see item_order.h; 0 of no members.
  const uint64_t* keys() const { return tree_.keys(0); }

 private:
  friend class OrderedSelector;
  OrderedHeader* header_;
  Membership members_;
  KeyTreeView tree_;
};

class OrderedSelector final : public Selector {
 public:
  struct Options {
    /// 1…LeafCapacityMax(order): it bounds Reserve and costs address space alone.
    uint64_t leaf_capacity = 0;
    ItemOrder order = ItemOrder::kOldestFirst;
    uint64_t next_sequence = 0;  ///< Of the first member, below 2^32; for tests.
  };
  /// 2^35; of heaps 2^31, so that of 2^32 sequence numbers at least half are unused whenever
  /// members are numbered anew.
  static constexpr uint64_t LeafCapacityMax(ItemOrder order) {
    return uint64_t{1} << (OrdersByPriority(order) ? 31 : 35);
  }
  /// `memory` outlives the selector. ResourceExhausted when its first pages do not fit the budget.
  static Result<std::unique_ptr<OrderedSelector>> Create(IndexMemory* memory, std::string_view name,
                                                         const Options& options);

  Status Reserve(uint64_t leaf_count) override;
  uint64_t reserved() const override { return view_.reserved(); }
  uint64_t Insert(LeafRange range, float raw_priority) override;
  uint64_t Insert(std::span<const uint64_t> leaves, std::span<const float> raw_priorities) override;
  uint64_t Erase(LeafRange range) override;
  uint64_t Update(std::span<const uint64_t> leaves, std::span<const float> raw_priorities) override;
  /// Nothing to admit: a bit of each key says what is hidden.
  Status ReserveHidden() override { return Status::Ok(); }
  uint64_t Hide(std::span<const uint64_t> leaves) override;
  uint64_t Show(std::span<const uint64_t> leaves) override;
  bool IsHidden(uint64_t leaf) const override {
    return Contains(leaf) && (tree_.key(leaf) & kVisibleKey) == 0;
  }
  uint64_t Draw(const DrawRequest& request, std::span<uint64_t> leaves,
                std::span<double> probabilities) const override {
    return view_.Draw(request, leaves, probabilities);
  }
  bool distinct() const override { return true; }
  uint64_t count() const override { return view_.count(); }
  uint64_t drawable() const override { return view_.drawable(); }
  uint64_t total() const override { return view_.drawable(); }
  void BeginBulk() override { tree_.BeginBulk(); }
  void EndBulk() override { tree_.EndBulk(); }
  uint64_t committed_bytes() const override { return region_.committed_bytes(); }
  Membership members() const override { return view_.members(); }

  ItemOrder order() const { return view_.order(); }
  float raw_priority(uint64_t leaf) const { return view_.raw_priority(leaf); }
  /// The largest raw priority ever applied, from 1; stays 1 without priorities.
  float max_priority() const { return view_.header_->max_priority; }

  // For an image of the selector, and back from one.

  /// What the next new member gets: above all of members, at most SequenceLimit(order()).
  uint64_t next_sequence() const { return view_.header_->next_sequence; }
  /// Adds leaves that are no members as visible ones with these numbers, which are below those of
  /// RestoreEnd and differ from all others.
  void Restore(std::span<const uint64_t> leaves, std::span<const float> raw_priorities,
               std::span<const uint64_t> sequences);
  void RestoreEnd(uint64_t next_sequence, float max_priority) {
    view_.header_->next_sequence = next_sequence;
    view_.header_->max_priority = max_priority;
  }

  const OrderedView& view() const { return view_; }
  /// Where the view begins, from IndexMemory::base().
  uint64_t offset() const { return region_.offset(); }

 private:
  explicit OrderedSelector(Region region);
  /// Sees to it that `members` more can get sequence numbers: where those of a heap end, members
  /// are numbered anew from 0 in their order, which changes no order. A pass over all members, with
  /// 8 bytes of memory for each, at most once in 2^31 insertions.
  void MakeSequences(uint64_t members);
  void NumberAnew();
  /// The key of `leaf`, which is to be a member with this raw priority, and whether it is new.
  uint64_t KeyFor(uint64_t leaf, float raw_priority, uint64_t* added);

  Region region_;
  OrderedView view_;
  KeyTree tree_;
};

}  // namespace geardb::index
