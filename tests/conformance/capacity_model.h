// CapacityModel: what leaves a full table, as engine/README.md, "Capacity and removal", says, in
// the most naive way. It changes the WindowModel of the table, and asks the store for nothing.
//
// A bound on steps takes the page that came first; a bound on trajectories what was closed first
// (of two that one call closed, what was opened first). With lifo either takes what was closed last
// (likewise the other way), and pages only when nothing closed is left. Either stops as soon as the
// newcomers fit.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tests/conformance/window_model.h"

namespace geardb::conformance {

/// The bounds of a table; 0 is none.
struct ModelCapacity {
  int64_t steps_max = 0;
  int64_t trajectories_max = 0;
  int64_t steps_per_page = 1;
  bool lifo = false;
};

/// What one call brings: stored rows (final rows are rows), and trajectories that it opens.
struct ModelGrowth {
  int64_t rows = 0;
  int64_t trajectories = 0;
};

class CapacityModel {
 public:
  explicit CapacityModel(const ModelCapacity& capacity) : capacity_(capacity) {}

  /// Takes out of `model` what must leave before `growth` comes. False: nothing more may leave, and
  /// `growth` does not fit.
  bool MakeRoom(const ModelGrowth& growth, WindowModel* model);
  /// The call that MakeRoom was for appended rows [first, end) to a trajectory.
  void NoteRows(TrajectoryId id, int64_t first, int64_t end);
  /// A trajectory was closed: by the call that MakeRoom was for last, or after it by a cut.
  void NoteClosed(TrajectoryId id, bool by_cut);

 private:
  struct Page {
    TrajectoryId id = 0;
    int64_t end = 0;  ///< One past the last row that it may hold.
  };

  bool RemoveClosed(WindowModel* model);
  bool RemoveOldestPage(WindowModel* model);

  ModelCapacity capacity_;
  std::vector<Page> pages_;                  // In the order in which they came.
  std::map<TrajectoryId, uint64_t> closed_;  // By which call; calls are numbered.
  uint64_t calls_ = 0;
};

}  // namespace geardb::conformance
