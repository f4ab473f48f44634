#include "tools/bench/spread.h"

#include <gtest/gtest.h>

namespace geardb::bench {
namespace {

TEST(SpreadTest, OfNothingIsZero) {
  const Spread spread = SpreadOf({});
  EXPECT_EQ(spread.median, 0);
  EXPECT_EQ(spread.high, 0);
}

TEST(SpreadTest, HalfOfTheValuesLieBetweenTheQuartiles) {
  const Spread spread = SpreadOf({5, 1, 4, 2, 3});
  EXPECT_EQ(spread.low, 2);
  EXPECT_EQ(spread.median, 3);
  EXPECT_EQ(spread.high, 4);
}

TEST(SpreadTest, QuantilesLieBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(Quantile({1, 2}, 0.5), 1.5);
  EXPECT_DOUBLE_EQ(Quantile({0, 10, 20, 30}, 0.99), 29.7);
  EXPECT_DOUBLE_EQ(Quantile({7}, 0.99), 7);
}

}  // namespace
}  // namespace geardb::bench
