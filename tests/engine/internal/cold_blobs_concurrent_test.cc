// Readers of a blob file that was cut short: the first that fails has all see what is left of it.
// concurrent: engine/internal/cold_blobs.h engine/internal/cold_blobs.cc

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "engine/internal/cold_db.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

TEST(ColdBlobsConcurrentTest, ReadersOfAFileThatWasCutShortSeeWhatIsLeft) {
  constexpr uint64_t kPagesRead = 40;
  constexpr size_t kReaders = 4;
  const testing::TempDir dir;
  const std::string directory = dir.File("cold");
  ColdStoreOptions options = testing::SmallColdOptions();
  options.blob_bytes_min = 16;
  options.blob_file_bytes = uint64_t{64} << 20;
  const auto key = [](uint64_t id) { return ColdPageKey{1, 0, 0, id, 0}; };
  const auto header = [](uint64_t id) {
    return ColdPageHeader{.generation = id, .rows = 8, .lsn = 8};
  };
  std::string file;
  {
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory, options));
    ColdBatch batch(*store);
    for (uint64_t id = 1; id <= kPagesRead; ++id) {
      ASSERT_OK(testing::PutColdPage(key(id), header(id), &batch));
    }
    ASSERT_OK(store->Write(&batch, 8));
    ASSERT_OK(store->Close());
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory, {.read_only = true}));
    file = FindBlobPlace(*db, key(1)).value().path;
  }
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory, options));
  std::vector<std::atomic<uint64_t>> good(kPagesRead + 1);
  std::vector<std::thread> readers;
  for (size_t reader = 0; reader < kReaders; ++reader) {
    readers.emplace_back([&, reader] {
      for (uint64_t i = 0; i < kPagesRead; ++i) {
        const uint64_t id = 1 + (i + reader * 7) % kPagesRead;
        const Status read = testing::CheckColdPage(store.get(), key(id), header(id));
        EXPECT_TRUE(read.ok() || read.code() == StatusCode::kCorruption) << read;
        good[id].fetch_add(read.ok() ? 1u : 0u);
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  uint64_t left = 0;
  for (uint64_t id = 1; id <= kPagesRead; ++id) {
    EXPECT_TRUE(good[id] == 0 || good[id] == kReaders) << id;
    left += good[id] > 0 ? 1u : 0u;
  }
  EXPECT_GT(left, kPagesRead / 4);
  EXPECT_LT(left, kPagesRead);
}

}  // namespace
}  // namespace geardb::engine
