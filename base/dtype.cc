#include "base/dtype.h"

#include <array>

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

}  // namespace

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
