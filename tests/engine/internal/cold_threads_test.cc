// concurrent: engine/internal/cold_threads.h
#include "engine/internal/cold_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

TEST(ColdThreadsConcurrentTest, JobsRunOnceInOrderOrAreDropped) {
  struct Job {
    std::atomic<uint64_t>* order;
    std::atomic<bool>* gate;
    uint64_t began = 0;
    bool dropped = false;
  };
  const auto run = [](void* argument) {
    auto* job = static_cast<Job*>(argument);
    while (!job->gate->load()) std::this_thread::yield();
    job->began = job->order->fetch_add(1) + 1;
  };
  const auto drop = [](void* argument) { static_cast<Job*>(argument)->dropped = true; };
  std::atomic<uint64_t> order{0};
  std::atomic<bool> gate{false};
  std::vector<Job> jobs(20, Job{&order, &gate, 0, false});
  int tags[2] = {};
  {
    ASSERT_OK_AND_ASSIGN(auto threads, ColdThreads::Start({}, 1));
    for (size_t i = 0; i < jobs.size(); ++i) {
      threads->Schedule(run, &jobs[i], rocksdb::Env::LOW, &tags[i % 2], drop);
    }
    const int unscheduled = threads->UnSchedule(&tags[1], rocksdb::Env::LOW);
    EXPECT_EQ(unscheduled, 10);
    EXPECT_EQ(threads->UnSchedule(&tags[1], rocksdb::Env::LOW), 0);
    EXPECT_EQ(threads->UnSchedule(&tags[0], rocksdb::Env::HIGH), 0);
    gate = true;
    while (order.load() < 3) std::this_thread::yield();
  }
  uint64_t last = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_NE(jobs[i].began != 0, jobs[i].dropped) << i;
    if (i % 2 == 1) {
      EXPECT_TRUE(jobs[i].dropped);
    } else if (jobs[i].began != 0) {
      EXPECT_GT(jobs[i].began, last);
      last = jobs[i].began;
    }
  }
}

TEST(ColdThreadsConcurrentTest, AFlushThatRunsOrWaitsIsNotIdle) {
  const auto run = [](void* argument) {
    while (!static_cast<std::atomic<bool>*>(argument)->load()) std::this_thread::yield();
  };
  std::atomic<bool> gate{false};
  ASSERT_OK_AND_ASSIGN(const auto threads, ColdThreads::Start({}, 1));
  threads->Schedule(run, &gate, rocksdb::Env::LOW, nullptr, nullptr);
  EXPECT_TRUE(threads->FlushesIdle());
  for (int i = 0; i < 2; ++i) {
    threads->Schedule(run, &gate, rocksdb::Env::HIGH, nullptr, nullptr);
  }
  EXPECT_FALSE(threads->FlushesIdle());
  while (threads->GetThreadPoolQueueLen(rocksdb::Env::HIGH) > 1) std::this_thread::yield();
  EXPECT_FALSE(threads->FlushesIdle());
  gate = true;
  while (!threads->FlushesIdle()) std::this_thread::yield();
}

// The database's lock is held by whoever opens the store.
TEST(ColdThreadsLockTest, NothingIsLocked) {
  ASSERT_OK_AND_ASSIGN(const auto threads, ColdThreads::Start({}, 1));
  rocksdb::FileLock* first = nullptr;
  rocksdb::FileLock* second = nullptr;
  ASSERT_TRUE(threads->LockFile("/absent/LOCK", &first).ok());
  ASSERT_TRUE(threads->LockFile("/absent/LOCK", &second).ok());
  EXPECT_TRUE(threads->UnlockFile(first).ok());
  EXPECT_TRUE(threads->UnlockFile(second).ok());
}

}  // namespace
}  // namespace geardb::engine
