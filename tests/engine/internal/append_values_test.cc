#include "engine/internal/append_values.h"

#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

class AppendValuesTest : public ::testing::Test {
 protected:
  Result<ValueRows> Bind(const TensorView& value, std::span<const uint64_t> offsets,
                         const ValueCount& count) const {
    return BindValues("t", column_, {"rgb", value, offsets}, count);
  }
  TensorView Of(int64_t rows) const { return TensorView(bytes_, DType::kU8, Shape({rows, 3})); }

  const uint8_t bytes_[30] = {};
  const CompanionColumn column_ = {.name = "rgb",
                                   .kind = ColumnKind::kRagged,
                                   .dtype = DType::kU8,
                                   .shape = {3},
                                   .row_bytes = 3,
                                   .spec = {}};
};

TEST_F(AppendValuesTest, OffsetsCutTheRows) {
  const std::vector<uint64_t> offsets = {0, 0, 4, 10};
  ASSERT_OK_AND_ASSIGN(const ValueRows rows, Bind(Of(10), offsets, {.values = 3, .alone = false}));
  EXPECT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows.total(), 10u);
  EXPECT_EQ(rows.count(0), 0u);
  EXPECT_EQ(rows.count(1), 4u);
  EXPECT_EQ(rows.count(2), 6u);
  ASSERT_OK(Bind(Of(10), offsets, {.values = std::nullopt, .alone = false}));
}

TEST_F(AppendValuesTest, OneValueNeedsNone) {
  ASSERT_OK_AND_ASSIGN(const ValueRows rows, Bind(Of(10), {}, {}));
  EXPECT_EQ(rows.offsets, (std::vector<uint64_t>{0, 10}));
  ASSERT_OK_AND_ASSIGN(const ValueRows none,
                       Bind(TensorView(nullptr, DType::kU8, Shape({0, 3})), {}, {}));
  EXPECT_EQ(none.total(), 0u);
}

TEST_F(AppendValuesTest, WrongOffsetsAreNamed) {
  const ValueCount any{.values = std::nullopt, .alone = false};
  const auto bind = [&](std::vector<uint64_t> offsets) { return Bind(Of(10), offsets, any); };
  EXPECT_STATUS(kInvalidArgument, bind({}), "'rgb' has values of any length, and no offsets");
  EXPECT_STATUS(kInvalidArgument, bind({1, 10}), "offsets from 1 to 10 for 10 rows");
  EXPECT_STATUS(kInvalidArgument, bind({0, 9}), "offsets from 0 to 9 for 10 rows");
  EXPECT_STATUS(kInvalidArgument, bind({0, 7, 3, 10}), "offset 7 at 1 and then 3");
  EXPECT_STATUS(kInvalidArgument, bind({0, UINT64_MAX, 10}), "offset 18446744073709551615 at 1");
  EXPECT_STATUS(kInvalidArgument, bind({0}), "offsets from 0 to 0 for 10 rows");
  const std::vector<uint64_t> two = {0, 5, 10};
  EXPECT_STATUS(kInvalidArgument, Bind(Of(10), two, {.values = 3, .alone = false}),
                "offsets of 2 values; expected 3");
}

TEST_F(AppendValuesTest, WrongRowsAreNamed) {
  EXPECT_STATUS(kInvalidArgument, Bind(TensorView(bytes_, DType::kI8, Shape({2, 3})), {}, {}),
                "takes u8[rows, 3], not i8[2, 3]");
  EXPECT_STATUS(kInvalidArgument, Bind(TensorView(bytes_, DType::kU8, Shape({2, 4})), {}, {}),
                "not u8[2, 4]");
  EXPECT_STATUS(kInvalidArgument, Bind(TensorView(bytes_, DType::kU8, Shape({3})), {}, {}),
                "not u8[3]");
  EXPECT_STATUS(kInvalidArgument, Bind(TensorView(nullptr, DType::kU8, Shape({2, 3})), {}, {}),
                "has no bytes");
}

}  // namespace
}  // namespace geardb::engine
