#include "base/page_view.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "base/philox.h"

namespace geardb {
namespace {

TEST(PageLayoutTest, RegionsFollowOneAnotherAligned) {
  const std::array<uint64_t, 4> row_bytes = {1, 3, 1024, 8};
  const PageLayout layout(row_bytes, 8);
  EXPECT_EQ(layout.column_count(), 4u);
  EXPECT_EQ(layout.steps_per_page(), 8u);
  EXPECT_EQ(layout.steps_shift(), 3u);
  EXPECT_EQ(layout.region(0).offset, 0u);
  EXPECT_EQ(layout.region(1).offset, 16u);    // 8 rows of 1 byte, rounded up to 16.
  EXPECT_EQ(layout.region(2).offset, 128u);   // A row of 1 KiB begins at a multiple of 128.
  EXPECT_EQ(layout.region(3).offset, 8320u);  // 128 + 8 * 1024
  EXPECT_EQ(layout.frame_bytes(), 8448u);     // 8320 + 64, rounded up to 128.
  EXPECT_EQ(layout.bytes_per_step(), 1036u);
  EXPECT_EQ(layout.FrameOffset(1, 5), 16u + 15u);
  EXPECT_EQ(layout.FrameOffset(2, 7), 128u + 7u * 1024u);
}

TEST(PageLayoutTest, OneStepOfOneByteTakesOneLine) {
  const std::array<uint64_t, 1> row_bytes = {1};
  EXPECT_EQ(PageLayout(row_bytes, 1).frame_bytes(), 128u);
}

// Whatever the columns are: no row overlaps another, every region is aligned, and a frame is no
// larger than it has to be.
TEST(PageLayoutTest, RandomLayoutsKeepTheirPromises) {
  constexpr uint64_t kSizes[] = {1, 2, 3, 4, 7, 8, 12, 16, 25, 100, 1023, 1024, 1025, 28224};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<uint64_t> row_bytes;
    const uint64_t columns = 1 + MulHi64(PhiloxRandom64(seed, 0, 0, PhiloxPurpose::kItem), 6);
    for (uint64_t c = 0; c < columns; ++c) {
      row_bytes.push_back(
          kSizes[MulHi64(PhiloxRandom64(seed, 1 + c, 0, PhiloxPurpose::kItem), std::size(kSizes))]);
    }
    const auto steps = uint32_t{1} << MulHi64(PhiloxRandom64(seed, 9, 0, PhiloxPurpose::kItem), 9);
    const PageLayout layout(row_bytes, steps);
    uint64_t end = 0;
    uint64_t sum = 0;
    for (size_t c = 0; c < columns; ++c) {
      ASSERT_EQ(layout.region(c).row_bytes, row_bytes[c]);
      ASSERT_GE(layout.region(c).offset, end);
      ASSERT_EQ(layout.region(c).offset % (row_bytes[c] >= 1024 ? 128 : 16), 0u);
      end = layout.FrameOffset(c, steps - 1) + row_bytes[c];
      sum += row_bytes[c];
    }
    ASSERT_EQ(layout.bytes_per_step(), sum);
    ASSERT_EQ(layout.frame_bytes() % kFrameAlignment, 0u);
    ASSERT_GE(layout.frame_bytes(), end);
    ASSERT_LT(layout.frame_bytes(), end + kFrameAlignment);
  }
}

TEST(PieceColumnsTest, ColumnsFollowOneAnotherWithoutGaps) {
  const std::array<uint64_t, 3> row_bytes = {1, 1024, 6};
  const PageLayout layout(row_bytes, 16);
  const PieceColumns piece(layout, 5);
  EXPECT_EQ(piece.bytes(), 5u * 1031u);
  std::vector<std::array<uint64_t, 3>> seen;
  piece.ForEach([&](size_t column, uint64_t offset, uint64_t bytes) {
    seen.push_back({column, offset, bytes});
  });
  const std::vector<std::array<uint64_t, 3>> expected = {{0, 0, 5}, {1, 5, 5120}, {2, 5125, 30}};
  EXPECT_EQ(seen, expected);
}

TEST(PieceColumnsTest, PieceOfNoStepsIsEmpty) {
  const std::array<uint64_t, 2> row_bytes = {4, 8};
  const PageLayout layout(row_bytes, 4);
  EXPECT_EQ(PieceColumns(layout, 0).bytes(), 0u);
}

}  // namespace
}  // namespace geardb
