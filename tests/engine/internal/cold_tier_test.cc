// The cold store of a database: made when it is needed, images by turns, a head that says which.
#include "engine/internal/cold_tier.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

class ColdTierTest : public ::testing::Test {
 protected:
  ColdTier Make(bool read_only = false) {
    return ColdTier(Env::Posix(), dir_.path(), ColdStoreOptions{.read_only = read_only});
  }
  /// Writes image `number`: one chunk, whose bytes are its number's.
  static void WriteImage(ColdTier* tier, uint64_t number) {
    ASSERT_OK_AND_ASSIGN(ColdStore* const store, tier->Store());
    ColdBatch batch(*store);
    const std::byte bytes[3] = {std::byte(number), std::byte{1}, std::byte{2}};
    ASSERT_OK(batch.PutChunk(ColdTier::KeyOf(kChunk, number), number * 100, bytes));
    ASSERT_OK(tier->SetHead(&batch, {.number = number,
                                     .lsn = number * 100,
                                     .log_from = number * 100 - 10,
                                     .log_start = number * 50}));
  }
  static constexpr ImageChunk kChunk{3, ImageKind::kPages, 7};
  testing::TempDir dir_;
};

TEST_F(ColdTierTest, ThereIsNoneUntilSomebodyNeedsIt) {
  ColdTier tier = Make();
  ASSERT_OK(tier.OpenExisting(0));
  EXPECT_EQ(tier.if_open(), nullptr);
  EXPECT_EQ(tier.head().number, 0u);
  ASSERT_OK_AND_ASSIGN(ColdStore* const store, tier.Store());
  EXPECT_EQ(tier.if_open(), store);
  EXPECT_EQ(*tier.Store(), store);
  ASSERT_OK(tier.Close());
}

TEST_F(ColdTierTest, TheHeadOfTheLastImageIsFound) {
  for (uint64_t number = 1; number <= 3; ++number) {
    ColdTier tier = Make();
    ASSERT_OK(tier.OpenExisting(0));
    ASSERT_EQ(tier.next_image(), number);
    WriteImage(&tier, number);
    ASSERT_OK(tier.Close());
    ColdTier again = Make(/*read_only=*/true);
    ASSERT_OK(again.OpenExisting(0));
    EXPECT_EQ(again.head().number, number);
    EXPECT_EQ(again.head().lsn, number * 100);
    EXPECT_EQ(again.head().log_from, number * 100 - 10);
    EXPECT_EQ(again.head().log_start, number * 50);
    ASSERT_OK_AND_ASSIGN(const std::string bytes, again.CurrentImage()(kChunk));
    EXPECT_EQ(bytes, (std::string{static_cast<char>(number), 1, 2}));
    ASSERT_OK(again.Close());
  }
}

TEST_F(ColdTierTest, AnImageThatIsNotWholeLeavesTheOneBefore) {
  ColdTier tier = Make();
  ASSERT_OK(tier.OpenExisting(0));
  WriteImage(&tier, 1);
  ColdBatch half(*tier.if_open());
  const std::byte bytes[1] = {std::byte{99}};
  ASSERT_OK(half.PutChunk(ColdTier::KeyOf(kChunk, 2), 200, bytes));
  ASSERT_OK(tier.if_open()->Write(&half, 100));
  ASSERT_OK(tier.if_open()->Flush());
  ASSERT_OK(tier.Close());
  ColdTier again = Make();
  ASSERT_OK(again.OpenExisting(0));
  EXPECT_EQ(again.head().number, 1u);
  ASSERT_OK_AND_ASSIGN(const std::string found, again.CurrentImage()(kChunk));
  EXPECT_EQ(found, (std::string{1, 1, 2}));
  ASSERT_OK(again.Close());
}

TEST_F(ColdTierTest, WhatIsMissingIsSaid) {
  EXPECT_STATUS(kCorruption, Make().OpenExisting(1 << 20), "there is no cold store");
  ColdTier reader = Make(/*read_only=*/true);
  ASSERT_OK(reader.OpenExisting(0));
  EXPECT_STATUS(kFailedPrecondition, reader.Store(), "read-only");
}

TEST_F(ColdTierTest, AHeadThatMakesNoSenseIsCorruption) {
  const ColdChunkKey key{.table = 0, .partition = 0, .kind = 0xFFFF, .chunk = 0};
  const auto with = [&](std::vector<uint64_t> words) {
    ColdTier tier = Make();
    ColdStore* const store = *tier.Store();
    ColdBatch batch(*store);
    EXPECT_OK(batch.PutChunk(key, 0, std::as_bytes(std::span(words))));
    EXPECT_OK(store->Write(&batch, 0));
    EXPECT_OK(tier.Close());
    return Make().OpenExisting(0);
  };
  EXPECT_STATUS(kUnsupported, with({2, 1, 5, 5, 0}), "version 2");
  EXPECT_STATUS(kCorruption, with({}), "has 0 bytes");
  EXPECT_STATUS(kCorruption, with({1, 1, 5}), "makes no sense");
  EXPECT_STATUS(kCorruption, with({1, 0, 5, 5, 0}), "image 0");
  EXPECT_STATUS(kCorruption, with({1, 1, 5, 6, 0}), "from 6");
  EXPECT_OK(with({1, 1, 5, 5, 0}));
}

}  // namespace
}  // namespace geardb::engine
