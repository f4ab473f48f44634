#include "base/philox.h"

#include <gtest/gtest.h>

namespace geardb {
namespace {

TEST(PhiloxTest, MulHiIsTheUpperHalfOfTheProduct) {
  EXPECT_EQ(MulHi64(0, 17), 0u);
  EXPECT_EQ(MulHi64(UINT64_MAX, 17), 16u);
  EXPECT_EQ(MulHi64(uint64_t{1} << 63, 17), 8u);
}

}  // namespace
}  // namespace geardb
