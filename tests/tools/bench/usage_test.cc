#include "tools/bench/usage.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/env.h"
#include "tests/testing/matchers.h"
#include "tests/testing/sanitizers.h"
#include "tests/testing/temp_dir.h"
#include "tools/bench/ceilings.h"

namespace geardb::bench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(UsageTest, TouchedMemoryIsResident) {
  const MemoryUse before = OwnMemory();
  ASSERT_GT(before.rss, 0u);
  ASSERT_LE(before.pss, before.rss);
  const Memory memory(64 * kMiB);
  const MemoryUse after = OwnMemory();
  EXPECT_GE(after.rss, before.rss + 60 * kMiB);
  EXPECT_LT(after.rss, before.rss + 128 * kMiB);
  // What is shared with other processes counts less when one more of them starts.
  EXPECT_GE(after.pss, before.pss + 48 * kMiB);
}

// Blocks of a size that malloc keeps when they are freed, and some between them that stay.
TEST(UsageTest, FreedMemoryIsGivenBack) {
  constexpr size_t kBlocks = 8192;
  constexpr size_t kBlockBytes = 8 * 1024;
  std::vector<std::vector<std::byte>> blocks;
  for (size_t i = 0; i < kBlocks; ++i) blocks.emplace_back(kBlockBytes, std::byte{1});
  const uint64_t full = OwnMemory().rss;
  for (size_t i = 0; i < kBlocks; ++i) {
    if (i % 64 != 0) std::vector<std::byte>().swap(blocks[i]);
  }
  GiveBackFreeMemory();
  const uint64_t left = OwnMemory().rss;
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer keeps what is freed";
  EXPECT_LT(left + kBlocks * kBlockBytes * 3 / 4, full);
}

TEST(UsageTest, WrittenBytesAndFilesAreCounted) {
  const testing::TempDir directory;
  const uint64_t before = OwnBytesWritten();
  EXPECT_EQ(DiskBytesOf(directory.path()), 0u);
  std::filesystem::create_directory(directory.path() + "/below");
  ASSERT_OK_AND_ASSIGN(auto file, Env::Posix()->OpenFile(directory.path() + "/below/file",
                                                         {.mode = FileMode::kCreate}));
  const std::vector<std::byte> bytes(8 * kMiB, std::byte{1});
  ASSERT_OK(file->Write(0, bytes));
  ASSERT_OK(file->Sync());
  EXPECT_GE(DiskBytesOf(directory.path()), 8 * kMiB);
  EXPECT_LT(DiskBytesOf(directory.path()), 9 * kMiB);
  // A file system in memory writes nothing to disk.
  const uint64_t written = OwnBytesWritten() - before;
  EXPECT_TRUE(written == 0 || written >= 8 * kMiB) << written;
  EXPECT_EQ(DiskBytesOf(directory.path() + "/absent"), 0u);
}

}  // namespace
}  // namespace geardb::bench
