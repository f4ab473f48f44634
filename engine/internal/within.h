// Windows within drawn trajectories and groups: which rows of a trajectory a window may stand at,
// and which of them are drawn.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/internal/batch_items.h"
#include "engine/internal/episode.h"
#include "engine/internal/row_draw.h"

namespace geardb::engine {

/// The anchors of a window rule in one trajectory, in order. Valid while the table's mutex is held.
class AnchorRows {
 public:
  /// In a stream it looks at every row.
  AnchorRows(const TableState& state, const WindowRule& rule, Slot slot);

  int64_t count() const { return count_; }
  int64_t row(int64_t at) const {
    return rows_.empty() ? first_ + at * stride_ : rows_[static_cast<size_t>(at)];
  }

 private:
  void FindInStream(const TableState& state, const WindowRule& rule,
                    const index::TrajectoryRecord& record);

  int64_t first_ = 0;
  int64_t stride_ = 1;
  int64_t count_ = 0;
  std::vector<int64_t> rows_;  // Of a stream.
};

/// The anchors in all trajectories of an item, one after the other: of a trajectory its own, of a
/// draw group those of its members in their order. Valid as the above.
class ItemAnchors {
 public:
  /// `part` draws windows within; `leaf` is there.
  ItemAnchors(const BatchPart& part, uint64_t leaf);

  int64_t count() const { return ends_.empty() ? 0 : ends_.back(); }
  /// Where anchor `at` of all of them is.
  std::pair<Slot, int64_t> at(int64_t at) const;

 private:
  void Add(const BatchPart& part, Slot slot);

  std::vector<Slot> slots_;  // That have anchors.
  std::vector<AnchorRows> rows_;
  std::vector<int64_t> ends_;  // How many they have with those before them.
};

/// Which of `anchors` > 0 anchors window j of `count` of a drawn trajectory stands at: each as
/// likely, or with `stratified` uniform in the j-th of `count` strata of equal size. (The share
/// that an anchor at a border has in both sides is exact: over all j each comes as often.)
int64_t DrawAnchor(const DrawKey& key, int64_t anchors, int64_t j, int64_t count, bool stratified);

}  // namespace geardb::engine
