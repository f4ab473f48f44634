// Producers and consumers of a limited priority table: they wait for one another, and every item is
// handed over as often as it may.
//
// concurrent: engine/internal/core.cc engine/internal/core.h engine/internal/set_priorities.cc

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "tests/engine/rate_limit_fixture.h"

namespace geardb {
namespace {

using testing::RateLimitFixture;
using testing::Rows;

class RateLimitConcurrentTest : public RateLimitFixture {
 protected:
  static constexpr int kThreads = 3;
  static constexpr int64_t kEach = 200;  ///< Trajectories of one row, by each producer.

  void Produce(int thread, int64_t count) {
    auto writer = table_->NewWriter(
        {.ack = thread % 2 == 1 ? Ack::kMemory : Ack::kLog, .admission_timeout_ms = 600'000});
    ASSERT_OK(writer);
    for (int64_t k = 0; k < count; ++k) {
      const Rows rows(thread * 1'000'000 + k, 1);
      ASSERT_OK((*writer)->AppendSteps(rows.many(), {.end = End::kTerminated}));
    }
  }
  /// Takes `batches` of two each.
  void Consume(int64_t batches, int64_t prefetch, std::vector<int32_t>* seen) {
    SamplerOptions options{.batch = 2, .prefetch = prefetch, .timeout_ms = 600'000};
    options.views = {{.column = "action"}};
    auto sampler = priority_->NewSampler(options);
    ASSERT_OK(sampler);
    for (int64_t i = 0; i < batches; ++i) {
      auto batch = (*sampler)->Next();
      ASSERT_OK(batch);
      const auto numbers = batch->Find("action")->values<int32_t>();
      seen->insert(seen->end(), numbers.begin(), numbers.end());
    }
  }
  void Start(const PriorityTableSpec& spec) {
    CreateLimited(spec);
    priority_ = table_->priority_table("limited");
    ASSERT_NE(priority_, nullptr);
  }
  std::shared_ptr<PriorityTable> priority_;
};

TEST_F(RateLimitConcurrentTest, AQueueHandsEveryItemOverExactlyOnce) {
  Start(Queue(8));
  std::vector<std::vector<int32_t>> seen(kThreads);
  std::vector<std::thread> threads;
  std::atomic<int> consumers{kThreads};
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] { Produce(thread, kEach); });
    threads.emplace_back([&, thread] {
      Consume(kEach / 2, 0, &seen[static_cast<size_t>(thread)]);
      --consumers;
    });
  }
  // Capacity and counts hold whenever somebody looks.
  while (consumers > 0) {
    const LimiterStats stats = priority_->Stats().limiter;
    EXPECT_LE(stats.inserts - stats.samples - stats.deleted_unsampled, 8u);
    EXPECT_LE(stats.reserved, 8u);
    priority_->WhyBlocked();
    std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();
  std::vector<int32_t> all;
  for (const auto& numbers : seen) all.insert(all.end(), numbers.begin(), numbers.end());
  EXPECT_EQ(all.size(), static_cast<size_t>(kThreads * kEach));
  EXPECT_EQ(std::set<int32_t>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(table_->Stats().trajectories, 0u);
  priority_.reset();
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Limits().samples, static_cast<uint64_t>(kThreads * kEach));
  EXPECT_EQ(priority("limited")->Count(), 0u);
}

TEST_F(RateLimitConcurrentTest, ARatioStaysInItsRange) {
  Start(Limited(
      {.kind = LimiterKind::kRatio, .min_size = 4, .samples_per_insert = 2, .error_buffer = 12},
      SelectorKind::kUniform));
  std::atomic<bool> done{false};
  std::vector<std::vector<int32_t>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] { Produce(thread, kEach); });
    // Together a little less than the inserts allow, so that everybody comes to an end; two hold
    // batches drawn ahead.
    threads.emplace_back(
        [&, thread] { Consume(kEach - 10, thread, &seen[static_cast<size_t>(thread)]); });
  }
  std::thread watcher([&] {
    while (!done) {
      const LimiterStats stats = priority_->Stats().limiter;
      const auto error =
          static_cast<double>(stats.inserts) * 2 - static_cast<double>(stats.samples);
      EXPECT_LE(error, 4 * 2 + 12);
      if (stats.samples > 0) {
        EXPECT_GE(error, 4 * 2 - 12);
      }
      std::this_thread::yield();
    }
  });
  // The last inserts wait for samples that nobody takes any more: one more consumer sees to that.
  std::vector<int32_t> rest;
  std::thread last([&] { Consume(20, 0, &rest); });
  for (auto& thread : threads) thread.join();
  last.join();
  done = true;
  watcher.join();
}

