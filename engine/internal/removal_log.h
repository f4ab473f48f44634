// RemovalLog: the last trajectories that have left a table, by number.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "engine/removals.h"

namespace geardb::engine {

/// Of a removal: why, and for kFilter by which priority table's.
struct RemovalCause {
  RemovalReason reason = RemovalReason::kByHand;
  uint32_t priority_table = 0;

  friend auto operator<=>(const RemovalCause&, const RemovalCause&) = default;
};

/// Guarded by its table's mutex.
class RemovalLog {
 public:
  /// How many are remembered; 16 bytes each.
  static constexpr size_t kMax = 65536;
  struct Entry {
    TrajectoryId id = 0;
    RemovalCause cause = {};
  };

  void Add(TrajectoryId id, const RemovalCause& cause) {
    entries_.push_back({id, cause});
    if (entries_.size() > kMax) entries_.pop_front();
    ++end_;
    ++counts_[static_cast<size_t>(cause.reason)];
  }
  /// Numbers go on from here; nothing is remembered.
  void Restore(uint64_t end) { end_ = end; }
  void ResetCounters() { counts_ = {}; }

  /// One past the last number; the first that is remembered.
  uint64_t end() const { return end_; }
  uint64_t begin() const { return end_ - entries_.size(); }
  /// Of a number from begin() to end() - 1.
  const Entry& entry(uint64_t number) const { return entries_[number - begin()]; }
  /// Since the open, by reason.
  const std::array<uint64_t, kRemovalReasons>& counts() const { return counts_; }

 private:
  std::deque<Entry> entries_;
  uint64_t end_ = 0;
  std::array<uint64_t, kRemovalReasons> counts_ = {};
};

}  // namespace geardb::engine
