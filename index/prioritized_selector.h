// PrioritizedSelector: members are drawn in proportion to w = p^α, p being their raw priority.
// Schaul et al., "Prioritized Experience Replay", ICLR 2016. Weights are fixed point,
// q = QuantizeWeight(w, s) = round(w·2^s), in a weight tree; raw priorities (f32) are kept beside
// it, so that another shift s is a rebuild. With replacement, or without: by the weights that the
// rows before have left, drawn by DrawDistinct.
//
// Invariants: q of a leaf is that of its raw priority for visible members and 0 for others; a
// member of raw priority 0 stays a member and is never drawn; max_priority() never shrinks. The
// scale and its bounds look at hidden members, too, so that showing them cuts no weight.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/tree_view.h"
#include "index/hidden_leaves.h"
#include "index/index_memory.h"
#include "index/selector.h"
#include "index/weight_tree.h"

namespace geardb::index {

inline constexpr int kShiftMin = -32;
inline constexpr int kShiftMax = 40;
inline constexpr int kShiftInitial = 16;

/// First bytes of a prioritized selector's region; the offsets are from there. Fixed layout.
struct PrioritizedHeader {
  uint64_t leaf_capacity = 0;
  uint64_t reserved = 0;  ///< Leaves that may be touched.
  uint64_t count = 0;     ///< Members.
  uint64_t members_offset = 0;
  uint64_t raw_offset = 0;   ///< f32 per leaf.
  uint64_t tree_offset = 0;  ///< u32 per leaf, then nodes.
  WeightTreeCounts tree_counts;
  double alpha = 0;
  int32_t shift = 0;
  float max_priority = 1.0f;
  uint32_t saturated = 0;  ///< 1 since a weight was cut to 2^32 - 1 at this shift.
  /// Members that came, went or were set since the shift last went up; 2^32 - 1 stands for more.
  uint32_t changed = UINT32_MAX;
  /// Members by the exponent bits of their raw priority: the largest weight, within a factor 2^α.
  uint64_t members_by_exponent[256] = {};
  HiddenHeader hidden;
  uint64_t without_replacement = 0;  ///< 1: the rows of a draw are distinct.
};

/// The shift at which `max_weight` comes to lie in [2^27, 2^28), so that it may grow 16-fold before
/// the next rescale; within kShiftMin…kShiftMax. kShiftInitial when `max_weight` is 0.
int ChooseShift(double max_weight);

/// Reads a prioritized selector from its bytes, at any address. Trivially copyable, owns nothing.
class PrioritizedView {
 public:
  /// `region` is where the selector's region begins in this process.
  explicit PrioritizedView(std::byte* region);

  /// As Selector::Draw; the probability is q / total.
  uint64_t Draw(const DrawRequest& request, std::span<uint64_t> leaves,
                std::span<double> probabilities) const;
  bool distinct() const { return header_->without_replacement != 0; }
  /// q / total of one leaf below reserved(); 0 when it is no member, or is hidden.
  double Probability(uint64_t leaf) const;

  uint64_t count() const { return header_->count; }
  uint64_t drawable() const { return header_->tree_counts.nonzero; }
  uint64_t total() const { return tree_.total(); }
  uint64_t reserved() const { return header_->reserved; }
  double alpha() const { return header_->alpha; }
  int shift() const { return header_->shift; }
  Membership members() const { return members_; }
  /// Of a member.
  float raw_priority(uint64_t leaf) const { return raw_[leaf]; }
  /// By leaf, up to reserved(); those of members mean something.
  const float* raw_priorities() const { return raw_; }
  const TreeView& tree() const { return tree_; }

 private:
  friend class PrioritizedSelector;
  uint64_t DrawWithoutReplacement(const DrawRequest& request, std::span<uint64_t> leaves,
                                  std::span<double> probabilities) const;

