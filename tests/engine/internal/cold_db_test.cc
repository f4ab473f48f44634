#include "engine/internal/cold_db.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

TEST(ColdDbTest, RocksErrorsKeepTheirMeaning) {
  using Rocks = rocksdb::Status;
  EXPECT_OK(FromRocks(Rocks::OK(), "x"));
  EXPECT_STATUS(kNotFound, FromRocks(Rocks::NotFound("a"), "there"), "there: NotFound: a");
  EXPECT_STATUS(kCorruption, FromRocks(Rocks::Corruption("a"), "there"), "there: Corruption: a");
  EXPECT_STATUS(kCorruption, FromRocks(Rocks::PathNotFound("a"), "there"), "a");
  EXPECT_STATUS(kResourceExhausted, FromRocks(Rocks::NoSpace("a"), "there"), "a");
  EXPECT_STATUS(kIoError, FromRocks(Rocks::IOError("a"), "there"), "a");
  EXPECT_STATUS(kCorruption, FromRocks(Rocks::InvalidArgument("a"), "there"), "a");
  EXPECT_STATUS(kUnsupported, FromRocks(Rocks::NotSupported("a"), "there"), "a");
}

TEST(ColdDbTest, DamageIsNotedOnceAndNotForEver) {
  ColdListener listener("there");
  listener.AddDamage("one");
  listener.AddDamage("one");
  EXPECT_EQ(listener.damage(), std::vector<std::string>{"one"});
  for (int i = 0; i < 1000; ++i) listener.AddDamage(std::to_string(i));
  EXPECT_EQ(listener.damage().size(), 100u);
}

TEST(ColdDbTest, ErrorsOfCompactionsAreNotedOthersStopWriting) {
  using Reason = rocksdb::BackgroundErrorReason;
  ColdListener listener("there");
  rocksdb::Status error = rocksdb::Status::Corruption("a block");
  listener.OnBackgroundError(Reason::kCompaction, &error);
  EXPECT_TRUE(error.ok());
  EXPECT_OK(listener.status());
  EXPECT_TRUE(listener.TakeCompactionFailed());
  EXPECT_FALSE(listener.TakeCompactionFailed());
  ASSERT_EQ(listener.damage().size(), 1u);
  error = rocksdb::Status::NoSpace("none");
  listener.OnBackgroundError(Reason::kCompaction, &error);
  EXPECT_TRUE(error.ok());
  EXPECT_FALSE(listener.TakeCompactionFailed());
  EXPECT_EQ(listener.damage().size(), 1u);
  EXPECT_OK(listener.status());
  error = rocksdb::Status::NoSpace("none");
  listener.OnBackgroundError(Reason::kFlush, &error);
  EXPECT_FALSE(error.ok());
  EXPECT_STATUS(kResourceExhausted, listener.status(), "there: IO error");
  listener.Resumed();
  error = rocksdb::Status::IOError("an fsync");
  listener.OnBackgroundError(Reason::kFlush, &error);
  EXPECT_FALSE(error.ok());
  error = rocksdb::Status::IOError("a later one");
  listener.OnBackgroundError(Reason::kFlush, &error);
  EXPECT_STATUS(kIoError, listener.status(), "an fsync");
}

}  // namespace
}  // namespace geardb::engine
