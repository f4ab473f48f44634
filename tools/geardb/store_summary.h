// StoreSummary: what `geardb info` shows, as plain values; gathering is apart from printing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/database.h"
#include "tools/geardb/open_store.h"

namespace geardb::cli {

struct PriorityTableSummary {
  PriorityTableSpec spec;
  PriorityTableStats stats;
};

struct TableSummary {
  TableId id = 0;
  TableSpec spec;
  uint32_t steps_per_page = 0;
  TableStats stats;
  std::vector<GroupPlaces> places;
  uint64_t open = 0, closed = 0, orphaned = 0;  ///< Trajectories.
  std::vector<PriorityTableSummary> priority_tables;

  /// True bytes of rows over bytes of their frames; 1 for an empty table.
  double fill() const;
  /// The same the other way round: what a byte of experience costs.
  double frame_bytes_per_row_byte() const;
};

struct StoreSummary {
  wal::Manifest manifest;
  RecoveryReport recovery;
  DatabaseStats stats;
  DatabaseActivity activity;
  uint64_t segment_files = 0;
  std::vector<TableSummary> tables;
  std::vector<Tag> tags;
};

Result<StoreSummary> Summarize(const StoreFiles& files, Database* database);

}  // namespace geardb::cli
