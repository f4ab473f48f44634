#include "wal/log_reader.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "tests/wal/log_fixture.h"
#include "wal/record_codec.h"

namespace geardb::wal {
namespace {

class LogReaderTest : public LogFixture {
 protected:
  // All records of the log that no writer has open.
  Result<std::vector<SeenRecord>> ReadAll(ReadOptions options = {}) {
    auto manifest = ReadManifest(env_.get(), "db");
    if (!manifest.ok()) return manifest.status();
    GEARDB_ASSIGN_OR_RETURN(auto reader, LogReader::Open(env_.get(), "db", *manifest, options));
    std::vector<SeenRecord> seen;
    types_.clear();
    while (true) {
      GEARDB_ASSIGN_OR_RETURN(const auto record, reader->Next());
      if (!record.has_value()) break;
      types_.push_back(record->type);
      seen.push_back(See(*record));
    }
    report_ = reader->report();
    return seen;
  }

  void Stop(testing::CrashKind kind = testing::CrashKind::kProcess) {
    env_->Die();
    seen_ = SeenLog();
    env_->Crash(kind);
  }

  // A record in `parts` parts of one piece each, and its final record with a piece of its own.
  std::vector<Reservation> AppendInParts(uint64_t number, size_t parts, bool finish) {
    std::vector<Reservation> reservations;
    std::vector<PieceSource> pieces;
    Lsn group = 0;
    for (size_t i = 0; i < parts; ++i) {
      const auto content = PieceContent(number, i, 5000);
      const std::span<const std::byte> runs[1] = {content};
      const PieceSource source[1] = {{.runs = runs}};
      const uint64_t bytes[1] = {content.size()};
      const RecordSize size = RecordSize::For(0, bytes);
      EXPECT_OK(writer()->WaitForRoom(size, Urgency::kAppend, Deadline::Infinite()));
      const Reservation r = writer()->Reserve({.type = RecordType::kPart,
                                               .size = size,
                                               .part = static_cast<uint32_t>(i),
                                               .group_lsn = group});
      group = r.group_lsn;
      writer()->Fill(r, {.body = {}, .pieces = source});
      writer()->Publish(r, nullptr);
      reservations.push_back(r);
      pieces.push_back(
          {.runs = {},
           .foreign = {.lsn = r.lsn, .offset = 0, .bytes = 5000, .checksum = Checksum(content)}});
    }
    EXPECT_EQ(group, reservations.front().lsn);
    if (finish) reservations.push_back(Finish(number, group, pieces));
    return reservations;
  }

  Reservation Finish(uint64_t number, Lsn group, std::vector<PieceSource> pieces) {
    const auto content = PieceContent(number, pieces.size(), 77);
    const std::span<const std::byte> runs[1] = {content};
    const uint64_t own[1] = {content.size()};
    const RecordSize size = RecordSize::For(sizeof(number), own, pieces.size());
    const auto part = static_cast<uint32_t>(pieces.size());
    pieces.push_back({.runs = runs});
    EXPECT_OK(writer()->WaitForRoom(size, Urgency::kAppend, Deadline::Infinite()));
    const Reservation r = writer()->Reserve(
        {.type = RecordType::kData, .size = size, .part = part, .group_lsn = group});
    writer()->Fill(r, {.body = std::as_bytes(std::span(&number, 1)), .pieces = pieces});
    writer()->Publish(r, nullptr);
    return r;
  }

  uint64_t Checksum(std::span<const std::byte> bytes) const {
    return Hash64(bytes, seen_.log.manifest.Seed());
  }

