// What a log takes on a full disk: rule 9 of wal/FORMAT.md.
#include <thread>

#include "tests/wal/log_fixture.h"
#include "wal/log_writer.h"

namespace geardb::wal {
namespace {

using testing::CrashKind;

class LogWriterFullDiskTest : public LogFixture {
 protected:
  static constexpr uint64_t kSegment = uint64_t{64} << 10;

  /// A new log whose ring has `ring_bytes`, on a disk that is full but for its spare files.
  void CreateOnFullDisk(uint64_t ring_bytes) {
    seen_ = SeenLog();
    env_ = std::make_unique<testing::FaultEnv>(1);
    env_->set_maps(maps_);
    written_ = 0;
    options_.log.ring_bytes = ring_bytes;
    CreateAndOpen();
    ASSERT_OK(Write(10, Urgency::kAppend));
    ASSERT_OK(writer()->PrepareSpares());
    env_->set_disk_bytes_max(env_->disk_bytes());
  }
  Status Write(uint64_t piece_bytes, Urgency urgency) {
    const TestRecord record{.number = written_ + 1, .piece_bytes = {piece_bytes}};
    while (!writer()->HasRoom(SizeOf(record), urgency)) {
      const Status room = writer()->WaitForRoom(SizeOf(record), urgency, Deadline::Infinite());
      if (!room.ok()) return room;
    }
    const Reservation reservation = ReserveRecord(writer(), record);
    FillRecord(writer(), reservation, record);
    writer()->Publish(reservation, nullptr);
    ++written_;
    return Status::Ok();
  }
  /// Records of fewer and fewer bytes, until none fits; what the last was told.
  Status Fill(Urgency urgency) {
    Status status;
    for (const uint64_t bytes : {4000u, 400u, 0u}) {
      do {
        status = Write(bytes, urgency);
      } while (status.ok());
    }
    return status;
  }
  void ExpectAllThere() {
    ASSERT_EQ(records().size(), written_);
    EXPECT_EQ(Numbers().back(), written_);
    for (const SeenRecord& record : records()) EXPECT_TRUE(record.content_right);
  }
  uint64_t free_files() { return writer()->Stats().segments_free; }
  /// What no record fits.
  uint64_t left() { return (kSegment - writer()->end() % kSegment) % kSegment; }

