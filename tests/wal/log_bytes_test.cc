// Single records and pieces of a log, by their LSN.
#include "wal/log_bytes.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/hash.h"
#include "tests/wal/log_fixture.h"

namespace geardb::wal {
namespace {

class LogBytesTest : public LogFixture {
 protected:
  void SetUp() override {
    CreateAndOpen();
    OpenBytes();
  }
  void OpenBytes() {
    bytes_ = std::make_unique<LogBytes>(std::shared_ptr<Env>(std::shared_ptr<Env>(), env_.get()),
                                        "db", seen_.log.manifest, /*direct=*/true);
  }
  void ExpectPiece(const RecordIndex::Piece& piece, uint64_t number, size_t index) {
    const auto expected = PieceContent(number, index, piece.bytes);
    const auto read = bytes_->ReadPiece(piece, &scratch_);
    ASSERT_OK(read);
    EXPECT_TRUE(std::equal(read->begin(), read->end(), expected.begin(), expected.end()));
    RecordIndex::Piece other = piece;
    ++other.checksum;
    EXPECT_STATUS(kCorruption, bytes_->ReadPiece(other, &scratch_), "does not fit its checksum");
  }

  std::unique_ptr<LogBytes> bytes_;
  AlignedBuffer scratch_;
};

TEST_F(LogBytesTest, EveryPieceIsFoundByItsRecord) {
  std::vector<std::pair<Reservation, TestRecord>> records;
  for (uint64_t number = 1; number < 60; ++number) {
    TestRecord record{.number = number, .piece_bytes = {}};
    for (uint64_t i = 0; i < number % 5; ++i) record.piece_bytes.push_back(1 + number * 29 + i);
    if (number % 17 == 0) record.piece_bytes.assign(120, 9);  // An index beyond the first block.
    ASSERT_OK_AND_ASSIGN(const Reservation at, AppendRecord(writer(), record));
    records.emplace_back(at, record);
  }
  ASSERT_OK(writer()->DrainOnce());
  for (const auto& [at, record] : records) {
    ASSERT_OK_AND_ASSIGN(const RecordIndex index, bytes_->ReadIndex(at.lsn, &scratch_));
    ASSERT_EQ(index.pieces.size(), record.piece_bytes.size());
    uint64_t number = 0;
    ASSERT_EQ(index.body_bytes, sizeof(number));
    std::memcpy(&number, index.body().data(), sizeof(number));
    EXPECT_EQ(number, record.number);
    for (size_t i = 0; i < index.pieces.size(); ++i) ExpectPiece(index.pieces[i], number, i);
  }
}

TEST_F(LogBytesTest, PiecesInPartsAreFoundByTheRecordThatNamesThem) {
  const auto content = PieceContent(7, 0, 500);
  const std::span<const std::byte> run = content;
  PiecePlace place;
  const PieceSource piece{.runs = {&run, 1}, .place = &place};
  const RecordSize part_size = RecordSize::For(0, std::vector<uint64_t>{500});
  const Reservation part = writer()->Reserve({.type = RecordType::kPart, .size = part_size});
  writer()->Fill(part, {.body = {}, .pieces = {&piece, 1}});
  writer()->Publish(part, nullptr);
  const PieceSource named{
      .foreign = {.lsn = part.lsn, .offset = 0, .bytes = 500, .checksum = place.checksum}};
  const RecordSize size = RecordSize::For(0, {}, 1);
  const Reservation record =
      writer()->Reserve({.size = size, .part = 1, .group_lsn = part.group_lsn});
  writer()->Fill(record, {.body = {}, .pieces = {&named, 1}});
  writer()->Publish(record, nullptr);
  ASSERT_OK(writer()->DrainOnce());
  ASSERT_OK_AND_ASSIGN(const RecordIndex index, bytes_->ReadIndex(record.lsn, &scratch_));
  ASSERT_EQ(index.pieces.size(), 1u);
  EXPECT_EQ(index.pieces[0].record, part.lsn);
  ExpectPiece(index.pieces[0], 7, 0);
}

// A pass gives back segments between the parts of a call: what lies in the later ones was lost.
TEST_F(LogBytesTest, APartThatIsGoneCostsItsOwnPiecesAlone) {
  const std::vector<uint64_t> bytes = {500};
  std::vector<PieceSource> named;
  Reservation first;
  for (uint64_t i = 0; i < 2; ++i) {
    const auto content = PieceContent(7, i, bytes[0]);
    const std::span<const std::byte> run = content;
    PiecePlace place;
    const PieceSource piece{.runs = {&run, 1}, .place = &place};
    const Reservation part = writer()->Reserve({.type = RecordType::kPart,
                                                .size = RecordSize::For(0, bytes),
                                                .part = static_cast<uint32_t>(i),
                                                .group_lsn = i == 0 ? 0 : first.group_lsn});
    if (i == 0) first = part;
    writer()->Fill(part, {.body = {}, .pieces = {&piece, 1}});
    writer()->Publish(part, nullptr);
    named.push_back(
        {.foreign = {.lsn = part.lsn, .offset = 0, .bytes = 500, .checksum = place.checksum}});
    if (i > 0) continue;
    const Lsn segment_end = seen_.log.manifest.segment_bytes;
    for (uint64_t number = 9; writer()->end() < segment_end; ++number) Append(number, 6000);
    ASSERT_OK(writer()->DrainOnce());
    ASSERT_OK(writer()->PrepareSpares());
  }
  const Reservation record = writer()->Reserve(
      {.size = RecordSize::For(0, {}, 2), .part = 2, .group_lsn = first.group_lsn});
  writer()->Fill(record, {.body = {}, .pieces = named});
  writer()->Publish(record, nullptr);
  ASSERT_OK(writer()->DrainOnce());
  bytes_->ForgetBelow(seen_.log.manifest.segment_bytes);
  ASSERT_OK_AND_ASSIGN(const RecordIndex index, bytes_->ReadIndex(record.lsn, &scratch_));
  ASSERT_EQ(index.pieces.size(), 2u);
  EXPECT_STATUS(kCorruption, bytes_->ReadPiece(index.pieces[0], &scratch_), "is gone");
  ExpectPiece(index.pieces[1], 7, 1);
}

TEST_F(LogBytesTest, WhatIsNoRecordIsNamed) {
  const Reservation at = Append(1, 100);
  ASSERT_OK(writer()->DrainOnce());
  EXPECT_STATUS(kCorruption, bytes_->ReadIndex(at.lsn + 64, &scratch_),
                "no good record at LSN " + std::to_string(at.lsn + 64));
  const Lsn far = seen_.log.manifest.segment_bytes * 20;
  EXPECT_STATUS(kCorruption, bytes_->ReadIndex(far, &scratch_),
                "the segment at LSN " + std::to_string(far));
  EXPECT_STATUS(kCorruption, bytes_->Read(64, seen_.log.manifest.segment_bytes, &scratch_),
                "cross a segment");
}

TEST_F(LogBytesTest, SegmentsComeAndGo) {
  std::vector<Reservation> records;
  for (uint64_t number = 1; number < 40; ++number) {
    records.push_back(Append(number, 6000));
    ASSERT_OK(writer()->DrainOnce());
    ASSERT_OK(writer()->PrepareSpares());
    ASSERT_OK_AND_ASSIGN(const RecordIndex index, bytes_->ReadIndex(records.back().lsn, &scratch_));
    ExpectPiece(index.pieces[0], number, 0);
  }
  ASSERT_GT(records.back().lsn, 3 * seen_.log.manifest.segment_bytes);
  ASSERT_OK(writer()->SyncOnce());
  const Lsn start = 2 * seen_.log.manifest.segment_bytes;
  bytes_->ForgetBelow(start);
  writer()->ReleaseBelow(start, "a test");
  // Without a look at all files: those that are free may say still that they have it.
  EXPECT_STATUS(kCorruption, bytes_->ReadIndex(records[0].lsn, &scratch_), "is gone");
  ASSERT_OK_AND_ASSIGN(const RecordIndex index, bytes_->ReadIndex(records.back().lsn, &scratch_));
  ExpectPiece(index.pieces[0], records.size(), 0);
  // After a reopen, by the new manifest.
  options_.from = start;
  CrashAndOpen(testing::CrashKind::kProcess);
  OpenBytes();
  const Reservation next = Append(77, 50);
  ASSERT_OK(writer()->DrainOnce());
  ASSERT_OK_AND_ASSIGN(const RecordIndex last, bytes_->ReadIndex(next.lsn, &scratch_));
  ExpectPiece(last.pieces[0], 77, 0);
}

class LogBytesInOrderTest : public LogBytesTest {
 protected:
  /// So many records with a piece each, drained; where their pieces are.
  void Write(uint64_t count, uint64_t piece_bytes) {
    const size_t before = pieces_.size();
    std::vector<Lsn> records;
    for (uint64_t i = 0; i < count; ++i) records.push_back(Append(before + i, piece_bytes).lsn);
    ASSERT_OK(writer()->DrainOnce());
    for (const Lsn lsn : records) {
      ASSERT_OK_AND_ASSIGN(const RecordIndex index, bytes_->ReadIndex(lsn, &scratch_));
      pieces_.push_back(index.pieces.at(0));
    }
  }
  /// Reads pieces [first, end) in order, and says how many reads of files it took.
  uint64_t ReadsOf(size_t first, size_t end, size_t step = 1) {
    const uint64_t before = bytes_->file_reads();
    for (size_t i = first; i < end; i += step) {
      const auto expected = PieceContent(i, 0, pieces_[i].bytes);
      const auto read = bytes_->ReadPiece(pieces_[i], &scratch_, /*in_order=*/true);
      EXPECT_OK(read);
      if (!read.ok()) break;
      EXPECT_TRUE(std::equal(read->begin(), read->end(), expected.begin(), expected.end()));
    }
    return bytes_->file_reads() - before;
  }

