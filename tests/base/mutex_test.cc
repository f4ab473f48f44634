// concurrent: base/mutex.h
#include "base/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace geardb {
namespace {

TEST(MutexTest, TryLockFailsWhileHeld) {
  Mutex mutex;
  {
    const MutexLock lock(&mutex);
    std::thread([&] { EXPECT_FALSE(mutex.TryLock()); }).join();
  }
  bool taken = false;
  std::thread([&] {
    if (mutex.TryLock()) {
      taken = true;
      mutex.Unlock();
    }
  }).join();
  EXPECT_TRUE(taken);
}

TEST(CondVarTest, WaitReturnsFalseAtTheDeadlineAndHoldsTheMutex) {
  Mutex mutex;
  CondVar condition;
  const MutexLock lock(&mutex);
  EXPECT_FALSE(condition.WaitUntil(&mutex, Deadline::Now()));
  const Deadline soon = Deadline::AfterMs(5);
  while (condition.WaitUntil(&mutex, soon)) {
  }
  EXPECT_TRUE(soon.passed());
  std::thread([&] { EXPECT_FALSE(mutex.TryLock()); }).join();
}

TEST(MutexConcurrentTest, IncrementsUnderTheLockAreNotLost) {
  Mutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        const MutexLock lock(&mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 20'000);
}

// Two threads hand a turn to and fro, one of them with a deadline: nobody is left asleep.
TEST(CondVarConcurrentTest, NotifiedThreadsSeeTheState) {
  constexpr int kTurns = 1000;
  Mutex mutex;
  CondVar condition;
  int turn = 0;
  const auto play = [&](int parity, Deadline deadline) {
    for (int i = 0; i < kTurns; ++i) {
      const MutexLock lock(&mutex);
      while (turn % 2 != parity) condition.WaitUntil(&mutex, deadline);
      ++turn;
      condition.NotifyAll();
    }
  };
  std::thread even([&] { play(0, Deadline::Infinite()); });
  std::thread odd([&] { play(1, Deadline::AfterMs(3'600'000)); });
  even.join();
  odd.join();
  EXPECT_EQ(turn, 2 * kTurns);
}

}  // namespace
}  // namespace geardb
