#include "tools/quickstart/mlp.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace geardb::quickstart {
namespace {

using WeightMap = Eigen::Map<const Matrix>;
using BiasMap = Eigen::Map<const Eigen::VectorXf>;

}  // namespace

Mlp::Mlp(std::vector<int64_t> widths) {
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    Layer layer;
    layer.inputs = widths[i];
    layer.outputs = widths[i + 1];
    layer.weights = parameter_count_;
    layer.biases = layer.weights + layer.inputs * layer.outputs;
    parameter_count_ = layer.biases + layer.outputs;
    layers_.push_back(layer);
  }
}

Eigen::VectorXf Mlp::Initial(Random* random) const {
  Eigen::VectorXf parameters = Eigen::VectorXf::Zero(parameter_count_);
  for (const Layer& layer : layers_) {
    const double bound = std::sqrt(6.0 / static_cast<double>(layer.inputs));
    for (int64_t i = layer.weights; i < layer.biases; ++i) {
      parameters[i] = static_cast<float>(random->Uniform(-bound, bound));
    }
  }
  return parameters;
}

void Mlp::Forward(const Eigen::VectorXf& parameters, const ConstMatrixRef& input,
                  Activations* activations) const {
  activations->layers.resize(layers_.size());
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const WeightMap weights(parameters.data() + layer.weights, layer.outputs, layer.inputs);
    const BiasMap biases(parameters.data() + layer.biases, layer.outputs);
    Matrix& output = activations->layers[i];
    if (i == 0) {
      output.noalias() = weights * input;
    } else {
      output.noalias() = weights * activations->layers[i - 1];
    }
    output.colwise() += biases;
    if (i + 1 < layers_.size()) output = output.cwiseMax(0.0f);
  }
}

void Mlp::Backward(const Eigen::VectorXf& parameters, const ConstMatrixRef& input,
                   const Activations& activations, const Matrix& output_gradient,
                   Eigen::VectorXf* gradient) const {
  gradient->resize(parameter_count_);
  Matrix above = output_gradient;
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    Eigen::Map<Matrix> weight_gradient(gradient->data() + layer.weights, layer.outputs,
                                       layer.inputs);
    Eigen::Map<Eigen::VectorXf> bias_gradient(gradient->data() + layer.biases, layer.outputs);
    bias_gradient = above.rowwise().sum();
    if (i == 0) {
      weight_gradient.noalias() = above * input.transpose();
      return;
    }
    const Matrix& below = activations.layers[i - 1];
    weight_gradient.noalias() = above * below.transpose();
    const WeightMap weights(parameters.data() + layer.weights, layer.outputs, layer.inputs);
    Matrix next = weights.transpose() * above;
    above = (below.array() > 0.0f).select(next, 0.0f);
  }
}

void Adam::Update(float learning_rate, float norm_max, Eigen::VectorXf* gradient,
                  Eigen::VectorXf* parameters) {
  constexpr float kBeta1 = 0.9f;
  constexpr float kBeta2 = 0.999f;
  constexpr float kEpsilon = 1e-7f;
  const float norm = gradient->norm();
  if (norm > norm_max) *gradient *= norm_max / norm;
  ++steps;
  mean = kBeta1 * mean + (1 - kBeta1) * *gradient;
  variance = kBeta2 * variance + (1 - kBeta2) * gradient->cwiseAbs2();
  const auto t = static_cast<float>(steps);
  const float rate = learning_rate * std::sqrt(1 - std::pow(kBeta2, t)) / (1 - std::pow(kBeta1, t));
  parameters->array() -= rate * mean.array() / (variance.array().sqrt() + kEpsilon);
}

}  // namespace geardb::quickstart
