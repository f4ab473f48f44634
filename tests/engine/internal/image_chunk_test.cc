#include "engine/internal/image_chunk.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

constexpr ImageChunk kPages{7, ImageKind::kPages, 3};

ImageSource SourceOf(std::string bytes) {
  return [bytes](const ImageChunk&) -> Result<std::string> { return bytes; };
}

std::string Bytes(const ChunkWriter& writer) {
  std::string bytes;
  EXPECT_OK(writer.GiveTo([&](const ImageChunk& chunk, std::span<const std::byte> given) {
    EXPECT_EQ(chunk, kPages);
    bytes.assign(reinterpret_cast<const char*>(given.data()), given.size());
    return Status::Ok();
  }));
  return bytes;
}

std::string SomeChunk() {
  ChunkWriter writer(kPages, 1000);
  writer.Put(uint32_t{3});
  writer.PutArray<uint16_t>(3, [](size_t i) { return static_cast<uint16_t>(i * 256 + 1); });
  writer.PutArray<double>(2, [](size_t i) { return static_cast<double>(i) / 4; });
  return Bytes(writer);
}

TEST(ImageChunkTest, WhatIsWrittenIsReadAgain) {
  ASSERT_OK_AND_ASSIGN(auto reader, ChunkReader::Open(SourceOf(SomeChunk()), kPages, 1000));
  EXPECT_EQ(reader.Get<uint32_t>(), 3u);
  const auto small = reader.Array<uint16_t>(3);
  const auto large = reader.Array<double>(2);
  ASSERT_OK(reader.CheckEnd());
  ASSERT_EQ(small.size(), 3u);
  EXPECT_EQ(small[2], 513u);
  EXPECT_EQ(large[1], 0.25);
}

TEST(ImageChunkTest, BytesAreThoseOfTheFormat) {
  const std::string bytes = SomeChunk();
  ASSERT_EQ(bytes.size(), 24u + 4 + 6 + 16);
  const std::string header("\2\0\5\0\7\0\0\0\3\0\0\0\0\0\0\0\xE8\3\0\0\0\0\0\0", 24);
  EXPECT_EQ(bytes.substr(0, 24), header);
  EXPECT_EQ(bytes.substr(28, 6), std::string("\1\0\1\1\1\2", 6)) << "without gaps";
}

TEST(ImageChunkTest, BytesThatLackOrFollowAreNamed) {
  for (const size_t left : {size_t{24}, size_t{30}, SomeChunk().size() - 1}) {
    ASSERT_OK_AND_ASSIGN(auto reader,
                         ChunkReader::Open(SourceOf(SomeChunk().substr(0, left)), kPages, 1000));
    reader.Get<uint32_t>();
    reader.Array<uint16_t>(3);
    reader.Array<double>(2);
    EXPECT_STATUS(kCorruption, reader.CheckEnd(),
                  "chunk 3 of the pages of table 7 in the index image: its");
  }
  ASSERT_OK_AND_ASSIGN(auto reader, ChunkReader::Open(SourceOf(SomeChunk()), kPages, 1000));
  EXPECT_STATUS(kCorruption, reader.CheckEnd(), "26 bytes follow its end");
}

TEST(ImageChunkTest, CountsThatAreTooLargeTakeNothing) {
  ASSERT_OK_AND_ASSIGN(auto reader, ChunkReader::Open(SourceOf(SomeChunk()), kPages, 1000));
  EXPECT_EQ(reader.Array<uint64_t>(SIZE_MAX / 8 + 1).size(), 0u);
  EXPECT_EQ(reader.Get<uint8_t>(), 0u) << "nothing is read behind what is not there";
  EXPECT_EQ(reader.Bytes(UINT64_MAX, UINT64_MAX).size(), 0u);
  EXPECT_STATUS(kCorruption, reader.CheckEnd(), "end too early");
}

TEST(ImageChunkTest, AChunkOfAnotherPlaceOrImageIsNamed) {
  const auto open = [](const ImageChunk& chunk, Lsn lsn, const std::string& bytes) {
    return ChunkReader::Open(SourceOf(bytes), chunk, lsn).status();
  };
  const std::string bytes = SomeChunk();
  EXPECT_STATUS(kCorruption, open({8, ImageKind::kPages, 3}, 1000, bytes), "of table 7");
  EXPECT_STATUS(kCorruption, open({7, ImageKind::kItems, 3}, 1000, bytes), "the pages");
  EXPECT_STATUS(kCorruption, open({7, ImageKind::kPages, 4}, 1000, bytes), "chunk 3");
  EXPECT_STATUS(kCorruption, open(kPages, 1001, bytes), "of the image as of LSN 1000, not 1001");
  EXPECT_STATUS(kCorruption, open(kPages, 1000, bytes.substr(0, 23)), "it has 23 bytes");
  EXPECT_STATUS(kCorruption, open(kPages, 1000, ""), "it has 0 bytes");
  std::string other = bytes;
  for (const int version : {0, 3}) {
    other[0] = static_cast<char>(version);
    EXPECT_STATUS(kUnsupported, open(kPages, 1000, other),
                  "has version " + std::to_string(version));
  }
}

TEST(ImageChunkTest, ChunksOfTheFirstVersionAreLarger) {
  std::string first = SomeChunk();
  ASSERT_OK_AND_ASSIGN(const auto now, ChunkReader::Open(SourceOf(first), kPages, 1000));
  EXPECT_EQ(now.chunk_bytes(), kImageChunkBytes);
  first[0] = 1;
  ASSERT_OK_AND_ASSIGN(const auto then, ChunkReader::Open(SourceOf(first), kPages, 1000));
  EXPECT_EQ(then.chunk_bytes(), 1u << 20);
}

TEST(ImageChunkTest, AChunkThatIsMissingIsCorruptionAndOtherErrorsStay) {
  const auto fails = [](Status status) {
    return ChunkReader::Open([&](const ImageChunk&) -> Result<std::string> { return status; },
                             {9, ImageKind::kItems, uint64_t{2} << 32 | 5}, 1000)
        .status();
  };
  EXPECT_STATUS(kCorruption, fails(Status::NotFound("no such key")),
                "chunk 5 of the items of priority table 2 of table 9 in the index image: it is "
                "missing: no such key");
  EXPECT_STATUS(kIoError, fails(Status::IoError("read")), "read");
}

}  // namespace
}  // namespace geardb::engine
