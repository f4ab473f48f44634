#include "tools/geardb/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

constexpr int64_t kShownElements = 6;

template <typename T>
T Load(const void* bytes, int64_t index) {
  T value;
  const auto at = static_cast<size_t>(index) * sizeof(T);
  std::memcpy(&value, static_cast<const std::byte*>(bytes) + at, sizeof(T));
  return value;
}

float FromFloat16(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int mantissa = bits & 0x3FF;
  float size;
  if (exponent == 0x1F) {
    size = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    size = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    size = std::ldexp(static_cast<float>(mantissa | 0x400), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

/// Calls `visit` with element `index` as a number of C++.
template <typename Visit>
auto VisitElement(const TensorView& value, int64_t index, Visit visit) {
  switch (value.dtype) {
    case DType::kU8:
      return visit(Load<uint8_t>(value.bytes, index));
    case DType::kI8:
      return visit(Load<int8_t>(value.bytes, index));
    case DType::kU16:
      return visit(Load<uint16_t>(value.bytes, index));
    case DType::kI16:
      return visit(Load<int16_t>(value.bytes, index));
    case DType::kU32:
      return visit(Load<uint32_t>(value.bytes, index));
    case DType::kI32:
      return visit(Load<int32_t>(value.bytes, index));
    case DType::kU64:
      return visit(Load<uint64_t>(value.bytes, index));
    case DType::kI64:
      return visit(Load<int64_t>(value.bytes, index));
    case DType::kF16:
      return visit(FromFloat16(Load<uint16_t>(value.bytes, index)));
    case DType::kBf16:
      return visit(std::bit_cast<float>(uint32_t{Load<uint16_t>(value.bytes, index)} << 16));
    case DType::kF32:
      return visit(Load<float>(value.bytes, index));
    case DType::kF64:
      return visit(Load<double>(value.bytes, index));
    case DType::kBool:
      break;
  }
  return visit(Load<uint8_t>(value.bytes, index) != 0);
}

struct ToText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(float value) const { return NumberText(static_cast<double>(value)); }
  std::string operator()(double value) const { return NumberText(value); }
  template <std::integral T>
  std::string operator()(T value) const {
    return std::to_string(value);
  }
};

struct ToJson {
  JsonWriter* json;
  void operator()(bool value) const { json->Bool(value); }
  void operator()(float value) const { json->Number(value); }
  void operator()(double value) const { json->Number(value); }
  template <std::integral T>
  void operator()(T value) const {
    json->Number(value);
  }
};

/// Writes the elements from `*index` on as nested arrays of the axes from `axis` on.
void WriteAxis(const TensorView& value, int axis, int64_t* index, JsonWriter* json) {
  if (axis == value.shape.rank()) {
    VisitElement(value, (*index)++, ToJson{json});
    return;
  }
  json->BeginArray();
  for (int64_t i = 0; i < value.shape[axis]; ++i) WriteAxis(value, axis + 1, index, json);
  json->EndArray();
}

}  // namespace

std::string ValueText(const TensorView& value) {
  if (value.shape.rank() == 0) return VisitElement(value, 0, ToText{});
  const int64_t elements = value.shape.elements();
  std::string text = "[";
  for (int64_t i = 0; i < std::min(elements, kShownElements); ++i) {
    text += (i > 0 ? ", " : "") + VisitElement(value, i, ToText{});
  }
  if (elements > kShownElements) text += ", …";
  text += "]";
  const bool whole = value.shape.rank() == 1 && elements <= kShownElements;
  return whole ? text : text + " of " + value.shape.ToString();
}

void WriteValue(const TensorView& value, JsonWriter* json) {
  int64_t index = 0;
  WriteAxis(value, 0, &index, json);
}

TensorView RowOf(const TensorView& rows, int64_t row) {
  const Shape shape(rows.shape.dims().subspan(1));
  const size_t row_bytes = static_cast<size_t>(shape.elements()) * DTypeBytes(rows.dtype);
  return TensorView(
      static_cast<const std::byte*>(rows.bytes) + row_bytes * static_cast<size_t>(row), rows.dtype,
      shape);
}

TensorView ValueAt(const ColumnRows& rows, int64_t row) {
  if (rows.offsets.empty()) return RowOf(rows.view(), row);
  const int64_t begin = rows.offsets[static_cast<size_t>(row)];
  const Shape one(rows.shape.dims().subspan(1));
  const size_t row_bytes = static_cast<size_t>(one.elements()) * DTypeBytes(rows.dtype);
  return TensorView(rows.bytes.data() + row_bytes * static_cast<size_t>(begin), rows.dtype,
                    one.WithOuter({rows.offsets[static_cast<size_t>(row) + 1] - begin}));
}

std::string AnyText(const TensorView& value) {
  constexpr size_t kShownBytes = 40;
  const auto bytes = value.shape.rank() == 1 ? value.values<uint8_t>() : std::span<const uint8_t>();
  const bool text = !bytes.empty() && std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) {
    return byte >= 0x20 && byte < 0x7f;
  });
  if (!text) return ValueText(value);
  std::string shown = "'";
  for (size_t i = 0; i < std::min(bytes.size(), kShownBytes); ++i) {
    shown += static_cast<char>(bytes[i]);
  }
  shown += "'";
  return bytes.size() <= kShownBytes ? shown : shown + "… of " + value.shape.ToString();
}

}  // namespace geardb::cli
