#include "engine/internal/cold_db.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

// What RocksDB may flush together, it flushes for one reason (ColdDb::Write).
TEST(ColdDbTest, WhateverABatchHoldsIsInAllFamilies) {
  const testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(dir.File("cold"), {}));
  const std::vector<rocksdb::ColumnFamilyHandle*> used = {db->pages, db->chunks[0], db->chunks[1]};
  const auto flush = [&] {
    rocksdb::FlushOptions waiting;
    ASSERT_OK(FromRocks(db->db->Flush(waiting, db->families()), ""));
    for (auto* family : db->families()) {
      EXPECT_EQ(db->Property(family, rocksdb::DB::Properties::kNumEntriesActiveMemTable), 0u);
    }
  };
  const auto write = [&](const std::function<rocksdb::Status(rocksdb::WriteBatch*)>& fill,
                         std::string_view newest_page) {
    rocksdb::WriteBatch batch;
    ASSERT_OK(FromRocks(fill(&batch), ""));
    ASSERT_OK(db->Write(&batch, newest_page));
    for (auto* family : used) {
      EXPECT_GT(db->Property(family, rocksdb::DB::Properties::kNumEntriesActiveMemTable), 0u)
          << family->GetName();
    }
    flush();
  };
  // The open has written what the store says of itself.
  for (auto* family : used) {
    EXPECT_GT(db->Property(family, rocksdb::DB::Properties::kNumEntriesActiveMemTable), 0u);
  }
  flush();
  write([&](auto* batch) { return batch->Put(db->pages, "page", "1"); }, "page");
  write([&](auto* batch) { return batch->Put(db->chunks[0], "chunk", "1"); }, "");
  write([&](auto* batch) { return batch->DeleteRange(db->chunks[1], "a", "b"); }, "");
  write([&](auto* batch) { return batch->DeleteRange(db->pages, "a", "b"); }, "");
  // Nobody finds any of it.
  const std::unique_ptr<rocksdb::Iterator> keys(
      db->db->NewIterator(rocksdb::ReadOptions(), db->pages));
  keys->SeekToFirst();
  ASSERT_TRUE(keys->Valid());
  EXPECT_EQ(keys->key().ToString(), "page");
  keys->Next();
  EXPECT_FALSE(keys->Valid());
}

TEST(ColdDbTest, RocksErrorsKeepTheirMeaning) {
  using Rocks = rocksdb::Status;
  EXPECT_OK(FromRocks(Rocks::OK(), "x"));
  EXPECT_STATUS(kNotFound, FromRocks(Rocks::NotFound("a"), "there"), "there: NotFound: a");
  EXPECT_STATUS(kCorruption, FromRocks(Rocks::Corruption("a"), "there"), "there: Corruption: a");
  EXPECT_STATUS(kCorruption, FromRocks(Rocks::PathNotFound("a"), "there"), "a");
  EXPECT_STATUS(kResourceExhausted, FromRocks(Rocks::NoSpace("a"), "there"), "a");
  EXPECT_STATUS(kIoError, FromRocks(Rocks::IOError("a"), "there"), "a");
  EXPECT_STATUS(kIoError, FromRocks(Rocks::IOError("a\nb"), "there"), "there: IO error: a b");
  EXPECT_STATUS(kCorruption, FromRocks(Rocks::InvalidArgument("a"), "there"), "a");
  EXPECT_STATUS(kUnsupported, FromRocks(Rocks::NotSupported("a"), "there"), "a");
}

TEST(ColdDbTest, DamageIsNotedOnceAndNotForEver) {
  ColdListener listener("there",
                        std::make_shared<ManifestFiles>(rocksdb::FileSystem::Default(), "there"));
  listener.AddDamage("one");
  listener.AddDamage("one");
  EXPECT_EQ(listener.damage(), std::vector<std::string>{"one"});
  for (int i = 0; i < 1000; ++i) listener.AddDamage(std::to_string(i));
  EXPECT_EQ(listener.damage().size(), 100u);
}

TEST(ColdDbTest, ErrorsOfCompactionsAreNotedOthersStopWriting) {
  using Reason = rocksdb::BackgroundErrorReason;
  ColdListener listener("there",
                        std::make_shared<ManifestFiles>(rocksdb::FileSystem::Default(), "there"));
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

// A store that is open though one of the copies of its index chunks cannot be read.
TEST(ColdDbTest, AFamilyThatCannotBeReadHasNoNumbers) {
  const testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(dir.File("cold"), testing::SmallColdOptions()));
  EXPECT_EQ(db->Property(nullptr, rocksdb::DB::Properties::kTotalSstFilesSize), 0u);
}

}  // namespace
}  // namespace geardb::engine
