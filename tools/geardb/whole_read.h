// Reads all that a table has of a trajectory: its rows, and its values of every column that has one
// value per trajectory, of whatever length.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "engine/database.h"

namespace geardb::cli {

/// Of one table; the columns that it had when this was made.
class WholeRead {
 public:
  explicit WholeRead(Table* table);

  /// The first error, as of Table::Read: Corruption where a page of any column is damaged. A
  /// thousand rows at a time, so that a long trajectory takes no more memory.
  Status Read(const TrajectoryRecord& trajectory) const;

 private:
  Table* const table_;
  /// One of each step, and one of each trajectory.
  std::vector<std::string> of_steps_;
  std::vector<std::string> of_trajectories_;
};

}  // namespace geardb::cli
