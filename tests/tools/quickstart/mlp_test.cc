#include "tools/quickstart/mlp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace geardb::quickstart {
namespace {

Matrix RandomMatrix(int64_t rows, int64_t columns, Random* random) {
  Matrix matrix(rows, columns);
  for (Eigen::Index i = 0; i < matrix.size(); ++i) {
    matrix.data()[i] = static_cast<float>(random->Uniform(-1, 1));
  }
  return matrix;
}

/// The sum of all outputs, each times its factor: a loss whose output gradient is `factors`.
double Loss(const Mlp& mlp, const Eigen::VectorXf& parameters, const Matrix& input,
            const Matrix& factors) {
  Mlp::Activations activations;
  mlp.Forward(parameters, input, &activations);
  return activations.output().cast<double>().cwiseProduct(factors.cast<double>()).sum();
}

TEST(MlpTest, OneLayerIsAnAffineMap) {
  const Mlp mlp({2, 1});
  ASSERT_EQ(mlp.parameter_count(), 3);
  const Eigen::Vector3f parameters(2, -3, 0.5f);
  const Eigen::Vector2f input(10, 1);
  Mlp::Activations activations;
  mlp.Forward(parameters, input, &activations);
  EXPECT_EQ(activations.output()(0, 0), 17.5f);
}

TEST(MlpTest, HiddenLayersAreCutAtZeroAndTheLastIsNot) {
  const Mlp mlp({1, 2, 1});
  // Hidden: x and -x; output: their sum, negative.
  Eigen::VectorXf parameters(mlp.parameter_count());
  parameters << 1, -1, 0, 0, -1, -1, 0;
  Mlp::Activations activations;
  const Matrix input = (Matrix(1, 3) << -2, 0, 5).finished();
  mlp.Forward(parameters, input, &activations);
  EXPECT_EQ(activations.output(), (Matrix(1, 3) << -2, 0, -5).finished());
}

TEST(MlpTest, GradientsAgreeWithFiniteDifferences) {
  Random random(5, 0);
  const Mlp mlp({4, 16, 16, 2});
  const Eigen::VectorXf parameters = mlp.Initial(&random);
  const Matrix input = RandomMatrix(4, 8, &random);
  const Matrix factors = RandomMatrix(2, 8, &random);
  Mlp::Activations activations;
  mlp.Forward(parameters, input, &activations);
  Eigen::VectorXf gradient;
  mlp.Backward(parameters, input, activations, factors, &gradient);
  ASSERT_EQ(gradient.size(), mlp.parameter_count());

  constexpr float kStep = 1e-3f;
  int64_t off = 0;
  for (int64_t i = 0; i < mlp.parameter_count(); ++i) {
    Eigen::VectorXf moved = parameters;
    moved[i] = parameters[i] + kStep;
    const double above = Loss(mlp, moved, input, factors);
    moved[i] = parameters[i] - kStep;
    const double below = Loss(mlp, moved, input, factors);
    const double slope = (above - below) / (2 * static_cast<double>(kStep));
    const double scale = std::max(1.0, std::abs(slope));
    off += std::abs(slope - static_cast<double>(gradient[i])) > 0.01 * scale ? 1 : 0;
  }
  // The loss is linear in each parameter but for the kinks that a step may cross.
  EXPECT_LE(off, mlp.parameter_count() / 50);
}

TEST(MlpTest, FreshWeightsHaveHesVariance) {
  Random random(1, 0);
  const Mlp mlp({100, 300, 1});
  const Eigen::VectorXf parameters = mlp.Initial(&random);
  const auto weights = parameters.head(100 * 300);
  EXPECT_NEAR(weights.mean(), 0, 0.005);
  EXPECT_NEAR(weights.squaredNorm() / 30'000, 2.0 / 100, 0.001);
  EXPECT_EQ(parameters.segment(100 * 300, 300).norm(), 0) << "biases begin at 0";
}

// Kingma and Ba, 2015, algorithm 1, in f64.
TEST(MlpTest, AdamFollowsItsPaper) {
  const Eigen::Vector2f start(1, -2);
  Eigen::VectorXf parameters = start;
  Adam adam(2);
  double x[2] = {1, -2};
  double mean[2] = {};
  double variance[2] = {};
  for (int t = 1; t <= 50; ++t) {
    Eigen::VectorXf gradient = parameters;  // Of |x|^2 / 2.
    adam.Update(0.1f, 1e9f, &gradient, &parameters);
    for (int i = 0; i < 2; ++i) {
      const double g = x[i];
      mean[i] = 0.9 * mean[i] + 0.1 * g;
      variance[i] = 0.999 * variance[i] + 0.001 * g * g;
      const double mean_hat = mean[i] / (1 - std::pow(0.9, t));
      const double variance_hat = variance[i] / (1 - std::pow(0.999, t));
      x[i] -= 0.1 * mean_hat / (std::sqrt(variance_hat) + 1e-8);
    }
  }
  EXPECT_EQ(adam.steps, 50U);
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(parameters[i], x[i], 1e-3) << i;
}

TEST(MlpTest, GradientsAreClippedToTheirNorm) {
  Eigen::VectorXf parameters = Eigen::VectorXf::Zero(2);
  Eigen::VectorXf gradient = Eigen::Vector2f(30, 40);
  Adam adam(2);
  adam.Update(0.1f, 5, &gradient, &parameters);
  EXPECT_NEAR(gradient[0], 3, 1e-5);
  EXPECT_NEAR(gradient[1], 4, 1e-5);
  gradient = Eigen::Vector2f(0.3f, 0.4f);
  adam.Update(0.1f, 5, &gradient, &parameters);
  EXPECT_EQ(gradient[0], 0.3f);
}

}  // namespace
}  // namespace geardb::quickstart
