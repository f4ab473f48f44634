#include <gtest/gtest.h>

#include <filesystem>

#include "engine/internal/cold_db.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

using testing::TempDir;

TEST(ColdOpenTest, AnotherFormatIsUnsupported) {
  TempDir dir;
  {
    ASSERT_OK_AND_ASSIGN(auto store, OpenColdDb(dir.File("cold"), {}));
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    ASSERT_TRUE(store->db->Put(unlogged, store->meta, "format", std::string("\3\0\0\0", 4)).ok());
    ASSERT_TRUE(store->db->Flush({}, store->meta).ok());
  }
  EXPECT_STATUS(kUnsupported, OpenColdDb(dir.File("cold"), {}), "has format 3, known is 2");
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

TEST(ColdOpenTest, PagesWithoutTheStoresOwnKeysAreDamage) {
  TempDir dir;
  {
    ASSERT_OK_AND_ASSIGN(auto store, OpenColdDb(dir.File("cold"), {}));
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    ASSERT_TRUE(store->db->Put(unlogged, store->pages, "a", "b").ok());
    ASSERT_TRUE(store->db->Delete(unlogged, store->meta, "format").ok());
    ASSERT_TRUE(store->db->Flush({}, {store->meta, store->pages}).ok());
  }
  ASSERT_OK_AND_ASSIGN(auto store, OpenColdDb(dir.File("cold"), {}));
  EXPECT_TRUE(store->read_only);
  EXPECT_STATUS(kFailedPrecondition, store->Writable(), "up to what LSN");
}

}  // namespace
}  // namespace geardb::engine
