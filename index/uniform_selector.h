// UniformSelector: every visible member is equally likely, by VisibleCounts over the members.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/tree_view.h"
#include "index/index_memory.h"
#include "index/selector.h"
#include "index/visible_counts.h"
#include "index/weight_tree.h"

namespace geardb::index {

/// First bytes of a uniform selector's region; the offsets are from there. Fixed layout.
struct UniformHeader {
  uint64_t leaf_capacity = 0;
  uint64_t reserved = 0;  ///< Leaves that may be touched.
  uint64_t count = 0;     ///< Members.
  uint64_t members_offset = 0;
  uint64_t tree_offset = 0;
  WeightTreeCounts tree_counts;
  HiddenHeader hidden;
};

/// Reads a uniform selector from its bytes, at any address. Trivially copyable, owns nothing.
class UniformView {
 public:
  /// `region` is where the selector's region begins in this process.
  explicit UniformView(std::byte* region);

  /// As Selector::Draw.
  uint64_t Draw(const DrawRequest& request, std::span<uint64_t> leaves,
                std::span<double> probabilities) const;
  /// The `rank`-th visible member in leaf order, rank < total().
  uint64_t Select(uint64_t rank) const;

  uint64_t count() const { return header_->count; }
  uint64_t total() const { return tree_.total(); }
  uint64_t reserved() const { return header_->reserved; }
  Membership members() const { return members_; }
  VisibleSet visible() const { return {members_, hidden_}; }

 private:
  friend class UniformSelector;
  UniformHeader* header_;
  Membership members_;
  HiddenView hidden_;
  TreeView tree_;
};

class UniformSelector final : public Selector {
 public:
  /// `leaf_capacity` is 1…2^40; it bounds Reserve and costs address space alone. `memory` outlives
  /// the selector. ResourceExhausted when its first pages do not fit the budget.
  static Result<std::unique_ptr<UniformSelector>> Create(IndexMemory* memory, std::string_view name,
                                                         uint64_t leaf_capacity);

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
  bool distinct() const override { return false; }
  uint64_t count() const override { return view_.count(); }
  uint64_t drawable() const override { return view_.total(); }
  uint64_t total() const override { return view_.total(); }
  void BeginBulk() override { tree_.BeginBulk(); }
  void EndBulk() override { tree_.EndBulk(); }
  uint64_t committed_bytes() const override { return region_.committed_bytes(); }
  Membership members() const override { return view_.members(); }

  const UniformView& view() const { return view_; }
  /// Where the view begins, from IndexMemory::base().
  uint64_t offset() const { return region_.offset(); }

 private:
  explicit UniformSelector(Region region);

  Region region_;
  UniformView view_;
  HiddenLeaves hidden_;
  WeightTree tree_;
};

}  // namespace geardb::index