TEST_F(RateLimitConcurrentTest, LimitsChangeBesideThoseWhoWait) {
  Start(Queue(2));
  std::vector<int32_t> seen;
  std::thread producer([this] { Produce(0, kEach); });
  std::thread consumer([&] { Consume(kEach / 2, 1, &seen); });
  for (uint64_t capacity = 2; capacity < 40; ++capacity) {
    ASSERT_OK(priority_->Configure(
        {.limiter = {.kind = LimiterKind::kQueue, .capacity = 2 + capacity % 7}}));
  }
  producer.join();
  consumer.join();
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, testing::Count(0, static_cast<int32_t>(kEach)));
}

TEST_F(RateLimitConcurrentTest, CloseEndsAWaitForALimiter) {
  Start(Queue(1));
  std::thread producer([this] {
    auto writer = table_->NewWriter({.admission_timeout_ms = 600'000});
    ASSERT_OK(writer);
    Status status;
    for (int64_t k = 0; status.ok(); ++k) {
      const Rows rows(k, 1);
      status = (*writer)->AppendSteps(rows.many(), {.end = End::kTerminated}).status();
    }
    EXPECT_STATUS(kCancelled, status, "is closed");
  });
  while (priority_->WhyBlocked().inserts.waiting == 0) std::this_thread::yield();
  EXPECT_OK(database_->Close());
  producer.join();
}

// It said nothing: one item could have been drawn.
TEST_F(RateLimitConcurrentTest, WhatALargeBatchWaitsForIsTold) {
  PriorityTableSpec spec = Limited({}, SelectorKind::kFifo);
  spec.filter = "length > 1";
  Start(spec);
  ASSERT_OK(TryAppend(0, 3));
  ASSERT_OK(TryAppend(3, 1));
  EXPECT_EQ(priority_->WhyBlocked().samples.reason, "");
  std::thread consumer([this] {
    const auto sampler = priority_->NewSampler({.batch = 4, .timeout_ms = 600'000});
    ASSERT_OK(sampler);
    EXPECT_OK((*sampler)->Next());
  });
  while (priority_->WhyBlocked().samples.waiting == 0) std::this_thread::yield();
  EXPECT_EQ(priority_->WhyBlocked().samples.reason,
            "3 items can be drawn, of 4 for a batch: of 4 items 1 fail the filter");
  EXPECT_OK(TryAppend(4, 2));
  consumer.join();
}

// It said nothing: one item could have been drawn, of which a budget of tokens wants more.
TEST_F(RateLimitConcurrentTest, WhatASamplerAloneWaitsForIsTold) {
  Start(Queue(8));
  ASSERT_OK(TryAppend(0, 3));
  std::thread consumer([this] {
    SamplerOptions options{.batch = 64, .tokens_max = 64, .timeout_ms = 600'000};
    options.layout = BatchLayout::kPacked;
    const auto sampler = priority_->NewSampler(options);
    ASSERT_OK(sampler);
    EXPECT_STATUS(kCancelled, (*sampler)->Next(), "is closed");
  });
  while (priority_->WhyBlocked().samples.waiting == 0) std::this_thread::yield();
  EXPECT_EQ(priority_->WhyBlocked().samples.reason, "a batch of up to 64 tokens is not full");
  EXPECT_OK(database_->Close());
  consumer.join();
}

}  // namespace
}  // namespace geardb
