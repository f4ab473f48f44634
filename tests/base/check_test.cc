#include "base/check.h"

#include <gtest/gtest.h>

namespace geardb {
namespace {

TEST(CheckTest, TrueConditionIsEvaluatedOnceAndPasses) {
  int evaluated = 0;
  GEARDB_CHECK(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckTest, FalseConditionNamesItselfAndItsPlace) {
  const int rows = 3;
  EXPECT_DEATH(GEARDB_CHECK(rows == 4), "check_test.cc:[0-9]+: GEARDB_CHECK\\(rows == 4\\) failed");
}

}  // namespace
}  // namespace geardb
