// concurrent: engine/internal/image_read_ahead.h
#include "engine/internal/image_read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

constexpr uint32_t kReaders = 3;

std::vector<ImageChunk> SomeChunks() {
  std::vector<ImageChunk> chunks = {{0, ImageKind::kDatabase, 0}};
  for (TableId table = 1; table <= 2; ++table) {
    chunks.push_back({table, ImageKind::kTable, 0});
    for (const ImageKind kind : {ImageKind::kTrajectories, ImageKind::kPages}) {
      for (uint64_t number = 0; number < 20; ++number) chunks.push_back({table, kind, number});
    }
  }
  return chunks;
}

Result<std::string> BytesOf(const ImageChunk& chunk) {
  if (chunk.number % 7 == 6) return Status::Corruption(NameOf(chunk), " is damaged");
  return NameOf(chunk);
}

void ExpectSame(const Result<std::string>& found, const ImageChunk& chunk) {
  const Result<std::string> expected = BytesOf(chunk);
  ASSERT_EQ(found.ok(), expected.ok()) << NameOf(chunk);
  if (found.ok()) {
    EXPECT_EQ(*found, *expected);
  } else {
    EXPECT_STATUS(kCorruption, found, NameOf(chunk));
  }
}

TEST(ImageReadAheadConcurrentTest, SaysWhatTheSourceSaysInAnyOrder) {
  const std::vector<ImageChunk> chunks = SomeChunks();
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    testing::Random random(seed);
    ImageReadAhead ahead(chunks, BytesOf, kReaders);
    size_t at = 0;
    for (int reads = 0; reads < 60; ++reads) {
      ExpectSame(ahead.Read(chunks[at]), chunks[at]);
      at = random.Below(4) == 0 ? random.Below(chunks.size()) : (at + 1) % chunks.size();
      // One that the image does not have, before, between or behind the others.
      if (random.Below(10) == 0) {
        const ImageChunk other = {static_cast<TableId>(random.Below(4)), ImageKind::kItems, 3};
        ExpectSame(ahead.Read(other), other);
      }
    }
  }
}

TEST(ImageReadAheadConcurrentTest, ReadsEachOnceAndNoFurtherAheadThanItsThreads) {
  const std::vector<ImageChunk> chunks = SomeChunks();
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> asked{0};
  std::atomic<uint64_t> too_many{0};
  {
    ImageReadAhead ahead(
        chunks,
        [&](const ImageChunk& chunk) {
          // What was read and not asked for, this one among it.
          const uint64_t now = ++calls;
          if (now > asked + kReaders * ImageReadAhead::kChunksPerThread) ++too_many;
          return BytesOf(chunk);
        },
        kReaders);
    for (const ImageChunk& chunk : chunks) {
      ++asked;
      ExpectSame(ahead.Read(chunk), chunk);
    }
  }
  EXPECT_EQ(calls, chunks.size());
  EXPECT_EQ(too_many, 0u);
}

TEST(ImageReadAheadConcurrentTest, WithoutThreadsTheCallerReads) {
  const std::vector<ImageChunk> chunks = SomeChunks();
  uint64_t calls = 0;
  ImageReadAhead ahead(
      chunks,
      [&](const ImageChunk& chunk) {
        ++calls;
        return BytesOf(chunk);
      },
      0);
  for (size_t at = 0; at < chunks.size(); at += 2) ExpectSame(ahead.Read(chunks[at]), chunks[at]);
  EXPECT_EQ(calls, (chunks.size() + 1) / 2);
}

}  // namespace
}  // namespace geardb::engine
