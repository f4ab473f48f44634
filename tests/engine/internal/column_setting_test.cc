// What a call says of per-trajectory columns, against its table. tests/engine/values_test.cc sets
// them.
#include "engine/internal/column_setting.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using engine::BindColumns;
using engine::TableLayout;

class ColumnSettingTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    TableSpec spec = testing::StepSpec();
    spec.columns.push_back({.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kBlob});
    spec.columns.push_back({.name = "map", .shape = {20}, .kind = ColumnKind::kPerTrajectory});
    Create(spec);
  }
  const TableLayout& layout() const {
    return testing::CoreOf(*database_)->AllTables()[0]->layout();
  }
};

TEST_F(ColumnSettingTest, ColumnsAndTheirRowsInCompanions) {
  const float score = 3;
  const std::vector<uint8_t> text = {1, 2, 3};
  const std::vector<float> map(20, 1);
  const std::vector<ColumnValue> values = {
      {"text", TensorView(text.data(), DType::kU8, Shape({3}))},
      {"score", TensorView::Scalar(score)},
      {"map", TensorView::Of(std::span<const float>(map))}};
  ASSERT_OK_AND_ASSIGN(engine::ColumnSetting bound, BindColumns(layout(), values));
  // What the values point to moves with them.
  const engine::ColumnSetting setting = std::move(bound);
  ASSERT_EQ(setting.columns.size(), 3u);
  EXPECT_EQ(*reinterpret_cast<const uint64_t*>(setting.values[0]), 3u);
  EXPECT_EQ(*reinterpret_cast<const float*>(setting.values[1]), 3.0F);
  EXPECT_EQ(*reinterpret_cast<const uint64_t*>(setting.values[2]), 1u);
  ASSERT_EQ(setting.companions.size(), 2u);
  EXPECT_EQ(setting.companions[0].count, 3u);
  EXPECT_EQ(setting.companions[1].count, 1u);
}

TEST_F(ColumnSettingTest, WhatIsWrongIsNamed) {
  const float score = 3;
  const int32_t whole = 3;
  const auto bind = [&](std::vector<ColumnValue> values) {
    return BindColumns(layout(), values).status();
  };
  EXPECT_STATUS(kNotFound, bind({{"none", TensorView::Scalar(score)}}), "'none'");
  EXPECT_STATUS(kInvalidArgument, bind({{"reward", TensorView::Scalar(score)}}), "is per step");
  EXPECT_STATUS(kInvalidArgument, bind({{"score", TensorView::Scalar(whole)}}), "takes f32");
  EXPECT_STATUS(kInvalidArgument, bind({{"score", TensorView(nullptr, DType::kF32, Shape())}}),
                "has no bytes");
  EXPECT_STATUS(kInvalidArgument,
                bind({{"score", TensorView::Scalar(score)}, {"score", TensorView::Scalar(score)}}),
                "given twice");
}

}  // namespace
}  // namespace geardb
