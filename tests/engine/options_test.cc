#include "engine/options.h"

#include <gtest/gtest.h>

#include <bit>

#include "tests/engine/frames_fixture.h"
#include "tests/testing/own_memory.h"
#include "tests/testing/sanitizers.h"

namespace geardb {
namespace {

constexpr uint64_t kOptionsMiB = uint64_t{1} << 20;

uint64_t SumOf(const DatabaseOptions& options) {
  const Budgets& budgets = options.budgets;
  return budgets.frames_bytes + budgets.index_bytes + budgets.batch_bytes + budgets.cold_bytes +
         options.ring_bytes;
}

TEST(DatabaseOptionsTest, ProcessBytesAreSharedOut) {
  for (const uint64_t mib : {64u, 65u, 100u, 1000u, 4096u, 1u << 20}) {
    const DatabaseOptions options = DatabaseOptions::Within(mib * kOptionsMiB);
    EXPECT_EQ(SumOf(options) + 26 * kOptionsMiB, mib * kOptionsMiB);
    EXPECT_TRUE(std::has_single_bit(options.ring_bytes)) << options.ring_bytes;
    EXPECT_GE(options.budgets.frames_bytes * 6, mib * kOptionsMiB);
  }
  const DatabaseOptions large = DatabaseOptions::Within(uint64_t{1} << 40);
  EXPECT_EQ(large.budgets.batch_bytes, Budgets{}.batch_bytes);
  EXPECT_EQ(large.ring_bytes, DatabaseOptions{}.ring_bytes);
}

TEST(DatabaseOptionsTest, FewerProcessBytesThanAnyDatabaseTakesAreTheLeast) {
  for (const uint64_t bytes : {uint64_t{0}, 64 * kOptionsMiB - 1}) {
    EXPECT_EQ(SumOf(DatabaseOptions::Within(bytes)), 38 * kOptionsMiB);
  }
}

class ProcessBytesTest : public FramesTest {
 protected:
  void SetUp() override {}
};

// Six times as much as memory: with budgets that come to 64 MiB themselves it is 74 MiB and more.
TEST_F(ProcessBytesTest, AProcessStaysWithinThem) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer keeps memory of its own";
  if (!testing::ForgetPeak()) GTEST_SKIP() << "the kernel cannot forget a peak";
  const uint64_t before = testing::OwnBytes("VmRSS");
  const uint64_t bytes = 64 * kOptionsMiB;
  options_ = DatabaseOptions::Within(bytes);
  options_.log_bytes_max = 128 * kOptionsMiB;
  Open();
  Make();
  for (int i = 0; i < 384; ++i) Add(256, 256);
  ExpectDraws(/*prefetch=*/4, 50);
  const DatabaseStats stats = database_->Stats();
  EXPECT_GT(stats.cleaner.pages, 4000u);
  EXPECT_GT(stats.cold_page_reads, 0u);
  EXPECT_GT(stats.log_page_reads, 0u);
  EXPECT_LE(testing::OwnBytes("VmHWM") - before, bytes + bytes / 10);
}

// An open held two whole segments of the log in memory, beside all budgets.
TEST_F(ProcessBytesTest, NeitherDoesAnOpenAfterACrashTakeMore) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer keeps memory of its own";
  const uint64_t bytes = 64 * kOptionsMiB;
  options_ = DatabaseOptions::Within(bytes);
  options_.segment_bytes = 64 * kOptionsMiB;
  Open();
  Make();
  for (int i = 0; i < 160; ++i) Add(256, 256);
  ASSERT_OK(database_->Sync());
  auto copy = testing::CopyOpenStore(dir_->path());
  Close();
  dir_ = std::move(copy);
  if (!testing::ForgetPeak()) GTEST_SKIP() << "the kernel cannot forget a peak";
  const uint64_t before = testing::OwnBytes("VmRSS");
  Open();
  OpenAgain("frames", {.lanes = 2});
  EXPECT_GT(database_->recovery().bytes, 2 * bytes);
  EXPECT_LE(testing::OwnBytes("VmHWM") - before, bytes + bytes / 10);
  ExpectDraws(/*prefetch=*/4, 50);
}

}  // namespace
}  // namespace geardb
