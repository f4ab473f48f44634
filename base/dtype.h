// Element types of columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace geardb {

/// Element type of a column. The values are in stored schemas: frozen.
enum class DType : uint8_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kU64 = 6,
  kI64 = 7,
  kF16 = 8,
  kBf16 = 9,
  kF32 = 10,
  kF64 = 11,
  kBool = 12,  ///< One byte, 0 or 1. Any other byte that is given for one is stored as 1.
};
inline constexpr int kDTypeCount = 13;

/// IEEE 754 binary16 as its bits: a distinct type, so that it cannot be taken for u16.
struct Float16 {
  uint16_t bits;
};
/// bfloat16 (the upper half of a binary32) as its bits.
struct BFloat16 {
  uint16_t bits;
};

/// Bytes of one element.
size_t DTypeBytes(DType dtype);
/// "f32" and so on: the name in schemas, errors and tables.
std::string_view DTypeName(DType dtype);
/// Copies elements into the store: as they are, but each byte of a bool that is not 0 becomes 1.
void CopyElements(DType dtype, std::byte* into, std::span<const std::byte> from);
/// The inverse of DTypeName. InvalidArgument for any other text.
Result<DType> DTypeFromName(std::string_view name);

template <typename T>
struct DTypeOf;
// clang-format off
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::kU8; };
template <> struct DTypeOf<int8_t> { static constexpr DType value = DType::kI8; };
template <> struct DTypeOf<uint16_t> { static constexpr DType value = DType::kU16; };
template <> struct DTypeOf<int16_t> { static constexpr DType value = DType::kI16; };
template <> struct DTypeOf<uint32_t> { static constexpr DType value = DType::kU32; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::kI32; };
template <> struct DTypeOf<uint64_t> { static constexpr DType value = DType::kU64; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::kI64; };
template <> struct DTypeOf<Float16> { static constexpr DType value = DType::kF16; };
template <> struct DTypeOf<BFloat16> { static constexpr DType value = DType::kBf16; };
template <> struct DTypeOf<float> { static constexpr DType value = DType::kF32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::kF64; };
template <> struct DTypeOf<bool> { static constexpr DType value = DType::kBool; };
// clang-format on

/// The DType of a C++ element type; a compile error for any other type.
template <typename T>
inline constexpr DType kDTypeOf = DTypeOf<T>::value;

}  // namespace geardb
