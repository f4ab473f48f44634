#include "wal/log_format.h"

#include <gtest/gtest.h>

namespace geardb::wal {
namespace {

TEST(LogFormatTest, SizesCountHeaderMetadataAlignedPiecesAndPadding) {
  EXPECT_EQ(RecordSize::For(0, {}).total(), 128u);  // 64 + 8, padded.
  EXPECT_EQ(RecordSize::For(16, {}).total(), 128u);
  const uint64_t one[1] = {1024};
  // 64 + 8 + 24 + 100 = 196, pieces from 208, 1232 in all.
  EXPECT_EQ(RecordSize::For(100, one).metadata_bytes, 132u);
  EXPECT_EQ(RecordSize::For(100, one).total(), 1280u);
  const uint64_t two[2] = {1, 1};
  EXPECT_EQ(RecordSize::For(0, two).piece_area_bytes, 17u);
  EXPECT_EQ(RecordSize::For(0, {}, 2).metadata_bytes, 56u);
}

TEST(LogFormatTest, ASizeBeyond32BitsFitsNoLog) {
  const uint64_t huge[1] = {uint64_t{1} << 40};
  EXPECT_GT(RecordSize::For(8, huge).total(), uint64_t{1} << 32);
  EXPECT_GT(RecordSize::For(uint64_t{1} << 33, {}).total(), uint64_t{1} << 32);
}

TEST(LogFormatTest, EpochsCompareByTermFirst) {
  EXPECT_LT((Epoch{1, 9}), (Epoch{2, 0}));
  EXPECT_LT((Epoch{1, 1}), (Epoch{1, 2}));
}

TEST(LogFormatTest, RecordTypesAreFrozen) {
  EXPECT_EQ(static_cast<int>(RecordType::kData), 1);
  EXPECT_EQ(static_cast<int>(RecordType::kPad), 2);
  EXPECT_EQ(static_cast<int>(RecordType::kSegment), 3);
  EXPECT_EQ(static_cast<int>(RecordType::kSeal), 4);
  EXPECT_EQ(static_cast<int>(RecordType::kCommit), 5);
  EXPECT_EQ(static_cast<int>(RecordType::kTag), 6);
  EXPECT_EQ(static_cast<int>(RecordType::kPart), 7);
}

}  // namespace
}  // namespace geardb::wal
