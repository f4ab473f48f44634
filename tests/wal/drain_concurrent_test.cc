// Syncs that overlap: who may begin while another is at its fdatasync, and when each may say that
// it is done.
// concurrent: wal/drain.h wal/drain.cc wal/segment_file.h base/crash_point.h
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "base/crash_point.h"
#include "base/mutex.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"
#include "wal/drain.h"
#include "wal/segment_file.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kSegment = 65536;
constexpr uint64_t kRing = 32768;
constexpr uint64_t kSegments = 8;

/// Threads wait for numbers of it to come.
class Counter {
 public:
  int Add() {
    MutexLock lock(&mutex_);
    changed_.NotifyAll();
    return ++count_;
  }
  void WaitFor(int count) {
    MutexLock lock(&mutex_);
    while (count_ < count) changed_.WaitUntil(&mutex_, Deadline::Infinite());
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ GEARDB_GUARDED_BY(mutex_) = 0;
};

/// As a slow disk does.
void TakeTime(std::chrono::microseconds time) {
  const Deadline until(std::chrono::steady_clock::now() + time);
  while (!until.passed()) std::this_thread::yield();
}

class DrainConcurrentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(env_.CreateDirectory("log"));
    ASSERT_OK(ring_env_.CreateDirectory("log"));
    ASSERT_OK(RingFile::Create(&ring_env_, "log/ring", kRing));
    ASSERT_OK_AND_ASSIGN(ring_, RingFile::Open(&ring_env_, "log/ring", kRing, RingAccess::kMapped));
    for (Lsn base = 0; base < kSegments * kSegment; base += kSegment) {
      ASSERT_OK(pool_.CreateSpare());
      pool_.Bind(base);
    }
    drain_ = std::make_unique<Drain>(ring_.get(), &pool_, 0);
  }
  void TearDown() override { SetCrashHook(nullptr); }

  static std::byte ByteAt(Lsn lsn) { return static_cast<std::byte>(1 + lsn / 64 % 250); }

  // One thread at a time.
  void PublishTo(Lsn end) {
    for (Lsn lsn = drain_->published(); lsn < end; ++lsn) *ring_->At(lsn) = ByteAt(lsn);
    drain_->NoteRecordEnd(end);
  }

  // Waits in a thread of its own until all below `end` is synced.
  std::thread Waiter(Lsn end) {
    return std::thread([this, end] { EXPECT_OK(drain_->WaitSynced(end, Deadline::Infinite())); });
  }

  // The first sync stops between taking its files and their fdatasync, until the second one's
  // fdatasync is done; then it calls `then` and goes on.
  void StopFirstSync(std::function<void()> then) {
    current_ = this;
    then_ = std::move(then);
    SetCrashHook([](const char* name) { current_->Pass(name); });
  }
  void Pass(const char* name) {
    if (std::strcmp(name, "sync") == 0 && begun_.Add() == 1) {
      done_.WaitFor(1);
      then_();
    } else if (std::strcmp(name, "synced") == 0) {
      done_.Add();
    }
  }

  // The first sync stops where the next one may begin, until that is about to begin its fdatasync,
  // which it does when the first one's caller has returned.
  void StopFirstSyncAsItHasBegun() {
    current_ = this;
    SetCrashHook([](const char* name) { current_->PassLate(name); });
  }
  void PassLate(const char* name) {
    if (std::strcmp(name, "sync_begun") == 0 && begun_.Add() == 1) took_.WaitFor(1);
    if (std::strcmp(name, "sync") == 0 && took_.Add() == 1) done_.WaitFor(1);
  }

  static inline DrainConcurrentTest* current_ = nullptr;
  Counter begun_;
  Counter done_;
  Counter took_;
  std::function<void()> then_;
  testing::FaultEnv env_{1};
  testing::FaultEnv ring_env_{2};  // Reads no map while a test writes to it.
  SegmentPool pool_{&env_, "log", kSegment, true};
  std::unique_ptr<RingFile> ring_;
  std::unique_ptr<Drain> drain_;
};

TEST_F(DrainConcurrentTest, ALaterSyncBeginsMeanwhileAndEndsAfterwards) {
  PublishTo(4096);
  StopFirstSync([this] {
    // The second one's fdatasync is done; what it wrote relies on the first one's.
    EXPECT_EQ(drain_->drained(), 8192u);
    EXPECT_EQ(drain_->synced(), 0u);
  });
  std::thread first = Waiter(4096);
  begun_.WaitFor(1);
  PublishTo(8192);
  std::thread second = Waiter(8192);
  first.join();
  second.join();
  EXPECT_EQ(drain_->synced(), 8192u);
}

