// Conversions between element types, with the same bits on every host and device.
//
// f16 and bf16 are converted by integer arithmetic. Conversions to f32 round to the nearest, ties
// to even. A NaN stays a NaN of the same sign.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "base/philox.h"  // GEARDB_HOST_DEVICE

namespace geardb {

/// Every binary16 is a binary32: exact. A NaN keeps its payload.
GEARDB_HOST_DEVICE constexpr float Float16ToFloat(Float16 value) {
  const uint32_t sign = uint32_t{value.bits & 0x8000u} << 16;
  const uint32_t exponent = (value.bits >> 10) & 0x1Fu;
  uint32_t mantissa = value.bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  if (mantissa == 0) return std::bit_cast<float>(sign);
  // Subnormal: mantissa * 2^-24. Shift its highest bit to the place of the implicit one.
  uint32_t shifted_exponent = 113;
  while ((mantissa & 0x400u) == 0) {
    mantissa <<= 1;
    --shifted_exponent;
  }
  return std::bit_cast<float>(sign | (shifted_exponent << 23) | ((mantissa & 0x3FFu) << 13));
}

/// The nearest binary16, ties to even; infinity from 65520 on. A NaN becomes quiet and keeps the
/// upper bits of its payload.
GEARDB_HOST_DEVICE constexpr Float16 FloatToFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) {
    return Float16{static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu))};
  }
  if (magnitude >= 0x47800000u) return Float16{static_cast<uint16_t>(sign | 0x7C00u)};
  // Bits below the last place of the result; for a subnormal one its last place is 2^-24.
  uint32_t shift = 13;
  uint32_t kept = magnitude - 0x38000000u;  // The exponent's bias goes from 127 to 15.
  if (magnitude < 0x38800000u) {
    shift = 126 - (magnitude >> 23);
    if (shift > 24) return Float16{static_cast<uint16_t>(sign)};
    kept = (magnitude & 0x7FFFFFu) | 0x800000u;
  }
  const uint32_t half = uint32_t{1} << (shift - 1);
  const uint32_t rest = kept & ((half << 1) - 1);
  uint32_t result = kept >> shift;
  if (rest > half || (rest == half && (result & 1) != 0)) ++result;  // May carry into infinity.
  return Float16{static_cast<uint16_t>(sign | result)};
}

/// Every bfloat16 is a binary32: exact. A NaN keeps its payload.
GEARDB_HOST_DEVICE constexpr float BFloat16ToFloat(BFloat16 value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}

/// The nearest bfloat16, ties to even. A NaN becomes quiet and keeps the upper bits of its payload.
GEARDB_HOST_DEVICE constexpr BFloat16 FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
    return BFloat16{static_cast<uint16_t>((bits >> 16) | 0x40u)};
  }
  return BFloat16{static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16)};
}

/// One element as f32. The primary template serves all arithmetic types.
template <typename T>
GEARDB_HOST_DEVICE constexpr float ElementToFloat(T value) {
  return static_cast<float>(value);
}
template <>
GEARDB_HOST_DEVICE constexpr float ElementToFloat(bool value) {
  return value ? 1.0f : 0.0f;
}
template <>
GEARDB_HOST_DEVICE constexpr float ElementToFloat(Float16 value) {
  return Float16ToFloat(value);
}
template <>
GEARDB_HOST_DEVICE constexpr float ElementToFloat(BFloat16 value) {
  return BFloat16ToFloat(value);
}

/// `count` elements of type `dtype` at `source` (of any alignment) as f32.
void ConvertToFloat(DType dtype, const void* source, uint64_t count, float* destination);

/// The element of type `dtype` nearest to `value`, in the low bytes of the result: what pads an
/// output. Integers are truncated towards zero and saturate, NaN gives 0; floats round to the
/// nearest, ties to even; bool is 1 unless `value` is 0.
uint64_t ElementBits(DType dtype, double value);

}  // namespace geardb
