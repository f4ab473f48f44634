// The expected numbers were printed by Gymnasium 1.4.0's CartPole-v1 (state in f64, observation in
// f32), from the same states and actions.

#include "tools/quickstart/cartpole.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace geardb::quickstart {
namespace {

using State = std::array<double, kObservationSize>;

void ExpectState(const CartPole& cartpole, const State& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    // libm's sine and cosine may differ in their last bits.
    EXPECT_NEAR(cartpole.state()[i], expected[i], 1e-13) << i;
  }
}

CartPole At(const State& state) {
  CartPole cartpole;
  cartpole.SetState(state);
  return cartpole;
}

TEST(CartPoleTest, APushRightIsGymnasiums) {
  CartPole cartpole = At({0.01, -0.02, 0.03, -0.04});
  const CartPole::Step step = cartpole.Push(1);
  ExpectState(cartpole, {0.009600000000000001, 0.17467919574755525, 0.0292, -0.3230687179600081});
  const Observation expected = {0.009600000455975533f, 0.17467918992042542f, 0.029200000688433647f,
                                -0.3230687081813812f};
  EXPECT_EQ(step.observation, expected);
  EXPECT_EQ(step.reward, 1.0f);
  EXPECT_FALSE(step.terminated);
  EXPECT_FALSE(step.truncated);
}

TEST(CartPoleTest, APushLeftIsGymnasiums) {
  CartPole cartpole = At({0.01, -0.02, 0.03, -0.04});
  cartpole.Push(0);
  ExpectState(cartpole, {0.009600000000000001, -0.21553901710278936, 0.0292, 0.2619952237760392});
}

TEST(CartPoleTest, TenPushesAreGymnasiums) {
  CartPole cartpole = At({0.01, -0.02, 0.03, -0.04});
  for (int i = 0; i < 10; ++i) cartpole.Push(i % 2);
  ExpectState(cartpole, {-0.013963629429072073, -0.025793950300804253, 0.06125620085156019,
                         0.08799099474620203});
  EXPECT_EQ(cartpole.steps(), 10);
}

TEST(CartPoleTest, ThePoleFallsAfterNinePushesToOneSide) {
  CartPole cartpole = At({});
  CartPole::Step step;
  int pushes = 0;
  for (; !step.terminated; ++pushes) step = cartpole.Push(1);
  EXPECT_EQ(pushes, 9);
  ExpectState(cartpole,
              {0.14065097203306187, 1.7603811257683097, -0.21518604988500967, -2.777886494012814});
  EXPECT_EQ(step.reward, 1.0f) << "the step that ends an episode counts, too";
  EXPECT_FALSE(step.truncated);
}

TEST(CartPoleTest, TheCartLeavesItsTrack) {
  CartPole cartpole = At({2.39, 1.0, 0, 0});
  const CartPole::Step step = cartpole.Push(0);
  EXPECT_TRUE(step.terminated);
  ExpectState(cartpole, {2.41, 0.8048780487804879, 0.0, 0.2926829268292683});
}

TEST(CartPoleTest, TheStepLimitTruncatesUnlessItTerminates) {
  CartPole standing;
  standing.Restore({}, kStepLimit - 2);
  EXPECT_FALSE(standing.Push(1).truncated);
  const CartPole::Step last = standing.Push(0);
  EXPECT_TRUE(last.truncated);
  EXPECT_FALSE(last.terminated);
  CartPole falling;
  falling.Restore({0, 0, 0.21f, 3}, kStepLimit - 1);
  const CartPole::Step fallen = falling.Push(0);
  EXPECT_TRUE(fallen.terminated);
  EXPECT_FALSE(fallen.truncated);
}

TEST(CartPoleTest, EpisodesBeginNearTheMiddle) {
  Random random(3, 0);
  CartPole cartpole;
  double least = 1;
  double most = -1;
  for (int i = 0; i < 1000; ++i) {
    cartpole.Push(0);
    for (const float x : cartpole.Reset(&random)) {
      least = std::min(least, static_cast<double>(x));
      most = std::max(most, static_cast<double>(x));
    }
    EXPECT_EQ(cartpole.steps(), 0);
  }
  EXPECT_GE(least, -0.05);
  EXPECT_LT(least, -0.049);
  EXPECT_LE(most, 0.05);
  EXPECT_GT(most, 0.049);
}

}  // namespace
}  // namespace geardb::quickstart