  std::vector<RecordIndex::Piece> pieces_;
};

TEST_F(LogBytesInOrderTest, ShortPiecesShareReadsOfTheFile) {
  Write(100, 100);
  bytes_->NoteDrained(writer()->drained());
  EXPECT_LE(ReadsOf(0, 100), 2u);
}

TEST_F(LogBytesInOrderTest, WhatIsDrainedLaterIsReadAgain) {
  Write(10, 100);
  bytes_->NoteDrained(writer()->drained());
  EXPECT_LE(ReadsOf(0, 10), 2u);
  Write(10, 100);  // In the same block of the file.
  EXPECT_GE(ReadsOf(0, 20), 1u);
  bytes_->NoteDrained(writer()->drained());
  EXPECT_LE(ReadsOf(0, 20), 2u);
}

TEST_F(LogBytesInOrderTest, PiecesFarFromOneAnotherAreReadAlone) {
  Write(8, 7000);
  bytes_->NoteDrained(writer()->drained());
  EXPECT_EQ(ReadsOf(4, 8, 4) + ReadsOf(0, 1), 2u);
}

TEST_F(LogBytesInOrderTest, ABlockGoesWithItsSegment) {
  const Lsn segment_end = seen_.log.manifest.segment_bytes;
  while (writer()->end() < segment_end + 2000) {
    Write(1, 3000);
    ASSERT_OK(writer()->PrepareSpares());
  }
  bytes_->NoteDrained(writer()->drained());
  EXPECT_LE(ReadsOf(0, 10), 2u);
  bytes_->ForgetBelow(segment_end);
  EXPECT_STATUS(kCorruption, bytes_->ReadPiece(pieces_[9], &scratch_, true), "is gone");
  EXPECT_GE(ReadsOf(pieces_.size() - 1, pieces_.size()), 1u);
}

}  // namespace
}  // namespace geardb::wal