  PrioritizedHeader* header_;
  Membership members_;
  float* raw_;
  TreeView tree_;
};

class PrioritizedSelector final : public Selector {
 public:
  /// `leaf_capacity` is 1…2^35 (and at most 2^32 leaves may be drawable, so that sums fit 64 bits);
  /// `alpha` is 0…4. The shift begins at kShiftInitial. `memory` outlives the selector.
  struct Options {
    uint64_t leaf_capacity = 0;
    double alpha = 0;
    bool without_replacement = false;
  };
  static Result<std::unique_ptr<PrioritizedSelector>> Create(IndexMemory* memory,
                                                             std::string_view name,
                                                             const Options& options);

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
  bool distinct() const override { return view_.distinct(); }
  uint64_t count() const override { return view_.count(); }
  uint64_t drawable() const override { return view_.drawable(); }
  uint64_t total() const override { return view_.total(); }
  void BeginBulk() override { tree_.BeginBulk(); }
  void EndBulk() override { tree_.EndBulk(); }
  uint64_t committed_bytes() const override { return region_.committed_bytes(); }
  Membership members() const override { return view_.members(); }

  double alpha() const { return view_.alpha(); }
  int shift() const { return view_.shift(); }
  /// The largest raw priority ever applied by Insert or Update, from 1: what new items get.
  float max_priority() const { return view_.header_->max_priority; }
  /// Weights were cut at this shift: a rescale is due.
  bool saturated() const { return view_.header_->saturated != 0; }
  float raw_priority(uint64_t leaf) const { return view_.raw_priority(leaf); }
  /// w = p^α, in f64.
  double WeightOf(float raw_priority) const;
  /// q of `weight` is not cut at the present shift.
  bool MaxWeightFits(double weight) const;
  /// The smallest probability above zero of any member; 0 when nothing is drawable. May take a pass
  /// over all leaves (see WeightTree::Smallest).
  double SmallestProbability();

  /// A bound on the weights of all members, within a factor 2^α of the largest; 0 for none.
  double LargestWeightBound() const;

  /// Policy: the shift to log and Rescale to, or nothing. To be asked before an Insert or Update
  /// whose largest weight `incoming_max` does not fit, and after one with 0. Downwards when that
  /// weight does not fit, or one was cut; upwards when the mean q has faded below 2^8 and there is
  /// room for at least 4 bits more above every weight, or kShiftMax is left: of more than 4,096
  /// members not before a sixteenth as many have come, gone or been set since the last time, since
  /// a Rescale is a pass over all. After a Rescale to it there is no more to advise. A function of
  /// what was applied, in its order: a replay comes to the same answer.
  std::optional<int> AdviseShift(double incoming_max) const;
  /// Quantizes all members anew at `shift` (kShiftMin…kShiftMax) and rebuilds the sums.
  void Rescale(int shift);

  /// What an image of the selector has beside members and their raw priorities.
  struct WeightScale {
    int shift = kShiftInitial;
    float max_priority = 1.0f;
    bool saturated = false;
    uint32_t changed = UINT32_MAX;  ///< Members since the shift last went up, as far as it counts.

    friend bool operator==(const WeightScale&, const WeightScale&) = default;
  };
  WeightScale scale() const;
  /// Of a selector whose members were inserted at this shift (Rescale); max_priority is valid, and
  /// no less than any of theirs.
  void RestoreScale(const WeightScale& scale);

  const PrioritizedView& view() const { return view_; }
  /// Where the view begins, from IndexMemory::base().
  uint64_t offset() const { return region_.offset(); }

 private:
  explicit PrioritizedSelector(Region region);
  void CountChanges(uint64_t members);
  /// Takes the members of the range out of members_by_exponent.
  void ForgetRaw(LeafRange range);
  /// Stores raw priorities and weights of leaves that are members; at most a chunk of them.
  void ApplyChunk(std::span<const uint64_t> leaves, std::span<const float> raw_priorities);

  /// What hidden leaves weigh, now that they may have been given weights: nothing.
  void ZeroHidden(LeafRange range);

  Region region_;
  PrioritizedView view_;
  HiddenLeaves hidden_;
  WeightTree tree_;
};

}  // namespace geardb::index
