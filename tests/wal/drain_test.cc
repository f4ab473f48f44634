#include "wal/drain.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/crash_point.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kSegment = 65536;
constexpr uint64_t kRing = 32768;

class DrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(env_.CreateDirectory("log"));
    ASSERT_OK(RingFile::Create(&env_, "log/ring", kRing));
    ASSERT_OK_AND_ASSIGN(ring_, RingFile::Open(&env_, "log/ring", kRing, RingAccess::kMapped));
    for (Lsn base = 0; base < 4 * kSegment; base += kSegment) {
      ASSERT_OK(pool_.CreateSpare());
      pool_.Bind(base);
    }
    drain_ = std::make_unique<Drain>(ring_.get(), &pool_, 0);
  }
  void TearDown() override { SetCrashHook(nullptr); }

  static std::byte ByteAt(Lsn lsn) { return static_cast<std::byte>(1 + lsn / 64 % 250); }

 public:
  // Bytes up to `end` appear in the ring, `garbage` behind them, and are published.
  void PublishTo(Lsn end, uint64_t garbage = 0) {
    for (Lsn lsn = drain_->published(); lsn < end; ++lsn) *ring_->At(lsn) = ByteAt(lsn);
    std::memset(ring_->At(end), 0xee, garbage);
    drain_->NoteRecordEnd(end);
  }

 protected:
  // Byte `lsn` of the segments.
  std::byte Stored(Lsn lsn) { return env_.Contents(pool_.Find(lsn)->path())[lsn % kSegment]; }

  testing::FaultEnv env_{1};
  SegmentPool pool_{env_.HoldDirectory("log").value(), "log", kSegment, true};
  std::unique_ptr<RingFile> ring_;
  std::unique_ptr<Drain> drain_;
};

TEST_F(DrainTest, WholeBlocksGoFirstAndThePartialOneOnDemand) {
  PublishTo(10000);
  ASSERT_OK(drain_->Write(/*partial=*/false));
  EXPECT_EQ(drain_->drained(), 8192u);
  EXPECT_EQ(drain_->boundary(), 0u);  // The record is not wholly drained.
  ASSERT_OK(drain_->Write(/*partial=*/true));
  EXPECT_EQ(drain_->drained(), 10000u);
  EXPECT_EQ(drain_->boundary(), 10000u);
  for (Lsn lsn = 0; lsn < 10000; lsn += 97) ASSERT_EQ(Stored(lsn), ByteAt(lsn));
}

TEST_F(DrainTest, TheLastBlockIsZeroBeyondWhatIsPublished) {
  PublishTo(5056, /*garbage=*/3000);
  ASSERT_OK(drain_->Write(true));
  for (Lsn lsn = 5056; lsn < 8192; ++lsn) ASSERT_EQ(Stored(lsn), std::byte{0}) << lsn;
  PublishTo(5120);  // The block is written again as it fills.
  ASSERT_OK(drain_->Write(true));
  EXPECT_EQ(Stored(5119), ByteAt(5119));
}

TEST_F(DrainTest, WritesCrossTheRingsSeamAndSegments) {
  Lsn end = 0;
  while (end < 3 * kSegment) {
    end += 10048;
    PublishTo(end);
    ASSERT_OK(drain_->Write(end % 3 == 0));
  }
  ASSERT_OK(drain_->Write(true));
  for (Lsn lsn = 0; lsn < end; lsn += 64) ASSERT_EQ(Stored(lsn), ByteAt(lsn)) << lsn;
  EXPECT_EQ(drain_->boundary(), end);
}

TEST_F(DrainTest, TheBoundaryIsTheEndOfAWhollyDrainedRecord) {
  for (Lsn end = 4160; end <= 20800; end += 4160) PublishTo(end);
  ASSERT_OK(drain_->Write(false));
  EXPECT_EQ(drain_->drained(), 20480u);
  EXPECT_EQ(drain_->boundary(), 16640u);
}

TEST_F(DrainTest, ASyncCoversWhatWasDrainedBeforeIt) {
  PublishTo(4096);
  ASSERT_OK(drain_->Write(true));
  // While the disk syncs, more is drained: it is not part of this sync.
  static Drain* drain;
  static DrainTest* test;
  drain = drain_.get();
  test = this;
  SetCrashHook([](const char* name) {
    if (std::strcmp(name, "synced") != 0) return;
    test->PublishTo(8192);
    EXPECT_OK(drain->Write(true));
  });
  ASSERT_OK(drain_->Sync());
  SetCrashHook(nullptr);
  EXPECT_EQ(drain_->boundary(), 8192u);
  EXPECT_EQ(drain_->synced(), 4096u);
  ASSERT_OK(drain_->Sync());
  EXPECT_EQ(drain_->synced(), 8192u);
}