  ReadReport report_;
  std::vector<RecordType> types_;
};

TEST_F(LogReaderTest, ReadsSegmentsThenTheRing) {
  CreateAndOpen();
  Append(1, 3000);
  Append(2, 3000);
  const Lsn drained = writer()->end();
  ASSERT_OK(writer()->DrainOnce());
  Append(3, 100);
  const Lsn end = writer()->end();
  Stop();
  ASSERT_OK_AND_ASSIGN(const auto seen, ReadAll());
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_FALSE(seen[1].from_ring);
  EXPECT_TRUE(seen[2].from_ring);
  for (const SeenRecord& record : seen) EXPECT_TRUE(record.content_right);
  EXPECT_EQ(report_.segments_end_lsn, drained);
  EXPECT_EQ(report_.end_lsn, end);
  EXPECT_EQ(report_.ring_records, 1u);
  EXPECT_EQ(report_.records, 4u);
  ASSERT_OK_AND_ASSIGN(const auto without, ReadAll({.use_ring = false}));
  EXPECT_EQ(without.size(), 2u);
}

TEST_F(LogReaderTest, WritesNothing) {
  CreateAndOpen();
  Append(1, 3000);
  Stop();
  const uint64_t before = env_->operations();
  ASSERT_OK(ReadAll());
  EXPECT_EQ(env_->operations(), before);
}

// A block that came back from before an open, say: such a record was cut off, or is another one's.
TEST_F(LogReaderTest, BelowStartAnEpochThatFallsIsDamage) {
  CreateAndOpen();
  Append(1, 100);
  CrashAndOpen(testing::CrashKind::kProcess);
  Append(2, 100);
  const Reservation third = Append(3, 100);
  CrashAndOpen(testing::CrashKind::kProcess);
  const Epoch first_epoch{.term = 0, .open = 1};
  ASSERT_GT(seen_.log.manifest.epoch, first_epoch);
  ASSERT_GE(seen_.log.manifest.start, third.end);
  const uint64_t seed = seen_.log.manifest.Seed();
  Stop();
  ASSERT_OK_AND_ASSIGN(const auto whole, ReadAll());
  EXPECT_EQ(whole.size(), 3u);
  auto bytes = env_->Contents("db/log/segment-000001");
  RecordHeader header;
  std::memcpy(&header, bytes.data() + third.lsn, sizeof(header));
  ASSERT_EQ(header.lsn, third.lsn);
  header.open = first_epoch.open;
  FinishHeader(bytes.data() + third.lsn, header, seed);
  env_->Put("db/log/segment-000001", bytes);
  EXPECT_STATUS(kCorruption, ReadAll(), "damaged at LSN " + std::to_string(third.lsn));
}

TEST_F(LogReaderTest, AllTypesShowWhatTheEngineDoesNotSee) {
  CreateAndOpen();
  while (writer()->end() < options_.log.segment_bytes) Append(1, 7000);
  ASSERT_OK(writer()->Close());
  Stop();
  ASSERT_OK(ReadAll({.all_types = true}));
  EXPECT_EQ(types_.front(), RecordType::kSegment);
  EXPECT_EQ(types_.back(), RecordType::kSeal);
  EXPECT_EQ(std::count(types_.begin(), types_.end(), RecordType::kPad), 1);
  EXPECT_EQ(std::count(types_.begin(), types_.end(), RecordType::kSegment), 2);
  EXPECT_NE(report_.seal_lsn, kNoLsn);
}

TEST_F(LogReaderTest, MayBeginAtTheEndOfAnyRecord) {
  CreateAndOpen();
  Append(1, 3000);
  const Lsn from = Append(2, 3000).end;
  Append(3, 3000);
  Stop();
  ASSERT_OK_AND_ASSIGN(const auto seen, ReadAll({.from = from}));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].number, 3u);
  EXPECT_EQ(report_.segments_end_lsn, from);  // Nothing came from the segments.
}

TEST_F(LogReaderTest, ARecordInPartsComesOnceAndWhole) {
  CreateAndOpen();
  Append(1, 10);
  AppendInParts(2, 3, /*finish=*/true);
  Append(3, 10);
  Stop();
  ASSERT_OK_AND_ASSIGN(const auto seen, ReadAll());
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[1].number, 2u);
  EXPECT_EQ(seen[1].pieces, 4u);
  EXPECT_EQ(seen[1].bad_pieces, 0u);
  EXPECT_TRUE(seen[1].content_right);
  EXPECT_EQ(report_.void_groups, 0u);
}

TEST_F(LogReaderTest, PartsWithoutTheirFinalRecordAreVoid) {
  CreateAndOpen();
  AppendInParts(1, 2, /*finish=*/false);
  Append(2, 10);
  Stop();
  ASSERT_OK_AND_ASSIGN(const auto seen, ReadAll());
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].number, 2u);
  EXPECT_EQ(report_.void_groups, 1u);
}

