// concurrent: wal/publish_queue.h wal/publish_queue.cc
#include "wal/publish_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/testing/fault_env.h"

namespace geardb::wal {
namespace {

class Ends final : public PublishObserver {
 public:
  void OnAdvance(Lsn published) override { ends.push_back(published); }
  std::vector<Lsn> ends;
};

class Nobody final : public PublishObserver {
 public:
  void OnAdvance(Lsn) override {}
};

class Recorder final : public PublishCallback {
 public:
  void OnPublished(Lsn lsn, Lsn end) override {
    lsns.push_back(lsn);
    last_end = end;
  }
  std::vector<Lsn> lsns;
  Lsn last_end = 0;
};

TEST(PublishQueueTest, RecordsArePublishedInOrderWhateverOrderTheyFinishIn) {
  Ends ends;
  PublishQueue queue(1000, &ends);
  Recorder recorder;
  EXPECT_EQ(queue.published(), 1000u);
  queue.Complete(2, 1200, 1300, &recorder);
  queue.Complete(1, 1100, 1200, nullptr);
  EXPECT_TRUE(recorder.lsns.empty());
  EXPECT_FALSE(queue.WaitPublished(1100, Deadline::Now()));
  queue.Complete(0, 1000, 1100, &recorder);
  EXPECT_EQ(recorder.lsns, (std::vector<Lsn>{1000, 1200}));
  EXPECT_EQ(recorder.last_end, 1300u);
  EXPECT_EQ(ends.ends, (std::vector<Lsn>{1100, 1200, 1300}));
  EXPECT_EQ(queue.published(), 1300u);
  EXPECT_TRUE(queue.WaitPublished(1300, Deadline::Now()));
}

TEST(PublishQueueTest, ASlotIsFreeOnceItsRecordIsPublished) {
  Ends ends;
  PublishQueue queue(0, &ends);
  EXPECT_TRUE(queue.SlotFree(PublishQueue::kSlots - 1));
  EXPECT_FALSE(queue.SlotFree(PublishQueue::kSlots));
  queue.Complete(0, 0, 64, nullptr);
  EXPECT_TRUE(queue.SlotFree(PublishQueue::kSlots));
  for (uint64_t i = 1; i < 3 * PublishQueue::kSlots; ++i) {
    queue.Complete(i, i * 64, i * 64 + 64, nullptr);
  }
  EXPECT_EQ(queue.published(), 3 * PublishQueue::kSlots * 64);
}

TEST(PublishQueueConcurrentTest, ManyThreadsPublishEveryRecordOnceAndInOrder) {
  constexpr uint64_t kThreads = 4, kEach = 20000, kAll = kThreads * kEach;
  Ends ends;
  PublishQueue queue(0, &ends);
  Recorder recorder;
  std::atomic<uint64_t> next{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t ticket = next.fetch_add(1);
        while (!queue.SlotFree(ticket)) std::this_thread::yield();
        queue.Complete(ticket, ticket * 64, ticket * 64 + 64, &recorder);
        if (i % 64 == 0) {
          EXPECT_TRUE(queue.WaitPublished(ticket * 64 + 64, Deadline::Infinite()));
        }
      }
    });
  }
  EXPECT_TRUE(queue.WaitPublished(kAll * 64, Deadline::Infinite()));
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(recorder.lsns.size(), kAll);
  for (uint64_t i = 0; i < kAll; ++i) ASSERT_EQ(recorder.lsns[i], i * 64);
  EXPECT_TRUE(std::is_sorted(ends.ends.begin(), ends.ends.end()));
}

/// A record that completes the next one when it is published, until it is told to stop: as where
/// others complete records faster than they are published.
class Endless final : public PublishCallback {
 public:
  explicit Endless(PublishQueue* queue) : queue_(queue) {}
  void Begin() { queue_->Complete(0, 0, 64, this); }
  void OnPublished(Lsn, Lsn end) override {
    if (!stop.load()) queue_->Complete(end / 64, end, end + 64, this);
  }
  std::atomic<bool> stop{false};

 private:
  PublishQueue* queue_;
};

// Who waited slept for as long as others went on: for seconds.
TEST(PublishQueueConcurrentTest, WhoWaitsIsToldThoughOthersGoOnPublishing) {
  Nobody nobody;
  PublishQueue queue(0, &nobody);
  Endless endless(&queue);
  std::atomic<bool> told{false};
  std::thread waits([&] {
    EXPECT_TRUE(queue.WaitPublished(uint64_t{1'000'000} * 64, Deadline::Infinite()));
    told = true;
  });
  std::thread publishes([&] { endless.Begin(); });
  const Deadline deadline = Deadline::AfterMs(60'000);
  while (!told && !deadline.passed()) std::this_thread::yield();
  EXPECT_TRUE(told.load());
  endless.stop = true;
  publishes.join();
  waits.join();
}

}  // namespace
}  // namespace geardb::wal
