// Long syncs, the next of which waits for those whom the last one served: for how long, and that
// nobody sleeps on where one of them leaves, cannot wait, or is served before.
// concurrent: wal/drain.h wal/drain.cc
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>
#include <thread>

#include "tests/wal/drain_fixture.h"
#include "wal/drain.h"

namespace geardb::wal {
namespace {

/// A drain that knows its syncs to take `kTakes`, and can hold one of them.
class DrainGatherConcurrentTest : public DrainFixture {
 protected:
  static constexpr auto kTakes = std::chrono::milliseconds(5);
  static constexpr auto kHalf = kTakes / 2;

  void SetUp() override {
    DrainFixture::SetUp();
    Hook([this](std::string_view name) {
      if (name == "sync") Sync();
    });
    LearnTimes();
  }

  void LearnTimes() {
    for (int i = 0; i < 30; ++i) ASSERT_OK(drain_->WaitSynced(More(), Deadline::Infinite()));
  }
  /// With a drain that has seen nobody stay away. Nobody waits.
  void StartAgain() {
    drain_ = std::make_unique<Drain>(ring_.get(), &pool_, drain_->synced());
    begun_syncs_ = 0;
    LearnTimes();
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

  std::atomic<bool> holds_{false};
  std::array<Times, 512> syncs_;  // In their order: one runs at a time.
  std::atomic<size_t> begun_syncs_{0};
};

TEST_F(DrainGatherConcurrentTest, TheNextSyncWaitsForWhomTheLastOneServed) {
  const size_t held = HoldOne();
  const Lsn end = More();
  Wait(end);
  UntilAsleep(1);
  ReleaseAndJoinItsWaiter();
  // Who leaves calls the one who waits for company; it goes on waiting no longer than it would.
  const Deadline soon(syncs_[held].ended.load() + kHalf / 2);
  do {
    (void)drain_->WaitSynced(end, Deadline::Now());
  } while (!soon.passed());
  JoinAll();
  EXPECT_GE(syncs_[held + 1].began.load() - syncs_[held].ended.load(), kHalf);
}

// Were a thread held up for so long that its deadline passed before it came, it could not: tried
// again, where the next sync waits for all again.
TEST_F(DrainGatherConcurrentTest, WhoCannotWaitForCompanyBegins) {
  for (int tries = 0; tries < 20; ++tries) {
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
    StartAgain();
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

TEST_F(DrainGatherConcurrentTest, WhoIsServedByAnEarlierSyncThanExpectedCallsTheNextLeader) {
  TwoAreServedByAnEarlierSyncThanExpected();
}

}  // namespace
}  // namespace geardb::wal
