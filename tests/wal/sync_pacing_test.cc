#include "wal/sync_pacing.h"

#include <gtest/gtest.h>

namespace geardb::wal {
namespace {

using std::chrono::microseconds;

class SyncPacingTest : public ::testing::Test {
 protected:
  // Syncs of a millisecond, the last of which ends now.
  void End(uint64_t served, uint64_t waiting) {
    for (int i = 0; i < 20; ++i) pacing_.NoteDuration(microseconds(1000));
    pacing_.NoteEnd({.served = served, .waiting = waiting}, now_);
  }
  // How many have to wait for the next sync to begin now.
  uint64_t Wanted() const {
    uint64_t waiting = 0;
    while (!pacing_.Complete(waiting, now_)) ++waiting;
    return waiting;
  }
  // It begins without all who were wanted.
  void Miss() {
    now_ = pacing_.until();
    pacing_.NoteBegin(1);
  }

  SyncPacing pacing_;
  SyncPacing::TimePoint now_{std::chrono::seconds(5)};
};

TEST_F(SyncPacingTest, ShortSyncsOverlapAndWaitForNobody) {
  EXPECT_EQ(pacing_.syncs_max(), SyncPacing::kSyncsMax);
  pacing_.NoteDuration(microseconds(99));
  pacing_.NoteEnd({.served = 8, .waiting = 8}, now_);
  EXPECT_EQ(pacing_.syncs_max(), SyncPacing::kSyncsMax);
  EXPECT_EQ(Wanted(), 0u);
}

TEST_F(SyncPacingTest, LongOnesRunOneAtATimeAndWaitForAllWhoWereThere) {
  End(5, 3);
  EXPECT_EQ(pacing_.syncs_max(), 1u);
  EXPECT_EQ(Wanted(), 8u);
  pacing_.NoteBegin(8);
  EXPECT_EQ(Wanted(), 0u) << "the wait was this sync's alone";
  End(8, 0);
  EXPECT_EQ(Wanted(), 8u);
}

TEST_F(SyncPacingTest, WhoIsAloneDoesNotWait) {
  End(1, 0);
  EXPECT_EQ(Wanted(), 0u);
}

TEST_F(SyncPacingTest, TheWaitEndsHalfASyncLater) {
  End(8, 0);
  EXPECT_EQ(pacing_.until(), now_ + microseconds(500));
  now_ += microseconds(499);
  EXPECT_EQ(Wanted(), 8u);
  now_ += microseconds(1);
  EXPECT_EQ(Wanted(), 0u);
}

TEST_F(SyncPacingTest, ASyncThatBeginsThenIsDoneTwoSyncsLater) {
  End(8, 0);
  EXPECT_EQ(pacing_.done_by(), now_ + microseconds(2500));
}

TEST_F(SyncPacingTest, AnOddFirstSyncIsSoonForgotten) {
  pacing_.NoteDuration(std::chrono::seconds(1));
  pacing_.NoteEnd({.served = 1, .waiting = 1}, now_);
  EXPECT_LE(pacing_.until(), now_ + microseconds(50));
  pacing_.NoteDuration(microseconds(20));
  EXPECT_EQ(pacing_.syncs_max(), SyncPacing::kSyncsMax);
}

TEST_F(SyncPacingTest, OneOddSyncChangesLittle) {
  for (int i = 0; i < 20; ++i) pacing_.NoteDuration(microseconds(20));
  pacing_.NoteDuration(std::chrono::seconds(1));
  EXPECT_EQ(pacing_.syncs_max(), SyncPacing::kSyncsMax);
  // A disk that has become slow is noticed all the same, and one that is quick again.
  for (int i = 0; i < 10; ++i) pacing_.NoteDuration(microseconds(1000));
  EXPECT_EQ(pacing_.syncs_max(), 1u);
  for (int i = 0; i < 10; ++i) pacing_.NoteDuration(microseconds(20));
  EXPECT_EQ(pacing_.syncs_max(), SyncPacing::kSyncsMax);
}

TEST_F(SyncPacingTest, WhereNotAllComeBackHalfOfThemDoEverMoreOften) {
  // How many syncs ask for half of eight, until the next one asks for all.
  const auto halves = [this] {
    int count = 0;
    for (End(8, 0); Wanted() == 4; End(8, 0)) {
      ++count;
      Miss();
    }
    EXPECT_EQ(Wanted(), 8u);
    return count;
  };
  for (const int expected : {0, 0, 1, 3, 7, 15, 31, 31}) {
    EXPECT_EQ(halves(), expected);
    Miss();
  }
  EXPECT_EQ(halves(), 31);
  pacing_.NoteBegin(8);
  EXPECT_EQ(halves(), 0) << "all came back";
  Miss();
  EXPECT_EQ(halves(), 0) << "a first miss";
}

}  // namespace
}  // namespace geardb::wal
