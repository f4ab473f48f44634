// The host twin of kernels/scan.h. Vectors of two f64 are named here, since g++ finds none for sums
// that pass over NaN.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/convert.h"
#include "kernels/scan.h"

namespace geardb {
namespace {

/// Loops of a fixed length are what the compiler turns into vector code at -O2.
constexpr uint64_t kLanes = 8;

/// A stored bool: whatever byte is there, only 0 is false.
struct ScannedBool {
  uint8_t byte;
};
double ToDouble(ScannedBool value) { return value.byte != 0 ? 1.0 : 0.0; }
double ToDouble(Float16 value) { return double{Float16ToFloat(value)}; }
double ToDouble(BFloat16 value) { return double{BFloat16ToFloat(value)}; }
template <typename T>
double ToDouble(T value) {
  return static_cast<double>(value);
}

template <typename T>
void ConvertValues(const ScanRun& run, double* __restrict destination) {
  const auto* __restrict bytes = static_cast<const std::byte*>(run.values);
  const auto convert = [](const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return ToDouble(value);
  };
  uint64_t i = 0;
  if (run.stride == sizeof(T)) {
    for (; i + kLanes <= run.count; i += kLanes) {
      for (uint64_t j = 0; j < kLanes; ++j) {
        destination[i + j] = convert(bytes + (i + j) * sizeof(T));
      }
    }
  }
  for (; i < run.count; ++i) destination[i] = convert(bytes + i * run.stride);
}

/// Two lanes of f64 in a register, and what a comparison of them gives: all bits or none.
using Two = double __attribute__((vector_size(16)));
using TwoBits = int64_t __attribute__((vector_size(16)));
constexpr uint64_t kPairs = kLanes / 2;

inline Two Where(TwoBits chosen, Two value) {
  return std::bit_cast<Two>(std::bit_cast<TwoBits>(value) & chosen);
}
inline Two LoadTwo(const double* from) {
  Two two;
  std::memcpy(&two, from, sizeof(two));
  return two;
}

/// Eight sums that are added in one order at last.
double SumOf(const Two (&lanes)[kPairs]) {
  const Two sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  return sum[0] + sum[1];
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Calls `visit(part)` for parts of a run of at most a tile.
template <typename Visit>
void ForParts(const ScanRun& run, uint64_t first_max, Visit visit) {
  uint64_t done = 0;
  while (done < run.count) {
    ScanRun part = run;
    part.values = static_cast<const std::byte*>(run.values) + done * run.stride;
    part.count = std::min(run.count - done, done == 0 ? first_max : kScanTile);
    visit(part);
    done += part.count;
  }
}

}  // namespace

void ConvertToDouble(const ScanRun& run, double* destination) {
  switch (run.dtype) {
    case DType::kU8:
      return ConvertValues<uint8_t>(run, destination);
    case DType::kI8:
      return ConvertValues<int8_t>(run, destination);
    case DType::kU16:
      return ConvertValues<uint16_t>(run, destination);
    case DType::kI16:
      return ConvertValues<int16_t>(run, destination);
    case DType::kU32:
      return ConvertValues<uint32_t>(run, destination);
    case DType::kI32:
      return ConvertValues<int32_t>(run, destination);
    case DType::kU64:
      return ConvertValues<uint64_t>(run, destination);
    case DType::kI64:
      return ConvertValues<int64_t>(run, destination);
    case DType::kF16:
      return ConvertValues<Float16>(run, destination);
    case DType::kBf16:
      return ConvertValues<BFloat16>(run, destination);
    case DType::kF32:
      return ConvertValues<float>(run, destination);
    case DType::kF64:
      return ConvertValues<double>(run, destination);
    case DType::kBool:
      return ConvertValues<ScannedBool>(run, destination);
  }
}

// ---- Sums.

ScanSums::Totals ScanSums::SumTile(std::span<const double> values) {
  // What is missing of the last eight is NaN, which adds nothing anywhere.
  std::array<double, kScanTile> padded;
  const double* from = values.data();
  uint64_t count = values.size();
  if (count % kLanes != 0) {
    std::copy(values.begin(), values.end(), padded.begin());
    const uint64_t whole = (count + kLanes - 1) / kLanes * kLanes;
    std::fill(padded.data() + count, padded.data() + whole, std::nan(""));
    from = padded.data();
    count = whole;
  }
  Two sum[kPairs] = {}, low[kPairs], high[kPairs];
  TwoBits nans[kPairs] = {};
  for (uint64_t j = 0; j < kPairs; ++j) {
    low[j] = Two{kInfinity, kInfinity};
    high[j] = -low[j];
  }
  for (uint64_t i = 0; i < count; i += kLanes) {
#pragma GCC unroll 4
    for (uint64_t j = 0; j < kPairs; ++j) {
      const Two value = LoadTwo(from + i + 2 * j);
      sum[j] += Where(value == value, value);
      nans[j] += value != value;  // All bits: -1.
      low[j] = value < low[j] ? value : low[j];
      high[j] = value > high[j] ? value : high[j];
    }
  }
  Totals totals{.sum = SumOf(sum), .min = kInfinity, .max = -kInfinity};
  int64_t padding_and_nans = 0;
  for (uint64_t j = 0; j < kPairs; ++j) {
    totals.min = std::min({totals.min, low[j][0], low[j][1]});
    totals.max = std::max({totals.max, high[j][0], high[j][1]});
    padding_and_nans -= nans[j][0] + nans[j][1];
  }
  totals.count = count - static_cast<uint64_t>(padding_and_nans);
  totals.nans = values.size() - totals.count;
  if (totals.count == 0) return totals;
  totals.mean = totals.sum / static_cast<double>(totals.count);
  const Two mean = {totals.mean, totals.mean};
  Two squares[kPairs] = {};
  for (uint64_t i = 0; i < count; i += kLanes) {
#pragma GCC unroll 4
    for (uint64_t j = 0; j < kPairs; ++j) {
      const Two value = LoadTwo(from + i + 2 * j);
      const Two deviation = value - mean;
      squares[j] += Where(value == value, deviation * deviation);
    }
  }
  totals.squares = SumOf(squares);
  return totals;
}

void ScanSums::Join(const Totals& tile, Totals* totals) {
  totals->nans += tile.nans;
  if (tile.count == 0) return;
  const auto before = static_cast<double>(totals->count);
  const auto more = static_cast<double>(tile.count);
  totals->count += tile.count;
  const auto all = static_cast<double>(totals->count);
  const double apart = tile.mean - totals->mean;
  totals->sum += tile.sum;
  totals->mean += apart * (more / all);
  totals->squares += tile.squares + apart * apart * (before * (more / all));
  totals->min = std::min(totals->min, tile.min);
  totals->max = std::max(totals->max, tile.max);
}

void ScanSums::Add(const ScanRun& run) {
  ForParts(run, kScanTile - filled_, [this](const ScanRun& part) {
    ConvertToDouble(part, tile_.data() + filled_);
    filled_ += part.count;
    if (filled_ < kScanTile) return;
    Join(SumTile(tile_), &totals_);
    filled_ = 0;
  });
}

ScanSums::Totals ScanSums::Finish() const {
  Totals totals = totals_;
  Join(SumTile(std::span(tile_).first(filled_)), &totals);
  // Differences of infinite means are no numbers; their sum is right.
  if (totals.count > 0 && !std::isfinite(totals.mean)) {
    totals.mean = totals.sum / static_cast<double>(totals.count);
  }
  return totals;
}

// ---- Histograms.

ScanHistogram::ScanHistogram(std::span<const double> edges, bool uniform)
    : edges_(edges.begin(), edges.end()),
      counts_(edges.size() + 1),
      bins_(edges.size() - 1),
      uniform_(uniform),
      bins_per_unit_(static_cast<double>(bins_) / (edges.back() - edges.front())) {}

size_t ScanHistogram::PlaceOf(double value) const {
  if (value < edges_.front()) return 0;
  if (value >= edges_.back()) return value == edges_.back() ? bins_ : bins_ + 1;
  if (!uniform_) {
    return static_cast<size_t>(std::upper_bound(edges_.begin(), edges_.end(), value) -
                               edges_.begin());
  }
  const double guess = (value - edges_.front()) * bins_per_unit_;
  size_t bin = std::min(static_cast<size_t>(guess), bins_ - 1);
  while (value < edges_[bin]) --bin;
  while (value >= edges_[bin + 1]) ++bin;
  return bin + 1;
}

void ScanHistogram::Add(const ScanRun& run) {
  std::array<double, kScanTile> values;
  ForParts(run, kScanTile, [&](const ScanRun& part) {
    ConvertToDouble(part, values.data());
    for (uint64_t i = 0; i < part.count; ++i) {
      if (std::isnan(values[i])) {
        ++nans_;
      } else {
        ++counts_[PlaceOf(values[i])];
      }
    }
  });
}

}  // namespace geardb
