#include "tools/quickstart/dqn.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace geardb::quickstart {
namespace {

std::vector<int64_t> Widths(const std::vector<int64_t>& hidden) {
  std::vector<int64_t> widths = {kObservationSize};
  widths.insert(widths.end(), hidden.begin(), hidden.end());
  widths.push_back(kActionCount);
  return widths;
}

/// A batch's observations as a matrix of one column each. The rows of a tensor are the columns of
/// Eigen, so nothing is moved. Scaled to about 1 by what the numbers can be.
Matrix Scaled(std::span<const float> observations) {
  const auto n = static_cast<Eigen::Index>(observations.size() / kObservationSize);
  const Eigen::Map<const Matrix> raw(observations.data(), kObservationSize, n);
  const Eigen::Vector4f scale(1 / 2.4f, 1 / 2.0f, 1 / 0.21f, 1 / 2.0f);
  return scale.asDiagonal() * raw;
}

int BestRow(const Matrix& values, Eigen::Index column) {
  Eigen::Index best = 0;
  values.col(column).maxCoeff(&best);
  return static_cast<int>(best);
}

void Put(const Eigen::VectorXf& values, std::vector<std::byte>* out) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  out->insert(out->end(), bytes, bytes + sizeof(float) * static_cast<size_t>(values.size()));
}

}  // namespace

Dqn::Dqn(const DqnOptions& options) : options_(options), mlp_(Widths(options.hidden)) {
  Random random(options.seed, 1);
  online_ = mlp_.Initial(&random);
  target_ = online_;
  adam_ = Adam(mlp_.parameter_count());
}

int Dqn::Greedy(const Eigen::VectorXf& parameters, const Observation& observation) {
  mlp_.Forward(parameters, Scaled(observation), &one_);
  return BestRow(one_.output(), 0);
}

int Dqn::Explore(const Observation& observation, double epsilon, Random* random) {
  if (random->Uniform() < epsilon) return static_cast<int>(random->Below(kActionCount));
  return Greedy(online_, observation);
}

Learned Dqn::Update(const Transitions& batch) {
  const auto n = static_cast<Eigen::Index>(batch.actions.size());
  const Matrix observations = Scaled(batch.observations);
  const Matrix next = Scaled(batch.next_observations);
  mlp_.Forward(online_, next, &next_online_);
  mlp_.Forward(target_, next, &next_target_);
  mlp_.Forward(online_, observations, &now_);

  Learned learned;
  errors_.resize(batch.actions.size());
  Matrix output_gradient = Matrix::Zero(kActionCount, n);
  const float share = 1.0f / static_cast<float>(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const auto k = static_cast<size_t>(i);
    // The network that learns chooses the next action, the average says what it is worth.
    const float next_value = next_target_.output()(BestRow(next_online_.output(), i), i);
    const float wanted = batch.returns[k] + batch.discounts[k] * batch.masks[k] * next_value;
    const Eigen::Index action = batch.actions[k];
    const float error = now_.output()(action, i) - wanted;
    const float size = std::abs(error);
    errors_[k] = size;
    output_gradient(action, i) = batch.weights[k] * share * std::clamp(error, -1.0f, 1.0f);
    const float huber = size <= 1 ? 0.5f * size * size : size - 0.5f;
    learned.loss += static_cast<double>(batch.weights[k] * share * huber);
    learned.value += static_cast<double>(share * now_.output().col(i).maxCoeff());
  }
  mlp_.Backward(online_, observations, now_, output_gradient, &gradient_);

  const double done =
      std::min(1.0, static_cast<double>(updates()) / static_cast<double>(options_.updates_total));
  const double rate =
      options_.learning_rate + done * (options_.learning_rate_end - options_.learning_rate);
  adam_.Update(static_cast<float>(rate), options_.gradient_norm_max, &gradient_, &online_);
  target_ += static_cast<float>(options_.target_rate) * (online_ - target_);
  learned.errors = errors_;
  return learned;
}

void Dqn::Save(std::vector<std::byte>* out) const {
  for (const auto* part : {&online_, &target_, &adam_.mean, &adam_.variance}) Put(*part, out);
  const auto* steps = reinterpret_cast<const std::byte*>(&adam_.steps);
  out->insert(out->end(), steps, steps + sizeof(adam_.steps));
}

Status Dqn::Load(std::span<const std::byte> bytes) {
  const size_t part_bytes = sizeof(float) * static_cast<size_t>(mlp_.parameter_count());
  const size_t expected = 4 * part_bytes + sizeof(adam_.steps);
  if (bytes.size() != expected) {
    return Status::Corruption("a saved learner has ", expected, " bytes, found ", bytes.size());
  }
  for (auto* part : {&online_, &target_, &adam_.mean, &adam_.variance}) {
    std::memcpy(part->data(), bytes.data(), part_bytes);
    bytes = bytes.subspan(part_bytes);
  }
  std::memcpy(&adam_.steps, bytes.data(), sizeof(adam_.steps));
  return Status::Ok();
}

}  // namespace geardb::quickstart
