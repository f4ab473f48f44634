// Every comparison of every element type with a number, against long double, whose 64 bits of
// mantissa hold each i64, u64 and f64 exactly.

#include "index/filter_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "index/filter.h"
#include "tests/testing/random_programs.h"

namespace geardb::index {
namespace {

using testing::ShareOf;

static_assert(std::numeric_limits<long double>::digits >= 64);

long double HalfValue(uint16_t bits, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits & 0x7FFF) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  long double value = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    value = mantissa != 0 ? std::numeric_limits<long double>::quiet_NaN()
                          : std::numeric_limits<long double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<long double>(mantissa), 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(1 + std::ldexp(static_cast<long double>(mantissa), -mantissa_bits),
                       exponent - bias);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

template <typename T>
long double ValueOf(T element) {
  if constexpr (std::is_same_v<T, Float16>) {
    return HalfValue(element.bits, 10);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return HalfValue(element.bits, 7);
  } else {
    return static_cast<long double>(element);
  }
}

long double ValueOf(const ExactNumber& number) {
  return std::visit([](auto value) { return static_cast<long double>(value); }, number.value());
}

bool Compare(Comparison comparison, long double a, long double b) {
  switch (comparison) {
    case Comparison::kEqual:
      return a == b;
    case Comparison::kNotEqual:
      return a != b;
    case Comparison::kLess:
      return a < b;
    case Comparison::kLessEqual:
      return a <= b;
    case Comparison::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

constexpr Comparison kComparisons[] = {Comparison::kEqual,   Comparison::kNotEqual,
                                       Comparison::kLess,    Comparison::kLessEqual,
                                       Comparison::kGreater, Comparison::kGreaterEqual};

/// Numbers around which types begin, end and lose precision.
std::vector<ExactNumber> Numbers() {
  const std::vector<double> places = {0,
                                      1,
                                      2,
                                      127,
                                      128,
                                      255,
                                      256,
                                      2048,
                                      32767,
                                      32768,
                                      65504,
                                      65520,
                                      65535,
                                      65536,
                                      0x1p24,
                                      0x1p31,
                                      0x1p32,
                                      0x1p53,
                                      0x1p63,
                                      0x1p64,
                                      1e30,
                                      3.4028234663852886e38,
                                      3.3895313892515355e38,
                                      1e300,
                                      1.7976931348623157e308,
                                      0.1,
                                      double{0.1f},
                                      0x1p-24,
                                      0x1p-25,
                                      0x1p-133,
                                      0x1p-149,
                                      0x1p-150,
                                      5e-324,
                                      HUGE_VAL,
                                      std::nan("")};
  std::vector<ExactNumber> numbers;
  for (const double place : places) {
    for (const double near : {place, std::nextafter(place, HUGE_VAL), std::nextafter(place, 0.0),
                              place + 0.5, place - 0.5, place + 1, place - 1}) {
      numbers.emplace_back(near);
      numbers.emplace_back(-near);
    }
  }
  for (const int power : {7, 8, 15, 16, 24, 31, 32, 53, 54, 62, 63}) {
    for (const int64_t less : {-1, 0, 1, 2}) {
      const uint64_t value = (uint64_t{1} << power) - static_cast<uint64_t>(less);
      numbers.emplace_back(value);
      numbers.emplace_back(static_cast<int64_t>(uint64_t{0} - value));
    }
  }
  numbers.emplace_back(std::numeric_limits<uint64_t>::max());
  numbers.emplace_back(std::numeric_limits<int64_t>::min());
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

/// All elements of a type of at most 16 bits; of a larger one those near each number, and some.
template <typename T>
std::vector<T> Elements(const std::vector<ExactNumber>& numbers) {
  std::vector<T> elements;
  if constexpr (sizeof(T) <= 2) {
    for (uint32_t bits = 0; bits < (1u << (8 * sizeof(T))); ++bits) {
      T element;
      std::memcpy(&element, &bits, sizeof(T));
      elements.push_back(element);
    }
  } else {
    std::mt19937_64 random(3);
    for (const ExactNumber& number : numbers) {
      const long double value = ValueOf(number);
      if constexpr (std::is_integral_v<T>) {
        const bool fits = value >= static_cast<long double>(std::numeric_limits<T>::min()) &&
                          value <= static_cast<long double>(std::numeric_limits<T>::max());
        const T near = fits ? static_cast<T>(value) : static_cast<T>(random());
        for (const int step : {-2, -1, 0, 1, 2}) {
          // Around the end, as the type wraps.
          elements.push_back(
              static_cast<T>(static_cast<uint64_t>(near) + static_cast<uint64_t>(int64_t{step})));
        }
      } else {
        const T near = static_cast<T>(value);
        elements.push_back(near);
        elements.push_back(std::nextafter(near, std::numeric_limits<T>::infinity()));
        elements.push_back(std::nextafter(near, -std::numeric_limits<T>::infinity()));
      }
      T any;
      const uint64_t bits = random();
      std::memcpy(&any, &bits, sizeof(T));
      elements.push_back(any);
    }
  }
  return elements;
}

/// Which of the elements lie in the ranges.
template <typename T>
std::vector<uint8_t> Evaluate(const std::vector<T>& elements, const ValueRanges& ranges) {
  FilterProgram program;
  program.PushTest(program.AddColumn({.base = reinterpret_cast<const std::byte*>(elements.data()),
                                      .stride = sizeof(T),
                                      .dtype = kDTypeOf<T>}),
                   ranges);
  FilterRun run(program);
  std::vector<uint8_t> passed;
  for (size_t first = 0; first < elements.size(); first += 1000) {
    const auto mask =
        run.Block(first, static_cast<uint32_t>(std::min<size_t>(1000, elements.size() - first)));
    passed.insert(passed.end(), mask.begin(), mask.end());
  }
  return passed;
}

template <typename T>
std::vector<long double> ValuesOf(const std::vector<T>& elements) {
  std::vector<long double> values;
  for (const T& element : elements) values.push_back(ValueOf(element));
  return values;
}

template <typename T>
class FilterRangesTest : public ::testing::Test {};
using ElementTypes = ::testing::Types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t,
                                      uint64_t, int64_t, Float16, BFloat16, float, double>;
TYPED_TEST_SUITE(FilterRangesTest, ElementTypes);

TYPED_TEST(FilterRangesTest, ComparisonsAreExact) {
  using T = TypeParam;
  const std::vector<ExactNumber> numbers = Numbers();
  const std::vector<T> elements = Elements<T>(numbers);
  const std::vector<long double> values = ValuesOf(elements);
  std::vector<ExactNumber> compared = numbers;
  std::shuffle(compared.begin(), compared.end(), std::mt19937_64(5));
  // All elements of 16 bits are compared with fewer numbers.
  compared.resize(ShareOf(compared.size() / (sizeof(T) == 2 ? 3 : 1)));
  for (const ExactNumber& number : compared) {
    const long double value = ValueOf(number);
    for (const Comparison comparison : kComparisons) {
      const auto passed = Evaluate(elements, CompareRanges(kDTypeOf<T>, comparison, number));
      for (size_t i = 0; i < elements.size(); ++i) {
        if ((passed[i] != 0) == Compare(comparison, values[i], value)) continue;
        FAIL() << "element " << values[i] << " comparison " << static_cast<int>(comparison)
               << " with " << value;
      }
    }
  }
}

TYPED_TEST(FilterRangesTest, AnyOfIsEqualToOneOfThem) {
  using T = TypeParam;
  const std::vector<ExactNumber> all = Numbers();
  const std::vector<T> elements = Elements<T>(all);
  const std::vector<long double> values = ValuesOf(elements);
  std::mt19937_64 random(4);
  for (int round = 0; round < 12; ++round) {
    std::vector<ExactNumber> chosen;
    for (uint64_t i = random() % 12; i > 0; --i) chosen.push_back(all[random() % all.size()]);
    if (round % 3 == 0) {
      for (uint64_t i = 0; i < 20; ++i) chosen.emplace_back(random() % 30);
    }
    const auto passed = Evaluate(elements, AnyOfRanges(kDTypeOf<T>, chosen));
    for (size_t i = 0; i < elements.size(); ++i) {
      bool expected = false;
      for (const ExactNumber& one : chosen) {
        expected = expected || values[i] == ValueOf(one);
      }
      ASSERT_EQ(passed[i] != 0, expected) << "element " << values[i];
    }
  }
}

TYPED_TEST(FilterRangesTest, NumbersAreAllButNaN) {
  using T = TypeParam;
  const std::vector<T> elements = Elements<T>(Numbers());
  const auto passed = Evaluate(elements, NumberRanges(kDTypeOf<T>));
  for (size_t i = 0; i < elements.size(); ++i) {
    ASSERT_EQ(passed[i] != 0, !std::isnan(ValueOf(elements[i])));
  }
}

TEST(ExactNumberTest, OneValueHasOneForm) {
  EXPECT_EQ(ExactNumber(12.0), ExactNumber(uint64_t{12}));
  EXPECT_EQ(ExactNumber(-0.0), ExactNumber(uint64_t{0}));
  EXPECT_EQ(ExactNumber(int64_t{5}), ExactNumber(uint64_t{5}));
  EXPECT_EQ(ExactNumber(-0x1p63), ExactNumber(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(ExactNumber(std::nan("")), ExactNumber(std::nan("")));
  EXPECT_FALSE(ExactNumber(0x1p53) == ExactNumber((uint64_t{1} << 53) + 1));
  EXPECT_FALSE(ExactNumber(0x1p64) == ExactNumber(std::numeric_limits<uint64_t>::max()));
}

TEST(ExactNumberTest, OrderIsThatOfValues) {
  const std::vector<ExactNumber> numbers = Numbers();
  for (const ExactNumber& a : numbers) {
    for (const ExactNumber& b : numbers) {
      const long double x = ValueOf(a), y = ValueOf(b);
      const bool below = std::isnan(x) || std::isnan(y) ? !std::isnan(x) && std::isnan(y) : x < y;
      ASSERT_EQ(a < b, below) << x << ' ' << y;
    }
  }
}

TEST(ValueRangesTest, NeighboursBecomeOneRange) {
  std::vector<ExactNumber> numbers;
  for (const uint64_t value : {5u, 3u, 4u, 9u, 4u, 300u}) numbers.emplace_back(value);
  EXPECT_EQ(AnyOfRanges(DType::kU16, numbers).ranges.size(), 3u);
  EXPECT_EQ(AnyOfRanges(DType::kU8, numbers).ranges.size(), 2u);
  EXPECT_EQ(AnyOfRanges(DType::kF32, numbers).ranges.size(), 6u);
}

}  // namespace
}  // namespace geardb::index
