#include "wal/record_codec.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/hash.h"
#include "tests/testing/fault_env.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kSeed = 42;

// A record of LSN 640 with two pieces of its own, one in a part, and a body of 13 bytes.
std::vector<std::byte> ExampleRecord() {
  const std::string body = "thirteen byte";
  const uint64_t own[2] = {100, 33};
  const RecordSize size = RecordSize::For(body.size(), own, 1);
  std::vector<std::byte> bytes(size.total());
  const uint64_t area = PieceAreaOffset(size.metadata_bytes);
  for (size_t i = area; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31);
  const std::span<const std::byte> all(bytes);
  PieceEntry entries[3] = {
      {.offset = 0, .bytes = 100, .checksum = Hash64(all.subspan(area, 100), kSeed)},
      {.lsn = 128, .offset = 64, .bytes = 9999, .checksum = 5},
      {.offset = 112, .bytes = 33, .checksum = Hash64(all.subspan(area + 112, 33), kSeed)}};
  const MetadataPrefix prefix{.piece_count = 3, .body_bytes = 13};
  std::memcpy(bytes.data() + 64, &prefix, sizeof(prefix));
  std::memcpy(bytes.data() + 72, entries, sizeof(entries));
  std::memcpy(bytes.data() + 72 + sizeof(entries), body.data(), body.size());
  FinishHeader(bytes.data(),
               RecordHeader{.lsn = 640,
                            .synced_lsn = 128,
                            .term = 1,
                            .open = 2,
                            .length = static_cast<uint32_t>(bytes.size()),
                            .metadata_length = size.metadata_bytes,
                            .type = static_cast<uint16_t>(RecordType::kData)},
               kSeed);
  return bytes;
}

// Bytes covered by the header's checksum, and the checksum itself.
size_t CheckedBytes(const std::vector<std::byte>& bytes) {
  RecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return sizeof(header) + header.metadata_length;
}

TEST(RecordCodecTest, ARecordComesBackWithBodyAndPieces) {
  const auto bytes = ExampleRecord();
  ParsedRecord record;
  ASSERT_TRUE(ParseRecord(bytes, 640, kSeed, &record));
  EXPECT_EQ(record.header.synced_lsn, 128u);
  EXPECT_EQ(record.header.epoch(), (Epoch{1, 2}));
  EXPECT_EQ(std::memcmp(record.body.data(), "thirteen byte", 13), 0);
  ASSERT_EQ(record.pieces.size(), 3u);
  EXPECT_EQ(PieceBytes(record, record.pieces[2]).size(), 33u);
  EXPECT_EQ(record.pieces[1].lsn, 128u);
  EXPECT_TRUE(PiecesGood(record, kSeed));
}

TEST(RecordCodecTest, EveryFlippedBitOfHeaderAndMetadataIsNoticed) {
  const auto bytes = ExampleRecord();
  ParsedRecord record;
  for (size_t bit = 0; bit < CheckedBytes(bytes) * 8; ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= std::byte{static_cast<unsigned char>(1 << bit % 8)};
    EXPECT_FALSE(ParseRecord(damaged, 640, kSeed, &record)) << "bit " << bit;
  }
}

TEST(RecordCodecTest, ADamagedPieceLeavesTheRecordReadable) {
  auto bytes = ExampleRecord();
  bytes[PieceAreaOffset(CheckedBytes(bytes) - 64) + 120] ^= std::byte{1};
  ParsedRecord record;
  ASSERT_TRUE(ParseRecord(bytes, 640, kSeed, &record));
  EXPECT_FALSE(PiecesGood(record, kSeed));
  // Padding belongs to no piece.
  bytes = ExampleRecord();
  bytes.back() ^= std::byte{1};
  ASSERT_TRUE(ParseRecord(bytes, 640, kSeed, &record));
  EXPECT_TRUE(PiecesGood(record, kSeed));
}

TEST(RecordCodecTest, AnotherPlaceAnotherDatabaseOrTooFewBytesIsNoRecord) {
  const auto bytes = ExampleRecord();
  ParsedRecord record;
  EXPECT_FALSE(ParseRecord(bytes, 704, kSeed, &record));
  EXPECT_FALSE(ParseRecord(bytes, 640, kSeed + 1, &record));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseRecord(std::span(bytes).first(size), 640, kSeed, &record));
  }
}

TEST(RecordCodecTest, ACheckedRecordWhosePartsDoNotFitIsRefused) {
  // As a broken or hostile writer would make it: the checksum is right.
  const auto bytes = ExampleRecord();
  ParsedRecord record;
  const auto with = [&](size_t offset, uint32_t value) {
    auto changed = bytes;
    std::memcpy(changed.data() + offset, &value, sizeof(value));
    RecordHeader header;
    std::memcpy(&header, changed.data(), sizeof(header));
    FinishHeader(changed.data(), header, kSeed);
    return ParseRecord(changed, 640, kSeed, &record);
  };
  EXPECT_TRUE(with(68, 13));
  EXPECT_FALSE(with(64, 4));           // More pieces than there is metadata.
  EXPECT_FALSE(with(64, UINT32_MAX));  // Their size wraps 32 bits.
  EXPECT_FALSE(with(68, 14));          // A longer body.
  EXPECT_FALSE(with(72 + 8, 4000));    // A piece outside.
  EXPECT_FALSE(with(72 + 12, UINT32_MAX));
  EXPECT_FALSE(with(56, 1));   // The last field of the header is zero.
  EXPECT_FALSE(with(32, 65));  // A length off the grid.
  EXPECT_FALSE(with(36, 4));   // Metadata too short for its prefix.
}

TEST(RecordCodecTest, PlainRecordsHaveABodyOrNothing) {
  std::vector<std::byte> bytes(kSegmentRecordBytes, std::byte{0xee});
  Uuid uuid;
  uuid.fill(std::byte{9});
  WritePlainRecord(bytes.data(), RecordHeader{.lsn = 65536, .length = kSegmentRecordBytes}, uuid,
                   kSeed);
  ParsedRecord record;
  ASSERT_TRUE(ParseRecord(bytes, 65536, kSeed, &record));
  EXPECT_EQ(std::memcmp(record.body.data(), uuid.data(), 16), 0);
  EXPECT_TRUE(record.pieces.empty());
  WritePlainRecord(bytes.data(), RecordHeader{.lsn = 64, .length = 64}, {}, kSeed);
  ASSERT_TRUE(ParseRecord(std::span(bytes).first(64), 64, kSeed, &record));
  EXPECT_TRUE(record.body.empty());
}

TEST(RecordCodecTest, RandomBytesAreNoRecords) {
  testing::Random random(7);
  std::vector<std::byte> bytes(4096);
  ParsedRecord record;
  for (int i = 0; i < 1000; ++i) {
    for (std::byte& b : bytes) b = static_cast<std::byte>(random.Next());
    const Lsn lsn = 640;
    std::memcpy(bytes.data() + 8, &lsn, sizeof(lsn));
    std::memset(bytes.data() + 56, 0, 8);
    EXPECT_FALSE(ParseRecord(bytes, lsn, kSeed, &record));
  }
}

}  // namespace
}  // namespace geardb::wal
