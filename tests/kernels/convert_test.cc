// Conversions against arithmetic in double, over all values where there are few enough.
#include "kernels/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace geardb {
namespace {

/// The value of a finite small float of `exponent_bits` and `mantissa_bits`, by its definition.
double ValueOf(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const auto mantissa = static_cast<double>(bits & ((1u << mantissa_bits) - 1));
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((1u << exponent_bits) - 1));
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1.0 : 1.0;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign *
         std::ldexp(std::ldexp(1.0, mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

struct SmallFloat {
  const char* name;
  int exponent_bits;
  int mantissa_bits;
  float (*widen)(uint16_t);
  uint16_t (*narrow)(float);
  DType dtype;
};

const SmallFloat kSmallFloats[] = {
    {"f16", 5, 10, [](uint16_t bits) { return Float16ToFloat(Float16{bits}); },
     [](float value) { return FloatToFloat16(value).bits; }, DType::kF16},
    {"bf16", 8, 7, [](uint16_t bits) { return BFloat16ToFloat(BFloat16{bits}); },
     [](float value) { return FloatToBFloat16(value).bits; }, DType::kBf16},
};

TEST(ConvertTest, EverySmallFloatWidensExactlyAndComesBack) {
  for (const SmallFloat& small : kSmallFloats) {
    const uint32_t infinity = ((1u << small.exponent_bits) - 1) << small.mantissa_bits;
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const float wide = small.widen(static_cast<uint16_t>(bits));
      const uint32_t magnitude = bits & 0x7FFFu;
      ASSERT_EQ(std::signbit(wide), bits >= 0x8000u) << small.name << " " << bits;
      if (magnitude > infinity) {
        ASSERT_TRUE(std::isnan(wide)) << small.name << " " << bits;
        ASSERT_EQ(small.narrow(wide) | (1u << (small.mantissa_bits - 1)),
                  bits | (1u << (small.mantissa_bits - 1)));
        continue;
      }
      if (magnitude == infinity) {
        ASSERT_TRUE(std::isinf(wide)) << small.name << " " << bits;
      } else {
        ASSERT_EQ(wide, ValueOf(bits, small.exponent_bits, small.mantissa_bits))
            << small.name << " " << bits;
      }
      ASSERT_EQ(small.narrow(wide), bits) << small.name;
      ASSERT_EQ(ElementBits(small.dtype, wide), bits) << small.name;
    }
  }
}

TEST(ConvertTest, NarrowingRoundsToTheNearestAndTiesToEven) {
  for (const SmallFloat& small : kSmallFloats) {
    const uint32_t infinity = ((1u << small.exponent_bits) - 1) << small.mantissa_bits;
    for (uint32_t bits = 0; bits < infinity; ++bits) {
      // The step above the largest value is as wide as the one below: there infinity begins.
      const double here = ValueOf(bits, small.exponent_bits, small.mantissa_bits);
      const double next = ValueOf(bits + 1, small.exponent_bits, small.mantissa_bits);
      const double middle = here + (next - here) / 2;
      const uint32_t even = (bits & 1) == 0 ? bits : bits + 1;
      for (const uint32_t sign : {0u, 0x8000u}) {
        const double factor = sign != 0 ? -1.0 : 1.0;
        const auto tie = static_cast<float>(factor * middle);
        if (static_cast<double>(tie) == factor * middle) {  // Not for bf16's subnormals' halves.
          ASSERT_EQ(small.narrow(tie), even | sign) << small.name << " " << bits;
          ASSERT_EQ(small.narrow(std::nextafter(tie, 0.0f)), bits | sign) << small.name;
          const float away = std::nextafter(tie, static_cast<float>(factor) * INFINITY);
          ASSERT_EQ(small.narrow(away), (bits + 1) | sign) << small.name << " " << bits;
        }
        // Once only, also from double: just beside the tie is not a tie.
        ASSERT_EQ(ElementBits(small.dtype, factor * middle), even | sign) << small.name;
        ASSERT_EQ(ElementBits(small.dtype, factor * std::nextafter(middle, 0.0)), bits | sign)
            << small.name << " " << bits;
        ASSERT_EQ(ElementBits(small.dtype, factor * std::nextafter(middle, INFINITY)),
                  (bits + 1) | sign)
            << small.name << " " << bits;
      }
    }
    EXPECT_EQ(small.narrow(INFINITY), infinity);
    EXPECT_EQ(small.narrow(-INFINITY), infinity | 0x8000u);
    EXPECT_EQ(small.narrow(std::numeric_limits<float>::max()), infinity);
  }
}

TEST(ConvertTest, ASignallingNanOfAnyPayloadStaysANan) {
  for (const SmallFloat& small : kSmallFloats) {
    const uint32_t infinity = ((1u << small.exponent_bits) - 1) << small.mantissa_bits;
    for (const uint32_t bits : {0x7F800001u, 0xFF800001u, 0x7FC00000u, 0xFFFFFFFFu}) {
      const uint16_t narrow = small.narrow(std::bit_cast<float>(bits));
      EXPECT_GT(narrow & 0x7FFFu, infinity) << small.name;
      EXPECT_EQ(narrow >> 15, bits >> 31) << small.name;
    }
  }
}

template <typename T>
void ExpectConverts(const std::vector<T>& values, const std::vector<float>& want) {
  // From an odd address, and in every position of a block.
  for (size_t first = 0; first < values.size(); ++first) {
    const size_t count = values.size() - first;
    std::vector<std::byte> bytes = {std::byte{0}};
    const auto elements = std::as_bytes(std::span<const T>(values).subspan(first));
    bytes.insert(bytes.end(), elements.begin(), elements.end());
    std::vector<float> got(count + 1, -7.0f);
    ConvertToFloat(kDTypeOf<T>, bytes.data() + 1, count, got.data());
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[first + i]))
          << DTypeName(kDTypeOf<T>) << " " << first + i;
    }
    ASSERT_EQ(got[count], -7.0f);
  }
}

