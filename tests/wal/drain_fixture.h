// Shared by the tests of syncs that overlap: a drain of a small ring and eight segments, threads
// that wait for its syncs, and a hook that may stop those where the drain has a crash point.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/crash_point.h"
#include "base/mutex.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"
#include "wal/drain.h"
#include "wal/segment_file.h"

namespace geardb::wal {

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
inline void TakeTime(std::chrono::microseconds time) {
  const Deadline until(std::chrono::steady_clock::now() + time);
  while (!until.passed()) std::this_thread::yield();
}

/// Its test publishes; those who wait do all else.
class DrainFixture : public ::testing::Test {
 protected:
  static constexpr uint64_t kSegment = 65536;
  static constexpr uint64_t kRing = 32768;
  static constexpr uint64_t kSegments = 8;

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
  void TearDown() override {
    JoinAll();
    EXPECT_EQ(drain_->sync_sleepers(), 0u);
    SetCrashHook(nullptr);
  }

  static std::byte ByteAt(Lsn lsn) { return static_cast<std::byte>(1 + lsn / 64 % 250); }

  /// One thread at a time.
  void PublishTo(Lsn end) {
    for (Lsn lsn = drain_->published(); lsn < end; ++lsn) *ring_->At(lsn) = ByteAt(lsn);
    drain_->NoteRecordEnd(end);
  }
  /// Publishes a little, and returns its end.
  Lsn More() {
    PublishTo(drain_->published() + 8);
    return drain_->published();
  }

  /// Waits in a thread of its own until all below `end` is synced.
  std::thread Waiter(Lsn end) {
    return std::thread([this, end] { EXPECT_OK(drain_->WaitSynced(end, Deadline::Infinite())); });
  }
  /// The same, until JoinAll().
  void Wait(Lsn end) { threads_.push_back(Waiter(end)); }
  void JoinAll() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  void UntilAsleep(uint64_t count) {
    while (drain_->sync_sleepers() < count) std::this_thread::yield();
  }
  void UntilBegun(uint64_t syncs) {
    while (drain_->syncs_begun() < syncs) std::this_thread::yield();
  }

  /// Called with the name of each crash point, while no thread passes one.
  void Hook(std::function<void(std::string_view)> hook) {
    hook_ = std::move(hook);
    SetCrashHook([](const char* name) { hook_(name); });
  }
  static bool IsWrite(std::string_view name) { return name == "drain" || name == "rotate"; }

  /// Three sleep for the next sync. The one under way serves the two who came first, since its
  /// write takes their bytes along; they may be called to lead all the same.
  void TwoAreServedByAnEarlierSyncThanExpected() {
    // Writes stop here one by one, until they are allowed.
    Counter begun;
    Counter allowed;
    Hook([&](std::string_view name) {
      if (IsWrite(name)) allowed.WaitFor(begun.Add());
    });
    const uint64_t before = drain_->syncs_begun();
    const Lsn end = More();
    std::thread background([this] { EXPECT_OK(drain_->Write(true)); });
    begun.WaitFor(1);
    // The leader of a sync waits for that write. Two more come too late for what it promised, ...
    Wait(end);
    UntilBegun(before + 1);
    Wait(More());
    Wait(More());
    UntilAsleep(2);
    // ... but not for its write; a third comes too late for that, too.
    allowed.Add();
    begun.WaitFor(2);
    Wait(More());
    UntilAsleep(3);
    for (int i = 0; i < 8; ++i) allowed.Add();
    // Were the call to lead lost, the third would sleep for ever.
    JoinAll();
    background.join();
    EXPECT_EQ(drain_->synced(), drain_->published());
  }

  static inline std::function<void(std::string_view)> hook_;
  testing::FaultEnv env_{1};
  testing::FaultEnv ring_env_{2};  // Reads no map while a test writes to it.
  SegmentPool pool_{env_.HoldDirectory("log").value(), "log", kSegment, true};
  std::unique_ptr<RingFile> ring_;
  std::unique_ptr<Drain> drain_;
  std::vector<std::thread> threads_;
};

}  // namespace geardb::wal