// The memory of an open grew with each process that had ended in the middle of a call.
TEST_F(LogReaderTest, PartsOfAnEarlierOpenAreNotKept) {
  CreateAndOpen();
  const auto parts = AppendInParts(1, 2, /*finish=*/false);
  CrashAndOpen(testing::CrashKind::kProcess);
  AppendInParts(2, 1, /*finish=*/false);
  const auto content = PieceContent(1, 0, 5000);
  Finish(1, parts[0].lsn,
         {{.foreign = {
               .lsn = parts[0].lsn, .offset = 0, .bytes = 5000, .checksum = Checksum(content)}}});
  Stop();
  ASSERT_OK_AND_ASSIGN(const auto seen, ReadAll());
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].bad_pieces, 1u);
  EXPECT_EQ(report_.void_groups, 2u);
}

// The segment file of LSN 0.
constexpr const char* kFirstSegment = "db/log/segment-000001";

// They were held from there on, also those of calls that were given up: all the log, it may be.
TEST_F(LogReaderTest, BytesOfPartsAreReadWithTheRecordThatNamesThem) {
  CreateAndOpen();
  const auto reservations = AppendInParts(1, 3, /*finish=*/true);
  ASSERT_OK(writer()->DrainOnce());
  Stop();
  ASSERT_OK_AND_ASSIGN(const Manifest manifest, ReadManifest(env_.get(), "db"));
  ASSERT_OK_AND_ASSIGN(const auto reader, LogReader::Open(env_.get(), "db", manifest,
                                                          {.all_types = true, .use_ring = false}));
  while (true) {
    ASSERT_OK_AND_ASSIGN(const auto record, reader->Next());
    ASSERT_TRUE(record);
    if (record->lsn == reservations[2].lsn) break;
  }
  env_->FlipBit(kFirstSegment, reservations[1].end - 200, 1);
  ASSERT_OK_AND_ASSIGN(const auto record, reader->Next());
  ASSERT_EQ(record->pieces.size(), 4u);
  EXPECT_TRUE(record->pieces[0].good);
  EXPECT_FALSE(record->pieces[1].good);
  EXPECT_TRUE(record->pieces[2].good);
}

TEST_F(LogReaderTest, PartsBelowTheBeginningOfTheReadingAreMissingPieces) {
  CreateAndOpen();
  const auto reservations = AppendInParts(1, 2, /*finish=*/true);
  Stop();
  ASSERT_OK_AND_ASSIGN(const auto seen, ReadAll({.from = reservations[0].end}));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].bad_pieces, 1u);
  EXPECT_TRUE(seen[0].content_right);
}

TEST_F(LogReaderTest, ADamagedPieceBelowTheVouchedLsnCostsThatPieceOnly) {
  CreateAndOpen();
  Append(1, 3000);
  const Reservation damaged = Append(2, 3000);
  ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
  Append(3, 3000);  // Its header vouches for what was synced.
  ASSERT_OK(writer()->DrainOnce());
  env_->FlipBit(kFirstSegment, damaged.end - 200, 1);
  // The ring's copy would heal it: it is gone too.
  env_->Damage("db/log/ring", damaged.lsn, 64);
  Stop();
  ASSERT_OK_AND_ASSIGN(const auto seen, ReadAll());
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[1].bad_pieces, 1u);
  EXPECT_EQ(seen[2].bad_pieces, 0u);
  EXPECT_EQ(report_.damaged_pieces, 1u);
}

TEST_F(LogReaderTest, ADamagedPieceBelowStartIsFoundWithoutAnyVoucher) {
  CreateAndOpen();
  const Reservation damaged = Append(1, 3000);
  ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
  CrashAndOpen(testing::CrashKind::kProcess);
  env_->FlipBit(kFirstSegment, damaged.end - 200, 1);
  Stop();
  ASSERT_OK_AND_ASSIGN(const auto seen, ReadAll());
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].bad_pieces, 1u);
}

TEST_F(LogReaderTest, ATornUnsyncedTailIsTheEndOfTheLog) {
  CreateAndOpen();
  Append(1, 3000);
  ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
  const Reservation torn = Append(2, 3000);
  ASSERT_OK(writer()->DrainOnce());
  env_->FlipBit(kFirstSegment, torn.end - 200, 1);
  env_->Damage("db/log/ring", torn.lsn, 64);
  Stop();
  ASSERT_OK_AND_ASSIGN(const auto seen, ReadAll());
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_EQ(report_.end_lsn, torn.lsn);
}

