// ItemCounts: how often each item of a priority table was sampled, and how many draws of it are on
// their way, for a table whose items may be sampled a number of times. By leaf, two u16 each.
//
// A draw *reserves* its items, the hand-over *confirms* them, and what is never handed over is
// *cancelled*. An item is *full* when its samples and reservations are max_times: it is to be
// hidden from further draws; and *exhausted* when its samples alone are. Whoever owns the counts
// checks by generations that a leaf still is the item that was drawn.
//
// Invariants: with a maximum, samples + reservations of an item never come to exceed it by a
// reservation. Samples stay at 65,535. Reservations do so only where there was no maximum, and then
// until the leaf is reset, since nobody knows how many more there were.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "index/index_memory.h"
#include "index/membership.h"

namespace geardb::index {

/// First bytes of the region; the offset is from there. Fixed layout.
struct ItemCountsHeader {
  uint64_t leaf_capacity = 0;
  uint64_t reserved = 0;  ///< Leaves that may be touched.
  uint64_t counts_offset = 0;
  uint32_t max_times = 0;  ///< 0: any number.
  uint32_t unused = 0;
};

/// Of one item. Zeroed: never sampled.
struct ItemCount {
  uint16_t sampled = 0;
  uint16_t reserved = 0;
};
static_assert(sizeof(ItemCount) == 4);

/// Reads item counts from their bytes, at any address. Trivially copyable, owns nothing.
class ItemCountsView {
 public:
  /// `region` is where the region begins in this process.
  explicit ItemCountsView(std::byte* region);

  /// leaf < reserved().
  const ItemCount& count(uint64_t leaf) const { return counts_[leaf]; }
  uint32_t max_times() const { return header_->max_times; }
  uint64_t reserved() const { return header_->reserved; }
  /// Never, without a maximum.
  bool IsFull(uint64_t leaf) const {
    return max_times() > 0 &&
           uint32_t{counts_[leaf].sampled} + counts_[leaf].reserved >= max_times();
  }
  bool IsExhausted(uint64_t leaf) const {
    return max_times() > 0 && counts_[leaf].sampled >= max_times();
  }

 private:
  friend class ItemCounts;
  ItemCountsHeader* header_;
  ItemCount* counts_;
};

/// The writer. Not thread-safe: the owner orders it. Only Create, Reserve(leaf_count) and
/// SetMaxTimes can fail. Leaves given to it are below reserved(), in any order, also several times.
class ItemCounts {
 public:
  static constexpr uint32_t kMaxTimesMax = 65'534;

  struct Options {
    uint64_t leaf_capacity = 0;  ///< 1…2^40; costs address space alone.
    uint32_t max_times = 0;      ///< 0…kMaxTimesMax; 0: any number.
  };
  static Result<std::unique_ptr<ItemCounts>> Create(IndexMemory* memory, std::string_view name,
                                                    const Options& options);

  /// Makes leaves [0, leaf_count) usable; new ones were never sampled. ResourceExhausted, with no
  /// change, by budget or capacity.
  Status Reserve(uint64_t leaf_count);
  uint64_t reserved() const { return view_.reserved(); }

  struct ReserveOutcome {
    std::vector<uint64_t> full = {};   ///< Leaves that have just become full: to be hidden.
    std::vector<size_t> refused = {};  ///< Places in `leaves` of items that were full already.
  };
  /// A draw of these, one after the other.
  ReserveOutcome Reserve(std::span<const uint64_t> leaves);
  /// What was reserved has been handed over. Returns the leaves that have just been exhausted.
  std::vector<uint64_t> Confirm(std::span<const uint64_t> leaves);
  /// What was reserved never will be. Returns the leaves that are no longer full: to be shown.
  std::vector<uint64_t> Cancel(std::span<const uint64_t> leaves);
  /// What a log says was handed over, of which nothing is reserved here. Returns the leaves that
  /// have just been exhausted.
  std::vector<uint64_t> Replay(std::span<const uint64_t> leaves);
  /// An image says how often the item was sampled; nothing of it is reserved.
  void Restore(uint64_t leaf, uint16_t sampled);
  /// The items of these leaves have gone, or are new: they count from 0.
  void Reset(LeafRange range);

  /// Leaves that another maximum makes full, and that it makes so no longer, in order, items or
  /// not.
  struct Changes {
    std::vector<uint64_t> full = {};
    std::vector<uint64_t> shown = {};
  };
  /// Looks at all leaves. InvalidArgument above kMaxTimesMax.
  Result<Changes> SetMaxTimes(uint32_t max_times);

  uint64_t committed_bytes() const { return region_.committed_bytes(); }
  const ItemCountsView& view() const { return view_; }
  /// Where the view begins, from IndexMemory::base().
  uint64_t offset() const { return region_.offset(); }

 private:
  explicit ItemCounts(Region region);
  /// Adds a sample; whether it exhausted the item.
  bool AddSample(uint64_t leaf);
  void TakeReservation(uint64_t leaf);

  Region region_;  // parts: header, counts
  ItemCountsView view_;
};

}  // namespace geardb::index
