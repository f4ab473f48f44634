// CartPole-v1, with the dynamics, bounds and step limit of Gymnasium's
// (gymnasium/envs/classic_control/cartpole.py; Barto, Sutton and Anderson, 1983).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tools/quickstart/random.h"

namespace geardb::quickstart {

inline constexpr int kObservationSize = 4;
inline constexpr int kActionCount = 2;
inline constexpr int64_t kStepLimit = 500;

/// What the learner sees: position, velocity, angle, angular velocity, as f32.
using Observation = std::array<float, kObservationSize>;

/// A pole on a cart. A plain value: a copy continues on its own.
class CartPole {
 public:
  struct Step {
    Observation observation;  ///< After the action.
    float reward = 1.0f;      ///< Always 1, for the step that ends an episode too.
    bool terminated = false;  ///< The pole fell, or the cart left the track.
    bool truncated = false;   ///< The step limit was reached and the pole stands.
  };

  /// Begins an episode: every number of the state uniform in [-0.05, 0.05).
  Observation Reset(Random* random);
  /// Goes on from an observation that was stored, after `steps` steps of its episode.
  void Restore(const Observation& observation, int64_t steps);
  /// Goes on from an exact state, after 0 steps.
  void SetState(const std::array<double, kObservationSize>& state);

  /// Pushes left (0) or right (1). Not to be called after an end.
  Step Push(int action);

  Observation observation() const;
  const std::array<double, kObservationSize>& state() const { return state_; }
  int64_t steps() const { return steps_; }

 private:
  std::array<double, kObservationSize> state_{};
  int64_t steps_ = 0;
};

}  // namespace geardb::quickstart