TEST_F(LogReaderTest, ADamagedHeaderBelowTheVouchedLsnIsCorruptionWithItsPlace) {
  CreateAndOpen();
  Append(1, 3000);
  const Reservation damaged = Append(2, 3000);
  ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
  Append(3, 3000);
  ASSERT_OK(writer()->DrainOnce());
  env_->FlipBit(kFirstSegment, damaged.lsn + 20, 1);
  env_->Damage("db/log/ring", damaged.lsn, 64);
  Stop();
  const std::string lsn = std::to_string(damaged.lsn);
  EXPECT_STATUS(kCorruption, ReadAll(), "damaged at LSN " + lsn);
  EXPECT_STATUS(kCorruption, ReadAll(), "db/log/segment-000001 at offset " + lsn);
  ASSERT_OK_AND_ASSIGN(const auto seen, ReadAll({.allow_damaged_prefix = true}));
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_EQ(report_.end_lsn, damaged.lsn);
  EXPECT_STATUS(kCorruption, report_.damage, lsn);
}

TEST_F(LogReaderTest, TheRingHealsADamagedSegment) {
  CreateAndOpen();
  Append(1, 3000);
  const Reservation damaged = Append(2, 3000);
  ASSERT_OK(writer()->WaitSynced(writer()->end(), Deadline::Infinite()));
  Append(3, 3000);
  ASSERT_OK(writer()->DrainOnce());
  env_->FlipBit(kFirstSegment, damaged.lsn + 20, 1);
  Stop();
  ASSERT_OK_AND_ASSIGN(const auto seen, ReadAll());
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen[1].from_ring);
}

// Segments that were given back may lie there, or not, until something is written over them.
TEST_F(LogReaderTest, SegmentsThatWereGivenBackAreTheLogsNoMore) {
  CreateAndOpen();
  std::vector<Lsn> begins;
  for (uint64_t number = 0; begins.size() < 40; ++number)
    begins.push_back(Append(number, 7000).lsn);
  ASSERT_OK(writer()->DrainOnce());
  Stop();
  const uint64_t segment = options_.log.segment_bytes;
  const auto first_of = [&](Lsn from) {
    return static_cast<uint64_t>(std::lower_bound(begins.begin(), begins.end(), from) -
                                 begins.begin());
  };
  for (const Lsn released : {Lsn{0}, segment - 1, segment, 2 * segment + 100, 3 * segment}) {
    SCOPED_TRACE(released);
    ASSERT_OK_AND_ASSIGN(const auto seen, ReadAll({.from = kNoLsn, .released = released}));
    ASSERT_FALSE(seen.empty());
    EXPECT_EQ(seen.front().number, first_of(AlignDown(released, segment)));
    EXPECT_EQ(seen.back().number, 39u);
    EXPECT_EQ(report_.start_lsn, AlignDown(released, segment));
  }
}

TEST_F(LogReaderTest, AnUnknownTypeStopsAReaderUnlessItIsSafeToIgnore) {
  CreateAndOpen();
  const RecordSize size = RecordSize::For(8, {});
  const uint64_t number = 5;
  for (uint16_t flags : {kSafeToIgnore, uint16_t{0}}) {
    const Reservation r =
        writer()->Reserve({.type = static_cast<RecordType>(99), .size = size, .flags = flags});
    writer()->Fill(r, {.body = std::as_bytes(std::span(&number, 1)), .pieces = {}});
    writer()->Publish(r, nullptr);
    if (flags != 0) {
      Append(1, 10);
      auto copy = env_->CopyAfterCrash(testing::CrashKind::kProcess, 1);
      ASSERT_OK_AND_ASSIGN(const SeenLog seen, OpenAndSee(copy.get(), "db", options_));
      EXPECT_EQ(seen.records.size(), 1u);
    }
  }
  Stop();
  EXPECT_STATUS(kUnsupported, ReadAll(), "written by a newer GearDB: record of type 99 at LSN");
}

}  // namespace
}  // namespace geardb::wal