TEST_F(DrainTest, ASyncDoesNotCoverWhatIsOnlyPublished) {
  PublishTo(4096);
  ASSERT_OK(drain_->Write(true));
  PublishTo(8192);
  ASSERT_OK(drain_->Sync());
  EXPECT_EQ(drain_->synced(), 4096u);
}

TEST_F(DrainTest, ASyncCoversEverySegmentWritten) {
  PublishTo(30016);
  ASSERT_OK(drain_->Write(true));
  PublishTo(60032);
  ASSERT_OK(drain_->Write(true));
  PublishTo(80000);
  ASSERT_OK(drain_->Write(true));
  const uint64_t before = env_.syncs();
  ASSERT_OK(drain_->Sync());
  EXPECT_EQ(env_.syncs() - before, 2u);
  ASSERT_OK(drain_->Sync());  // Nothing is left.
  EXPECT_EQ(env_.syncs() - before, 2u);
}

TEST_F(DrainTest, TheFirstSyncErrorIsFinal) {
  PublishTo(4096);
  ASSERT_OK(drain_->Write(true));
  env_.FailSyncAfter(1);
  EXPECT_STATUS(kIoError, drain_->Sync(), "fdatasync log/segment");
  env_.ClearFailures();
  EXPECT_EQ(drain_->synced(), 0u);
  EXPECT_TRUE(drain_->failed());
  EXPECT_STATUS(kIoError, drain_->Sync(), "read-only after its first write error");
  EXPECT_STATUS(kIoError, drain_->WaitSynced(4096, Deadline::Infinite()), "fdatasync");
  PublishTo(8192);
  EXPECT_STATUS(kIoError, drain_->Write(true), "fdatasync log/segment");
  EXPECT_EQ(drain_->drained(), 4096u);
}

TEST_F(DrainTest, AnErrorIsToldToWhoeverAsksAgainForWhatIsSynced) {
  PublishTo(4096);
  ASSERT_OK(drain_->WaitSynced(4096, Deadline::Infinite()));
  PublishTo(8192);
  env_.FailSyncAfter(1);
  EXPECT_STATUS(kIoError, drain_->WaitSynced(8192, Deadline::Infinite()), "fdatasync");
  EXPECT_EQ(drain_->synced(), 4096u);
  EXPECT_STATUS(kIoError, drain_->WaitSynced(4096, Deadline::Infinite()), "fdatasync");
}

TEST_F(DrainTest, ADeviceThatIsFullBelowIsNoRefusal) {
  PublishTo(4096);
  ASSERT_OK(drain_->Write(true));
  env_.FailSyncAfter(1, /*full=*/true);
  EXPECT_STATUS(kIoError, drain_->Sync(), "No space left on device");
  EXPECT_STATUS(kIoError, drain_->failure(), "read-only after its first write error");
}

TEST_F(DrainTest, AWriteErrorIsFinalToo) {
  PublishTo(4096);
  env_.FailWriteAfter(1);
  EXPECT_STATUS(kIoError, drain_->Write(true), "write log/segment");
  env_.ClearFailures();
  EXPECT_STATUS(kIoError, drain_->Write(true), "write log/segment");
  EXPECT_EQ(drain_->drained(), 0u);
}

TEST_F(DrainTest, WhoWaitsForASyncDoesTheWork) {
  PublishTo(5000 / 64 * 64);
  EXPECT_OK(drain_->WaitSynced(4992, Deadline::Infinite()));
  EXPECT_EQ(drain_->synced(), 4992u);
}

TEST_F(DrainTest, WhoseDeadlineHasPassedBeginsNoSync) {
  PublishTo(4096);
  EXPECT_STATUS(kDeadlineExceeded, drain_->WaitSynced(4096, Deadline::AfterMs(0)),
                "waited for a sync up to LSN 4096, synced up to 0");
  EXPECT_EQ(drain_->drained(), 0u);
}

TEST_F(DrainTest, ZeroAheadTouchesOnlyWhatWasNeverWritten) {
  PublishTo(5056);
  EXPECT_FALSE(drain_->ZeroAhead());  // Not while anything waits to be drained.
  ASSERT_OK(drain_->Write(true));
  while (drain_->ZeroAhead()) {
  }
  EXPECT_EQ(pool_.Find(0)->written_bytes(), kSegment);
  EXPECT_EQ(Stored(5055), ByteAt(5055));
  PublishTo(20032);
  ASSERT_OK(drain_->Write(true));
  EXPECT_EQ(Stored(20031), ByteAt(20031));
}

}  // namespace
}  // namespace geardb::wal
