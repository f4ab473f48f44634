// Syncs that overlap: who may begin while another is at its fdatasync, and when each may say that
// it is done.
// concurrent: wal/drain.h wal/drain.cc wal/segment_file.h base/crash_point.h
#include <gtest/gtest.h>

#include <array>
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
  SegmentPool pool_{env_.HoldDirectory("log").value(), "log", kSegment, true};
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

/// A drain that knows its syncs to take `kTakes`, and can hold one of them.
class DrainGatherConcurrentTest : public DrainConcurrentTest {
 protected:
  static constexpr auto kTakes = std::chrono::milliseconds(5);
  static constexpr auto kHalf = kTakes / 2;

  void SetUp() override {
    DrainConcurrentTest::SetUp();
    current_ = this;
    SetCrashHook([](const char* name) {
      if (std::strcmp(name, "sync") == 0) current_->Sync();
    });
    for (int i = 0; i < 30; ++i) SyncMore();
  }
  void TearDown() override {
    JoinAll();
    EXPECT_EQ(drain_->sync_sleepers(), 0u);
    DrainConcurrentTest::TearDown();
  }

  Lsn More() {
    PublishTo(drain_->published() + 8);
    return drain_->published();
  }
  void SyncMore() { ASSERT_OK(drain_->WaitSynced(More(), Deadline::Infinite())); }
  void JoinAll() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  void Wait(Lsn end) { threads_.push_back(Waiter(end)); }
  void UntilAsleep(uint64_t count) {
    while (drain_->sync_sleepers() < count) std::this_thread::yield();
  }
  /// One more sync begins, and is held until Release(). Returns its number.
  size_t HoldOne() {
    holds_ = true;
    const size_t held = begun_syncs_;
    Wait(More());
    while (begun_syncs_ == held) std::this_thread::yield();
    return held;
  }
  void Release() { holds_ = false; }
  /// Where HoldOne() was the first to wait.
  void ReleaseAndJoinItsWaiter() {
    Release();
    threads_[0].join();
    threads_.erase(threads_.begin());
  }

  void Sync() {
    Times& times = syncs_.at(begun_syncs_);
    times.began = std::chrono::steady_clock::now();
    ++begun_syncs_;
    TakeTime(kTakes);
    while (holds_) std::this_thread::yield();
    times.ended = std::chrono::steady_clock::now();
  }

  struct Times {
    std::atomic<std::chrono::steady_clock::time_point> began;
    std::atomic<std::chrono::steady_clock::time_point> ended;
  };

  static inline DrainGatherConcurrentTest* current_ = nullptr;
  std::atomic<bool> holds_{false};
  std::array<Times, 512> syncs_;  // In their order: one runs at a time.
  std::atomic<size_t> begun_syncs_{0};
  std::vector<std::thread> threads_;
};

TEST_F(DrainGatherConcurrentTest, TheNextSyncWaitsForWhomTheLastOneServed) {
  const size_t held = HoldOne();
  const Lsn end = More();
  Wait(end);
  UntilAsleep(1);
  ReleaseAndJoinItsWaiter();
  // Who leaves calls the one who waits for company; it goes on waiting no longer than it would.
  (void)drain_->WaitSynced(end, Deadline::Now());
  JoinAll();
  EXPECT_GE(syncs_[held + 1].began.load() - syncs_[held].ended.load(), kHalf);
}

// Were a thread held up for so long that its deadline passed before it came, it could not: tried
// again.
TEST_F(DrainGatherConcurrentTest, WhoCannotWaitForCompanyBegins) {
  for (int tries = 0; tries < 50; ++tries) {
    const size_t held = HoldOne();
    Wait(drain_->published());
    const Lsn end = More();
    Wait(end);
    Wait(end);
    UntilAsleep(3);
    // Two do not come back; with this one, three of four wait.
    ReleaseAndJoinItsWaiter();
    const Deadline deadline(syncs_[held].ended.load() + kHalf * 3 / 4);
    const bool in_time = drain_->WaitSynced(end, deadline).ok();
    JoinAll();
    if (in_time) return;
  }
  FAIL() << "nobody who could not wait began a sync";
}

TEST_F(DrainGatherConcurrentTest, WhoLeadsForOthersDrainsForThem) {
  const size_t held = HoldOne();
  More();
  ASSERT_OK(drain_->Write(/*partial=*/true));
  Wait(More());
  UntilAsleep(1);
  ReleaseAndJoinItsWaiter();
  // For what is drained; the one who waits for company needs more.
  ASSERT_OK(drain_->Sync());
  JoinAll();
  EXPECT_EQ(begun_syncs_, held + 2);
}

TEST_F(DrainGatherConcurrentTest, WhoSleepsForTheNextSyncLearnsOfAnError) {
  holds_ = true;
  const size_t before = begun_syncs_;
  const auto fails = [this](Lsn end) {
    threads_.emplace_back([this, end] {
      EXPECT_STATUS(kIoError, drain_->WaitSynced(end, Deadline::Infinite()), "fdatasync");
    });
  };
  fails(More());
  while (begun_syncs_ == before) std::this_thread::yield();
  const Lsn end = More();
  for (int i = 0; i < 4; ++i) fails(end);
  UntilAsleep(4);
  env_.FailSyncAfter(1);
  Release();
  JoinAll();
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
