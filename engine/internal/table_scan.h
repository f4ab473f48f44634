// Scans of a table by a filter: records, counts, and what the values of a column come to.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/column_scan.h"
#include "engine/filter.h"
#include "engine/internal/core.h"
#include "engine/table.h"

namespace geardb::engine {

/// The slots of the trajectories that pass, in order.
Result<std::vector<Slot>> MatchingSlots(const TableState& state, const Filter& filter)
    GEARDB_REQUIRES(state.mutex);

/// The records with the smallest ids of those that are added, `limit` at most: a scan for a few
/// takes no memory for all.
class FirstRecords {
 public:
  explicit FirstRecords(uint64_t limit) : limit_(limit) {}

  /// Adds what a scan with these options shows of a trajectory, if anything.
  void Look(const TableState& state, const index::TrajectoryRecord& record,
            const ScanOptions& options) GEARDB_REQUIRES(state.mutex);
  void LookAtAll(const TableState& state, const ScanOptions& options) GEARDB_REQUIRES(state.mutex);

  /// Whether one with this id would be kept now.
  bool Wants(TrajectoryId id) const {
    return records_.size() < limit_ || (limit_ > 0 && id < records_.front().id);
  }
  void Add(const TrajectoryRecord& record);
  /// By id.
  std::vector<TrajectoryRecord> Finish() &&;

 private:
  const uint64_t limit_;
  std::vector<TrajectoryRecord> records_;  // Once there are as many as the limit, a heap.
};

/// See Table::Scan.
Result<std::vector<TrajectoryRecord>> ScanRecords(DatabaseCore* database, const TableCore& table,
                                                  const Filter& filter, const ScanOptions& options);
/// See Table::Count.
Result<uint64_t> CountMatching(DatabaseCore* database, const TableCore& table,
                               const Filter& filter);
/// A column, and whose.
struct ColumnQuery {
  std::string_view column;
  const Filter& filter;
};
/// See Table::Statistics.
Result<ColumnStatistics> ColumnStatisticsOf(DatabaseCore* database, const TableCore& table,
                                            const ColumnQuery& query);
/// See Table::Histogram.
Result<ColumnHistogram> ColumnHistogramOf(DatabaseCore* database, const TableCore& table,
                                          const ColumnQuery& query, const HistogramBins& bins);

}  // namespace geardb::engine
