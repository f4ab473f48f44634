// Orphans that are closed one by one, while others take and leave them, and until somebody ends it.
#include <gtest/gtest.h>

#include <vector>

#include "engine/internal/timekeeper.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/hand_clock.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

class TimekeeperOrphansTest : public testing::StoreTest {
 protected:
  static constexpr int kOrphans = 4;

  void SetUp() override {
    options_.background = false;  // What a test does not do by hand does not happen.
    options_.clock = &clock_;
    Open();
    Create(testing::StepSpec(), {.lanes = kOrphans});
    for (uint32_t lane = 0; lane < kOrphans; ++lane) {
      ids_.push_back(Append(10 * lane, 4, End::kGo, lane).id);
      ASSERT_OK(writer_->Detach(lane));
    }
    PassMs(1000);
  }
  void TearDown() override {  // The clock goes first.
    writer_.reset();
    Close();
  }
  void PassMs(int64_t ms) { clock_.now_us += ms * 1000; }
  /// Those of the last second stay; `goes_on` is asked before each.
  Result<uint64_t> CloseOld(const engine::GoesOn& goes_on) {
    const auto core = testing::CoreOf(*database_);
    return engine::CloseOrphans(core, core->TableById(table_->id()), 1000, goes_on);
  }
  TrajectoryState StateOf(TrajectoryId id) { return table_->Find(id)->state; }

  testing::HandClock clock_;
  std::vector<TrajectoryId> ids_;
};

TEST_F(TimekeeperOrphansTest, OneThatWasTakenAndLeftMeanwhileIsNotOldAnyMore) {
  int asked = 0;
  const auto goes_on = [&] {
    if (asked++ > 0) return true;
    EXPECT_OK(writer_->Resume(ids_[2]));
    Append(24, 3);
    EXPECT_OK(writer_->Detach());
    return true;
  };
  ASSERT_OK_AND_ASSIGN(uint64_t closed, CloseOld(goes_on));
  EXPECT_EQ(closed, 3u);
  EXPECT_EQ(asked, kOrphans);
  EXPECT_EQ(StateOf(ids_[2]), TrajectoryState::kOrphaned);
  ASSERT_OK(writer_->Resume(ids_[2]));
  Append(27, 1);
  EXPECT_EQ(Numbers(ids_[2]), testing::Count(20, 8));
  ASSERT_OK(writer_->Detach());
  PassMs(1000);
  ASSERT_OK_AND_ASSIGN(closed, CloseOld(engine::ToTheEnd));
  EXPECT_EQ(closed, 1u);
}

TEST_F(TimekeeperOrphansTest, WhatIsLeftWhenItEndsStaysOrphaned) {
  int asked = 0;
  ASSERT_OK_AND_ASSIGN(uint64_t closed, CloseOld([&] { return asked++ < 2; }));
  EXPECT_EQ(closed, 2u);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(StateOf(ids_[1]), TrajectoryState::kClosed);
  EXPECT_EQ(StateOf(ids_[2]), TrajectoryState::kOrphaned);
  ASSERT_OK_AND_ASSIGN(closed, CloseOld(engine::ToTheEnd));
  EXPECT_EQ(closed, 2u);
}

// It was taken, could not be cut, and was left anew: as if its writer had just gone.
TEST_F(TimekeeperOrphansTest, OneForWhoseCutThereIsNoRoomIsAsOldAsItWas) {
  options_.segment_bytes = 64 << 10;
  options_.ring_bytes = 64 << 10;
  options_.log_bytes_max = 1 << 20;
  options_.cold_tier = false;
  options_.budgets.index_bytes = 4 << 20;
  constexpr uint32_t kMany = 64;
  // Both records together are less than 1 KiB: with some of these the second one finds no room.
  for (uint64_t left = 4096; left < 5120; left += 128) {
    SCOPED_TRACE(left);
    writer_.reset();
    OpenEmpty();
    Create(testing::StepSpec(), {.lanes = kMany});
    for (uint32_t lane = 0; lane < kMany; ++lane) {
      Append(0, 1, End::kGo, lane);
      ASSERT_OK(writer_->Detach(lane));
    }
    const int64_t left_us = clock_.now_us;
    PassMs(1000);
    const auto core = testing::CoreOf(*database_);
    const std::vector<std::byte> blob(8000);
    for (uint64_t room = UINT64_MAX; room > left;) {
      const std::span<const std::byte> some(blob.data(), room > 20'000 ? blob.size() : 0);
      ASSERT_OK(database_->WriteTag("small", some));
      const uint64_t in_segment = core->log->end() % options_.segment_bytes;
      room = core->log->BytesToBound(wal::Urgency::kReserve) + options_.segment_bytes - in_segment;
    }
    EXPECT_STATUS(kResourceExhausted, CloseOld(engine::ToTheEnd), "log_bytes_max");
    const auto table = core->TableById(table_->id());
    MutexLock commit(&core->commit);
    MutexLock lock(&table->state->mutex);
    uint32_t orphans = 0;
    table->state->trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
      if (record.state == index::TrajectoryState::kClosed) return;
      ++orphans;
      EXPECT_EQ(table->plan->orphaned_us(slot), left_us);
    });
    EXPECT_GT(orphans, 0u);
    EXPECT_LT(orphans, kMany) << "there was room for some";
  }
}

}  // namespace
}  // namespace geardb
