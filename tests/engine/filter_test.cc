#include "engine/filter.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace geardb {
namespace {

TEST(FilterTest, ParsedFiltersAreCompared) {
  ASSERT_OK_AND_ASSIGN(const Filter filter, Filter::Parse("a >= 12 && (b[1] < 3 || solved)"));
  ASSERT_OK_AND_ASSIGN(const Filter same, Filter::Parse(" (12 <= a)&&(3.0 > b[1] || (solved))"));
  ASSERT_OK_AND_ASSIGN(const Filter other, Filter::Parse("a >= 13 && (b[1] < 3 || solved)"));
  EXPECT_TRUE(filter == same);
  EXPECT_FALSE(filter == other);
  EXPECT_EQ(filter.ToString(), "a >= 12 && (b[1] < 3 || solved)");
  const Filter copy = filter;
  EXPECT_TRUE(copy == filter);
}

TEST(FilterTest, AllIsTrue) {
  EXPECT_EQ(Filter::All().ToString(), "true");
  ASSERT_OK_AND_ASSIGN(const Filter all, Filter::Parse("true"));
  EXPECT_TRUE(all == Filter::All());
}

TEST(FilterTest, ErrorsNameThePlace) {
  EXPECT_STATUS(kInvalidArgument, Filter::Parse("version >> 3"),
                "filter 'version >> 3', character 10 ('>')");
}

}  // namespace
}  // namespace geardb
