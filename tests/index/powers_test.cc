#include "index/powers.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "base/fixed_math.h"

namespace geardb::index {
namespace {

template <typename Value>
void ExpectTheBitsOfPow() {
  std::mt19937_64 random(6);
  for (size_t count = 0; count < 150; ++count) {
    std::vector<Value> values(count);
    for (Value& value : values) {
      const double mantissa = static_cast<double>(random() >> 11) * 0x1p-53 + 0.5;
      const auto exponent = static_cast<int>(random() % 240) - 120;
      value = random() % 8 == 0 ? Value{0} : static_cast<Value>(std::ldexp(mantissa, exponent));
    }
    for (const double y : {0.0, 0.6, -0.4, -1.0, 4.0, 1000.0}) {
      std::vector<double> powers(count);
      Powers(std::span<const Value>(values), y, powers);
      for (size_t i = 0; i < count; ++i) {
        const double wanted = Pow(static_cast<double>(values[i]), y);
        ASSERT_EQ(std::bit_cast<uint64_t>(powers[i]), std::bit_cast<uint64_t>(wanted))
            << values[i] << " to the " << y;
      }
    }
  }
}

TEST(PowersTest, HaveTheBitsOfPow) {
  ExpectTheBitsOfPow<float>();
  ExpectTheBitsOfPow<double>();
}

TEST(PowersTest, MayReplaceTheirValues) {
  std::vector<double> values = {0.0, 0.25, 2.0, 3.0, 1e300};
  const std::vector<double> before = values;
  Powers(std::span<const double>(values), 0.5, values);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], Pow(before[i], 0.5));
}

}  // namespace
}  // namespace geardb::index
