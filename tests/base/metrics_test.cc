// concurrent: base/metrics.h base/metrics.cc
#include "base/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/philox.h"

namespace geardb {
namespace {

TEST(CounterTest, AddsEventsAndBytes) {
  Counter counter;
  EXPECT_EQ(counter.value(), 0u);
  counter.Add();
  counter.Add(4096);
  EXPECT_EQ(counter.value(), 4097u);
}

TEST(LatencyHistogramTest, BucketsCoverAllTimesWithoutGaps) {
  uint64_t expected_first = 0;
  for (uint32_t bucket = 0; bucket < LatencyHistogram::kBucketCount; ++bucket) {
    const uint64_t last = LatencyHistogram::BucketMaxNs(bucket);
    ASSERT_EQ(LatencyHistogram::BucketOf(expected_first), bucket);
    ASSERT_EQ(LatencyHistogram::BucketOf(last), bucket);
    // At most 12.5 % wide.
    ASSERT_LE(static_cast<double>(last), static_cast<double>(expected_first) * 1.125);
    expected_first = last + 1;
  }
  EXPECT_EQ(expected_first, 0u) << "the last bucket ends at 2^64 - 1";
}

TEST(LatencyHistogramTest, EmptyHistogramIsAllZero) {
  const LatencySnapshot snapshot = LatencyHistogram().Snapshot();
  EXPECT_EQ(snapshot.count, 0u);
  EXPECT_EQ(snapshot.sum_ns, 0u);
  EXPECT_EQ(snapshot.max_ns, 0u);
  EXPECT_EQ(snapshot.p50_ns, 0u);
  EXPECT_EQ(snapshot.p99_ns, 0u);
}

TEST(LatencyHistogramTest, OneTimeIsEveryQuantile) {
  LatencyHistogram histogram;
  histogram.Record(1'000'003);
  EXPECT_EQ(histogram.QuantileNs(0), 1'000'003u);
  EXPECT_EQ(histogram.QuantileNs(0.5), 1'000'003u);
  EXPECT_EQ(histogram.QuantileNs(1), 1'000'003u);
}

TEST(LatencyHistogramTest, QuantilesAreAtMostAnEighthTooHigh) {
  LatencyHistogram histogram;
  std::vector<uint64_t> times;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < 10'000; ++i) {
    const uint64_t random = PhiloxRandom64(1, 0, i, PhiloxPurpose::kItem);
    times.push_back(random >> (32 + random % 24));  // From a few hundred ns to seconds.
    histogram.Record(times.back());
    sum += times.back();
  }
  std::sort(times.begin(), times.end());
  for (const double fraction : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<size_t>(std::ceil(fraction * 10'000));
    const uint64_t exact = times[rank - 1];
    EXPECT_GE(histogram.QuantileNs(fraction), exact) << fraction;
    EXPECT_LE(histogram.QuantileNs(fraction), exact + exact / 8) << fraction;
  }
  const LatencySnapshot snapshot = histogram.Snapshot();
  EXPECT_EQ(snapshot.count, 10'000u);
  EXPECT_EQ(snapshot.sum_ns, sum);
  EXPECT_EQ(snapshot.max_ns, times.back());
  EXPECT_EQ(snapshot.p50_ns, histogram.QuantileNs(0.5));
  EXPECT_EQ(snapshot.p99_ns, histogram.QuantileNs(0.99));
}

TEST(LatencyTimerTest, RecordsItsScopeOnce) {
  LatencyHistogram histogram;
  { const LatencyTimer timer(&histogram); }
  EXPECT_EQ(histogram.Snapshot().count, 1u);
}

TEST(MetricsConcurrentTest, NothingIsLostBetweenThreads) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEach = 5000;
  Counter counter;
  LatencyHistogram histogram;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEach; ++i) {
        counter.Add(2);
        histogram.Record(t * kEach + i);
        if (i % 1000 == 0) {
          EXPECT_LE(histogram.QuantileNs(0.5), kThreads * kEach);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 2 * kThreads * kEach);
  const LatencySnapshot snapshot = histogram.Snapshot();
  EXPECT_EQ(snapshot.count, kThreads * kEach);
  EXPECT_EQ(snapshot.max_ns, kThreads * kEach - 1);
  EXPECT_EQ(snapshot.sum_ns, kThreads * kEach * (kThreads * kEach - 1) / 2);
}

}  // namespace
}  // namespace geardb