  uint64_t written_ = 0;
  bool maps_ = true;  // The ring is memory of the file.
};

TEST_F(LogWriterFullDiskTest, AppendsAndUrgentRecordsEachLeaveTheirSpareFiles) {
  for (const uint64_t ring_segments : {2u, 4u}) {
    SCOPED_TRACE(ring_segments);
    CreateOnFullDisk(ring_segments * kSegment);
    EXPECT_STATUS(kResourceExhausted, Fill(Urgency::kAppend), "No space left");
    EXPECT_EQ(free_files(), ring_segments + 1);
    EXPECT_LT(left(), SizeOf({.number = 1, .piece_bytes = {0}}).total());
    // As much as fits the ring beside what follows, and nothing has to be drained for it.
    ASSERT_OK(writer()->DrainOnce());
    env_->set_disk_bytes_max(env_->disk_bytes() + (ring_segments - 2) * kSegment);
    EXPECT_STATUS(kResourceExhausted, Fill(Urgency::kAppend), "No space left");
    EXPECT_EQ(free_files(), ring_segments + 1);
    const uint64_t live = writer()->Stats().segments_live;
    EXPECT_STATUS(kResourceExhausted, Fill(Urgency::kReserve), "No space left");
    EXPECT_EQ(free_files(), ring_segments);
    EXPECT_EQ(writer()->Stats().segments_live, live + 1);
    EXPECT_LT(left(), SizeOf({.number = 1, .piece_bytes = {0}}).total());
    // It opens on the full disk, though no segment has what is in the ring.
    EXPECT_GT(writer()->end() - writer()->drained(), (ring_segments - 1) * kSegment - kSegment / 8);
    CrashAndOpen(CrashKind::kProcess);
    EXPECT_GT(report().read.ring_records, 0u);
    ExpectAllThere();
    CrashAndOpen(CrashKind::kPowerLoss);
    ExpectAllThere();
  }
}

// The disk's other user needs room for what lets the log go on: it gets what appends, and then
// removals, do without, and nobody takes it back before it is done.
TEST_F(LogWriterFullDiskTest, SparesThatAreGivenUpStayAwayUntilTheyAreRestored) {
  CreateOnFullDisk(kSegment);
  ASSERT_EQ(free_files(), 3u);
  const uint64_t full = env_->disk_bytes();
  EXPECT_TRUE(writer()->GiveUpSpares());
  EXPECT_EQ(free_files(), 2u);
  EXPECT_EQ(env_->disk_bytes(), full - kSegment);
  ASSERT_OK(writer()->PrepareSpares());
  EXPECT_EQ(free_files(), 2u);
  // A removal still has its file, and an append has none.
  EXPECT_OK(Write(4000, Urgency::kReserve));
  EXPECT_STATUS(kResourceExhausted, Fill(Urgency::kAppend),
                "2 spare segment files and leaves 2 to removals, tags, closings and the next open: "
                "the cold store flushes on a full disk");
  EXPECT_TRUE(writer()->GiveUpSpares());
  EXPECT_FALSE(writer()->GiveUpSpares());
  EXPECT_EQ(free_files(), 1u);
  EXPECT_EQ(env_->disk_bytes(), full - 2 * kSegment);
  EXPECT_STATUS(kResourceExhausted, Fill(Urgency::kReserve),
                "1 spare segment files and leaves 1 to the next open: the cold store flushes");
  EXPECT_EQ(env_->disk_bytes(), full - 2 * kSegment);
  writer()->RestoreSpares();
  EXPECT_OK(Write(0, Urgency::kReserve));
  // One of the three is the log's now.
  EXPECT_FALSE(writer()->LacksRoomForSpares()) << "nobody has asked the disk yet";
  EXPECT_STATUS(kResourceExhausted, writer()->PrepareSpares(), "No space left");
  EXPECT_TRUE(writer()->LacksRoomForSpares());
  EXPECT_EQ(free_files(), 2u);
  EXPECT_EQ(env_->disk_bytes(), full);
  env_->set_disk_bytes_max(full + kSegment);
  ASSERT_OK(writer()->PrepareSpares());
  EXPECT_FALSE(writer()->LacksRoomForSpares());
  CrashAndOpen(CrashKind::kProcess);
  ExpectAllThere();
}

TEST_F(LogWriterFullDiskTest, AnOpenNeedsNoSpareThatCanBeGivenUp) {
  for (const uint64_t ring_segments : {1u, 4u}) {
    SCOPED_TRACE(ring_segments);
    CreateOnFullDisk(ring_segments * kSegment);
    (void)Fill(Urgency::kAppend);
    while (writer()->GiveUpSpares()) {
    }
    EXPECT_EQ(free_files(), ring_segments);
    env_->set_disk_bytes_max(env_->disk_bytes());
    CrashAndOpen(CrashKind::kProcess);
    ExpectAllThere();
  }
}

TEST_F(LogWriterFullDiskTest, OnceTheReserveIsOpenedAppendsWaitForAnotherSpareFile) {
  CreateOnFullDisk(kSegment);
  EXPECT_STATUS(kResourceExhausted, Fill(Urgency::kAppend),
                "2 spare segment files and leaves 2 to removals, tags, closings and the next open");
  ASSERT_OK(Write(4000, Urgency::kReserve));
  for (int opens = 0; opens < 3; ++opens) {
    SCOPED_TRACE(opens);
    EXPECT_FALSE(writer()->HasRoom(SizeOf({.number = 1, .piece_bytes = {0}}), Urgency::kAppend));
    EXPECT_STATUS(kResourceExhausted, Write(0, Urgency::kAppend),
                  "1 spare segment files and leaves 2 to removals, tags, closings");
    EXPECT_STATUS(kResourceExhausted, Write(0, Urgency::kAppend), "No space left");
    ASSERT_OK(Write(4000, Urgency::kReserve));
    CrashAndOpen(opens == 1 ? CrashKind::kPowerLoss : CrashKind::kProcess);
    written_ = records().size();
  }
  // One file is enough, though the log would like one more.
  env_->set_disk_bytes_max(env_->disk_bytes() + kSegment);
  ASSERT_OK(Write(0, Urgency::kAppend));
  EXPECT_EQ(free_files(), 2u);
  EXPECT_STATUS(kResourceExhausted, Fill(Urgency::kAppend), "2 spare segment files and leaves 2");
  EXPECT_STATUS(kResourceExhausted, Fill(Urgency::kReserve),
                "1 spare segment files and leaves 1 to the next open");
  CrashAndOpen(CrashKind::kProcess);
  ExpectAllThere();
  env_->set_disk_bytes_max(UINT64_MAX);
  EXPECT_OK(Write(4000, Urgency::kAppend));
}

// The name of a spare file that could not be made, whose removal was lost with the power.
TEST_F(LogWriterFullDiskTest, AnOpenDoesWithoutASpareFileThatCannotBeMadeWhole) {
  CreateOnFullDisk(kSegment);
  env_->Put("db/log/segment-000099", {});
  CrashAndOpen(CrashKind::kProcess);
  ExpectAllThere();
  const uint64_t files = free_files();
  EXPECT_EQ(env_->Contents("db/log/segment-000099").size(), 0u);
  env_->set_disk_bytes_max(UINT64_MAX);
  CrashAndOpen(CrashKind::kProcess);
  ExpectAllThere();
  EXPECT_EQ(free_files(), files + 1);
  EXPECT_EQ(env_->Contents("db/log/segment-000099").size(), kSegment);
}

// Nothing is appended that no removal could follow.
TEST_F(LogWriterFullDiskTest, AppendsToANewLogWaitForItsSpareFiles) {
  CreateAndOpen();
  env_->set_disk_bytes_max(env_->disk_bytes());
  ASSERT_OK(Write(10, Urgency::kAppend));  // Of the first segment, which begins with it.
  EXPECT_STATUS(kResourceExhausted, Write(10, Urgency::kAppend), "0 spare segment files");
  ASSERT_OK(Write(10, Urgency::kReserve));
  env_->set_disk_bytes_max(env_->disk_bytes() + 2 * kSegment);
  EXPECT_OK(Write(10, Urgency::kAppend));
}

// A change of several records has the files of all of them before its first, or is refused.
TEST_F(LogWriterFullDiskTest, WhatWasPreparedForIsStoppedByNoFullDisk) {
  const std::vector<RecordSize> sizes(20, SizeOf({.number = 1, .piece_bytes = {8000}}));
  int refused = 0;
  for (const Urgency urgency : {Urgency::kAppend, Urgency::kReserve}) {
    for (uint64_t room = 0; room < 4; ++room) {
      SCOPED_TRACE(room);
      seen_ = SeenLog();
      env_ = std::make_unique<testing::FaultEnv>(1);
      written_ = 0;
      CreateOnFullDisk(kSegment);
      env_->set_disk_bytes_max(env_->disk_bytes() + room * kSegment);
      const Lsn end = writer()->end();
      const Status status = writer()->PrepareFor(sizes, urgency);
      EXPECT_EQ(writer()->end(), end);
      if (!status.ok()) {
        EXPECT_STATUS(kResourceExhausted, status, "No space left");
        EXPECT_STATUS(kResourceExhausted, status, "in 20 records needs 2 more segments");
        ++refused;
        continue;
      }
      // Whoever else uses the disk meanwhile.
      env_->set_disk_bytes_max(env_->disk_bytes());
      for (size_t i = 0; i < sizes.size(); ++i) ASSERT_OK(Write(8000, urgency));
      CrashAndOpen(CrashKind::kProcess);
      ExpectAllThere();
    }
  }
  // There is one file for appends, and one more for the others.
  EXPECT_EQ(refused, 1);
}

TEST_F(LogWriterFullDiskTest, FilesThatAreTooFewForAChangeGoBackToTheDisk) {
  CreateOnFullDisk(kSegment);
  env_->set_disk_bytes_max(env_->disk_bytes() + 5 * kSegment);
  const uint64_t disk_bytes = env_->disk_bytes();
  const std::vector<RecordSize> sizes(100, SizeOf({.number = 1, .piece_bytes = {8000}}));
  const Status status = writer()->PrepareFor(sizes, Urgency::kAppend);
  EXPECT_STATUS(kResourceExhausted, status, "No space left");
  EXPECT_LE(env_->disk_bytes(), disk_bytes + kSegment);  // One spare file may have been missing.
  ASSERT_OK(Write(8000, Urgency::kAppend));
  CrashAndOpen(CrashKind::kPowerLoss);
  CrashAndOpen(CrashKind::kProcess);
  ASSERT_OK(writer()->PrepareFor(std::span(sizes).first(20), Urgency::kAppend));
}

// What a larger bound has left.
TEST_F(LogWriterFullDiskTest, FilesBeyondTheBoundGoBackToTheDisk) {
  constexpr uint64_t kReserveSegments = 16;  // Of 1 MiB.
  constexpr uint64_t kSpares = 3;            // For a ring of one segment.
  options_.log.ring_bytes = kSegment;
  options_.log.log_bytes_max = 64 * kSegment;
  CreateAndOpen();
  while (writer()->Stats().segments_live < 64) ASSERT_OK(Write(8000, Urgency::kAppend));
  const auto release = [&] {
    ASSERT_OK(writer()->SyncOnce());
    writer()->ReleaseBelow(writer()->end(), "");
    EXPECT_LE(writer()->Stats().segments_live, 2u);
  };
  release();
  EXPECT_GE(free_files(), 62u);
  options_.log.log_bytes_max = 4 * kSegment;
  CrashAndOpen(CrashKind::kProcess);
  release();
  EXPECT_EQ(writer()->Stats().segments_live + free_files(), 4 + kReserveSegments + kSpares);
  ASSERT_OK(Write(8000, Urgency::kAppend));
}

class LogWriterFullDiskConcurrentTest : public LogWriterFullDiskTest {};

TEST_F(LogWriterFullDiskConcurrentTest, ASpareFileIsMadeUnaskedWhenThereIsRoomAgain) {
  options_.log.background = true;
  maps_ = false;  // It reads maps as the system does, which a thread may write to.
  CreateOnFullDisk(kSegment);
  EXPECT_STATUS(kResourceExhausted, Fill(Urgency::kAppend), "No space left");
  ASSERT_OK(Write(4000, Urgency::kReserve));
  const RecordSize size = SizeOf({.number = 1, .piece_bytes = {0}});
  EXPECT_FALSE(writer()->HasRoom(size, Urgency::kAppend));
  env_->set_disk_bytes_max(UINT64_MAX);
  while (!writer()->HasRoom(size, Urgency::kAppend)) std::this_thread::yield();
  EXPECT_OK(Write(0, Urgency::kAppend));
}

}  // namespace
}  // namespace geardb::wal
