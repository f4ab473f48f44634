// What a scan over the values of a column comes to: Table::Statistics and Table::Histogram.
#pragma once

#include <cstdint>
#include <vector>

namespace geardb {

/// Of the values that are not NaN; integers and bools as the nearest f64. Sums are taken in f64
/// over tiles of 1,024 values in the order of the scan, so they do not depend on pages or threads.
struct ColumnStatistics {
  uint64_t count = 0;  ///< Values that are no NaN.
  uint64_t nans = 0;   ///< Values that are.
  // Not a number where count is 0.
  double mean = 0;  ///< Infinite, or not a number, where there are infinite values.
  double std = 0;   ///< Of the population: divided by count. Not a number with infinite values.
  double min = 0;
  double max = 0;
};

/// The bins of a histogram: by edges, or `count` of one width.
struct HistogramBins {
  /// Finite, rising, at least two; or empty for `count` bins from low to high.
  std::vector<double> edges = {};
  uint64_t count = 0;  ///< 1…kHistogramBinsMax.
  double low = 0;
  double high = 0;
};
inline constexpr uint64_t kHistogramBinsMax = uint64_t{1} << 20;

/// Bin i holds edges[i] <= x < edges[i + 1]; the last one also what equals its upper edge.
struct ColumnHistogram {
  std::vector<double> edges = {};
  std::vector<uint64_t> counts = {};  ///< One less than the edges.
  uint64_t below = 0;                 ///< Under the first edge.
  uint64_t above = 0;                 ///< Over the last.
  uint64_t nans = 0;
};

}  // namespace geardb
