#include "index/importance_weights.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace geardb::index {
namespace {

std::vector<float> Weights(const WeightRequest& request, const std::vector<double>& p) {
  std::vector<float> weights(p.size(), -1.0f);
  ImportanceWeights(request, p, weights);
  return weights;
}

TEST(ImportanceWeightsTest, RarestRowOfTheBatchWeighsOne) {
  const std::vector<double> p = {0.02, 0.005, 0.3, 0.005};
  const auto weights = Weights({.beta = 0.5}, p);
  EXPECT_EQ(weights[1], 1.0f);
  EXPECT_EQ(weights[3], 1.0f);
  for (size_t i = 0; i < p.size(); ++i) {
    EXPECT_FLOAT_EQ(weights[i], static_cast<float>(std::pow(p[i] / 0.005, -0.5)));
  }
}

TEST(ImportanceWeightsTest, TableMaximumIsTheRarestMember) {
  const auto weights = Weights(
      {.beta = 0.4, .maximum = WeightMaximum::kTable, .smallest_probability = 0.001}, {0.02, 0.3});
  EXPECT_FLOAT_EQ(weights[0], static_cast<float>(std::pow(20.0, -0.4)));
  EXPECT_FLOAT_EQ(weights[1], static_cast<float>(std::pow(300.0, -0.4)));
}

TEST(ImportanceWeightsTest, PlainWeightsAreNotNormalised) {
  const auto weights =
      Weights({.beta = 1.0, .maximum = WeightMaximum::kNone, .drawable = 10}, {0.05, 0.1, 0.5});
  EXPECT_FLOAT_EQ(weights[0], 2.0f);
  EXPECT_FLOAT_EQ(weights[1], 1.0f);
  EXPECT_FLOAT_EQ(weights[2], 0.2f);
}

TEST(ImportanceWeightsTest, BetaZeroIsOneAndNoItemIsZero) {
  EXPECT_EQ(Weights({.beta = 0.0}, {0.5, 0.0, 0.1}), (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(Weights({}, {0.0, 0.0}), (std::vector<float>{0, 0}));
  EXPECT_TRUE(Weights({}, {}).empty());
}

TEST(ImportanceWeightsTest, BitsAreFrozen) {
  std::vector<double> p(300);
  for (size_t i = 0; i < p.size(); ++i) p[i] = static_cast<double>(i + 1) / 45150.0;
  const auto weights = Weights({.beta = 0.4}, p);
  for (size_t i = 0; i < p.size(); ++i) {
    const double exact = std::pow(p[i] / p[0], -0.4);
    EXPECT_NEAR(weights[i], exact, exact * 0x1p-24) << i;
  }
  EXPECT_EQ(std::bit_cast<uint32_t>(weights[1]), std::bit_cast<uint32_t>(0.757858283f));
  EXPECT_EQ(std::bit_cast<uint32_t>(weights[299]), std::bit_cast<uint32_t>(0.102129569f));
}

}  // namespace
}  // namespace geardb::index
