#include "tools/geardb/values.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <sstream>
#include <vector>

namespace geardb::cli {
namespace {

std::string JsonText(const TensorView& value) {
  std::ostringstream out;
  JsonWriter json(&out);
  WriteValue(value, &json);
  return out.str();
}

template <typename T>
void ExpectScalar(T value, const std::string& expected) {
  EXPECT_EQ(ValueText(TensorView::Scalar(value)), expected);
  EXPECT_EQ(JsonText(TensorView::Scalar(value)), expected);
}

TEST(ValuesTest, EveryDTypeIsANumber) {
  ExpectScalar(uint8_t{255}, "255");
  ExpectScalar(int8_t{-128}, "-128");
  ExpectScalar(uint16_t{65535}, "65535");
  ExpectScalar(int16_t{-32768}, "-32768");
  ExpectScalar(uint32_t{4294967295u}, "4294967295");
  ExpectScalar(std::numeric_limits<int32_t>::min(), "-2147483648");
  ExpectScalar(std::numeric_limits<uint64_t>::max(), "18446744073709551615");
  ExpectScalar(std::numeric_limits<int64_t>::min(), "-9223372036854775808");
  ExpectScalar(1.5f, "1.5");
  ExpectScalar(-0.25, "-0.25");
  ExpectScalar(true, "true");
  ExpectScalar(false, "false");
}

// The bits are those of IEEE 754's table of binary16, not made by code of this tree.
TEST(ValuesTest, HalvesOfAllKindsAreExact) {
  ExpectScalar(Float16{0x0000}, "0");
  ExpectScalar(Float16{0x3C00}, "1");
  ExpectScalar(Float16{0xC000}, "-2");
  ExpectScalar(Float16{0x3800}, "0.5");
  ExpectScalar(Float16{0x7BFF}, "65504");
  EXPECT_EQ(JsonText(TensorView::Scalar(Float16{0x0400})), "6.1035156e-05");  // Smallest normal.
  EXPECT_EQ(JsonText(TensorView::Scalar(Float16{0x0001})), "5.9604645e-08");  // Subnormal.
  EXPECT_EQ(ValueText(TensorView::Scalar(Float16{0x7C00})), "inf");
  EXPECT_EQ(ValueText(TensorView::Scalar(Float16{0xFC00})), "-inf");
  EXPECT_EQ(JsonText(TensorView::Scalar(Float16{0x7E00})), "\"NaN\"");
  EXPECT_EQ(JsonText(TensorView::Scalar(Float16{0xFC00})), "\"-Infinity\"");
}

TEST(ValuesTest, BrainFloatsAreTheUpperHalvesOfFloats) {
  ExpectScalar(BFloat16{0x3F80}, "1");
  ExpectScalar(BFloat16{0xC040}, "-3");
  ExpectScalar(BFloat16{0x3E80}, "0.25");
  EXPECT_EQ(ValueText(TensorView::Scalar(BFloat16{0x7F80})), "inf");
}

TEST(ValuesTest, ArraysAreNestedForProgramsAndShortForPeople) {
  const std::array<uint8_t, 6> image = {0, 1, 2, 3, 4, 255};
  const TensorView view = TensorView::Of(std::span<const uint8_t>(image), Shape({2, 3}));
  EXPECT_EQ(JsonText(view), "[[0,1,2],[3,4,255]]\n");
  EXPECT_EQ(ValueText(view), "[0, 1, 2, 3, 4, 255] of [2, 3]");
  const std::array<float, 3> vector = {0.5f, 1, 2};
  EXPECT_EQ(ValueText(TensorView::Of(std::span<const float>(vector))), "[0.5, 1, 2]");
  const std::vector<int32_t> many(100, 7);
  EXPECT_EQ(ValueText(TensorView::Of(std::span<const int32_t>(many))),
            "[7, 7, 7, 7, 7, 7, …] of [100]");
}

TEST(ValuesTest, ARowIsTakenOutOfRows) {
  const std::array<int16_t, 6> rows = {1, 2, 3, 4, 5, 6};
  const TensorView all = TensorView::Of(std::span<const int16_t>(rows), Shape({3, 2}));
  EXPECT_EQ(JsonText(RowOf(all, 0)), "[1,2]\n");
  EXPECT_EQ(JsonText(RowOf(all, 2)), "[5,6]\n");
}

TEST(ValuesTest, BytesOfTextAreShownAsText) {
  const std::string text = "What is 6 x 7?";
  const auto view = [](const std::string& bytes) {
    return TensorView(bytes.data(), DType::kU8, Shape({static_cast<int64_t>(bytes.size())}));
  };
  EXPECT_EQ(AnyText(view(text)), "'What is 6 x 7?'");
  EXPECT_EQ(AnyText(view(std::string(50, 'a'))), "'" + std::string(40, 'a') + "'… of [50]");
  EXPECT_EQ(AnyText(view("a\n")), "[97, 10]");
  EXPECT_EQ(AnyText(view("")), ValueText(view("")));
}

TEST(ValuesTest, RaggedRowsHaveTheirOwnLengths) {
  ColumnRows rows{.column = "rgb", .bytes = std::vector<std::byte>(9, std::byte{5})};
  rows.dtype = DType::kU8;
  rows.shape = {3, 3};
  EXPECT_EQ(ValueAt(rows, 1).shape, Shape({3}));
  rows.offsets = {0, 2, 2, 3};
  EXPECT_EQ(ValueAt(rows, 0).shape, Shape({2, 3}));
  EXPECT_EQ(ValueAt(rows, 1).shape, Shape({0, 3}));
  EXPECT_EQ(ValueAt(rows, 2).shape, Shape({1, 3}));
  EXPECT_EQ(ValueAt(rows, 2).bytes, rows.bytes.data() + 6);
}

}  // namespace
}  // namespace geardb::cli
