#include "tools/quickstart/random.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace geardb::quickstart {
namespace {

TEST(RandomTest, ACopyGoesOnAsTheOriginal) {
  static_assert(std::is_trivially_copyable_v<Random>, "it stands in a tag as its bytes");
  Random random(1, 2);
  for (int i = 0; i < 10; ++i) random.Next64();
  Random copy = random;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(random.Next64(), copy.Next64());
}

TEST(RandomTest, SeedsAndStreamsDiffer) {
  EXPECT_NE(Random(1, 2).Next64(), Random(2, 2).Next64());
  EXPECT_NE(Random(1, 2).Next64(), Random(1, 3).Next64());
}

TEST(RandomTest, NumbersLieWhereTheyShould) {
  Random random(7, 0);
  constexpr int kCount = 20'000;
  double sum = 0;
  int counts[5] = {};
  for (int i = 0; i < kCount; ++i) {
    const double x = random.Uniform(-1, 3);
    EXPECT_GE(x, -1);
    EXPECT_LT(x, 3);
    sum += x;
    ++counts[random.Below(5)];
  }
  // Five standard deviations each.
  EXPECT_NEAR(sum / kCount, 1, 0.041);
  for (const int count : counts) EXPECT_NEAR(count, kCount / 5, 283);
}

}  // namespace
}  // namespace geardb::quickstart
