#include "base/dtype.h"

#include <array>
#include <cstring>

namespace geardb {
namespace {

struct Entry {
  std::string_view name;
  size_t bytes;
};
constexpr std::array<Entry, kDTypeCount> kEntries = {{{"u8", 1},
                                                      {"i8", 1},
                                                      {"u16", 2},
                                                      {"i16", 2},
                                                      {"u32", 4},
                                                      {"i32", 4},
                                                      {"u64", 8},
                                                      {"i64", 8},
                                                      {"f16", 2},
                                                      {"bf16", 2},
                                                      {"f32", 4},
                                                      {"f64", 8},
                                                      {"bool", 1}}};

void CopyBools(std::byte* into, std::span<const std::byte> from) {
  constexpr uint64_t kLow = 0x7f7f'7f7f'7f7f'7f7f;
  constexpr uint64_t kOnes = 0x0101'0101'0101'0101;
  size_t at = 0;
  for (; at + 8 <= from.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, from.data() + at, 8);
    // A byte's highest bit is set, or adding 0x7f to the rest sets it, unless the byte is 0.
    word = ((((word & kLow) + kLow) | word) >> 7) & kOnes;
    std::memcpy(into + at, &word, 8);
  }
  for (; at < from.size(); ++at) into[at] = std::byte{from[at] != std::byte{0}};
}

}  // namespace

void CopyElements(DType dtype, std::byte* into, std::span<const std::byte> from) {
  if (dtype == DType::kBool) {
    CopyBools(into, from);
  } else if (!from.empty()) {
    std::memcpy(into, from.data(), from.size());
  }
}

size_t DTypeBytes(DType dtype) { return kEntries[static_cast<size_t>(dtype)].bytes; }

std::string_view DTypeName(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  return index < kEntries.size() ? kEntries[index].name : "unknown";
}

Result<DType> DTypeFromName(std::string_view name) {
  for (size_t i = 0; i < kEntries.size(); ++i) {
    if (kEntries[i].name == name) return static_cast<DType>(i);
  }
  return Status::InvalidArgument("dtype '", name, "' is not one of u8 i8 u16 i16 u32 i32 u64 i64 ",
                                 "f16 bf16 f32 f64 bool");
}

}  // namespace geardb
