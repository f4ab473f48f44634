#include "index/draw_points.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/philox.h"

namespace geardb::index {
namespace {

TEST(DrawPointsTest, ArePhiloxNumbersOfTheirRowsScaledToTheTotal) {
  const uint64_t totals[] = {1, 1000, uint64_t{1} << 40, UINT64_MAX};
  const DrawRequest requests[] = {
      {.seed = 0, .draw_number = 0, .first_row = 0},
      {.seed = 0x123456789ABCDEF0, .draw_number = 0xFEDCBA9876543210, .first_row = 3},
      {.seed = UINT64_MAX, .draw_number = UINT64_MAX, .first_row = UINT32_MAX - 20},
  };
  for (const DrawRequest& request : requests) {
    for (const uint64_t total : totals) {
      for (const size_t count : {0u, 1u, 7u, 8u, 9u, 256u, 300u}) {
        std::vector<uint64_t> points(count);
        std::vector<uint64_t> plain(count);
        DrawPoints(request, total, points);
        internal::DrawPointsPlain(request, total, plain);
        EXPECT_EQ(points, plain);
        for (size_t i = 0; i < count; ++i) {
          const uint32_t row = request.first_row + static_cast<uint32_t>(i);
          ASSERT_EQ(points[i], MulHi64(PhiloxRandom64(request.seed, request.draw_number, row,
                                                      PhiloxPurpose::kItem),
                                       total));
        }
      }
    }
  }
}

}  // namespace
}  // namespace geardb::index
