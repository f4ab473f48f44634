#include <gtest/gtest.h>

#include <filesystem>
#include <span>

#include "base/env.h"
#include "base/hash.h"
#include "engine/internal/cold_check.h"
#include "engine/internal/cold_db.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

using testing::TempDir;

TEST(ColdOpenTest, AFormatBeforeIsUnsupported) {
  TempDir dir;
  {
    ASSERT_OK_AND_ASSIGN(auto store, OpenColdDb(dir.File("cold"), {}));
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    ASSERT_TRUE(store->db->Put(unlogged, store->empty, "format", std::string("\2\0\0\0", 4)).ok());
    for (rocksdb::ColumnFamilyHandle* family : store->chunks) {
      ASSERT_TRUE(store->db->Delete(unlogged, family, SliceOf(kColdOwnKey)).ok());
    }
    ASSERT_TRUE(store->db->Flush({}, store->families()).ok());
  }
  EXPECT_STATUS(kUnsupported, OpenColdDb(dir.File("cold"), {}), "has format 2, known is 4");
  EXPECT_STATUS(kUnsupported, OpenColdDb(dir.File("cold"), {.read_only = true}), "has format 2");
}

TEST(ColdOpenTest, ANewerFormatIsUnsupported) {
  TempDir dir;
  {
    ASSERT_OK_AND_ASSIGN(auto store, OpenColdDb(dir.File("cold"), {}));
    std::string body("\5\0\0\0and more", 12);
    const uint64_t checksum = Hash64(std::as_bytes(std::span(body)), 0);
    body.insert(0, reinterpret_cast<const char*>(&checksum), sizeof(checksum));
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    for (rocksdb::ColumnFamilyHandle* family : store->chunks) {
      ASSERT_TRUE(store->db->Put(unlogged, family, SliceOf(kColdOwnKey), body).ok());
    }
    ASSERT_TRUE(store->db->Flush({}, store->families()).ok());
  }
  EXPECT_STATUS(kUnsupported, OpenColdDb(dir.File("cold"), {}), "has format 5, known is 4");
}

TEST(ColdOpenTest, AStoreKeepsTheFormatThatItWasMadeWith) {
  for (const uint32_t format : {kColdFormatWithoutLsns, kColdFormat}) {
    TempDir dir;
    const bool named = format == kColdFormat;
    for (const bool again : {false, true}) {
      ColdStoreOptions options;
      if (!again) options.format_of_new = format;
      ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(dir.File("cold"), options));
      EXPECT_EQ(store->pages_name_lsns(), named);
      ColdBatch batch(*store);
      const ColdPageKey key = {1, 0, 0, again ? 2u : 1u, 0};
      ASSERT_OK(testing::PutColdPage(key, {7, 2, 99}, &batch));
      ASSERT_OK(store->Write(&batch, 100));
      ASSERT_OK(store->ForEachPage([&](const ColdPageKey&, const ColdPageHeader& header) {
        EXPECT_EQ(header.lsn, named ? 99 : kNoLsn);
        return Status::Ok();
      }));
      ASSERT_OK(store->Close());
    }
  }
}

TEST(ColdOpenTest, ADirectoryThatCannotBeMadeIsIoError) {
  TempDir dir;
  EXPECT_FALSE(OpenColdDb(dir.File("absent/cold"), {}).ok());
}

TEST(ColdOpenTest, AnOpenThatDiedBeforeTheFirstFileIsANewStore) {
  TempDir dir;
  EXPECT_OK(OpenColdDb(dir.File("cold"), {}));
  for (const auto& [path, bytes] : testing::FilesOf(dir.path())) {
    const bool kept = path.find("/MANIFEST") != std::string::npos;
    if (!kept && std::filesystem::is_regular_file(path)) std::filesystem::remove(path);
  }
  ASSERT_OK_AND_ASSIGN(auto store, OpenColdDb(dir.File("cold"), {}));
  EXPECT_EQ(store->listener->flushed().batch, 0u);
}

// As of a process that died between RocksDB's own family and the store's.
TEST(ColdOpenTest, AStoreThatWasOnlyBegunHoldsNothing) {
  TempDir dir;
  {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, dir.File("cold"), &db).ok());
    delete db;
  }
  ASSERT_OK_AND_ASSIGN(const bool begun, HoldsColdStore(Env::Posix(), dir.File("cold")));
  EXPECT_FALSE(begun);
  EXPECT_OK(OpenColdDb(dir.File("cold"), {}));
  ASSERT_OK_AND_ASSIGN(const bool made, HoldsColdStore(Env::Posix(), dir.File("cold")));
  EXPECT_TRUE(made);
}

TEST(ColdOpenTest, PagesWithoutTheStoresOwnKeysAreDamage) {
  TempDir dir;
  {
    ASSERT_OK_AND_ASSIGN(auto store, OpenColdDb(dir.File("cold"), {}));
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    ASSERT_TRUE(store->db->Put(unlogged, store->pages, "a", "b").ok());
    for (rocksdb::ColumnFamilyHandle* family : store->chunks) {
      ASSERT_TRUE(store->db->Delete(unlogged, family, SliceOf(kColdOwnKey)).ok());
    }
    ASSERT_TRUE(store->db->Flush({}, store->families()).ok());
  }
  ASSERT_OK_AND_ASSIGN(auto store, OpenColdDb(dir.File("cold"), {}));
  EXPECT_TRUE(store->read_only);
  EXPECT_STATUS(kFailedPrecondition, store->Writable(), "up to what LSN");
}

}  // namespace
}  // namespace geardb::engine
