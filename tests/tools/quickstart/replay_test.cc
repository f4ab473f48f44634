#include "tools/quickstart/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/tools/quickstart/replay_fixture.h"

namespace geardb::quickstart {
namespace {

TEST_F(ReplayTest, TransitionsAreNStepReturnsWithTheirBootstraps) {
  AppendEpisode(6);
  options_.batch = 64;
  const auto drawn = replay_->Draw(0.4);
  ASSERT_OK(drawn);
  ASSERT_EQ(drawn->actions.size(), 64U);
  for (size_t i = 0; i < drawn->actions.size(); ++i) {
    const auto k = static_cast<int>(drawn->observations[4 * i]);
    // Three steps ahead, or to the end at row 6, where nothing is bootstrapped.
    const int steps = std::min(3, 6 - k);
    double expected = 0;
    for (int m = 0; m < steps; ++m) expected += std::pow(0.99, m);
    EXPECT_EQ(drawn->actions[i], k % 2);
    EXPECT_NEAR(drawn->returns[i], expected, 1e-5) << k;
    EXPECT_NEAR(drawn->discounts[i], std::pow(0.99, steps), 1e-5) << k;
    EXPECT_EQ(drawn->masks[i], k + 3 >= 6 ? 0.0f : 1.0f) << k;
    EXPECT_EQ(drawn->next_observations[4 * i], static_cast<float>(k + steps)) << k;
    EXPECT_EQ(drawn->next_observations[4 * i + 3], static_cast<float>(k + steps) + 0.75f) << k;
    EXPECT_GT(drawn->weights[i], 0);
    EXPECT_LE(drawn->weights[i], 1);
  }
}

TEST_F(ReplayTest, ATruncatedEpisodeIsBootstrappedFromItsLastObservation) {
  AppendEpisode(2, End::kTruncated);
  const auto drawn = replay_->Draw(0.4);
  ASSERT_OK(drawn);
  for (size_t i = 0; i < drawn->actions.size(); ++i) {
    EXPECT_EQ(drawn->masks[i], 1.0f);
    EXPECT_EQ(drawn->next_observations[4 * i], 2.0f);
  }
}

TEST_F(ReplayTest, LargeErrorsAreDrawnMoreOften) {
  AppendEpisode(20);
  auto drawn = replay_->Draw(0.4);
  ASSERT_OK(drawn);
  // All items have been drawn once the priorities of all are set.
  for (int round = 0; round < 50; ++round) {
    std::vector<float> errors;
    for (size_t i = 0; i < drawn->actions.size(); ++i) {
      errors.push_back(drawn->observations[4 * i] == 7.0f ? 10.0f : 0.0f);
    }
    ASSERT_OK(replay_->SetPriorities(errors));
    drawn = replay_->Draw(0.4);
    ASSERT_OK(drawn);
  }
  int sevens = 0;
  for (size_t i = 0; i < drawn->actions.size(); ++i) {
    sevens += drawn->observations[4 * i] == 7.0f ? 1 : 0;
  }
  // (10.01 / 0.01)^0.6 = 63 times the weight of each of the 19 others: 49 of 64 expected.
  EXPECT_GT(sevens, 35);
}

TEST_F(ReplayTest, AnOpenEpisodeIsResumedWhereItEnded) {
  AppendEpisode(3);
  Append(0);
  Append(1);
  Reopen();
  EXPECT_EQ(replay_->steps(), 5U);
  const auto resumed = replay_->ResumeEpisode();
  ASSERT_OK(resumed);
  ASSERT_TRUE(resumed->has_value());
  EXPECT_EQ((*resumed)->id, 2U);
  EXPECT_EQ((*resumed)->rows, 2);
  EXPECT_EQ((*resumed)->observation, ObservationOf(1));
  EXPECT_EQ((*resumed)->action, 1);
  Append(2, End::kTerminated);
  const auto record = replay_->table().Find(2);
  ASSERT_OK(record);
  EXPECT_EQ(record->steps_end, 3);
  EXPECT_EQ(record->state, TrajectoryState::kClosed);
  EXPECT_TRUE(ReadReports().Check(replay_->table())->good());
}

TEST_F(ReplayTest, WithoutAnOpenEpisodeThereIsNothingToResume) {
  AppendEpisode(3);
  Reopen();
  const auto resumed = replay_->ResumeEpisode();
  ASSERT_OK(resumed);
  EXPECT_FALSE(resumed->has_value());
}

TEST_F(ReplayTest, AResumedEpisodeCanBeCut) {
  Append(0);
  Append(1);
  Reopen();
  ASSERT_OK(replay_->ResumeEpisode());
  ASSERT_OK(replay_->CutEpisode());
  const auto record = replay_->table().Find(1);
  ASSERT_OK(record);
  EXPECT_EQ(record->end, End::kCut);
}

TEST_F(ReplayTest, AStoreThatIsThereIsNotMadeAnew) {
  AppendEpisode(1);
  ASSERT_OK(replay_->Close());
  EXPECT_STATUS(kAlreadyExists, Replay::Open(options_, &reporter_), options_.directory);
  options_.create = false;
  EXPECT_OK(Replay::Open(options_, &reporter_));
  options_.directory = dir_.File("nowhere");
  EXPECT_STATUS(kNotFound, Replay::Open(options_, &reporter_), options_.directory);
}

TEST_F(ReplayTest, TheTimesOfCallsAreCounted) {
  AppendEpisode(5);
  ASSERT_OK(replay_->Draw(0.4));
  ASSERT_OK(replay_->SetPriorities(std::vector<float>(64, 1.0f)));
  EXPECT_EQ(replay_->append_times().Snapshot().count, 5U);
  EXPECT_EQ(replay_->draw_times().Snapshot().count, 1U);
  EXPECT_EQ(replay_->update_times().Snapshot().count, 1U);
}

}  // namespace
}  // namespace geardb::quickstart
