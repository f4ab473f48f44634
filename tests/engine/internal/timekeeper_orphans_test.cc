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

}  // namespace
}  // namespace geardb
