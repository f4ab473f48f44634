#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/convert.h"
#include "kernels/scan.h"

namespace geardb {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ScanRun RunOf(const std::vector<double>& values) {
  return {.dtype = DType::kF64,
          .values = values.data(),
          .stride = sizeof(double),
          .count = values.size()};
}

bool SameBits(const ScanSums::Totals& a, const ScanSums::Totals& b) {
  const auto same = [](double x, double y) {
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
  };
  return a.count == b.count && a.nans == b.nans && same(a.sum, b.sum) && same(a.mean, b.mean) &&
         same(a.squares, b.squares) && same(a.min, b.min) && same(a.max, b.max);
}

std::vector<double> RandomValues(uint64_t count, std::mt19937_64* random, uint64_t nan_one_in) {
  std::vector<double> values;
  for (uint64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>((*random)() % 2'000'000) / 7 - 100'000;
    values.push_back(nan_one_in > 0 && (*random)() % nan_one_in == 0 ? std::nan("") : value);
  }
  return values;
}

template <typename T>
class ScanConvertTest : public ::testing::Test {};
using ElementTypes = ::testing::Types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t,
                                      uint64_t, int64_t, float, double>;
TYPED_TEST_SUITE(ScanConvertTest, ElementTypes);

TYPED_TEST(ScanConvertTest, EveryElementBecomesItsValue) {
  using T = TypeParam;
  std::mt19937_64 random(1);
  std::vector<std::byte> bytes(4000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (const uint64_t stride : {sizeof(T), sizeof(T) + 1, 3 * sizeof(T), uint64_t{0}}) {
    for (const uint64_t count : {0u, 1u, 7u, 8u, 9u, 63u, 100u}) {
      for (const uint64_t shift : {0u, 1u, 5u}) {
        const std::byte* from = bytes.data() + shift;
        std::vector<double> converted(count + 1, -7.5);
        ConvertToDouble({.dtype = kDTypeOf<T>, .values = from, .stride = stride, .count = count},
                        converted.data());
        for (uint64_t i = 0; i < count; ++i) {
          T value;
          std::memcpy(&value, from + i * stride, sizeof(T));
          const auto expected = static_cast<double>(value);
          ASSERT_TRUE(converted[i] == expected ||
                      (converted[i] != converted[i] && expected != expected));
        }
        ASSERT_EQ(converted[count], -7.5);  // Nothing behind the last.
      }
    }
  }
}

TEST(ScanConvertHalfTest, HalvesAndBools) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    double f16 = 0, bf16 = 0;
    ConvertToDouble({.dtype = DType::kF16, .values = &half, .stride = 2, .count = 1}, &f16);
    ConvertToDouble({.dtype = DType::kBf16, .values = &half, .stride = 2, .count = 1}, &bf16);
    const float expected = Float16ToFloat({half});
    ASSERT_TRUE(f16 == double{expected} || (std::isnan(f16) && std::isnan(expected)));
    const float expected_b = BFloat16ToFloat({half});
    ASSERT_TRUE(bf16 == double{expected_b} || (std::isnan(bf16) && std::isnan(expected_b)));
  }
  const uint8_t bools[] = {0, 1, 255};
  double converted[3];
  ConvertToDouble({.dtype = DType::kBool, .values = bools, .stride = 1, .count = 3}, converted);
  EXPECT_EQ(converted[0], 0.0);
  EXPECT_EQ(converted[1], 1.0);
  EXPECT_EQ(converted[2], 1.0);
}

