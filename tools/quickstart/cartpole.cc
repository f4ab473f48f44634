#include "tools/quickstart/cartpole.h"

#include <cmath>
#include <cstddef>

namespace geardb::quickstart {
namespace {

constexpr double kGravity = 9.8;
constexpr double kCartMass = 1.0;
constexpr double kPoleMass = 0.1;
constexpr double kTotalMass = kPoleMass + kCartMass;
constexpr double kHalfPole = 0.5;
constexpr double kPoleMassLength = kPoleMass * kHalfPole;
constexpr double kForce = 10.0;
constexpr double kSecondsPerStep = 0.02;
constexpr double kAngleMax = 12 * 2 * 3.141592653589793 / 360;
constexpr double kPositionMax = 2.4;

}  // namespace

Observation CartPole::Reset(Random* random) {
  for (double& x : state_) x = random->Uniform(-0.05, 0.05);
  steps_ = 0;
  return observation();
}

void CartPole::Restore(const Observation& observation, int64_t steps) {
  for (size_t i = 0; i < state_.size(); ++i) state_[i] = static_cast<double>(observation[i]);
  steps_ = steps;
}

void CartPole::SetState(const std::array<double, kObservationSize>& state) {
  state_ = state;
  steps_ = 0;
}

CartPole::Step CartPole::Push(int action) {
  auto& [x, x_dot, theta, theta_dot] = state_;
  const double force = action == 1 ? kForce : -kForce;
  const double cos_theta = std::cos(theta);
  const double sin_theta = std::sin(theta);
  const double push = (force + kPoleMassLength * (theta_dot * theta_dot) * sin_theta) / kTotalMass;
  const double theta_acceleration =
      (kGravity * sin_theta - cos_theta * push) /
      (kHalfPole * (4.0 / 3.0 - kPoleMass * (cos_theta * cos_theta) / kTotalMass));
  const double x_acceleration =
      push - kPoleMassLength * theta_acceleration * cos_theta / kTotalMass;
  x += kSecondsPerStep * x_dot;
  x_dot += kSecondsPerStep * x_acceleration;
  theta += kSecondsPerStep * theta_dot;
  theta_dot += kSecondsPerStep * theta_acceleration;
  ++steps_;

  Step step;
  step.observation = observation();
  step.terminated = std::abs(x) > kPositionMax || std::abs(theta) > kAngleMax;
  step.truncated = !step.terminated && steps_ >= kStepLimit;
  return step;
}

Observation CartPole::observation() const {
  Observation observation;
  for (size_t i = 0; i < state_.size(); ++i) observation[i] = static_cast<float>(state_[i]);
  return observation;
}

}  // namespace geardb::quickstart
