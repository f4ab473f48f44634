#include "base/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tests/testing/matchers.h"

namespace geardb {
namespace {

TEST(DTypeTest, NamesAndBytesAreThoseOfStoredSchemas) {
  const struct {
    DType dtype;
    const char* name;
    size_t bytes;
  } kExpected[] = {
      {DType::kU8, "u8", 1},     {DType::kI8, "i8", 1},   {DType::kU16, "u16", 2},
      {DType::kI16, "i16", 2},   {DType::kU32, "u32", 4}, {DType::kI32, "i32", 4},
      {DType::kU64, "u64", 8},   {DType::kI64, "i64", 8}, {DType::kF16, "f16", 2},
      {DType::kBf16, "bf16", 2}, {DType::kF32, "f32", 4}, {DType::kF64, "f64", 8},
      {DType::kBool, "bool", 1},
  };
  ASSERT_EQ(std::size(kExpected), static_cast<size_t>(kDTypeCount));
  for (size_t i = 0; i < std::size(kExpected); ++i) {
    EXPECT_EQ(static_cast<size_t>(kExpected[i].dtype), i) << "the values are frozen";
    EXPECT_EQ(DTypeName(kExpected[i].dtype), kExpected[i].name);
    EXPECT_EQ(DTypeBytes(kExpected[i].dtype), kExpected[i].bytes);
    ASSERT_OK_AND_ASSIGN(const DType found, DTypeFromName(kExpected[i].name));
    EXPECT_EQ(found, kExpected[i].dtype);
  }
}

TEST(DTypeTest, OtherNamesAreRefusedByName) {
  for (const char* name : {"", "f", "f322", "F32", "float", "u8 "}) {
    EXPECT_STATUS(kInvalidArgument, DTypeFromName(name), "'" + std::string(name) + "'");
  }
}

TEST(DTypeTest, ValueFromANewerFormatHasAName) {
  EXPECT_EQ(DTypeName(static_cast<DType>(kDTypeCount)), "unknown");
  EXPECT_EQ(DTypeName(static_cast<DType>(255)), "unknown");
}

TEST(DTypeTest, BoolsAreCopiedAsZeroOrOneAndAllElseAsItIs) {
  std::vector<std::byte> from;
  for (int i = 0; i < 600; ++i) from.push_back(static_cast<std::byte>(i % 7 == 0 ? 0 : i % 256));
  for (const size_t begin : {0u, 1u, 5u, 8u}) {
    for (const size_t count : {0u, 1u, 7u, 8u, 9u, 63u, 512u}) {
      const auto part = std::span(from).subspan(begin, count);
      std::vector<std::byte> into(count + 1, std::byte{0xEE});
      CopyElements(DType::kU8, into.data(), part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), into.begin()));
      CopyElements(DType::kBool, into.data(), part);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(into[i], std::byte{part[i] != std::byte{0}}) << begin + i;
      }
      EXPECT_EQ(into[count], std::byte{0xEE});
    }
  }
}

TEST(DTypeTest, ElementTypesHaveTheirSize) {
  EXPECT_EQ(DTypeBytes(kDTypeOf<Float16>), sizeof(Float16));
  EXPECT_EQ(DTypeBytes(kDTypeOf<BFloat16>), sizeof(BFloat16));
  EXPECT_EQ(DTypeBytes(kDTypeOf<bool>), sizeof(bool));
  EXPECT_EQ(DTypeBytes(kDTypeOf<double>), sizeof(double));
  EXPECT_EQ(DTypeBytes(kDTypeOf<int64_t>), sizeof(int64_t));
  const std::set<DType> distinct = {kDTypeOf<uint8_t>,  kDTypeOf<int8_t>,   kDTypeOf<uint16_t>,
                                    kDTypeOf<int16_t>,  kDTypeOf<uint32_t>, kDTypeOf<int32_t>,
                                    kDTypeOf<uint64_t>, kDTypeOf<int64_t>,  kDTypeOf<Float16>,
                                    kDTypeOf<BFloat16>, kDTypeOf<float>,    kDTypeOf<double>,
                                    kDTypeOf<bool>};
  EXPECT_EQ(distinct.size(), static_cast<size_t>(kDTypeCount));
}

}  // namespace
}  // namespace geardb
