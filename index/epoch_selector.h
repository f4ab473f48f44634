// EpochSelector: every member once, in random order. An epoch covers a *cut*: the members at the
// time of BeginEpoch. What is drawn is uniform without replacement among what remains of it. A draw
// changes nothing; Take says what is covered (when a batch is reserved), GiveBack takes that back
// (when it never was delivered). BeginPass puts all that is left of the cut back: K passes over the
// same items. All of it lies in index memory and is a function of the calls: who replays them has
// the same state.
//
// Erased members leave the epoch; members inserted later are not in it, also those that take the
// leaf of one erased. Hidden members belong to the cut and remain in it, and are not drawn. Before
// the first BeginEpoch nothing remains. What was taken in an earlier pass or epoch is not to be
// given back in a later one: epoch() and pass() tell.
//
// Invariants: remaining ⊆ cut ⊆ members; remaining() counts the first; the tree of counts is that
// of what remains and is visible, except in a bulk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/tree_view.h"
#include "index/hidden_leaves.h"
#include "index/index_memory.h"
#include "index/selector.h"
#include "index/visible_counts.h"
#include "index/weight_tree.h"

namespace geardb::index {

/// First bytes of an epoch selector's region; the offsets are from there. Fixed layout.
struct EpochHeader {
  uint64_t leaf_capacity = 0;
  uint64_t reserved = 0;   ///< Leaves that may be touched.
  uint64_t count = 0;      ///< Members.
  uint64_t cut = 0;        ///< Of those, in the cut.
  uint64_t remaining = 0;  ///< Of those, not taken in this pass.
  uint64_t epoch = 0;      ///< Epochs begun.
  uint64_t pass = 0;       ///< Passes begun in this epoch.
  uint64_t members_offset = 0;
  uint64_t cut_offset = 0;
  uint64_t remaining_offset = 0;
  uint64_t tree_offset = 0;
  WeightTreeCounts tree_counts;
  HiddenHeader hidden;
};

/// Reads an epoch selector from its bytes, at any address. Trivially copyable, owns nothing.
class EpochView {
 public:
  /// `region` is where the selector's region begins in this process.
  explicit EpochView(std::byte* region);

  /// As Selector::Draw: distinct rows, uniform among what remains and is visible.
  uint64_t Draw(const DrawRequest& request, std::span<uint64_t> leaves,
                std::span<double> probabilities) const;

  uint64_t count() const { return header_->count; }
  uint64_t total() const { return tree_.total(); }
  uint64_t reserved() const { return header_->reserved; }
  uint64_t cut() const { return header_->cut; }
  uint64_t remaining() const { return header_->remaining; }
  uint64_t epoch() const { return header_->epoch; }
  uint64_t pass() const { return header_->pass; }
  Membership members() const { return members_; }
  VisibleSet drawable() const { return {remaining_, hidden_}; }

 private:
  friend class EpochSelector;
  EpochHeader* header_;
  Membership members_;
  Membership cut_;
  Membership remaining_;
  HiddenView hidden_;
  TreeView tree_;
};

class EpochSelector final : public Selector {
 public:
  /// `leaf_capacity` is 1…2^40; it bounds Reserve and costs address space alone. `memory` outlives
  /// the selector. ResourceExhausted when its first pages do not fit the budget.
  static Result<std::unique_ptr<EpochSelector>> Create(IndexMemory* memory, std::string_view name,
                                                       uint64_t leaf_capacity);

  /// The members as of now become the cut, and all of it remains. O(reserved() / 64).
  void BeginEpoch();
  /// What is left of the cut remains again, all of it. O(reserved() / 64).
  void BeginPass();
  /// Marks leaves as covered; those that do not remain are passed over. Returns how many changed.
  uint64_t Take(std::span<const uint64_t> leaves);
  /// Marks all that remains as covered.
  void TakeAll();
  /// Leaves of the cut remain again; those that do, or are not in the cut, are passed over. Returns
  /// how many changed.
  uint64_t GiveBack(std::span<const uint64_t> leaves);
  /// Members of the cut not taken in this pass, hidden ones included; drawable() is without them.
  uint64_t remaining() const { return view_.remaining(); }
  /// Members of the cut.
  uint64_t cut() const { return view_.cut(); }
  /// Of any leaf.
  bool InCut(uint64_t leaf) const { return leaf < reserved() && view_.cut_.Contains(leaf); }
  bool Remains(uint64_t leaf) const { return leaf < reserved() && view_.remaining_.Contains(leaf); }
  /// The cut, and what remains of it: a bit for each leaf below reserved().
  Membership cut_members() const { return view_.cut_; }
  Membership remaining_members() const { return view_.remaining_; }
  /// Loading: members that are not in the cut come into it, and do not remain (GiveBack).
  void RestoreCut(std::span<const uint64_t> leaves);
  /// Loading: so many epochs have begun, and so many passes in this one.
  void RestoreNumbers(uint64_t epoch, uint64_t pass);
  /// Epochs begun, and passes begun in this one, the first one included.
  uint64_t epoch() const { return view_.epoch(); }
  uint64_t pass() const { return view_.pass(); }

  Status Reserve(uint64_t leaf_count) override;
  uint64_t reserved() const override { return view_.reserved(); }
  uint64_t Insert(LeafRange range, float raw_priority) override;
  uint64_t Insert(std::span<const uint64_t> leaves, std::span<const float> raw_priorities) override;
  uint64_t Erase(LeafRange range) override;
  uint64_t Update(std::span<const uint64_t> leaves, std::span<const float> raw_priorities) override;
  Status ReserveHidden() override { return hidden_.ReserveBits(reserved()); }
  uint64_t Hide(std::span<const uint64_t> leaves) override;
  uint64_t Show(std::span<const uint64_t> leaves) override;
  bool IsHidden(uint64_t leaf) const override {
    return leaf < reserved() && hidden_.view().Contains(leaf);
  }
  uint64_t Draw(const DrawRequest& request, std::span<uint64_t> leaves,
                std::span<double> probabilities) const override {
    return view_.Draw(request, leaves, probabilities);
  }
  bool distinct() const override { return true; }
  uint64_t count() const override { return view_.count(); }
  uint64_t drawable() const override { return view_.total(); }
  uint64_t total() const override { return view_.total(); }
  void BeginBulk() override { tree_.BeginBulk(); }
  void EndBulk() override { tree_.EndBulk(); }
  uint64_t committed_bytes() const override { return region_.committed_bytes(); }
  Membership members() const override { return view_.members(); }

  const EpochView& view() const { return view_; }
  /// Where the view begins, from IndexMemory::base().
  uint64_t offset() const { return region_.offset(); }

 private:
  explicit EpochSelector(Region region);
  /// All of the cut remains; finds the counts anew.
  void PutAllBack();

  Region region_;
  EpochView view_;
  HiddenLeaves hidden_;
  WeightTree tree_;
};

}  // namespace geardb::index
