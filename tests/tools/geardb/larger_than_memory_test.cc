// A learner over a table of 1 GiB with 64 MiB of frames, and with no other line than one that has
// all in memory: every byte of its batches is the one that was appended, and `geardb info` says
// afterwards where the rows came from.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "engine/database.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"
#include "tests/tools/geardb/cli_fixture.h"

namespace geardb {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr int64_t kRowBytes = 16 << 10;
constexpr size_t kRowWords = kRowBytes / sizeof(uint64_t);
constexpr int64_t kBatch = 32;

/// Word `word` of row `row` of trajectory number `number`: what the oracle says.
uint64_t WordOf(uint64_t number, int64_t row, size_t word) {
  return (number * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(row)) * 0xBF58476D1CE4E5B9u + word;
}

class LargerThanMemoryTest : public ::testing::Test {
 protected:
  static DatabaseOptions Options() {
    DatabaseOptions options;
    options.budgets.frames_bytes = 64 * kMiB;
    options.log_bytes_max = 128 * kMiB;
    options.segment_bytes = 4 * kMiB;
    options.ring_bytes = 8 * kMiB;
    return options;
  }
  static TableSpec Spec() {
    TableSpec spec{.name = "frames", .steps_per_page = 4};
    spec.columns = {{.name = "frame", .dtype = DType::kU8, .shape = {kRowBytes}},
                    {.name = "reward"}};
    spec.priority_tables = {{.name = "per", .window = {.extent = {.length = 3}}, .seed = 5}};
    return spec;
  }

  void Open() {
    database_.reset();
    ASSERT_OK_AND_ASSIGN(database_, Database::Open(dir_.File("store"), Options()));
    ASSERT_OK_AND_ASSIGN(table_, database_->OpenOrCreateTable(Spec()));
    ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  }
  void Close() {
    writer_.reset();
    table_.reset();
    ASSERT_OK(database_->Close());
    database_.reset();
  }
  void AppendTrajectory() {
    const uint64_t number = numbers_.size();
    const auto rows = static_cast<int64_t>(3 + random_() % 40);
    words_.resize(static_cast<size_t>(rows) * kRowWords);
    for (int64_t row = 0; row < rows; ++row) {
      uint64_t* const into = words_.data() + static_cast<size_t>(row) * kRowWords;
      for (size_t word = 0; word < kRowWords; ++word) into[word] = WordOf(number, row, word);
    }
    const std::vector<float> rewards(static_cast<size_t>(rows), static_cast<float>(number));
    ASSERT_OK_AND_ASSIGN(
        const Appended appended,
        writer_->AppendTrajectory(
            {{"frame", TensorView(words_.data(), DType::kU8, Shape({rows, kRowBytes}))},
             {"reward", TensorView::Of<float>(rewards)}},
            {.end = End::kTerminated}));
    numbers_[appended.id] = number;
    stored_bytes_ += static_cast<uint64_t>(rows * kRowBytes);
  }
  void DrawAndCheck(int batches) {
    const auto per = table_->priority_table("per");
    ASSERT_OK_AND_ASSIGN(const auto sampler,
                         per->NewSampler({.batch = kBatch,
                                          .views = {{.column = "frame"}, {.column = "reward"}},
                                          .prefetch = 4}));
    for (int i = 0; i < batches; ++i) {
      ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
      const auto frames = batch["frame"].values<uint8_t>();
      const auto rewards = batch["reward"].values<float>();
      std::vector<float> priorities;
      for (size_t item = 0; item < kBatch; ++item) {
        const uint64_t number = numbers_.at(batch.trajectory_ids()[item]);
        for (int64_t k = 0; k < batch.lengths()[item]; ++k) {
          const size_t entry = item * 3 + static_cast<size_t>(k);
          ASSERT_EQ(rewards[entry], static_cast<float>(number));
          const uint8_t* const row = frames.data() + entry * kRowBytes;
          for (size_t word = 0; word < kRowWords; ++word) {
            uint64_t shown = 0;
            std::memcpy(&shown, row + word * sizeof(shown), sizeof(shown));
            ASSERT_EQ(shown, WordOf(number, batch.anchors()[item] + k, word))
                << "batch " << i << ", item " << item << ", row " << k;
          }
        }
        priorities.push_back(static_cast<float>(1 + number % 7));
      }
      ASSERT_OK(per->Set(batch.handles(), priorities));
    }
  }

  testing::TempDir dir_;
  std::unique_ptr<Database> database_;
  std::shared_ptr<Table> table_;
  std::unique_ptr<Writer> writer_;
  std::map<TrajectoryId, uint64_t> numbers_;
  std::vector<uint64_t> words_;
  uint64_t stored_bytes_ = 0;
  std::mt19937_64 random_{3};
};

TEST_F(LargerThanMemoryTest, EveryBatchIsWhatWasAppended) {
  const uint64_t bytes = testing::ShareOf(1024) * kMiB;
  Open();
  while (stored_bytes_ < bytes) {
    AppendTrajectory();
    // Learns while it acts.
    if (numbers_.size() % 200 == 0) DrawAndCheck(2);
    if (HasFatalFailure()) return;
  }
  DrawAndCheck(60);
  EXPECT_GE(table_->Stats().frame_bytes, bytes);
  EXPECT_LE(database_->Stats().frames.used_bytes, 64 * kMiB);
  EXPECT_LE(database_->Stats().log_segments_live * Options().segment_bytes,
            Options().log_bytes_max);
  Close();
  Open();
  DrawAndCheck(60);
  Close();
  const testing::CliRun run = testing::RunCli({"info", dir_.File("store"), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const testing::Json activity = (*testing::Json::Parse(run.out))["activity"];
  for (const char* count : {"last", "total"}) {
    EXPECT_GT(activity[count]["frames_dropped"].integer(), 0) << count;
    EXPECT_GT(activity[count]["log_page_reads"].integer(), 0) << count;
    EXPECT_GT(activity[count]["cold_page_reads"].integer(), 0) << count;
  }
}

}  // namespace
}  // namespace geardb
