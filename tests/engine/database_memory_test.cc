// What a process takes in memory for a store that goes round: what the budgets say, and no more.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "tests/engine/frames_fixture.h"
#include "tests/testing/sanitizers.h"

namespace geardb {
namespace {

constexpr uint64_t kMemoryMiB = uint64_t{1} << 20;

/// Of this process, as the kernel counts it: 0 where it does not say.
uint64_t OwnBytes(const std::string& name) {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    uint64_t kib = 0;
    if (word == name + ":" && file >> kib) return kib * 1024;
  }
  return 0;
}

/// From here on the peak is that of now.
bool ForgetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

class DatabaseMemoryTest : public FramesTest {
 protected:
  void SetUp() override {
    options_.budgets = {.frames_bytes = 16 * kMemoryMiB,
                        .index_bytes = 8 * kMemoryMiB,
                        .batch_bytes = 16 * kMemoryMiB,
                        .cold_bytes = 8 * kMemoryMiB};
    options_.log_bytes_max = 96 * kMemoryMiB;
    Open();
    Make();
  }
};

/// Beside the budgets and the ring: code of RocksDB that is run for the first time, stacks of the
/// threads, pages on their way to and from the cold store, and what malloc keeps of what these
/// threads have freed.
constexpr uint64_t kRestBytes = 20 * kMemoryMiB;

// A pass of all that the log holds hands the cold store 80 MiB, ten times its budget, as fast as it
// takes them. A store that had 64 MiB whatever the budgets would take 18 MiB more.
TEST_F(DatabaseMemoryTest, AProcessTakesItsBudgets) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer keeps memory of its own";
  if (!ForgetPeak()) GTEST_SKIP() << "the kernel cannot forget a peak";
  const uint64_t before = OwnBytes("VmRSS");
  for (int i = 0; i < 80; ++i) Add(256, 256);
  ASSERT_OK(testing::CoreOf(*database_)->cleaner->CleanNow(/*all=*/true));
  ExpectDraws(/*prefetch=*/2, 20);
  const DatabaseStats stats = database_->Stats();
  ASSERT_GT(stats.cleaner.pages, 4000u);
  ASSERT_GT(stats.cold_page_reads, 0u);
  // Of the index and of batches, what they are said to use: what they leave is for nobody else.
  const uint64_t budgets = stats.frames.limit_bytes + stats.index.used_bytes +
                           2 * 16 * 2 * kFrameBytes + stats.cold_memory.limit_bytes +
                           options_.ring_bytes;
  const uint64_t peak = OwnBytes("VmHWM");
  EXPECT_LE(peak - before, budgets + budgets / 10 + kRestBytes);
  EXPECT_LE(stats.cold_memory.used_bytes, stats.cold_memory.limit_bytes + kMemoryMiB);
}

// Sixteen batches of some 80 pages want four times the frames that there are.
TEST_F(DatabaseMemoryTest, BatchesDrawnAheadWaitForTheFramesOfThoseBefore) {
  for (int i = 0; i < 40; ++i) Add(256, 256);
  DropAll();
  ASSERT_OK_AND_ASSIGN(const auto priority, table_->OpenPriorityTable("all"));
  constexpr int64_t kBatch = 64, kPagesOfWindow = 2;
  ASSERT_OK_AND_ASSIGN(
      auto sampler,
      priority->NewSampler({.batch = kBatch, .views = {{.column = "frame"}}, .prefetch = 16}));
  const uint64_t page = kPageRows * (kFrameBytes + 4) + 1024;
  const uint64_t most = options_.budgets.frames_bytes / 16 + kBatch * kPagesOfWindow * page;
  uint64_t seen = 0;
  for (int i = 0; i < 30; ++i) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    seen = std::max(seen, database_->Stats().pages_beside_bytes);
    for (size_t item = 0; item < kBatch; ++item) {
      ExpectRow(batch.trajectory_ids()[item], batch.anchors()[item],
                batch["frame"].values<uint8_t>().data() + item * 2 * kFrameBytes);
    }
  }
  EXPECT_LE(seen, most);
  EXPECT_GT(Frames().misses, 2 * options_.budgets.frames_bytes / page);
  sampler.reset();
  EXPECT_EQ(database_->Stats().pages_beside_bytes, 0u);
}

}  // namespace
}  // namespace geardb