// Else the first one would find none to sync, and end before the fdatasync that it relies on.
TEST_F(DrainConcurrentTest, ALaterSyncDoesNotTakeTheFilesOfAnEarlierOne) {
  PublishTo(4096);
  StopFirstSyncAsItHasBegun();
  std::thread first([this] {
    EXPECT_OK(drain_->WaitSynced(4096, Deadline::Infinite()));
    LogStats stats;
    drain_->AddStats(&stats);
    EXPECT_EQ(stats.fsyncs, 1u);
    done_.Add();
  });
  begun_.WaitFor(1);
  PublishTo(8192);
  std::thread second = Waiter(8192);
  first.join();
  second.join();
  EXPECT_EQ(drain_->synced(), 8192u);
}

TEST_F(DrainConcurrentTest, TheErrorOfAnEarlierSyncIsTheLaterOnesToo) {
  PublishTo(4096);
  StopFirstSync([this] { env_.FailSyncAfter(1); });
  std::thread first([this] {
    EXPECT_STATUS(kIoError, drain_->WaitSynced(4096, Deadline::Infinite()), "fdatasync");
  });
  begun_.WaitFor(1);
  PublishTo(8192);
  std::thread second([this] {
    EXPECT_STATUS(kIoError, drain_->WaitSynced(8192, Deadline::Infinite()), "fdatasync");
  });
  first.join();
  second.join();
  EXPECT_EQ(drain_->synced(), 0u);
}

TEST_F(DrainConcurrentTest, WhoIsServedByAnEarlierSyncThanExpectedCallsTheNextLeader) {
  // Writes stop here one by one, until they are allowed.
  static Counter* begun;
  static Counter* allowed;
  Counter writes_begun;
  Counter writes_allowed;
  begun = &writes_begun;
  allowed = &writes_allowed;
  SetCrashHook([](const char* name) {
    if (std::strcmp(name, "drain") == 0 || std::strcmp(name, "rotate") == 0) {
      allowed->WaitFor(begun->Add());
    }
  });
  std::vector<std::thread> threads;
  const auto wait_for = [&](Lsn end) {
    PublishTo(end);
    threads.push_back(Waiter(end));
  };
  const auto until_asleep = [&](uint64_t count) {
    while (drain_->sync_sleepers() < count) std::this_thread::yield();
  };
  PublishTo(64);
  std::thread background([this] { EXPECT_OK(drain_->Write(true)); });
  writes_begun.WaitFor(1);
  // The first sync's leader waits for that write. Two more come too late for what it promised, ...
  wait_for(64);
  while (drain_->syncs_begun() < 1) std::this_thread::yield();
  wait_for(128);
  wait_for(192);
  until_asleep(2);
  // ... but not for its write; a third comes too late for that, too.
  writes_allowed.Add();
  writes_begun.WaitFor(2);
  wait_for(256);
  until_asleep(3);
  for (int i = 0; i < 8; ++i) writes_allowed.Add();
  // Were the call to lead lost, the third would sleep for ever.
  for (std::thread& thread : threads) thread.join();
  background.join();
  EXPECT_EQ(drain_->synced(), 256u);
}

TEST_F(DrainConcurrentTest, WhatIsAcknowledgedOutlivesPowerLossUnderManyWaiters) {
  constexpr int kWaiters = 8;
  Mutex publish;
  std::vector<std::thread> waiters;
  for (int w = 0; w < kWaiters; ++w) {
    waiters.emplace_back([this, w, &publish] {
      testing::Random random(static_cast<uint64_t>(w) + 1);
      while (true) {
        Lsn end = 0;
        {
          MutexLock lock(&publish);
          end = drain_->published() + 64 * (1 + random.Below(60));
          if (end > (kSegments - 1) * kSegment) return;
          // What is not drained stays in the ring.
          if (end - AlignDown(drain_->drained(), kBlockBytes) > kRing) {
            ASSERT_OK(drain_->Write(true));
          }
          PublishTo(end);
        }
        ASSERT_OK(drain_->WaitSynced(end, Deadline::Infinite()));
        if (!random.OneIn(16)) continue;
        const auto after = env_.CopyAfterCrash(testing::CrashKind::kPowerLoss, random.Next());
        for (Lsn base = 0; base < end; base += kSegment) {
          const auto bytes = after->Contents(pool_.Find(base)->path());
          for (Lsn lsn = base; lsn < std::min(base + kSegment, end); lsn += 64) {
            ASSERT_EQ(bytes[lsn - base], ByteAt(lsn)) << lsn << " of " << end;
          }
        }
      }
    });
  }
  for (std::thread& waiter : waiters) waiter.join();
}

