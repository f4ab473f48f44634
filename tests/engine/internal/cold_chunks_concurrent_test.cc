// concurrent: engine/internal/cold_chunks.h engine/internal/cold_chunks.cc
// Readers of damaged chunks beside a writer, who writes them again.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/internal/cold_chunks.h"
#include "engine/internal/cold_db.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kKeys = 16;

ColdChunkKey KeyOf(uint64_t k) { return {1, 0, 2, k}; }

TEST(ColdChunksConcurrentTest, ReadersOfDamagedChunksBesideAWriter) {
  testing::TempDir dir;
  const std::string directory = dir.File("cold");
  {
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory, testing::SmallColdOptions()));
    ColdBatch batch(*store);
    for (uint64_t k = 0; k < kKeys; ++k) {
      ASSERT_OK(batch.PutChunk(KeyOf(k), 1, testing::ColdChunkBytes(KeyOf(k), 1)));
    }
    ASSERT_OK(store->Write(&batch, 1));
    ASSERT_OK(store->Close());
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory, testing::SmallColdOptions()));
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    for (uint64_t k = 0; k < kKeys; k += 2) {
      ASSERT_TRUE(
          db->db->Put(unlogged, db->chunks[k % 4 / 2], EncodeColdKey(KeyOf(k)), "bad").ok());
    }
    ASSERT_TRUE(db->db->Flush(rocksdb::FlushOptions(), db->families()).ok());
  }
  ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory, testing::SmallColdOptions()));
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      do {
        for (uint64_t k = 0; k < kKeys; ++k) {
          const auto chunk = store->ReadChunk(KeyOf(k));
          EXPECT_OK(chunk);
          const auto bytes = testing::ColdChunkBytes(KeyOf(k), 1);
          if (!chunk.ok()) return;
          EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(chunk->bytes)), bytes)) << k;
        }
      } while (!done);
    });
  }
  for (uint64_t lsn = 2; lsn < 40; ++lsn) {
    ColdBatch batch(*store);
    EXPECT_OK(batch.PutChunk(KeyOf(kKeys + lsn), lsn, testing::ColdChunkBytes(KeyOf(lsn), lsn)));
    EXPECT_OK(store->Write(&batch, lsn));
    if (lsn % 8 == 0) {
      EXPECT_OK(store->Flush());
    }
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  ASSERT_OK(store->Close());
  ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory, {.read_only = true}));
  // A first copy was read, and is whole; a second one was not.
  for (uint64_t k = 0; k < kKeys; ++k) {
    EXPECT_OK(ReadChunkCopy(*db, KeyOf(k), 0).status());
    EXPECT_EQ(ReadChunkCopy(*db, KeyOf(k), 1).ok(), k % 4 != 2);
  }
}

}  // namespace
}  // namespace geardb::engine
