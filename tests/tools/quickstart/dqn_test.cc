#include "tools/quickstart/dqn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/testing/matchers.h"

namespace geardb::quickstart {
namespace {

/// A batch of n random transitions, with the memory that it points to.
class Batch {
 public:
  explicit Batch(size_t n, uint64_t seed = 1) {
    Random random(seed, 0);
    for (size_t i = 0; i < n; ++i) {
      for (int k = 0; k < kObservationSize; ++k) {
        observations.push_back(static_cast<float>(random.Uniform(-0.2, 0.2)));
        next.push_back(static_cast<float>(random.Uniform(-0.2, 0.2)));
      }
      actions.push_back(static_cast<int32_t>(random.Below(2)));
      returns.push_back(static_cast<float>(random.Uniform(0, 3)));
      discounts.push_back(0.97f);
      masks.push_back(i % 4 == 0 ? 0.0f : 1.0f);
      weights.push_back(static_cast<float>(random.Uniform(0.2, 1)));
    }
  }
  Transitions view() const {
    return {observations, actions, returns, discounts, masks, next, weights};
  }

  std::vector<float> observations, returns, discounts, masks, next, weights;
  std::vector<int32_t> actions;
};

/// The network that learns, which stands first in what is saved.
Eigen::VectorXf Online(const Dqn& dqn) {
  std::vector<std::byte> bytes;
  dqn.Save(&bytes);
  Eigen::VectorXf parameters(dqn.average().size());
  std::memcpy(parameters.data(), bytes.data(),
              sizeof(float) * static_cast<size_t>(parameters.size()));
  return parameters;
}

/// Q of one observation, computed here.
Eigen::Vector2f Values(const Eigen::VectorXf& parameters, const float* observation) {
  const Mlp mlp({kObservationSize, 64, 64, kActionCount});
  const Eigen::Vector4f scaled(observation[0] / 2.4f, observation[1] / 2, observation[2] / 0.21f,
                               observation[3] / 2);
  Mlp::Activations activations;
  mlp.Forward(parameters, scaled, &activations);
  return activations.output().col(0);
}

// Van Hasselt et al., 2016: the network that learns chooses the next action, the average values it.
TEST(DqnTest, ErrorsAreThoseOfDoubleQLearning) {
  Dqn dqn({.seed = 3});
  for (uint64_t i = 0; i < 200; ++i) dqn.Update(Batch(16, 100 + i).view());
  const Batch batch(64);
  const Eigen::VectorXf online = Online(dqn);
  const Eigen::VectorXf average = dqn.average();
  ASSERT_NE(online, average);
  std::vector<double> expected;
  int differ = 0;
  for (size_t i = 0; i < 64; ++i) {
    const Eigen::Vector2f next_online = Values(online, &batch.next[4 * i]);
    const Eigen::Vector2f next_average = Values(average, &batch.next[4 * i]);
    const int chosen = next_online[1] > next_online[0] ? 1 : 0;
    differ += next_average[chosen] < next_average[1 - chosen] ? 1 : 0;
    const float wanted =
        batch.returns[i] + batch.discounts[i] * batch.masks[i] * next_average[chosen];
    const float now = Values(online, &batch.observations[4 * i])[batch.actions[i]];
    expected.push_back(std::abs(static_cast<double>(now - wanted)));
  }
  EXPECT_GT(differ, 0) << "the two networks should not agree on every action";
  const Learned learned = dqn.Update(batch.view());
  ASSERT_EQ(learned.errors.size(), 64U);
  for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(learned.errors[i], expected[i], 1e-4) << i;
  EXPECT_EQ(dqn.updates(), 201U);
}

TEST(DqnTest, ItLearnsTheReturnsOfTerminalSteps) {
  Batch batch(32);
  std::fill(batch.masks.begin(), batch.masks.end(), 0.0f);
  Dqn dqn({.learning_rate_end = 1e-3});
  const auto worst = [](const Learned& learned) {
    return *std::max_element(learned.errors.begin(), learned.errors.end());
  };
  const float before = worst(dqn.Update(batch.view()));
  for (int i = 0; i < 3000; ++i) dqn.Update(batch.view());
  EXPECT_GT(before, 1.0f);
  EXPECT_LT(worst(dqn.Update(batch.view())), 0.1f);
}

TEST(DqnTest, AWeightOfZeroTeachesNothing) {
  Batch batch(8);
  std::fill(batch.weights.begin(), batch.weights.end(), 0.0f);
  Dqn dqn({});
  const Eigen::VectorXf before = dqn.average();
  EXPECT_EQ(dqn.Update(batch.view()).loss, 0);
  EXPECT_LT((dqn.average() - before).norm(), 1e-6f);
}

TEST(DqnTest, TheAverageFollowsSlowly) {
  const Batch batch(8);
  Dqn dqn({.target_rate = 0.5});
  Dqn slow({.target_rate = 0.005});
  const Eigen::VectorXf before = dqn.average();
  dqn.Update(batch.view());
  slow.Update(batch.view());
  const float moved = (dqn.average() - before).norm();
  EXPECT_GT(moved, 0);
  EXPECT_NEAR((slow.average() - before).norm(), moved / 100, moved / 1000);
}

TEST(DqnTest, TheSameBatchesGiveTheSameBits) {
  Dqn one({.seed = 9});
  Dqn other({.seed = 9});
  const Dqn stranger({.seed = 10});
  for (uint64_t i = 0; i < 20; ++i) {
    one.Update(Batch(16, i).view());
    other.Update(Batch(16, i).view());
  }
  EXPECT_EQ(one.average(), other.average());
  EXPECT_NE(one.average(), stranger.average());
}

TEST(DqnTest, SavedBytesGoOnWhereTheyEnded) {
  Dqn dqn({.seed = 4});
  for (uint64_t i = 0; i < 10; ++i) dqn.Update(Batch(16, i).view());
  std::vector<std::byte> bytes;
  dqn.Save(&bytes);
  Dqn loaded({.seed = 77});
  ASSERT_OK(loaded.Load(bytes));
  EXPECT_EQ(loaded.updates(), 10U);
  EXPECT_EQ(loaded.average(), dqn.average());
  for (uint64_t i = 10; i < 20; ++i) {
    dqn.Update(Batch(16, i).view());
    loaded.Update(Batch(16, i).view());
  }
  EXPECT_EQ(loaded.average(), dqn.average());
}

TEST(DqnTest, BytesOfAnotherShapeAreRefused) {
  std::vector<std::byte> bytes;
  Dqn({.hidden = {8}}).Save(&bytes);
  Dqn dqn({});
  const Eigen::VectorXf before = dqn.average();
  EXPECT_STATUS(kCorruption, dqn.Load(bytes), "found " + std::to_string(bytes.size()));
  EXPECT_STATUS(kCorruption, dqn.Load({}), "found 0");
  EXPECT_EQ(dqn.average(), before);
}

TEST(DqnTest, ExplorationIsAsLikelyAsTold) {
  Dqn dqn({});
  Random random(1, 0);
  const Observation observation = {0.1f, 0, 0.05f, 0};
  const int greedy = dqn.Greedy(dqn.average(), observation);
  int others = 0;
  for (int i = 0; i < 4000; ++i) {
    EXPECT_EQ(dqn.Explore(observation, 0, &random), greedy);
    others += dqn.Explore(observation, 0.5, &random) != greedy ? 1 : 0;
  }
  // A quarter; five standard deviations are 137.
  EXPECT_NEAR(others, 1000, 137);
}

}  // namespace
}  // namespace geardb::quickstart
