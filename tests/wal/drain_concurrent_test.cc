// Syncs that overlap: who may begin while another is at its fdatasync, and when each may say that
// it is done.
// concurrent: wal/drain.h wal/drain.cc wal/segment_file.h base/crash_point.h
#include <atomic>
#include <chrono>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/crash_point.h"
#include "base/mutex.h"
#include "tests/wal/drain_fixture.h"
#include "wal/drain.h"
#include "wal/segment_file.h"

namespace geardb::wal {
namespace {

using std::chrono::microseconds;

class DrainConcurrentTest : public DrainFixture {
 protected:
  // The first sync stops between taking its files and their fdatasync, until the second one's
  // fdatasync is done; then it calls `then` and goes on.
  void StopFirstSync(const std::function<void()>& then) {
    Hook([this, then](std::string_view name) {
      if (name == "sync" && begun_.Add() == 1) {
        done_.WaitFor(1);
        then();
      } else if (name == "synced") {
        done_.Add();
      }
    });
  }

  // The first sync stops where the next one may begin, until that is about to begin its fdatasync,
  // which it does when the first one's caller has returned.
  void StopFirstSyncAsItHasBegun() {
    Hook([this](std::string_view name) {
      if (name == "sync_begun" && begun_.Add() == 1) took_.WaitFor(1);
      if (name == "sync" && took_.Add() == 1) done_.WaitFor(1);
    });
  }

  Counter begun_;
  Counter done_;
  Counter took_;
};

TEST_F(DrainConcurrentTest, ALaterSyncBeginsMeanwhileAndEndsAfterwards) {
  PublishTo(4096);
  StopFirstSync([this] {
    // The second one's fdatasync is done; what it wrote relies on the first one's.
    EXPECT_EQ(drain_->drained(), 8192u);
    // Time enough for it to end, were it allowed to.
    TakeTime(std::chrono::milliseconds(5));
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

TEST_F(DrainConcurrentTest, TheNextSyncBeginsWhenTheLastOneHasDrained) {
  Counter writes_begun;
  Counter writes_allowed;
  // The first sync stops in its write, and then until the next one is at its fdatasync.
  Hook([&](std::string_view name) {
    if (IsWrite(name) && writes_begun.Add() == 1) writes_allowed.WaitFor(1);
    if (name == "sync" && begun_.Add() == 1) begun_.WaitFor(2);
  });
  Wait(More());
  writes_begun.WaitFor(1);
  Wait(More());
  UntilAsleep(1);
  writes_allowed.Add();
  JoinAll();
  EXPECT_EQ(drain_->syncs_begun(), 2u);
}

TEST_F(DrainConcurrentTest, WhoIsServedByAnEarlierSyncThanExpectedCallsTheNextLeader) {
  TwoAreServedByAnEarlierSyncThanExpected();
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

// Waits with deadlines among them, which leave while others count on them.
TEST_F(DrainConcurrentTest, LongSyncsRunOneAtATimeAndLeaveNobodyAsleep) {
  std::atomic<int> running{0};
  std::atomic<int> at_once{0};
  Hook([&](std::string_view name) {
    if (name == "sync") {
      const int now = ++running;
      if (now > at_once) at_once = now;
      TakeTime(microseconds(200));
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
        const Deadline soon(std::chrono::steady_clock::now() + microseconds(random.Below(400)));
        const bool leaves = random.OneIn(4);
        const Status status = drain_->WaitSynced(end, leaves ? soon : Deadline::Infinite());
        if (status.ok() || !leaves) {
          EXPECT_OK(status);
          EXPECT_GE(drain_->synced(), end);
        } else {
          EXPECT_STATUS(kDeadlineExceeded, status, "waited for a sync");
        }
      }
    });
  }
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(at_once, 1);
  EXPECT_EQ(drain_->sync_sleepers(), 0u);
  ASSERT_OK(drain_->WaitSynced(drain_->published(), Deadline::Infinite()));
}

// Its deadline passes about when the sync before ends, which calls it: until it has the mutex again
// it may be too late to lead.
TEST_F(DrainConcurrentTest, WhoLeavesAsItIsCalledCallsAnother) {
  Hook([](std::string_view name) {
    if (name == "sync") TakeTime(microseconds(300));
  });
  testing::Random random(7);
  // These say how long they are.
  for (int i = 0; i < 10; ++i) ASSERT_OK(drain_->WaitSynced(More(), Deadline::Infinite()));
  for (int tries = 0; tries < 200; ++tries) {
    const uint64_t before = drain_->syncs_begun();
    Wait(More());
    UntilBegun(before + 1);
    const Lsn end = More();
    const microseconds stays(random.Below(400));
    threads_.emplace_back([this, end, stays] {
      (void)drain_->WaitSynced(end, Deadline(std::chrono::steady_clock::now() + stays));
    });
    Wait(end);
    JoinAll();
  }
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

/// Where the file system refuses direct writes.
class DrainBufferedConcurrentTest : public DrainConcurrentTest {
 protected:
  DrainBufferedConcurrentTest() { env_.set_direct(false); }
};

// Of two at once only one would be told of an error.
TEST_F(DrainBufferedConcurrentTest, OneAfterTheOtherSyncsAFile) {
  Hook([this](std::string_view name) {
    if (name == "sync") begun_.Add();
  });
  std::atomic<int> running{0};
  std::atomic<int> at_once{0};
  env_.set_sync_hook([&] {
    const int now = ++running;
    if (now > at_once) at_once = now;
    begun_.WaitFor(2);
    // Time enough for the other one to come here, were it allowed to.
    TakeTime(std::chrono::milliseconds(5));
    --running;
  });
  const uint64_t before = env_.syncs();
  Wait(More());
  begun_.WaitFor(1);
  Wait(More());
  JoinAll();
  EXPECT_EQ(env_.syncs() - before, 2u);
  EXPECT_EQ(at_once, 1);
}

}  // namespace
}  // namespace geardb::wal