TEST(ScanSumsTest, SumsAreThoseOfLongDoubleWithinTheirRounding) {
  std::mt19937_64 random(2);
  for (const uint64_t count : {1u, 2u, 7u, 8u, 9u, 1023u, 1024u, 1025u, 5000u, 100'000u}) {
    for (const uint64_t nan_one_in : {0u, 3u}) {
      const std::vector<double> values = RandomValues(count, &random, nan_one_in);
      ScanSums sums;
      sums.Add(RunOf(values));
      const ScanSums::Totals totals = sums.Finish();
      uint64_t numbers = 0;
      long double sum = 0, size = 0, squares = 0;
      double min = kInfinity, max = -kInfinity;
      for (const double value : values) {
        if (std::isnan(value)) continue;
        ++numbers;
        sum += value;
        size += std::abs(value);
        min = std::min(min, value);
        max = std::max(max, value);
      }
      ASSERT_EQ(totals.count, numbers);
      ASSERT_EQ(totals.nans, count - numbers);
      ASSERT_EQ(totals.min, min);
      ASSERT_EQ(totals.max, max);
      if (numbers == 0) continue;
      const long double mean = sum / static_cast<long double>(numbers);
      for (const double value : values) {
        if (!std::isnan(value)) squares += (value - mean) * (value - mean);
      }
      // 128 additions in a lane, as many tiles at most, each off by half a unit of the last place.
      const long double bound = 300 * 0x1p-53L;
      ASSERT_LE(std::abs(totals.sum - sum), bound * size);
      ASSERT_LE(std::abs(totals.mean - mean), bound * size / static_cast<long double>(numbers));
      ASSERT_LE(std::abs(totals.squares - squares), bound * (squares + 1));
    }
  }
}

TEST(ScanSumsTest, CutsDoNotMatter) {
  std::mt19937_64 random(3);
  const std::vector<double> values = RandomValues(20'000, &random, 9);
  ScanSums whole;
  whole.Add(RunOf(values));
  for (int round = 0; round < 50; ++round) {
    ScanSums cut;
    for (uint64_t at = 0; at < values.size();) {
      const uint64_t count =
          std::min<uint64_t>(random() % (round % 2 == 0 ? 10 : 3000), values.size() - at);
      ScanRun run = RunOf(values);
      run.values = values.data() + at;
      run.count = count;
      cut.Add(run);
      at += count;
    }
    ASSERT_TRUE(SameBits(cut.Finish(), whole.Finish()));
    ASSERT_TRUE(SameBits(cut.Finish(), whole.Finish()));  // Finish changes nothing.
  }
}

TEST(ScanSumsTest, NothingAndInfinities) {
  ScanSums none;
  EXPECT_EQ(none.Finish().count, 0u);
  EXPECT_EQ(none.Finish().min, kInfinity);
  ScanSums nans;
  nans.Add(RunOf({std::nan(""), std::nan("")}));
  EXPECT_EQ(nans.Finish().count, 0u);
  EXPECT_EQ(nans.Finish().nans, 2u);
  std::vector<double> values(3000, 1.0);
  values[2500] = kInfinity;
  ScanSums infinite;
  infinite.Add(RunOf(values));
  EXPECT_EQ(infinite.Finish().mean, kInfinity);
  EXPECT_EQ(infinite.Finish().max, kInfinity);
  EXPECT_EQ(infinite.Finish().min, 1.0);
  values[10] = -kInfinity;
  ScanSums both;
  both.Add(RunOf(values));
  EXPECT_TRUE(std::isnan(both.Finish().mean));
}

TEST(ScanSumsTest, ASmallDeviationOfALargeMeanIsKept) {
  std::vector<double> values;
  for (int i = 0; i < 10'000; ++i) values.push_back(1e9 + (i % 2));
  ScanSums sums;
  sums.Add(RunOf(values));
  EXPECT_NEAR(sums.Finish().squares / 10'000, 0.25, 1e-9);
}

TEST(ScanHistogramTest, BinsAreThoseOfASearch) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 60; ++round) {
    const bool uniform = round % 2 == 0;
    const uint64_t bins = 1 + random() % 40;
    std::vector<double> edges;
    for (uint64_t i = 0; i <= bins; ++i) {
      const double last = edges.empty() ? -3.0 : edges.back();
      edges.push_back(uniform ? -3 + 0.7 * static_cast<double>(i)
                              : last + 0.01 + static_cast<double>(random() % 100) / 50);
    }
    std::vector<double> values = {std::nan(""), kInfinity, -kInfinity};
    for (const double edge : edges) {
      for (const double near :
           {edge, std::nextafter(edge, kInfinity), std::nextafter(edge, -kInfinity)}) {
        values.push_back(near);
      }
    }
    for (int i = 0; i < 3000; ++i) {
      values.push_back(static_cast<double>(random() % 100'000) / 1000 - 10);
    }
    std::vector<uint64_t> counts(bins);
    uint64_t below = 0, above = 0;
    for (const double value : values) {
      if (std::isnan(value)) continue;
      below += value < edges.front() ? 1u : 0u;
      above += value > edges.back() ? 1u : 0u;
      for (uint64_t bin = 0; bin < bins; ++bin) {
        const bool last = bin + 1 == bins && value == edges[bins];
        if ((value >= edges[bin] && value < edges[bin + 1]) || last) ++counts[bin];
      }
    }
    ScanHistogram histogram(edges, uniform);
    histogram.Add(RunOf(values));
    ASSERT_EQ(std::vector<uint64_t>(histogram.counts().begin(), histogram.counts().end()), counts);
    ASSERT_EQ(histogram.below(), below);
    ASSERT_EQ(histogram.above(), above);
    ASSERT_EQ(histogram.nans(), 1u);
  }
}

}  // namespace
}  // namespace geardb
