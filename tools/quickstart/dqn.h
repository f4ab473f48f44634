// Dqn: a learner that knows nothing of where its transitions are stored.
//
// Double Q-learning (van Hasselt et al., 2016) on n-step returns with the Huber loss, importance
// weights from outside, and a target network that follows by a moving average. The greedy policy
// is that of the average, which is the steadier of the two.
//
// Invariants: the same options, batches and loaded bytes give the same parameters, bit by bit.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "tools/quickstart/cartpole.h"
#include "tools/quickstart/mlp.h"
#include "tools/quickstart/random.h"

namespace geardb::quickstart {

struct DqnOptions {
  uint64_t seed = 1;
  std::vector<int64_t> hidden = {64, 64};
  double learning_rate = 1e-3;      ///< At the first update…
  double learning_rate_end = 5e-5;  ///< …and at the last, linear between.
  uint64_t updates_total = 60'000;
  double target_rate = 0.005;  ///< Share of the network that enters the average at each update.
  float gradient_norm_max = 10.0f;
};

/// A batch of n transitions, in memory of the caller's.
struct Transitions {
  std::span<const float> observations;       ///< [n, kObservationSize].
  std::span<const int32_t> actions;          ///< [n].
  std::span<const float> returns;            ///< [n]: n-step sums of discounted rewards.
  std::span<const float> discounts;          ///< [n]: γ^m of the bootstrap value.
  std::span<const float> masks;              ///< [n]: 0 where the episode terminated.
  std::span<const float> next_observations;  ///< [n, kObservationSize]: m steps later.
  std::span<const float> weights;            ///< [n]: importance weights.
};

/// What one update found.
struct Learned {
  std::span<const float> errors;  ///< |TD error| of each transition, valid until the next update.
  double loss = 0;
  double value = 0;  ///< Mean of max Q over the batch.
};

/// The learner. Not thread-safe.
class Dqn {
 public:
  explicit Dqn(const DqnOptions& options);

  /// A random action with probability `epsilon`, else the best one by the network that learns.
  int Explore(const Observation& observation, double epsilon, Random* random);
  /// The best action by `parameters`: `average()`, or a copy of it kept from earlier.
  int Greedy(const Eigen::VectorXf& parameters, const Observation& observation);
  /// One step of Adam.
  Learned Update(const Transitions& batch);

  uint64_t updates() const { return adam_.steps; }
  const Eigen::VectorXf& average() const { return target_; }

  /// Network, average, and optimizer as bytes, and back. Corruption when the bytes are not those of
  /// a learner of the same shape.
  void Save(std::vector<std::byte>* out) const;
  Status Load(std::span<const std::byte> bytes);

 private:
  DqnOptions options_;
  Mlp mlp_;
  Eigen::VectorXf online_;
  Eigen::VectorXf target_;
  Adam adam_;
  Eigen::VectorXf gradient_;
  Mlp::Activations now_, next_online_, next_target_, one_;
  std::vector<float> errors_;
};

}  // namespace geardb::quickstart
