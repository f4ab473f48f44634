// LogNames: what the numbers in the log's records are called.
//
// Records name tables by number, priority tables by their place in the table, and trajectories by
// slot; the record that made each says the name. Names are learned from the records as they pass,
// and, of tables whose record is not read, from the image of the index.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/types.h"
#include "engine/image_generated.h"
#include "engine/internal/record_body.h"

namespace geardb::cli {

/// A plain value. What was not learned is called by its number.
class LogNames {
 public:
  /// Learns the names of a table's head in an image, and of its priority tables.
  void Follow(const engine::fb::TableHead& head);
  /// Learns what an operation names: tables, priority tables, and trajectories that begin.
  void Follow(const engine::fb::Operation& operation);

  /// "'replay'", or "table 3".
  std::string TableText(TableId table) const;
  /// "'per'", or "priority table 0".
  std::string PriorityTableText(TableId table, uint32_t number) const;
  /// "trajectory 12", or "slot 5".
  std::string TrajectoryText(TableId table, Slot slot) const;

  /// Null when it was not learned.
  const std::string* TableName(TableId table) const;
  const std::string* PriorityTableName(TableId table, uint32_t number) const;

 private:
  std::map<TableId, std::string> tables_;
  std::map<std::pair<TableId, uint32_t>, std::string> priority_tables_;
  std::map<std::pair<TableId, Slot>, TrajectoryId> trajectories_;
};

}  // namespace geardb::cli
