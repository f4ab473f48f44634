// Mlp: a small fully connected network with ReLU between its layers, and the optimizer Adam.
//
// All parameters stand in one vector, so that saving a network, averaging two of them and one step
// of the optimizer are each one line.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "tools/quickstart/random.h"

namespace geardb::quickstart {

using Matrix = Eigen::MatrixXf;  ///< One column per row of a batch: [width, batch].
using ConstMatrixRef = Eigen::Ref<const Matrix>;

/// The shape of a network; its parameters are the caller's. Immutable.
class Mlp {
 public:
  /// Widths from input to output: {4, 64, 64, 2}.
  explicit Mlp(std::vector<int64_t> widths);

  int64_t parameter_count() const { return parameter_count_; }
  /// Fresh parameters: weights uniform by He's rule (variance 2 / inputs), biases 0.
  Eigen::VectorXf Initial(Random* random) const;

  /// Every layer's output, as Forward leaves it for Backward.
  struct Activations {
    std::vector<Matrix> layers;
    const Matrix& output() const { return layers.back(); }
  };
  /// Applies the network to the columns of `input`.
  void Forward(const Eigen::VectorXf& parameters, const ConstMatrixRef& input,
               Activations* activations) const;
  /// The gradient over the parameters, given the gradient over the output of the Forward before.
  void Backward(const Eigen::VectorXf& parameters, const ConstMatrixRef& input,
                const Activations& activations, const Matrix& output_gradient,
                Eigen::VectorXf* gradient) const;

 private:
  struct Layer {
    int64_t inputs = 0;
    int64_t outputs = 0;
    int64_t weights = 0;  ///< Offset of its weights in the parameters.
    int64_t biases = 0;   ///< Offset of its biases.
  };
  std::vector<Layer> layers_;
  int64_t parameter_count_ = 0;
};

/// Adam (Kingma and Ba, 2015), with the gradient clipped to a norm before. A plain value.
struct Adam {
  Eigen::VectorXf mean;      ///< First moment.
  Eigen::VectorXf variance;  ///< Second moment.
  uint64_t steps = 0;

  explicit Adam(int64_t parameter_count = 0)
      : mean(Eigen::VectorXf::Zero(parameter_count)),
        variance(Eigen::VectorXf::Zero(parameter_count)) {}
  /// Moves `parameters` against `gradient` (which is clipped in place).
  void Update(float learning_rate, float norm_max, Eigen::VectorXf* gradient,
              Eigen::VectorXf* parameters);
};

}  // namespace geardb::quickstart
