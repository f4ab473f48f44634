// From what was drawn to the items of a batch: which trajectory, row and episode each is.
//
// Everything here is read under the mutexes of the parts' tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/internal/batch_rep.h"
#include "engine/internal/episode.h"
#include "engine/internal/view_plan.h"

namespace geardb::engine {

/// What some rows of a batch are drawn from.
struct BatchPart {
  const ViewPlan* plan = nullptr;
  const TableState* state = nullptr;
  const WindowRule* rule = nullptr;  ///< Of its windows; null: items are trajectories.
  bool within = false;               ///< Its windows stand in drawn trajectories, or groups.
  /// Of a priority table over groups; leaves are groups then. Else null.
  const DrawGroups* groups = nullptr;

  /// Leaves are rows; else slots.
  bool leaves_are_rows() const { return rule != nullptr && !within; }
};

/// One drawn row of a batch.
struct DrawnLeaf {
  uint64_t leaf = 0;
  int64_t row = 0;      ///< Within: where the window stands.
  Slot slot = kNoSlot;  ///< Of a group: the member that the row shows.
  uint32_t part = 0;
  bool begins_group = false;  ///< The rows of another drawn group begin.
  DrawKey key;
};

/// An item of a batch.
struct DrawnItem {
  const BatchPart* part = nullptr;
  Slot slot = kNoSlot;
  Lpn lpn = kNoLpn;  ///< Page of the anchor; kNoLpn: look it up.
  int64_t row = 0;
  const WindowRule* rule = nullptr;  ///< The part's, or a trajectory's own.
  Episode episode;
  PlacedWindow window;

  RowCursor cursor() const {
    const index::TrajectoryRecord& record = part->state->trajectories().record(slot);
    return lpn == kNoLpn ? RowCursor(*part->state, record) : RowCursor(*part->state, record, lpn);
  }
};

class BatchItems {
 public:
  /// Fills the arrays of `rep` that have an entry for each item.
  void Resolve(std::span<const BatchPart> parts, std::span<const DrawnLeaf> leaves,
               Batch::Rep* rep);
  const std::vector<DrawnItem>& items() const { return items_; }

 private:
  // Of rows of one part, which begin there in the batch.
  /// Where leaves are rows the page of each, else its trajectory.
  void FindPages(const BatchPart& part, std::span<const DrawnLeaf> leaves, size_t begin);
  void FindTrajectories(const BatchPart& part, std::span<const DrawnLeaf> leaves, size_t begin);
  void PlaceWindows(const BatchPart& part, size_t begin, size_t end);
  void List(const BatchPart& part, std::span<const DrawnLeaf> leaves, size_t begin,
            Batch::Rep* rep) const;
  /// Which rows are of which group; `parts` draw groups, all of them or none.
  static void ListGroups(std::span<const BatchPart> parts, std::span<const DrawnLeaf> leaves,
                         Batch::Rep* rep);

  std::vector<DrawnItem> items_;
  std::vector<WindowRule> trajectory_rules_;  // Of items that are trajectories.
};

/// Steps of the length part of an item that is drawn by its leaf alone: no window within, no group.
int64_t StepsOf(const BatchPart& part, uint64_t leaf);
/// The trajectory that it is of; of a group its first member.
TrajectoryId TrajectoryOf(const BatchPart& part, uint64_t leaf);

}  // namespace geardb::engine
