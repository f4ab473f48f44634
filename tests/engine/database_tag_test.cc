// Tags: named cuts of the log with a blob of the learner's.

#include <gtest/gtest.h>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::StepSpec;
using testing::StoreTest;

std::vector<std::byte> Blob(size_t bytes, uint8_t seed) {
  std::vector<std::byte> blob(bytes);
  uint32_t state = seed;
  for (std::byte& byte : blob) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return blob;
}

class DatabaseTagTest : public StoreTest {};

TEST_F(DatabaseTagTest, TheNewestTagOfANameWins) {
  EXPECT_STATUS(kNotFound, database_->LastTag(), "has no tag");
  const auto first = database_->WriteTag("a", Blob(10, 1));
  ASSERT_OK(first);
  ASSERT_OK(database_->WriteTag("b", Blob(20, 2)));
  const auto third = database_->WriteTag("a", Blob(30, 3));
  ASSERT_OK(third);
  EXPECT_LT(first->lsn, third->lsn);
  for (int open = 0; open < 3; ++open) {
    const auto last = database_->LastTag();
    ASSERT_OK(last);
    EXPECT_EQ(last->name, "a");
    EXPECT_EQ(last->blob, Blob(30, 3));
    EXPECT_EQ(last->lsn, third->lsn);
    EXPECT_EQ(last->created_us, third->created_us);
    EXPECT_EQ(database_->LastTag("b")->blob, Blob(20, 2));
    EXPECT_STATUS(kNotFound, database_->LastTag("c"), "no tag 'c'");
    const auto tags = database_->Tags();
    ASSERT_EQ(tags.size(), 2u);
    EXPECT_EQ(tags[0].name, "b");
    EXPECT_EQ(tags[1].name, "a");
    Reopen();
  }
}

TEST_F(DatabaseTagTest, ATagIsSyncedWhenItReturns) {
  Create(StepSpec());
  Append(0, 3);
  const auto tag = database_->WriteTag("cut", {});
  ASSERT_OK(tag);
  EXPECT_GT(database_->Stats().log_synced, tag->lsn);
  EXPECT_TRUE(tag->blob.empty());
}

TEST_F(DatabaseTagTest, LargeBlobsGoInParts) {
  // The ring is 1 MiB: a record takes 256 KiB.
  for (const size_t bytes : {size_t{1}, size_t{4095}, size_t{128} << 10, (size_t{256} << 10) - 64,
                             size_t{256} << 10, size_t{700'001}, size_t{5} << 20}) {
    SCOPED_TRACE(bytes);
    ASSERT_OK(database_->WriteTag("blob", Blob(bytes, 9)));
    EXPECT_EQ(database_->LastTag("blob")->blob, Blob(bytes, 9));
    Reopen();
    EXPECT_EQ(database_->LastTag("blob")->blob, Blob(bytes, 9));
  }
}

TEST_F(DatabaseTagTest, NamesAreChecked) {
  EXPECT_STATUS(kInvalidArgument, database_->WriteTag("", {}), "0 bytes; expected 1 to 256");
  EXPECT_STATUS(kInvalidArgument, database_->WriteTag(std::string(257, 'a'), {}), "257 bytes");
  EXPECT_STATUS(kInvalidArgument, database_->WriteTag("a\nb", {}),
                "the control character 10 as its byte 1");
  EXPECT_STATUS(kInvalidArgument, database_->WriteTag("a\x7f", {}), "the control character 127");
  EXPECT_STATUS(kInvalidArgument, database_->WriteTag(std::string("\0a", 2), {}),
                "the control character 0 as its byte 0");
  EXPECT_TRUE(database_->Tags().empty());
  EXPECT_OK(database_->WriteTag("any name, \xC3\xA4 too", {}));
  EXPECT_OK(database_->WriteTag(std::string(kTagNameBytesMax, 'a'), {}));
}

TEST_F(DatabaseTagTest, WritersGoOnAroundATag) {
  Create(StepSpec());
  Append(0, 3);
  ASSERT_OK(database_->WriteTag("cut", Blob(600'000, 1)));
  Append(3, 3);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Numbers(1), testing::Count(0, 6));
}

}  // namespace
}  // namespace geardb
