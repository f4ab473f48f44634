#include "kernels/convert.h"

#include <cmath>
#include <limits>

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

namespace geardb {
namespace {

/// A stored bool: whatever byte is there, only 0 is false.
struct BoolByte {
  uint8_t byte;
};
float ToFloat(BoolByte value) { return value.byte != 0 ? 1.0f : 0.0f; }
template <typename T>
float ToFloat(T value) {
  return ElementToFloat<T>(value);
}

template <typename T>
void ConvertElements(const void* source, uint64_t count, float* destination) {
  const auto* bytes = static_cast<const std::byte*>(source);
  const auto convert = [](const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return ToFloat(value);
  };
  // Blocks of a fixed length are what the compiler turns into vector code at -O2.
  constexpr uint64_t kBlock = 16;
  uint64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (uint64_t j = 0; j < kBlock; ++j) {
      destination[i + j] = convert(bytes + (i + j) * sizeof(T));
    }
  }
  for (; i < count; ++i) destination[i] = convert(bytes + i * sizeof(T));
}

/// Images are u8: the one conversion that is worth its vector code, which g++ does not find at -O2.
void ConvertU8(const void* source, uint64_t count, float* destination) {
  const auto* bytes = static_cast<const std::byte*>(source);
  uint64_t i = 0;
#if defined(__SSE4_1__)
  for (; i + 16 <= count; i += 16) {
    __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
    for (uint64_t j = 0; j < 16; j += 4) {
      _mm_storeu_ps(destination + i + j, _mm_cvtepi32_ps(_mm_cvtepu8_epi32(sixteen)));
      sixteen = _mm_srli_si128(sixteen, 4);
    }
  }
#endif
  ConvertElements<uint8_t>(bytes + i, count - i, destination + i);
}

template <typename T>
uint64_t IntegerBits(double value) {
  T result = 0;
  if (std::isnan(value)) {
    result = 0;
  } else if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    result = std::numeric_limits<T>::min();
  } else if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
    result = std::numeric_limits<T>::max();  // For 64 bits the bound is max + 1: still right.
  } else {
    result = static_cast<T>(value);
  }
  return static_cast<std::make_unsigned_t<T>>(result);
}

/// `value` as f32, rounded to odd where inexact: rounding that again to fewer bits gives what
/// rounding `value` itself would.
float RoundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace

void ConvertToFloat(DType dtype, const void* source, uint64_t count, float* destination) {
  switch (dtype) {
    case DType::kU8:
      return ConvertU8(source, count, destination);
    case DType::kI8:
      return ConvertElements<int8_t>(source, count, destination);
    case DType::kU16:
      return ConvertElements<uint16_t>(source, count, destination);
    case DType::kI16:
      return ConvertElements<int16_t>(source, count, destination);
    case DType::kU32:
      return ConvertElements<uint32_t>(source, count, destination);
    case DType::kI32:
      return ConvertElements<int32_t>(source, count, destination);
    case DType::kU64:
      return ConvertElements<uint64_t>(source, count, destination);
    case DType::kI64:
      return ConvertElements<int64_t>(source, count, destination);
    case DType::kF16:
      return ConvertElements<Float16>(source, count, destination);
    case DType::kBf16:
      return ConvertElements<BFloat16>(source, count, destination);
    case DType::kF32:
      std::memcpy(destination, source, count * sizeof(float));
      return;
    case DType::kF64:
      return ConvertElements<double>(source, count, destination);
    case DType::kBool:
      return ConvertElements<BoolByte>(source, count, destination);
  }
}

uint64_t ElementBits(DType dtype, double value) {
  switch (dtype) {
    case DType::kU8:
      return IntegerBits<uint8_t>(value);
    case DType::kI8:
      return IntegerBits<int8_t>(value);
    case DType::kU16:
      return IntegerBits<uint16_t>(value);
    case DType::kI16:
      return IntegerBits<int16_t>(value);
    case DType::kU32:
      return IntegerBits<uint32_t>(value);
    case DType::kI32:
      return IntegerBits<int32_t>(value);
    case DType::kU64:
      return IntegerBits<uint64_t>(value);
    case DType::kI64:
      return IntegerBits<int64_t>(value);
    case DType::kF16:
      return FloatToFloat16(RoundToOdd(value)).bits;
    case DType::kBf16:
      return FloatToBFloat16(RoundToOdd(value)).bits;
    case DType::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::kF64:
      return std::bit_cast<uint64_t>(value);
    case DType::kBool:
      return value != 0 ? 1 : 0;
  }
  return 0;
}

}  // namespace geardb
