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
