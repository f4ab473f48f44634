#include "index/distinct_draw.h"

#include <gtest/gtest.h>

#include <vector>

namespace geardb::index {
namespace {

TEST(DistinctDrawTest, RowsOfADrawMayBeTakenInParts) {
  const auto draw = [](uint32_t first_row, uint64_t rows) {
    std::vector<uint64_t> leaves;
    const uint64_t drawn = DrawDistinct(
        {.seed = 3, .draw_number = 9, .first_row = first_row}, 3 * 500, rows,
        [](uint64_t point) {
          return TreeHit{.leaf = point / 3, .weight = 3, .remainder = point % 3};
        },
        [&](uint64_t row, const TreeHit& hit) {
          EXPECT_EQ(row, leaves.size());
          leaves.push_back(hit.leaf);
        });
    EXPECT_EQ(drawn, leaves.size());
    return leaves;
  };
  const std::vector<uint64_t> whole = draw(0, 600);
  ASSERT_EQ(whole.size(), 500u);
  std::vector<bool> seen(500);
  for (const uint64_t leaf : whole) {
    EXPECT_FALSE(seen[leaf]);
    seen[leaf] = true;
  }
  std::vector<uint64_t> parts;
  for (const uint32_t first : {0u, 100u, 200u, 300u, 400u, 500u}) {
    const std::vector<uint64_t> part = draw(first, 100);
    EXPECT_EQ(part.size(), first < 500 ? 100u : 0u);
    parts.insert(parts.end(), part.begin(), part.end());
  }
  EXPECT_EQ(parts, whole);
  EXPECT_TRUE(draw(0, 0).empty());
}

}  // namespace
}  // namespace geardb::index
