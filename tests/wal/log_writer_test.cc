#include "wal/log_writer.h"

#include "tests/wal/log_fixture.h"

namespace geardb::wal {
namespace {

class LogWriterTest : public LogFixture {
 protected:
  static RecordSize Sized(uint64_t piece_bytes) {
    return SizeOf({.number = 1, .piece_bytes = {piece_bytes}});
  }
  /// Records to the very end of the segment that the next one falls into.
  void FillSegment(Urgency urgency = Urgency::kAppend) {
    const uint64_t segment = options_.log.segment_bytes;
    const Lsn target = AlignDown(writer()->end(), segment) + segment;
    const auto put = [&](uint64_t piece_bytes) {
      const TestRecord record{.number = 1, .piece_bytes = {piece_bytes}};
      ASSERT_OK(writer()->WaitForRoom(SizeOf(record), urgency, Deadline::Infinite()));
      const Reservation reservation = ReserveRecord(writer(), record);
      FillRecord(writer(), reservation, record);
      writer()->Publish(reservation, nullptr);
    };
    while (target - writer()->end() > 8000) put(4000);
    // Room for one seal is kept, unless the log has just got one.
    ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
    ASSERT_OK(writer()->SealOnce());
    uint64_t last = target - writer()->end();
    while (Sized(last).total() > target - writer()->end()) --last;
    put(last);
    ASSERT_EQ(writer()->end(), target);
  }
};

TEST_F(LogWriterTest, TheFirstRecordFollowsASegmentRecord) {
  CreateAndOpen();
  const Reservation first = Append(1, 1000);
  EXPECT_EQ(first.lsn, kSegmentRecordBytes);
  EXPECT_EQ(first.end, kSegmentRecordBytes + Sized(1000).total());
  EXPECT_EQ(writer()->published(), first.end);
  const Reservation second = Append(2, 10);
  EXPECT_EQ(second.lsn, first.end);
}

TEST_F(LogWriterTest, NoRecordCrossesASegment) {
  CreateAndOpen();
  const uint64_t segment = options_.log.segment_bytes;
  for (uint64_t i = 1; i < 60; ++i) {
    const Reservation r = Append(i, 3000 + i * 37);
    EXPECT_EQ(r.lsn / segment, (r.end - 1) / segment);
  }
  EXPECT_GT(writer()->end(), 2 * segment);
}

TEST_F(LogWriterTest, ARecordIsAtMostAQuarterOfTheRing) {
  CreateAndOpen();
  EXPECT_EQ(writer()->record_bytes_max(), options_.log.ring_bytes / 4);
  const RecordSize size = Sized(options_.log.ring_bytes / 4);
  EXPECT_FALSE(writer()->HasRoom(size, Urgency::kAppend));
  EXPECT_STATUS(kInvalidArgument,
                writer()->WaitForRoom(size, Urgency::kAppend, Deadline::Infinite()),
                "at most 8192");
  const std::vector<RecordSize> many(3, Sized(7000));
  EXPECT_STATUS(kInvalidArgument,
                writer()->WaitForRoom(many, Urgency::kAppend, Deadline::Infinite()),
                "at most 16384 can be reserved at once");
}

TEST_F(LogWriterTest, AFullRingNeedsADrain) {
  CreateAndOpen();
  ASSERT_OK(writer()->PrepareSpares());
  const RecordSize size = Sized(4000);
  uint64_t appended = 0;
  while (writer()->HasRoom(size, Urgency::kAppend)) Append(++appended, 4000);
  EXPECT_EQ(appended, (options_.log.ring_bytes - kSegmentRecordBytes) / size.total());
  EXPECT_EQ(writer()->drained(), 0u);
  EXPECT_OK(writer()->WaitForRoom(size, Urgency::kAppend, Deadline::Now()));
  EXPECT_TRUE(writer()->HasRoom(size, Urgency::kAppend));
  EXPECT_EQ(writer()->drained(), writer()->end());
}

TEST_F(LogWriterTest, RingBytesOfARecordNotWhollyDrainedAreKept) {
  CreateAndOpen();
  ASSERT_OK(writer()->PrepareSpares());
  // An unpublished record keeps all that follows out of the segments and in the ring.
  const TestRecord held{.number = 1, .piece_bytes = {4000}};
  const Reservation reservation = ReserveRecord(writer(), held);
  const RecordSize size = Sized(4000);
  uint64_t number = 1;
  while (writer()->HasRoom(size, Urgency::kAppend)) {
    const TestRecord record{.number = ++number, .piece_bytes = {4000}};
    const Reservation r = ReserveRecord(writer(), record);
    FillRecord(writer(), r, record);
    writer()->Publish(r, nullptr);
  }
  EXPECT_STATUS(kDeadlineExceeded,
                writer()->WaitForRoom(size, Urgency::kAppend, Deadline::AfterMs(1)),
                "never admitted");
  EXPECT_EQ(writer()->published(), 0u);
  FillRecord(writer(), reservation, held);
  writer()->Publish(reservation, nullptr);
  EXPECT_EQ(writer()->published(), writer()->end());
  EXPECT_OK(writer()->WaitForRoom(size, Urgency::kAppend, Deadline::Now()));
  CrashAndOpen(testing::CrashKind::kProcess);
  EXPECT_EQ(records().size(), number);
}

TEST_F(LogWriterTest, RingBytesOfARecordThatADrainStoppedInAreKept) {
  CreateAndOpen();
  uint64_t number = 0;
  uint64_t stopped_inside = 0;
  for (uint64_t round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    // The ring is filled, and drained up to a block's end: mostly within the last record.
    const uint64_t bytes = 4100 + 190 * round;
    Lsn last_begin = writer()->end();
    Lsn before_last = last_begin;  // Where the record before it ends: a pad may lie between them.
    ASSERT_OK(writer()->PrepareSpares());
    while (writer()->HasRoom(Sized(bytes), Urgency::kAppend)) {
      before_last = writer()->end();
      last_begin = Append(++number, bytes).lsn;
    }
    ASSERT_OK(writer()->DrainBlocksOnce());
    if (writer()->drained() == writer()->end()) continue;
    ASSERT_GT(writer()->drained(), last_begin);
    ++stopped_inside;
    const Lsn room_end = AlignDown(last_begin, kBlockBytes) + options_.log.ring_bytes;
    // Now everything that there is room for.
    ASSERT_OK(writer()->PrepareSpares());
    while (writer()->HasRoom(Sized(10), Urgency::kAppend)) {
      ASSERT_LE(Append(++number, 10).end, room_end) << "what is not in a segment was overwritten";
    }
    EXPECT_GE(writer()->end() + 2 * Sized(10).total() + kSegmentRecordBytes,
              AlignDown(before_last, kBlockBytes) + options_.log.ring_bytes);
    CrashAndOpen(testing::CrashKind::kProcess);
    ASSERT_EQ(records().size(), number);
    for (const SeenRecord& record : records()) ASSERT_TRUE(record.content_right);
    ASSERT_EQ(Numbers().back(), number);
  }
  EXPECT_GT(stopped_inside, 10u);
}

TEST_F(LogWriterTest, AWaitThatTimesOutSaysHowFarItsRecordIs) {
  CreateAndOpen();
  const TestRecord record{.number = 1, .piece_bytes = {100}};
  const Reservation held = ReserveRecord(writer(), record);
  EXPECT_STATUS(kDeadlineExceeded, writer()->WaitPublished(held.end, Deadline::AfterMs(1)),
                "admitted, not yet published");
  EXPECT_STATUS(kDeadlineExceeded, writer()->WaitSynced(held.end, Deadline::AfterMs(1)),
                "admitted, not yet published");
  FillRecord(writer(), held, record);
  writer()->Publish(held, nullptr);
  EXPECT_OK(writer()->WaitPublished(held.end, Deadline::Now()));
  EXPECT_OK(writer()->WaitSynced(held.end, Deadline::Infinite()));
  EXPECT_EQ(writer()->synced(), held.end);
}

TEST_F(LogWriterTest, AtTheBoundItNamesWhatPinsTheOldestSegment) {
  options_.log.log_bytes_max = 3 * options_.log.segment_bytes;
  CreateAndOpen();
  const RecordSize size = Sized(4000);
  Status status;
  uint64_t number = 0;
  while (true) {
    status = writer()->WaitForRoom(size, Urgency::kAppend, Deadline::Infinite());
    if (!status.ok()) break;
    Append(++number, 4000);
  }
  EXPECT_STATUS(kResourceExhausted, status, "log_bytes_max = 196608");
  EXPECT_STATUS(kResourceExhausted, status, "the oldest begins at LSN 0 and is pinned: nothing");
  EXPECT_EQ(writer()->Stats().segments_live, 3u);
  // Removals go on.
  EXPECT_OK(writer()->WaitForRoom(size, Urgency::kReserve, Deadline::Infinite()));
  // So do appends, once something was released.
  ASSERT_OK(writer()->SyncOnce());
  writer()->ReleaseBelow(options_.log.segment_bytes, "table 'x' needs the rest");
  EXPECT_OK(writer()->WaitForRoom(size, Urgency::kAppend, Deadline::Infinite()));
  EXPECT_TRUE(writer()->HasRoom(size, Urgency::kAppend));
}

TEST_F(LogWriterTest, TheReserveBeyondTheBoundIsFiniteAndNotForAppends) {
  options_.log.log_bytes_max = 3 * options_.log.segment_bytes;
  CreateAndOpen();
  const auto fill = [&](Urgency urgency) {
    const TestRecord record{.number = 1, .piece_bytes = {4000}};
    while (true) {
      const Status status = writer()->WaitForRoom(SizeOf(record), urgency, Deadline::Infinite());
      if (!status.ok()) return status;
      const Reservation reservation = ReserveRecord(writer(), record);
      FillRecord(writer(), reservation, record);
      writer()->Publish(reservation, nullptr);
    }
  };
  EXPECT_STATUS(kResourceExhausted, fill(Urgency::kAppend), "196608 bytes used");
  EXPECT_EQ(writer()->Stats().segments_live, 3u);
  // The larger of 1 MiB and a sixteenth: 16 segments.
  EXPECT_STATUS(kResourceExhausted, fill(Urgency::kReserve),
                "log_bytes_max = 196608 and used up its reserve of 1048576 bytes beyond it: "
                "1245184 bytes used");
  EXPECT_EQ(writer()->Stats().segments_live, 19u);
  EXPECT_FALSE(writer()->HasRoom(Sized(10), Urgency::kAppend)) << "what the reserve has left";
  EXPECT_TRUE(writer()->HasRoom(Sized(10), Urgency::kReserve));
}

TEST_F(LogWriterTest, WhatHadRoomBeforeASealHasRoomAfterIt) {
  options_.log.log_bytes_max = options_.log.segment_bytes;
  CreateAndOpen();
  const RecordSize size = Sized(4000);
  const uint64_t left = size.total() + kSealRecordBytes;
  while (options_.log.segment_bytes - writer()->end() > 3 * left) Append(1, 4000);
  // One that leaves exactly the record and a seal.
  const uint64_t last_bytes = options_.log.segment_bytes - writer()->end() - left;
  uint64_t piece = 1;
  while (Sized(piece).total() < last_bytes) ++piece;
  ASSERT_EQ(Sized(piece).total(), last_bytes);
  Append(2, piece);
  ASSERT_OK(writer()->DrainOnce());
  ASSERT_OK(writer()->SyncOnce());
  ASSERT_TRUE(writer()->HasRoom(size, Urgency::kAppend));
  ASSERT_OK(writer()->SealOnce());
  ASSERT_EQ(writer()->Stats().seals, 1u);
  EXPECT_TRUE(writer()->HasRoom(size, Urgency::kAppend));
  Append(3, 4000);
  EXPECT_EQ(writer()->end(), options_.log.segment_bytes);
}

// Whenever all is synced the log may be sealed: several records have room together only if a seal
// before each of them has it, too.
TEST_F(LogWriterTest, WhatHadRoomHasItWithASealBeforeEachRecord) {
  options_.log.log_bytes_max = options_.log.segment_bytes;
  for (uint64_t count = 1; count <= 3; ++count) {
    const std::vector<RecordSize> sizes(count, Sized(1000));
    for (uint64_t seals = 0; seals <= count; ++seals) {
      SCOPED_TRACE(std::to_string(count) + " records and " + std::to_string(seals) + " seals");
      seen_ = SeenLog();
      env_ = std::make_unique<testing::FaultEnv>(1);
      CreateAndOpen();
      // Exactly so much is left of the only segment.
      const uint64_t left = count * Sized(1000).total() + seals * kSealRecordBytes;
      const Lsn target = options_.log.segment_bytes - left;
      while (target - writer()->end() > 8000) Append(1, 4000);
      uint64_t piece = 1;
      while (Sized(piece).total() < target - writer()->end()) ++piece;
      ASSERT_EQ(Append(2, piece).end, target);
      const bool room = writer()->HasRoom(sizes, Urgency::kAppend);
      EXPECT_EQ(writer()->PrepareFor(sizes, Urgency::kAppend).ok(), room);
      EXPECT_TRUE(room || seals < count);
      for (uint64_t i = 0; room && i < count; ++i) {
        ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
        ASSERT_OK(writer()->SealOnce());
        ASSERT_EQ(writer()->Stats().seals, i + 1);
        ASSERT_TRUE(writer()->HasRoom(std::span(sizes).subspan(i), Urgency::kAppend));
        Append(3 + i, 1000);
      }
    }
  }
}

TEST_F(LogWriterTest, UnsyncedSegmentsAreNotReleased) {
  CreateAndOpen();
  while (writer()->end() < 2 * options_.log.segment_bytes) Append(1, 4000);
  ASSERT_OK(writer()->DrainOnce());
  writer()->ReleaseBelow(writer()->end(), "");
  EXPECT_EQ(writer()->Stats().segments_live, 3u);
  ASSERT_OK(writer()->SyncOnce());
  writer()->ReleaseBelow(writer()->end(), "");
  EXPECT_EQ(writer()->Stats().segments_live, 1u);
}

TEST_F(LogWriterTest, AFullDiskRefusesAppendsAndRecoversByItself) {
  CreateAndOpen();
  ASSERT_OK(writer()->PrepareSpares());
  env_->set_disk_bytes_max(env_->disk_bytes());
  const RecordSize size = Sized(4000);
  Status status;
  uint64_t number = 0;
  while (true) {
    status = writer()->WaitForRoom(size, Urgency::kAppend, Deadline::Infinite());
    if (!status.ok()) break;
    Append(++number, 4000);
  }
  EXPECT_STATUS(kResourceExhausted, status, "No space left");
  // A removal still finds its place, and the store opens again on the full disk.
  EXPECT_OK(writer()->WaitForRoom(size, Urgency::kReserve, Deadline::Infinite()));
  const TestRecord removal{.number = ++number, .piece_bytes = {4000}};
  ASSERT_TRUE(writer()->HasRoom(SizeOf(removal), Urgency::kReserve));
  const Reservation reservation = ReserveRecord(writer(), removal);
  FillRecord(writer(), reservation, removal);
  writer()->Publish(reservation, nullptr);
  CrashAndOpen(testing::CrashKind::kProcess);
  EXPECT_EQ(records().size(), number);
  env_->set_disk_bytes_max(UINT64_MAX);
  EXPECT_OK(writer()->WaitForRoom(size, Urgency::kAppend, Deadline::Infinite()));
}

TEST_F(LogWriterTest, AfterAFailedSyncEveryCallReturnsThatError) {
  CreateAndOpen();
  const Reservation reservation = Append(1, 100);
  env_->FailSyncAfter(1);
  EXPECT_STATUS(kIoError, writer()->WaitSynced(reservation.end, Deadline::Infinite()),
                "fdatasync db/log/segment");
  env_->ClearFailures();
  const RecordSize size = Sized(10);
  EXPECT_FALSE(writer()->HasRoom(size, Urgency::kReserve));
  EXPECT_STATUS(kIoError, writer()->WaitForRoom(size, Urgency::kAppend, Deadline::Infinite()),
                "fdatasync db/log/segment");
  EXPECT_STATUS(kIoError, writer()->WaitPublished(reservation.end, Deadline::Infinite()),
                "read-only");
  EXPECT_STATUS(kIoError, writer()->WaitSynced(reservation.end, Deadline::Infinite()), "fdatasync");
  EXPECT_STATUS(kIoError, writer()->DrainOnce(), "fdatasync");
  EXPECT_STATUS(kIoError, writer()->failure(), "fdatasync");
  EXPECT_STATUS(kIoError, writer()->Close(), "fdatasync");
}

TEST_F(LogWriterTest, ASealIsWrittenOnceWhenEverythingIsSynced) {
  CreateAndOpen();
  ASSERT_OK(writer()->SealOnce());
  EXPECT_EQ(writer()->end(), 0u);  // Nothing to seal.
  const Reservation reservation = Append(1, 100);
  ASSERT_OK(writer()->SealOnce());
  EXPECT_EQ(writer()->end(), reservation.end);  // Not synced.
  ASSERT_OK(writer()->WaitSynced(reservation.end, Deadline::Infinite()));
  ASSERT_OK(writer()->SealOnce());
  EXPECT_EQ(writer()->end(), reservation.end + kSealRecordBytes);
  EXPECT_EQ(writer()->synced(), writer()->end());
  ASSERT_OK(writer()->SealOnce());
  EXPECT_EQ(writer()->end(), reservation.end + kSealRecordBytes);
  EXPECT_EQ(writer()->Stats().seals, 1u);
}

TEST_F(LogWriterTest, ASealBetweenHasRoomAndReserveTakesNothingAway) {
  CreateAndOpen();
  // Fill the segment so that a record fits exactly, then seal: it must go on with a new segment.
  const uint64_t segment = options_.log.segment_bytes;
  Append(1, 4000);
  while (segment - writer()->end() > 8192) Append(2, 4000);
  uint64_t left = segment - writer()->end();
  uint64_t piece = left;
  while (Sized(piece).total() > left) --piece;
  if (Sized(piece).total() > writer()->record_bytes_max()) {
    Append(3, 1000);
    left = segment - writer()->end();
    piece = left;
    while (Sized(piece).total() > left) --piece;
  }
  ASSERT_EQ(Sized(piece).total(), left);
  ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
  ASSERT_OK(writer()->WaitForRoom(Sized(piece), Urgency::kAppend, Deadline::Infinite()));
  ASSERT_TRUE(writer()->HasRoom(Sized(piece), Urgency::kAppend));
  ASSERT_OK(writer()->SealOnce());
  const TestRecord record{.number = 9, .piece_bytes = {piece}};
  const Reservation reservation = ReserveRecord(writer(), record);
  EXPECT_EQ(reservation.lsn, segment + kSegmentRecordBytes);
  FillRecord(writer(), reservation, record);
  writer()->Publish(reservation, nullptr);
  CrashAndOpen(testing::CrashKind::kProcess);
  EXPECT_EQ(Numbers().back(), 9u);
}

TEST_F(LogWriterTest, CloseSealsAndEndsTheWriter) {
  CreateAndOpen();
  Append(1, 100);
  ASSERT_OK(writer()->Close());
  EXPECT_EQ(writer()->synced(), writer()->end());
  EXPECT_STATUS(kCancelled,
                writer()->WaitForRoom(Sized(10), Urgency::kAppend, Deadline::Infinite()), "closed");
  EXPECT_OK(writer()->Close());
  CrashAndOpen(testing::CrashKind::kPowerLoss);
  EXPECT_EQ(Numbers(), std::vector<uint64_t>{1});
  EXPECT_EQ(report().note, "");
  EXPECT_EQ(report().cut_lsn, kNoLsn);
}

TEST_F(LogWriterTest, OnlyCloseSealsALogThatEndsWhereASegmentEnds) {
  CreateAndOpen();
  const uint64_t segment = options_.log.segment_bytes;
  FillSegment();
  ASSERT_OK(writer()->WaitSynced(segment, Deadline::Infinite()));
  ASSERT_OK(writer()->SealOnce());
  EXPECT_EQ(writer()->end(), segment);
  ASSERT_OK(writer()->Close());
  EXPECT_EQ(writer()->end(), segment + kSegmentRecordBytes + kSealRecordBytes);
  EXPECT_EQ(writer()->synced(), writer()->end());
  CrashAndOpen(testing::CrashKind::kPowerLoss);
  EXPECT_EQ(report().read.seal_lsn, segment + kSegmentRecordBytes);
  EXPECT_EQ(report().note, "");
  // What comes next goes on behind it.
  EXPECT_EQ(Append(99, 100).lsn, segment + kSegmentRecordBytes + kSealRecordBytes);
  ASSERT_OK(writer()->Close());
  CrashAndOpen(testing::CrashKind::kPowerLoss);
  EXPECT_EQ(Numbers().back(), 99u);
}

TEST_F(LogWriterTest, WithoutASpareFileSuchALogIsClosedUnsealed) {
  options_.log.log_bytes_max = options_.log.segment_bytes;
  CreateAndOpen();
  const uint64_t segment = options_.log.segment_bytes;
  // The bound's segment, and all of the reserve's: 1 MiB.
  const uint64_t segments = 1 + (uint64_t{1} << 20) / segment;
  for (uint64_t i = 0; i < segments; ++i) FillSegment(Urgency::kReserve);
  ASSERT_EQ(writer()->end(), segments * segment);
  ASSERT_OK(writer()->Close());
  EXPECT_EQ(writer()->end(), segments * segment);
  EXPECT_EQ(writer()->synced(), segments * segment);
}

TEST_F(LogWriterTest, CloseRefusesUnpublishedRecords) {
  CreateAndOpen();
  (void)ReserveRecord(writer(), {.number = 1, .piece_bytes = {10}});
  EXPECT_STATUS(kFailedPrecondition, writer()->Close(), "unpublished records");
}

TEST_F(LogWriterTest, StatsNameTheWaysTaken) {
  CreateAndOpen();
  Append(1, 100);
  ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
  const LogStats stats = writer()->Stats();
  EXPECT_EQ(stats.records, 2u);
  EXPECT_EQ(stats.bytes, writer()->end());
  EXPECT_EQ(stats.fsyncs, 1u);
  EXPECT_EQ(stats.drain_writes, 1u);
  EXPECT_EQ(stats.drain_bytes, 4096u);
  EXPECT_EQ(stats.write_path, "direct");
  EXPECT_EQ(stats.ring_path, "mapped");
}

class CountingCallback final : public PublishCallback {
 public:
  void OnPublished(Lsn lsn, Lsn end) override {
    EXPECT_LT(lsn, end);
    ++calls;
  }
  int calls = 0;
};

TEST_F(LogWriterTest, CallbacksComeInLsnOrderFromWhoeverCompletesTheHead) {
  CreateAndOpen();
  CountingCallback callback;
  std::vector<Reservation> reservations;
  const TestRecord record{.number = 1, .piece_bytes = {100}};
  for (int i = 0; i < 3; ++i) reservations.push_back(ReserveRecord(writer(), record));
  for (int i : {2, 1}) {
    FillRecord(writer(), reservations[static_cast<size_t>(i)], record);
    writer()->Publish(reservations[static_cast<size_t>(i)], &callback);
  }
  EXPECT_EQ(callback.calls, 0);
  FillRecord(writer(), reservations[0], record);
  writer()->Publish(reservations[0], &callback);
  EXPECT_EQ(callback.calls, 3);
  EXPECT_EQ(writer()->published(), reservations[2].end);
}

}  // namespace
}  // namespace geardb::wal