TEST_F(DrainConcurrentTest, AfterALongSyncTheNextOneWaitsForWhomThatServed) {
  using SteadyClock = std::chrono::steady_clock;
  static constexpr auto kTakes = std::chrono::milliseconds(20);
  static Counter* begun;
  static Counter* allowed;
  static SteadyClock::time_point second_done;
  static SteadyClock::time_point third_begun;
  Counter syncs_begun;
  Counter second_allowed;
  begun = &syncs_begun;
  allowed = &second_allowed;
  SetCrashHook([](const char* name) {
    if (std::strcmp(name, "sync") != 0) return;
    const int number = begun->Add();
    if (number == 3) third_begun = SteadyClock::now();
    if (number == 2) allowed->WaitFor(1);
    if (number < 3) TakeTime(kTakes);
    if (number == 2) second_done = SteadyClock::now();
  });
  // The first sync says that they are long, and so that nobody begins beside the second.
  PublishTo(64);
  ASSERT_OK(drain_->WaitSynced(64, Deadline::Infinite()));
  PublishTo(128);
  std::thread second = Waiter(128);
  syncs_begun.WaitFor(2);
  PublishTo(192);
  std::thread third = Waiter(192);
  while (drain_->sync_sleepers() < 1 && drain_->syncs_begun() < 3) std::this_thread::yield();
  second_allowed.Add();
  second.join();
  // Who leaves calls the one who waits for company; it goes on waiting no longer than it would.
  (void)drain_->WaitSynced(192, Deadline::Now());
  third.join();
  EXPECT_GE(third_begun - second_done, kTakes / 2);
}

// Waits with deadlines among them, which leave while others count on them.
TEST_F(DrainConcurrentTest, LongSyncsRunOneAtATimeAndLeaveNobodyAsleep) {
  static std::atomic<int> running;
  static std::atomic<int> at_once;
  running = 0;
  at_once = 0;
  SetCrashHook([](const char* name) {
    if (std::strcmp(name, "sync") == 0) {
      const int now = ++running;
      if (now > at_once) at_once = now;
      TakeTime(std::chrono::microseconds(200));
      --running;
    }
  });
  constexpr int kWaiters = 6;
  constexpr int kRounds = 60;
  Mutex publish;
  const auto publish_more = [&] {
    MutexLock lock(&publish);
    const Lsn end = drain_->published() + 64;
    PublishTo(end);
    return end;
  };
  // The first one says how long they are.
  ASSERT_OK(drain_->WaitSynced(publish_more(), Deadline::Infinite()));
  std::vector<std::thread> waiters;
  for (int w = 0; w < kWaiters; ++w) {
    waiters.emplace_back([&, w] {
      testing::Random random(static_cast<uint64_t>(w) + 1);
      for (int round = 0; round < kRounds; ++round) {
        const Lsn end = publish_more();
        const auto soon = Deadline(std::chrono::steady_clock::now() +
                                   std::chrono::microseconds(random.Below(400)));
        const Status status =
            drain_->WaitSynced(end, random.OneIn(4) ? soon : Deadline::Infinite());
        if (status.ok()) {
          EXPECT_GE(drain_->synced(), end);
        } else {
          EXPECT_STATUS(kDeadlineExceeded, status, "waited for a sync");
        }
      }
    });
  }
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(at_once, 1);
  ASSERT_OK(drain_->WaitSynced(drain_->published(), Deadline::Infinite()));
}

TEST_F(DrainConcurrentTest, EveryWaiterLearnsOfTheFirstError) {
  constexpr int kWaiters = 8;
  Mutex publish;
  env_.FailSyncAfter(20);
  std::vector<std::thread> waiters;
  for (int w = 0; w < kWaiters; ++w) {
    waiters.emplace_back([this, &publish] {
      while (true) {
        Lsn end = 0;
        {
          MutexLock lock(&publish);
          end = std::min(drain_->published() + 64, kRing);
          PublishTo(end);
        }
        const Status status = drain_->WaitSynced(end, Deadline::Infinite());
        if (status.ok()) continue;
        EXPECT_STATUS(kIoError, status, "fdatasync");
        return;
      }
    });
  }
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_LT(drain_->synced(), drain_->published());
}

}  // namespace
}  // namespace geardb::wal
