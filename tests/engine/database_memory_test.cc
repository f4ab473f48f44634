// What a process takes in memory for a store that goes round: what the budgets say, and no more.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/frames_fixture.h"
#include "tests/testing/own_memory.h"
#include "tests/testing/sanitizers.h"

namespace geardb {
namespace {

using testing::ForgetPeak;
using testing::OwnBytes;

constexpr uint64_t kMemoryMiB = uint64_t{1} << 20;

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
/// threads have freed. The last are up to 4 MiB more where other processes have the processors.
constexpr uint64_t kRestBytes = 25 * kMemoryMiB;

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

/// Of a page of rows, as memory beside the frames is counted.
constexpr uint64_t kPageBytes = kPageRows * (kFrameBytes + 4) + 1024;

class MemoryBesideTest : public DatabaseMemoryTest {
 protected:
  void SetUp() override {
    DatabaseMemoryTest::SetUp();
    for (int i = 0; i < 40; ++i) Add(256, 256);
    DropAll();
  }
  /// What all that was read beside the frames may have taken, by one call at a time.
  void ExpectBounded() const {
    const DatabaseStats stats = database_->Stats();
    EXPECT_GT(stats.pages_beside_most_bytes, 0u);
    EXPECT_LE(stats.pages_beside_most_bytes, options_.budgets.frames_bytes / 16 + kPageBytes);
    AwaitNothingBeside();
  }
  /// Of each trajectory row `first`, and the rows `each` behind it.
  std::vector<RowId> EveryPage(int64_t first) const {
    std::vector<RowId> rows;
    for (const auto& [id, number] : numbers_) {
      for (int64_t row = first; row < 256; row += kPageRows) rows.push_back({.id = id, .row = row});
    }
    return rows;
  }
};

// Sixteen batches of some 80 pages want four times the frames that there are.
TEST_F(MemoryBesideTest, BatchesDrawnAheadWaitForTheFramesOfThoseBefore) {
  ASSERT_OK_AND_ASSIGN(const auto priority, table_->OpenPriorityTable("all"));
  constexpr int64_t kBatch = 64;
  ASSERT_OK_AND_ASSIGN(
      auto sampler,
      priority->NewSampler({.batch = kBatch, .views = {{.column = "frame"}}, .prefetch = 16}));
  for (int i = 0; i < 30; ++i) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    for (size_t item = 0; item < kBatch; ++item) {
      ExpectRow(batch.trajectory_ids()[item], batch.anchors()[item],
                batch["frame"].values<uint8_t>().data() + item * 2 * kFrameBytes);
    }
  }
  EXPECT_LE(database_->Stats().pages_beside_most_bytes,
            options_.budgets.frames_bytes / 16 + kPageBytes);
  const FrameStats frames = Frames();
  EXPECT_GT(frames.misses, 2 * options_.budgets.frames_bytes / kPageBytes);
  EXPECT_LT(frames.unplaced * 8, frames.misses);
  sampler.reset();
  AwaitNothingBeside();
}

// Twice and a half as many pages as there are frames, and of each two rows.
TEST_F(MemoryBesideTest, AGatherOfMorePagesThanFrames) {
  const std::vector<RowId> first = EveryPage(1);
  std::vector<RowId> rows = EveryPage(3);
  rows.insert(rows.end(), first.rbegin(), first.rend());
  const GatherColumn columns[] = {{.column = "frame", .rows = rows},
                                  {.column = "reward", .rows = rows}};
  ASSERT_OK_AND_ASSIGN(const auto gathered, table_->Gather(columns));
  const auto frames = gathered[0].view().values<uint8_t>();
  const auto rewards = gathered[1].view().values<float>();
  for (size_t i = 0; i < rows.size(); ++i) {
    ExpectRow(rows[i].id, rows[i].row, frames.data() + i * kFrameBytes);
    ASSERT_EQ(rewards[i], static_cast<float>(numbers_.at(rows[i].id) * 100 + rows[i].row));
  }
  ExpectBounded();
}

TEST_F(MemoryBesideTest, ABatchOfMorePagesThanFrames) {
  ASSERT_OK_AND_ASSIGN(const auto priority, table_->OpenPriorityTable("all"));
  constexpr int64_t kBatch = 3000;
  for (const int64_t prefetch : {0, 2}) {
    ASSERT_OK_AND_ASSIGN(const auto sampler,
                         priority->NewSampler({.batch = kBatch,
                                               .views = {{.column = "reward"}},
                                               .n_step = NStep{.reward_column = "reward", .n = 1},
                                               .prefetch = prefetch}));
    for (int round = 0; round < 3; ++round) {
      ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
      const auto rewards = batch["reward"].values<float>();
      const auto returns = batch["nstep.return"].values<float>();
      for (size_t item = 0; item < kBatch; ++item) {
        const int64_t number = numbers_.at(batch.trajectory_ids()[item]);
        const int64_t anchor = batch.anchors()[item];
        ASSERT_EQ(rewards[2 * item], static_cast<float>(number * 100 + anchor));
        ASSERT_EQ(returns[item], rewards[2 * item]);
      }
    }
  }
  ExpectBounded();
}

}  // namespace
}  // namespace geardb
