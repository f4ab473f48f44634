// A small fixed table for tests of drawing: a u32 column "number" that counts all rows appended,
// priority tables of every selector and item kind, and trajectories of many lengths.
#pragma once

#include <memory>
#include <string>

#include "engine/database.h"

namespace geardb::conformance {

/// The database in a directory, its table and a writer. Failures stop the test program.
class PlainTable {
 public:
  /// Creates it, or opens what is there and resumes the open trajectory of lane 1.
  explicit PlainTable(const std::string& directory);
  ~PlainTable();

  Table* table() { return table_.get(); }
  std::shared_ptr<PriorityTable> priority_table(const std::string& name) {
    return table_->priority_table(name);
  }
  /// A closed trajectory of `steps` steps, on lane 0.
  TrajectoryId AppendTrajectory(int64_t steps, End end);
  /// A row of the trajectory that stays open, on lane 1.
  void AppendRow();
  void Remove(TrajectoryId id);

  /// The priority tables: "uniform.window", "uniform.trajectory", "prioritized.window",
  /// "prioritized.trajectory".
  static const char* const kPriorityTables[4];

 private:
  std::unique_ptr<Database> database_;
  std::shared_ptr<Table> table_;
  std::unique_ptr<Writer> writer_;
  uint32_t next_number_ = 0;
};

}  // namespace geardb::conformance
