#include "base/metrics.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

namespace geardb {
namespace {

constexpr uint32_t kSubShift = 3;  // 2^3 buckets for each power of two.
constexpr uint32_t kSubCount = 1u << kSubShift;

}  // namespace

uint32_t LatencyHistogram::BucketOf(uint64_t ns) {
  if (ns < kSubCount) return static_cast<uint32_t>(ns);
  const auto exponent = static_cast<uint32_t>(std::bit_width(ns)) - 1;
  const auto within = static_cast<uint32_t>(ns >> (exponent - kSubShift)) - kSubCount;
  return kSubCount + (exponent - kSubShift) * kSubCount + within;
}

uint64_t LatencyHistogram::BucketMaxNs(uint32_t bucket) {
  if (bucket < kSubCount) return bucket;
  const uint32_t shift = (bucket - kSubCount) / kSubCount;
  const uint64_t first = uint64_t{kSubCount + (bucket - kSubCount) % kSubCount} << shift;
  return first + ((uint64_t{1} << shift) - 1);
}

void LatencyHistogram::Record(uint64_t ns) {
  sum_ns_.fetch_add(ns, std::memory_order_relaxed);
  uint64_t seen = max_ns_.load(std::memory_order_relaxed);
  while (ns > seen && !max_ns_.compare_exchange_weak(seen, ns, std::memory_order_relaxed)) {
  }
  // Last, and with release: who counts this time also sees it in the maximum.
  buckets_[BucketOf(ns)].fetch_add(1, std::memory_order_release);
}

uint64_t LatencyHistogram::QuantileNs(double fraction) const {
  std::array<uint64_t, kBucketCount> counts;
  uint64_t total = 0;
  for (uint32_t i = 0; i < kBucketCount; ++i) {
    counts[i] = buckets_[i].load(std::memory_order_acquire);
    total += counts[i];
  }
  if (total == 0) return 0;
  const double rank = std::ceil(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(total));
  const uint64_t wanted = std::clamp<uint64_t>(static_cast<uint64_t>(rank), 1, total);
  uint64_t below = 0;
  uint32_t bucket = 0;
  while (bucket + 1 < kBucketCount && below + counts[bucket] < wanted) below += counts[bucket++];
  return std::min(BucketMaxNs(bucket), max_ns_.load(std::memory_order_relaxed));
}

LatencySnapshot LatencyHistogram::Snapshot() const {
  LatencySnapshot snapshot;
  for (const auto& bucket : buckets_) snapshot.count += bucket.load(std::memory_order_acquire);
  snapshot.sum_ns = sum_ns_.load(std::memory_order_relaxed);
  snapshot.max_ns = max_ns_.load(std::memory_order_relaxed);
  snapshot.p50_ns = QuantileNs(0.5);
  snapshot.p99_ns = QuantileNs(0.99);
  return snapshot;
}

uint64_t LatencyTimer::NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace geardb
