// The end of a pass that leaves something out is a record, which waits for room in the log as long
// as the call that wants it.
//
// concurrent: engine/internal/epochs.cc engine/internal/sampler_epoch.cc
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/internal/change_scope.h"
#include "engine/internal/epochs.h"
#include "tests/engine/internal/live_core.h"
#include "tests/engine/rate_limit_fixture.h"

namespace geardb {
namespace {

namespace fb = engine::fb;

class EpochsConcurrentTest : public testing::RateLimitFixture {
 protected:
  /// Records that nobody fills yet: nothing has room behind them.
  void FillRing() {
    const auto core = testing::CoreOf(*database_);
    engine::ChangeScope scope(core.get(), nullptr, {});
    for (const uint64_t bytes : {core->log->record_bytes_max() / 2, uint64_t{64}}) {
      while (Reserve(&scope, bytes)) {
      }
    }
  }
  bool Reserve(engine::ChangeScope* scope, uint64_t bytes) {
    auto change = std::make_unique<engine::FunctionChange>([](Lsn, Lsn) {});
    const auto name = change->body.CreateString("unfilled");
    const auto blob = change->body.CreateVector(std::vector<uint8_t>(bytes));
    change->FinishBody({}, fb::Change::WriteTag,
                       fb::CreateWriteTag(change->body, name, blob).Union());
    const wal::RecordSize size = wal::RecordSize::For(change->body_bytes().size(), {});
    bool waited = false;
    if (!scope->AwaitRoom({&size, 1}, {.deadline = Deadline::Now()}, &waited).ok()) return false;
    const wal::Reservation reservation = scope->Reserve({.size = size});
    unfilled_.emplace_back(reservation, std::move(change));
    return true;
  }
  void FillRecords() {
    const auto core = testing::CoreOf(*database_);
    for (auto& [reservation, change] : unfilled_) core->Finish(reservation, {}, change.get());
    ASSERT_OK(core->CatchUp());
    ASSERT_OK(database_->Sync());  // The ring is empty: there is room for whoever asks now.
    unfilled_.clear();
  }

  std::vector<std::pair<wal::Reservation, std::unique_ptr<engine::FunctionChange>>> unfilled_;
};

// Whoever asked what there is now waited for room in the log without end.
TEST_F(EpochsConcurrentTest, ARestIsLeftOutInTheTimeOfTheCallOrNotYet) {
  PriorityTableSpec spec = Limited({}, SelectorKind::kEpoch);
  spec.epoch = {.passes = 1};
  CreateLimited(spec);
  ASSERT_OK(TryAppend(0, 10));
  ASSERT_OK(priority("limited")->BeginEpoch());
  ASSERT_OK_AND_ASSIGN(const auto sampler,
                       priority("limited")->NewSampler({.batch = 4, .drop_last = true}));
  for (int i = 0; i < 2; ++i) ASSERT_OK(NextNow(sampler.get()));
  FillRing();
  std::atomic<bool> returned{false};
  Status status;
  std::thread reads([&] {
    status = NextNow(sampler.get()).status();
    returned = true;
  });
  const Deadline deadline = Deadline::AfterMs(60'000);
  while (!returned && !deadline.passed()) std::this_thread::yield();
  EXPECT_TRUE(returned.load());
  FillRecords();
  reads.join();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.message();
  EXPECT_STATUS(kOutOfRange, NextNow(sampler.get()), "epoch 1 is exhausted");
}

}  // namespace
}  // namespace geardb
