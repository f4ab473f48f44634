// Sizes by memory: what is read as a whole is small in it, and nothing is larger than was asked.
#include "engine/internal/cold_sizes.h"

#include <gtest/gtest.h>

namespace geardb::engine {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(ColdSizesTest, TheIndexOfAnSstFileIsSmallInMemory) {
  ColdStoreOptions options;
  for (const uint64_t memory : {8 * kMiB, 64 * kMiB, 1024 * kMiB}) {
    options.memory_bytes = memory;
    EXPECT_LE(SstFileBytes(options) / 20, memory / 100);
    EXPECT_LE(SstFileBytes(options), options.sst_file_bytes);
  }
  EXPECT_EQ(SstFileBytes(options), options.sst_file_bytes);
  options.sst_file_bytes = 8192;
  EXPECT_EQ(SstFileBytes(options), 8192u);
}

TEST(ColdSizesTest, EachPartOfTheCacheHasRoomForMuchThatIsNotFlushed) {
  EXPECT_EQ(CacheShardBits(1), 0);
  EXPECT_EQ(CacheShardBits(8 * kMiB), 0);
  EXPECT_EQ(CacheShardBits(64 * kMiB), 3);
  EXPECT_EQ(CacheShardBits(uint64_t{1} << 40), 4);
  for (uint64_t memory = 16 * kMiB; memory < 4096 * kMiB; memory *= 3) {
    EXPECT_GE(memory >> CacheShardBits(memory), 8 * kMiB);
  }
}

TEST(ColdSizesTest, BuffersAreAShareOfWhatIsNotFlushed) {
  EXPECT_EQ(BufferBytes(1), kMiB / 16);
  EXPECT_EQ(BufferBytes(8 * kMiB), kMiB / 4);
  EXPECT_EQ(BufferBytes(1024 * kMiB), kMiB);
}

}  // namespace
}  // namespace geardb::engine
