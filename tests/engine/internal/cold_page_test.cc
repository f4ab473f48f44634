#include "engine/internal/cold_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/hash.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"

namespace geardb::engine {
namespace {

using testing::ColdFrameOf;
using testing::ColdLayout;
using testing::Random;

constexpr std::byte kUntouched{0x55};

std::string Encoded(const ColdPageKey& key, const ColdPageHeader& header) {
  const std::vector<std::byte> frame = ColdFrameOf(key, header);
  std::string value;
  EXPECT_OK(EncodeColdPage(key, {&ColdLayout(), frame, header, {}}, &value));
  return value;
}

TEST(ColdPageTest, RowsComeBackAndTheRestOfTheFrameStays) {
  for (uint32_t rows = 0; rows <= 8; ++rows) {
    const ColdPageKey key = {1, 2, 3, uint64_t{1} << 40, rows};
    const ColdPageHeader header = {uint64_t{1} << 50, rows};
    const std::string value = Encoded(key, header);
    std::vector<std::byte> frame(ColdLayout().frame_bytes() + 10, kUntouched);
    ASSERT_OK_AND_ASSIGN(const ColdPageHeader found,
                         DecodeColdPage(key, value, ColdLayout(), frame));
    EXPECT_EQ(found.generation, header.generation);
    EXPECT_EQ(found.rows, rows);
    std::vector<std::byte> expected = ColdFrameOf(key, header);
    std::vector<bool> is_row(frame.size());
    for (const ColumnRegion& region : ColdLayout().regions()) {
      std::fill_n(is_row.begin() + static_cast<ptrdiff_t>(region.offset), region.row_bytes * rows,
                  true);
    }
    for (size_t i = 0; i < frame.size(); ++i) {
      ASSERT_EQ(frame[i], is_row[i] ? expected[i] : kUntouched) << i;
    }
    ASSERT_OK_AND_ASSIGN(const ColdPageHeader peeked, ReadColdPageHeader(value));
    EXPECT_EQ(peeked.rows, rows);
  }
}

TEST(ColdPageTest, AValueOfAnotherKeyIsCorruption) {
  const ColdPageKey key = {1, 0, 0, 5, 6};
  const std::string value = Encoded(key, {9, 4});
  std::vector<std::byte> frame(ColdLayout().frame_bytes());
  for (int member = 0; member < 5; ++member) {
    ColdPageKey other = key;
    if (member == 0) ++other.table;
    if (member == 1) ++other.partition;
    if (member == 2) ++other.group;
    if (member == 3) ++other.trajectory;
    if (member == 4) ++other.page;
    EXPECT_STATUS(kCorruption, DecodeColdPage(other, value, ColdLayout(), frame), "checksum");
  }
}

TEST(ColdPageTest, AnotherLayoutIsCorruption) {
  const ColdPageKey key = {1, 0, 0, 5, 6};
  const std::string value = Encoded(key, {9, 8});
  const std::vector<std::vector<uint64_t>> others = {
      {4, 48, 1}, {4, 48, 1, 1025}, {4, 48, 2, 1023}};
  for (const auto& rows : others) {
    const PageLayout layout(rows, 8);
    std::vector<std::byte> frame(layout.frame_bytes());
    EXPECT_STATUS(kCorruption, DecodeColdPage(key, value, layout, frame), "");
  }
  const std::vector<uint64_t> same = {4, 48, 1, 1024};
  const PageLayout shorter(same, 4);
  std::vector<std::byte> frame(shorter.frame_bytes());
  EXPECT_STATUS(kCorruption, DecodeColdPage(key, value, shorter, frame), "8 rows");
  EXPECT_STATUS(kInvalidArgument, DecodeColdPage(key, value, ColdLayout(), frame), "a frame of");
}

TEST(ColdPageTest, EveryFlippedBitIsFoundAndAnyCut) {
  const ColdPageKey key = {1, 0, 0, 5, 6};
  const std::string value = Encoded(key, {9, 3, 1234});
  std::vector<std::byte> frame(ColdLayout().frame_bytes());
  const std::vector<std::byte> expected = ColdFrameOf(key, {9, 3});
  const size_t step = testing::ShareOf(4) == 4 ? 1 : 7;
  for (size_t bit = 0; bit < value.size() * 8; bit += step) {
    std::string damaged = value;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    const auto decoded = DecodeColdPage(key, damaged, ColdLayout(), frame);
    if (!decoded.ok()) {
      ASSERT_EQ(decoded.status().code(), StatusCode::kCorruption);
      continue;
    }
    // The level of a codec is for people; a bit of LZ4 may say the same in another way.
    ASSERT_EQ(decoded->generation, 9u);
    ASSERT_EQ(decoded->rows, 3u);
    ASSERT_EQ(decoded->lsn, 1234u);
    for (const ColumnRegion& region : ColdLayout().regions()) {
      ASSERT_TRUE(
          std::equal(frame.begin() + static_cast<ptrdiff_t>(region.offset),
                     frame.begin() + static_cast<ptrdiff_t>(region.offset + 3 * region.row_bytes),
                     expected.begin() + static_cast<ptrdiff_t>(region.offset)))
          << "bit " << bit;
    }
  }
  for (size_t size = 0; size < value.size(); ++size) {
    ASSERT_STATUS(kCorruption, DecodeColdPage(key, value.substr(0, size), ColdLayout(), frame), "");
  }
  ASSERT_STATUS(kCorruption, DecodeColdPage(key, value + "x", ColdLayout(), frame), "behind");
}

// With its LSN, that is in front of the columns, and what is behind it as without.
TEST(ColdPageTest, OnDiskBytesWithAnLsnAreFrozen) {
  const std::vector<uint64_t> rows = {4, 1};
  const PageLayout layout(rows, 4);
  std::vector<std::byte> frame(layout.frame_bytes(), std::byte{7});
  const ColumnCodecSpec none[] = {{ColumnCodec::kNone, 0}};
  const ColdPageKey page = {1, 2, 3, 4, 5};
  std::string without, value;
  ASSERT_OK(EncodeColdPage(page, {&layout, frame, {258, 2}, none}, &without));
  ASSERT_OK(EncodeColdPage(page, {&layout, frame, {258, 2, 0x0807060504030201}, none}, &value));
  ASSERT_EQ(value.size(), without.size() + 8);
  EXPECT_EQ(value.substr(0, 2), std::string("\2\0", 2));
  EXPECT_EQ(value.substr(2, 22), without.substr(2, 22));
  EXPECT_EQ(value.substr(32, 8), without.substr(32, 8));
  EXPECT_EQ(value.substr(40, 8), "\1\2\3\4\5\6\7\10");
  EXPECT_EQ(value.substr(48), without.substr(40));
  const std::string key = EncodeColdKey(page);
  const std::string hashed = value.substr(0, 24) + value.substr(40, 8) + value.substr(80);
  const uint64_t expected =
      Hash64(std::as_bytes(std::span(hashed)), Hash64(std::as_bytes(std::span(key)), 0));
  uint64_t found = 0;
  std::memcpy(&found, value.data() + 24, sizeof(found));
  EXPECT_EQ(found, expected);
  ASSERT_OK_AND_ASSIGN(const ColdPageHeader read, DecodeColdPage(page, value, layout, frame));
  EXPECT_EQ(read.lsn, 0x0807060504030201u);
  ASSERT_OK_AND_ASSIGN(const ColdPageHeader none_read,
                       DecodeColdPage(page, without, layout, frame));
  EXPECT_EQ(none_read.lsn, kNoLsn);
}

TEST(ColdPageTest, OnDiskBytesAreFrozen) {
  const std::vector<uint64_t> rows = {4, 1};
  const PageLayout layout(rows, 4);
  std::vector<std::byte> frame(layout.frame_bytes(), std::byte{7});
  const ColumnCodecSpec none[] = {{ColumnCodec::kNone, 0}};
  std::string value;
  ASSERT_OK(EncodeColdPage({1, 2, 3, 4, 5}, {&layout, frame, {258, 2}, none}, &value));
  ASSERT_EQ(value.size(), 40u + 2 * 16 + 10);
  EXPECT_EQ(value.substr(0, 24),
            std::string("\1\0\0\0\2\0\0\0\2\1\0\0\0\0\0\0\12\0\0\0\0\0\0\0", 24));
  EXPECT_EQ(value.substr(32, 8), std::string("\2\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(value.substr(40, 16), std::string("\0\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(value.substr(56, 16), std::string("\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(value.substr(72), std::string(10, '\7'));
  const std::string key = EncodeColdKey(ColdPageKey{1, 2, 3, 4, 5});
  const std::string hashed = value.substr(0, 24) + value.substr(72);
  const uint64_t expected =
      Hash64(std::as_bytes(std::span(hashed)), Hash64(std::as_bytes(std::span(key)), 0));
  uint64_t found = 0;
  std::memcpy(&found, value.data() + 24, sizeof(found));
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace geardb::engine
