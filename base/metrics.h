// Counters and a latency histogram, cheap enough for the fast path; Stats is made of them.
//
// Invariants: a histogram's count is the sum of its buckets; nothing is ever subtracted.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace geardb {

/// A number of events or bytes that only grows. Thread-safe; a reader may see an increment late but
/// never loses one.
class Counter {
 public:
  void Add(uint64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

/// What a LatencyHistogram held at one moment. Times in nanoseconds.
struct LatencySnapshot {
  uint64_t count = 0;
  uint64_t sum_ns = 0;
  uint64_t max_ns = 0;
  uint64_t p50_ns = 0;
  uint64_t p99_ns = 0;
};

/// Times of one operation in buckets that grow by an eighth: a quantile is read at most 12.5 % too
/// high, never too low, and never above the largest time. Thread-safe, no locks, 4 KiB.
class LatencyHistogram {
 public:
  void Record(uint64_t ns);
  /// Adding while another thread takes a snapshot may leave the newest times out of it.
  LatencySnapshot Snapshot() const;
  /// The smallest bucket bound that at least `fraction` (0…1) of the times do not exceed; 0 when
  /// there are none.
  uint64_t QuantileNs(double fraction) const;

  /// The bucket of a time, and the largest time that a bucket holds.
  static uint32_t BucketOf(uint64_t ns);
  static uint64_t BucketMaxNs(uint32_t bucket);

  /// 8 exact buckets for 0…7 ns, then 8 for each power of two from 2^3 to 2^63.
  static constexpr uint32_t kBucketCount = 8 + 61 * 8;

 private:
  std::array<std::atomic<uint64_t>, kBucketCount> buckets_{};
  std::atomic<uint64_t> sum_ns_{0};
  std::atomic<uint64_t> max_ns_{0};
};

/// Records the time from its construction to its destruction.
class LatencyTimer {
 public:
  explicit LatencyTimer(LatencyHistogram* histogram) : histogram_(histogram), start_ns_(NowNs()) {}
  ~LatencyTimer() { histogram_->Record(NowNs() - start_ns_); }
  LatencyTimer(const LatencyTimer&) = delete;
  LatencyTimer& operator=(const LatencyTimer&) = delete;

 private:
  static uint64_t NowNs();

  LatencyHistogram* histogram_;
  uint64_t start_ns_;
};

}  // namespace geardb
