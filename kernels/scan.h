// Sums and histograms over runs of values of any element type, converted to f64 on the way.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"

namespace geardb {

/// `count` values, each `stride` bytes behind the last, of any alignment. Owns nothing.
struct ScanRun {
  DType dtype = DType::kF32;
  const void* values = nullptr;
  uint64_t stride = 0;
  uint64_t count = 0;
};

/// The values as f64: the nearest one for 64-bit integers, exact for the rest. A NaN stays one; a
/// bool is 1 unless its byte is 0.
void ConvertToDouble(const ScanRun& run, double* destination);

/// Values that are summed together.
inline constexpr uint64_t kScanTile = 1024;

/// Count, mean, deviation and range of the values given one after the other. Tiles are cut by the
/// number of values alone, each is summed in eight lanes in a fixed order, and tiles are joined in
/// their order (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
/// sample variances", 1979): the result is the same bits however runs and pages cut the values.
class ScanSums {
 public:
  void Add(const ScanRun& run);

  /// Of what was added so far.
  struct Totals {
    uint64_t count = 0;  ///< Without NaNs.
    uint64_t nans = 0;
    double sum = 0;
    double mean = 0;
    double squares = 0;  ///< Of the deviations from the mean.
    double min = 0;      ///< +infinity when there is none.
    double max = 0;
  };
  Totals Finish() const;

 private:
  static Totals SumTile(std::span<const double> values);
  static void Join(const Totals& tile, Totals* totals);

  std::array<double, kScanTile> tile_;
  uint64_t filled_ = 0;
  Totals totals_ = SumTile({});
};

/// Counts values by bins.
class ScanHistogram {
 public:
  /// `edges` rise and are finite, two or more. `uniform`: all bins have about one width, so that a
  /// value's bin is computed and then put right by the edges themselves.
  ScanHistogram(std::span<const double> edges, bool uniform);

  void Add(const ScanRun& run);

  std::span<const uint64_t> counts() const { return std::span(counts_).subspan(1, bins_); }
  uint64_t below() const { return counts_.front(); }
  uint64_t above() const { return counts_.back(); }
  uint64_t nans() const { return nans_; }

 private:
  /// The place of a value that is no NaN in counts_.
  size_t PlaceOf(double value) const;

  std::vector<double> edges_;
  std::vector<uint64_t> counts_;  // Below, the bins, above.
  const size_t bins_;
  const bool uniform_;
  const double bins_per_unit_;
  uint64_t nans_ = 0;
};

}  // namespace geardb