TEST(ConvertTest, IntegersRoundToTheNearestFloat) {
  ExpectConverts<uint8_t>({0, 1, 127, 128, 255}, {0, 1, 127, 128, 255});
  ExpectConverts<int8_t>({0, 1, -1, 127, -128}, {0, 1, -1, 127, -128});
  ExpectConverts<uint16_t>({0, 65535}, {0, 65535});
  ExpectConverts<int16_t>({-32768, 32767}, {-32768, 32767});
  ExpectConverts<uint32_t>({16777217, 16777219, UINT32_MAX}, {16777216, 16777220, 4294967296.0f});
  ExpectConverts<int32_t>({-16777217, -16777219, INT32_MIN, INT32_MAX},
                          {-16777216, -16777220, -2147483648.0f, 2147483648.0f});
  ExpectConverts<int64_t>({INT64_MIN, INT64_MAX, (int64_t{1} << 40) + 65536 + 1},
                          {-0x1p63f, 0x1p63f, 0x1p40f + 0x1p17f});
  // A tie in f32 that a detour over f64 would round twice.
  ExpectConverts<uint64_t>({UINT64_MAX, (uint64_t{1} << 63) + (uint64_t{1} << 39),
                            (uint64_t{1} << 63) + (uint64_t{1} << 39) + 1},
                           {0x1p64f, 0x1p63f, 0x1.000002p63f});
}

TEST(ConvertTest, BlocksAndTheirRestsAgree) {
  std::mt19937_64 random(4);
  std::vector<uint8_t> bytes(100);
  std::vector<float> want;
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>(random());
    want.push_back(static_cast<float>(int{byte}));
  }
  ExpectConverts<uint8_t>(bytes, want);
}

TEST(ConvertTest, FloatsRoundAndKeepWhatIsNoNumber) {
  ExpectConverts<double>({0.1, -0.0, 1e300, -1e300, 1e-50, INFINITY, 0x1.000001p0, 0x1.000003p0},
                         {0.1f, -0.0f, INFINITY, -INFINITY, 0.0f, INFINITY, 1.0f, 0x1.000004p0f});
  ExpectConverts<float>({0.1f, -0.0f, INFINITY}, {0.1f, -0.0f, INFINITY});
  ExpectConverts<Float16>({Float16{0x3C00}, Float16{0x0001}, Float16{0xFC00}},
                          {1.0f, 0x1p-24f, -INFINITY});
  ExpectConverts<BFloat16>({BFloat16{0x3F80}, BFloat16{0xC0A0}}, {1.0f, -5.0f});
  float nan = 0;
  const double wide = std::nan("");
  ConvertToFloat(DType::kF64, &wide, 1, &nan);
  EXPECT_TRUE(std::isnan(nan));
}

TEST(ConvertTest, OnlyZeroIsFalse) {
  const uint8_t bytes[] = {0, 1, 2, 255};
  float got[4];
  ConvertToFloat(DType::kBool, bytes, 4, got);
  EXPECT_EQ(std::vector<float>(got, got + 4), (std::vector<float>{0, 1, 1, 1}));
}

TEST(ConvertTest, PaddingElementsSaturate) {
  EXPECT_EQ(ElementBits(DType::kU8, -3), 0u);
  EXPECT_EQ(ElementBits(DType::kU8, 300), 255u);
  EXPECT_EQ(ElementBits(DType::kU8, 7.9), 7u);
  EXPECT_EQ(ElementBits(DType::kI8, -1), 0xFFu);
  EXPECT_EQ(ElementBits(DType::kI8, -1000), 0x80u);
  EXPECT_EQ(ElementBits(DType::kI16, -2), 0xFFFEu);
  EXPECT_EQ(ElementBits(DType::kU16, 1e9), 0xFFFFu);
  EXPECT_EQ(ElementBits(DType::kU32, 5e9), 0xFFFFFFFFu);
  EXPECT_EQ(ElementBits(DType::kI32, -2147483649.0), 0x80000000u);
  EXPECT_EQ(ElementBits(DType::kI64, 1e30), static_cast<uint64_t>(INT64_MAX));
  EXPECT_EQ(ElementBits(DType::kI64, -1e30), static_cast<uint64_t>(INT64_MIN));
  EXPECT_EQ(ElementBits(DType::kU64, 1e30), UINT64_MAX);
  EXPECT_EQ(ElementBits(DType::kI32, std::nan("")), 0u);
  EXPECT_EQ(ElementBits(DType::kF32, 0.1), std::bit_cast<uint32_t>(0.1f));
  EXPECT_EQ(ElementBits(DType::kF64, 0.1), std::bit_cast<uint64_t>(0.1));
  EXPECT_EQ(ElementBits(DType::kBool, 0.5), 1u);
  EXPECT_EQ(ElementBits(DType::kBool, 0), 0u);
}

}  // namespace
}  // namespace geardb
