#include "engine/tensor.h"

#include <gtest/gtest.h>

namespace geardb {
namespace {

TEST(TensorTest, ShapesCountTheirElements) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape({3}).elements(), 3);
  EXPECT_EQ(Shape({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape({2, 0}).elements(), 0);
}

TEST(TensorTest, ShapesReadLikePython) {
  EXPECT_EQ(Shape().ToString(), "[]");
  EXPECT_EQ(Shape({2, 84, 84}).ToString(), "[2, 84, 84]");
}

TEST(TensorTest, OuterDimensionsComeFirst) {
  EXPECT_EQ(Shape({2, 3}).WithOuter({7, 8}), Shape({7, 8, 2, 3}));
  EXPECT_EQ(Shape().WithOuter({7}), Shape({7}));
}

TEST(TensorTest, ShapesWithOtherDimensionsDiffer) {
  EXPECT_NE(Shape({2}), Shape({3}));
  EXPECT_NE(Shape({2}), Shape({2, 1}));
  EXPECT_NE(Shape(), Shape({1}));
}

TEST(TensorTest, ADimensionTooManyShowsInTheRank) {
  const Shape most{1, 1, 1, 1, 1, 1, 1, 2};
  EXPECT_EQ(most.rank(), Shape::kRankMax);
  EXPECT_EQ(most.elements(), 2);
  const Shape over{1, 1, 1, 1, 1, 1, 1, 2, 5};
  EXPECT_GT(over.rank(), Shape::kRankMax);
  EXPECT_NE(over, most);
  // What there is of it can be read all the same.
  EXPECT_EQ(over.dims().size(), 8u);
  EXPECT_EQ(over.ToString().substr(0, 4), "[1, ");
  EXPECT_GT(most.WithOuter({3}).rank(), Shape::kRankMax);
}

TEST(TensorTest, ViewsKnowTheirBytes) {
  const float values[6] = {0, 1, 2, 3, 4, 5};
  const auto view = TensorView::Of(std::span<const float>(values), Shape({2, 3}));
  EXPECT_EQ(view.byte_count(), 24u);
  EXPECT_EQ(view.values<float>().size(), 6u);
  EXPECT_EQ(view.values<float>()[5], 5.0f);
  EXPECT_EQ(view.bytes, values);
}

TEST(TensorTest, ValuesOfAnotherTypeAreEmpty) {
  const uint16_t value = 7;
  const auto view = TensorView::Scalar(value);
  EXPECT_EQ(view.values<uint16_t>()[0], 7);
  EXPECT_TRUE(view.values<Float16>().empty());
  EXPECT_TRUE(view.values<int16_t>().empty());
}

}  // namespace
}  // namespace geardb
