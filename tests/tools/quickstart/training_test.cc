#include "tools/quickstart/training.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::quickstart {
namespace {

class TrainingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.steps = options_.replay.steps = 900;
    options_.trial_episodes = 2;
    options_.final_episodes = 3;
    options_.replay.directory = dir_.File("store");
    options_.replay.create = true;
    // Its progress is not what is tested here.
    ::testing::internal::CaptureStdout();
  }
  void TearDown() override { ::testing::internal::GetCapturedStdout(); }

  std::unique_ptr<Training> Open() {
    auto opened = Training::Open(options_, &reporter_, &progress_);
    EXPECT_OK(opened);
    options_.replay.create = false;
    return opened.ok() ? std::move(opened).value() : nullptr;
  }
  /// Learns to the end, and closes.
  void RunOnce() {
    const auto training = Open();
    ASSERT_NE(training, nullptr);
    ASSERT_OK(training->Run());
    EXPECT_EQ(training->replay().steps(), 900U);
    EXPECT_EQ(training->updates(), 400U);
    ASSERT_OK(training->Close());
  }

  testing::TempDir dir_;
  AppendReporter reporter_;
  Progress progress_{false};
  TrainingOptions options_;
};

TEST_F(TrainingTest, ATagBringsEverythingBack) {
  RunOnce();
  // The newest tag is of step 850; 50 more were stored after it.
  const auto training = Open();
  ASSERT_NE(training, nullptr);
  EXPECT_EQ(training->tag_steps(), 850U);
  EXPECT_EQ(training->updates(), 350U);
  EXPECT_EQ(training->replay().steps(), 900U);
  const double score = training->FinalScore();
  ASSERT_OK(training->Close());
  const auto again = Open();
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->FinalScore(), score);
  EXPECT_EQ(again->updates(), 350U);
}

TEST_F(TrainingTest, UpdatesThatWereLostAreMadeAgain) {
  RunOnce();
  options_.steps = 910;
  const auto training = Open();
  ASSERT_NE(training, nullptr);
  ASSERT_OK(training->Run());
  EXPECT_EQ(training->updates(), 410U);
  EXPECT_EQ(training->replay().steps(), 910U);
}

TEST_F(TrainingTest, TheBestPolicyComesBackWithTheTag) {
  const double untrained = Open()->FinalScore();
  // The last trial is at step 800, the last tag at step 850.
  options_.steps = options_.replay.steps = 880;
  options_.replay.directory = dir_.File("other");
  options_.replay.create = true;
  const auto training = Open();
  ASSERT_NE(training, nullptr);
  ASSERT_OK(training->Run());
  const double score = training->FinalScore();
  ASSERT_NE(score, untrained);
  ASSERT_OK(training->Close());
  EXPECT_EQ(Open()->FinalScore(), score);
}

TEST_F(TrainingTest, ItGoesOnInTheMiddleOfAnEpisode) {
  RunOnce();
  auto training = Open();
  ASSERT_NE(training, nullptr);
  ASSERT_TRUE(training->resumed().has_value());
  const OpenEpisode open = *training->resumed();
  EXPECT_GT(open.rows, 0);
  ASSERT_OK(training->Close());
  options_.steps = 901;
  training = Open();
  ASSERT_NE(training, nullptr);
  ASSERT_OK(training->Run());
  // The row that was appended is what the last action led to.
  CartPole cartpole;
  cartpole.Restore(open.observation, open.rows - 1);
  const Observation expected = cartpole.Push(open.action).observation;
  const std::array<std::string_view, 1> columns = {"obs"};
  const auto rows =
      training->replay().table().Read(open.id, columns, {.begin = open.rows, .end = open.rows + 1});
  ASSERT_OK(rows);
  const TensorView view = (*rows)[0].view();
  const auto found = view.values<float>();
  EXPECT_EQ(std::vector<float>(found.begin(), found.end()),
            std::vector<float>(expected.begin(), expected.end()));
}

TEST_F(TrainingTest, ARunIsAFunctionOfItsSeed) {
  std::vector<std::vector<ColumnRows>> runs;
  for (const uint64_t seed : {uint64_t{1}, uint64_t{1}, uint64_t{2}}) {
    options_.seed = options_.replay.seed = seed;
    options_.replay.directory = dir_.File("run" + std::to_string(runs.size()));
    options_.replay.create = true;
    const auto training = Open();
    ASSERT_NE(training, nullptr);
    ASSERT_OK(training->Run());
    const Table& table = training->replay().table();
    auto rows = table.Read(table.Scan({}).back().id, {}, {});
    ASSERT_OK(rows);
    runs.push_back(std::move(rows).value());
  }
  EXPECT_EQ(runs[0][0].bytes, runs[1][0].bytes);
  EXPECT_NE(runs[0][0].bytes, runs[2][0].bytes);
}

TEST_F(TrainingTest, WithoutATagItBeginsToLearnAnew) {
  // Killed before the first tag: rows are there, a tag is not.
  options_.steps = options_.replay.steps = 40;
  options_.warm_up_steps = 20;
  {
    const auto training = Open();
    ASSERT_NE(training, nullptr);
    ASSERT_OK(training->Run());
    ASSERT_OK(training->Close());
  }
  const auto training = Open();
  ASSERT_NE(training, nullptr);
  EXPECT_EQ(training->tag_steps(), 0U);
  EXPECT_EQ(training->updates(), 0U);
  EXPECT_EQ(training->replay().steps(), 40U);
}

TEST_F(TrainingTest, ATagThatIsNotItsOwnIsRefused) {
  RunOnce();
  const auto write = [&](std::vector<std::byte> blob) {
    const auto replay = Replay::Open(options_.replay, &reporter_);
    ASSERT_OK(replay);
    ASSERT_OK((*replay)->WriteTag(blob));
    ASSERT_OK((*replay)->Close());
  };
  std::vector<std::byte> blob;
  {
    const auto replay = Replay::Open(options_.replay, &reporter_);
    ASSERT_OK(replay);
    const auto tag = (*replay)->LastTag();
    ASSERT_OK(tag);
    blob = tag->blob;
    ASSERT_OK((*replay)->Close());
  }
  write({std::byte{1}, std::byte{2}});
  EXPECT_STATUS(kCorruption, Training::Open(options_, &reporter_, &progress_), "has 2 bytes");
  std::vector<std::byte> longer = blob;
  longer.push_back(std::byte{0});
  write(longer);
  EXPECT_STATUS(kCorruption, Training::Open(options_, &reporter_, &progress_), "tag 'learner'");
  std::vector<std::byte> newer = blob;
  newer[0] = std::byte{2};
  write(newer);
  EXPECT_STATUS(kUnsupported, Training::Open(options_, &reporter_, &progress_),
                "has version 2, expected 1");
  write(blob);
  EXPECT_OK(Training::Open(options_, &reporter_, &progress_));
}

}  // namespace
}  // namespace geardb::quickstart
