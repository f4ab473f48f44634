#include "base/fixed_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace geardb {
namespace {

/// Relative to the larger of 1 and what it is relative to.
double ErrorOver(long double found, long double exact, long double scale) {
  return static_cast<double>(std::fabs(found - exact) / std::max(1.0L, std::fabs(scale)));
}

/// Any positive finite f32, all exponents alike.
double RandomFloat(std::mt19937_64* random) {
  const uint32_t bits = 1 + static_cast<uint32_t>((*random)() % 0x7F7FFFFF);
  return std::bit_cast<float>(bits);
}

double RandomBetween(std::mt19937_64* random, double low, double high) {
  return low + (high - low) * (static_cast<double>((*random)() >> 11) * 0x1p-53);
}

TEST(FixedMathTest, Log2StaysWithinItsBound) {
  std::mt19937_64 random(1);
  double worst = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double x = i % 2 == 0 ? RandomFloat(&random) : RandomBetween(&random, 0.5, 2.0);
    const long double exact = log2l(x);
    worst = std::max(worst, ErrorOver(Log2(x), exact, exact));
  }
  EXPECT_LE(worst, 0x1p-51);
  for (int e = -1022; e <= 1023; ++e) ASSERT_EQ(Log2(std::ldexp(1.0, e)), e);
}

TEST(FixedMathTest, Exp2StaysWithinItsBound) {
  std::mt19937_64 random(2);
  double worst = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double t = RandomBetween(&random, -1021.5, 1024.0);
    const long double exact = exp2l(t);
    worst = std::max(worst, static_cast<double>(std::fabs(Exp2(t) / exact - 1)));
  }
  EXPECT_LE(worst, 0x1p-51);
  for (int e = -1021; e <= 1023; ++e) ASSERT_EQ(Exp2(e), std::ldexp(1.0, e));
  EXPECT_EQ(Exp2(1024.0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(Exp2(1e300), std::numeric_limits<double>::infinity());
  EXPECT_EQ(Exp2(-1022.0), 0.0);
  EXPECT_EQ(Exp2(-1e300), 0.0);
}

TEST(FixedMathTest, PowStaysWithinItsBound) {
  std::mt19937_64 random(3);
  double worst = 0;
  double worst_ulp = 0;
  for (int i = 0; i < 300'000; ++i) {
    const double x = RandomFloat(&random);
    const double y = RandomBetween(&random, -4.0, 4.0);
    const long double exact = powl(x, y);
    const long double t = y * log2l(x);
    worst = std::max(worst, ErrorOver(Pow(x, y) / exact, 1.0L, t));
    if (std::fabs(t) > 120) continue;
    // In units in the last place of f32.
    const float rounded = static_cast<float>(Pow(x, y));
    const double ulp = std::ldexp(1.0, std::ilogb(rounded) - 23);
    worst_ulp = std::max(worst_ulp, static_cast<double>(std::fabs(rounded - exact)) / ulp);
  }
  EXPECT_LE(worst, 0x1p-50);
  EXPECT_LE(worst_ulp, 0.501);
}

TEST(FixedMathTest, PowOfSpecialValues) {
  EXPECT_EQ(Pow(0.0, 0.6), 0.0);
  EXPECT_EQ(Pow(0.0, 0.0), 0.0);
  EXPECT_EQ(Pow(0.0, -1.0), 0.0);
  EXPECT_EQ(Pow(-0.0, 1.0), 0.0);
  EXPECT_EQ(Pow(123.0, 0.0), 1.0);
  EXPECT_EQ(Pow(1.0, 0.6), 1.0);
  EXPECT_EQ(Pow(2.0, 3.0), 8.0);
  EXPECT_EQ(Pow(0.25, 0.5), 0.5);
}

TEST(FixedMathTest, BitsAreFrozen) {
  EXPECT_EQ(std::bit_cast<uint64_t>(Log2(3.0)), 0x3FF95C01A39FBD69);
  EXPECT_EQ(std::bit_cast<uint64_t>(Exp2(0.1)), 0x3FF125FBEE250664);
  // A hash over powers of many magnitudes: FNV-1a over their bits.
  uint64_t hash = 0xCBF29CE484222325;
  std::mt19937_64 random(4);
  for (int i = 0; i < 10'000; ++i) {
    const double x = RandomFloat(&random);
    const uint64_t bits = std::bit_cast<uint64_t>(Pow(x, RandomBetween(&random, 0.0, 4.0)));
    hash = (hash ^ bits) * 0x100000001B3;
  }
  EXPECT_EQ(hash, 0x417327570AA8A8FF);
}

TEST(FixedMathTest, BatchGivesTheSameBits) {
  std::mt19937_64 random(5);
  for (size_t count = 0; count < 100; ++count) {
    std::vector<float> x(count);
    for (float& value : x) {
      value = random() % 8 == 0 ? 0.0f : static_cast<float>(RandomFloat(&random));
    }
    for (const double y : {0.0, 0.6, -0.4, 4.0, 1000.0}) {
      std::vector<double> found(count);
      PowBatch(x.data(), count, y, found.data());
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(std::bit_cast<uint64_t>(found[i]), std::bit_cast<uint64_t>(Pow(x[i], y)))
            << x[i] << " to the " << y;
      }
    }
  }
}

TEST(FixedMathTest, WeightsAreRoundedHalfUpAndBounded) {
  EXPECT_EQ(QuantizeWeight(0.0, 16), 0u);
  EXPECT_EQ(QuantizeWeight(1.0, 16), 65536u);
  EXPECT_EQ(QuantizeWeight(1.5, 0), 2u);
  EXPECT_EQ(QuantizeWeight(2.5, 0), 3u);
  EXPECT_EQ(QuantizeWeight(2.4999, 0), 2u);
  EXPECT_EQ(QuantizeWeight(1e-300, -32), 1u);
  EXPECT_EQ(QuantizeWeight(0.25, 0), 1u);
  EXPECT_EQ(QuantizeWeight(4294967294.0, 0), 4294967294u);
  EXPECT_EQ(QuantizeWeight(4294967294.5, 0), 4294967295u);
  EXPECT_EQ(QuantizeWeight(4294967295.0, 0), 4294967295u);
  EXPECT_EQ(QuantizeWeight(1e19, 0), 4294967295u);
  EXPECT_EQ(QuantizeWeight(std::numeric_limits<double>::infinity(), -32), 4294967295u);
  EXPECT_EQ(QuantizeWeight(0x1p63, -32), 2147483648u);
}

}  // namespace
}  // namespace geardb
