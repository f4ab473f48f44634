// A disk that is full now and then, under threads that write, flush and compact.
// concurrent: engine/internal/cold_db.h engine/internal/cold_db.cc
// concurrent: engine/internal/cold_manifest.h
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/internal/cold_db.h"
#include "engine/internal/cold_store.h"
#include "tests/engine/internal/cold_fault_files.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

using testing::CheckColdPage;
using testing::ColdFaultFiles;
using testing::PutColdPage;
using testing::Random;
using testing::TempDir;

constexpr uint64_t kIds = 500;
constexpr uint64_t kRounds = 1000;

void ExpectOkOrFull(const Status& status) {
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kResourceExhausted) << status;
}

// RocksDB's resuming fails where a compaction beside it does, and then never ended again.
TEST(ColdResumeConcurrentTest, ADiskThatFillsBesideCompactionsStopsNobodyForGood) {
  for (uint64_t seed = 1; seed <= testing::ShareOf(8); ++seed) {
    SCOPED_TRACE(seed);
    TempDir dir;
    auto files = std::make_shared<ColdFaultFiles>();
    ColdStoreOptions options = testing::SmallColdOptions();
    options.files = files;
    options.clock = std::make_shared<testing::ColdHastyClock>();
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(dir.File("cold"), options));
    std::atomic<bool> ended{false};
    std::vector<std::thread> threads;
    const auto change_space = [&](Random* random) {
      files->SetSpace(static_cast<int64_t>(random->Below(600000)));
    };
    threads.emplace_back([&] {
      Random random(seed * 3);
      while (!ended) {
        change_space(&random);
        ExpectOkOrFull(store->Flush());
      }
    });
    threads.emplace_back([&] {
      Random random(seed * 3 + 1);
      while (!ended) {
        change_space(&random);
        ExpectOkOrFull(store->CompactForSpace());
      }
    });
    Random random(seed * 3 + 2);
    uint64_t newest[kIds] = {};
    for (uint64_t step = 1; step <= kRounds; ++step) {
      if (random.OneIn(4)) change_space(&random);
      ColdBatch batch(*store);
      const uint64_t id = random.Below(kIds);
      ASSERT_OK(PutColdPage({1, 0, 0, id, 0}, {step, 8}, &batch));
      const Status written = store->Write(&batch, step);
      ExpectOkOrFull(written);
      if (written.ok()) newest[id] = step;
    }
    ended = true;
    for (std::thread& thread : threads) thread.join();
    files->SetSpace(int64_t{1} << 40);
    ASSERT_OK(store->Flush());
    for (uint64_t id = 0; id < kIds; ++id) {
      if (newest[id] == 0) continue;
      EXPECT_OK(CheckColdPage(store.get(), {1, 0, 0, id, 0}, {newest[id], 8}));
    }
    ASSERT_OK(store->Close());
  }
}

// Writes are stopped while RocksDB's memory is full, and its flush may fail.
TEST(ColdResumeConcurrentTest, AWriteThatWaitsForMemoryEndsWithTheFlushThatFails) {
  const TempDir dir;
  auto files = std::make_shared<ColdFaultFiles>();
  ColdStoreOptions options = testing::SmallColdOptions();
  options.files = files;
  ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(dir.File("cold"), options));
  files->HoldSyncs(true);
  Status written;
  std::thread writer([&] {
    const std::string value(1000, 'v');
    for (uint64_t key = 0; written.ok(); ++key) {
      rocksdb::WriteBatch batch;
      const std::string name = std::to_string(key);
      batch.Put(db->pages, name, value);
      written = db->Write(&batch, name);
    }
  });
  while (db->Property(db->pages, rocksdb::DB::Properties::kNumImmutableMemTable) == 0 ||
         db->memtables->memory_usage() < db->unflushed_bytes) {
    std::this_thread::yield();
  }
  files->FailSyncs(true);
  files->HoldSyncs(false);
  writer.join();
  EXPECT_STATUS(kIoError, written, "sync");
}

// Each look ended with anybody's, so that all that a flush has were over before it had begun.
TEST(ColdResumeConcurrentTest, WhoWaitsForAFlushWaitsThoughOthersLookToo) {
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(dir.File("cold"), testing::SmallColdOptions()));
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!ended) EXPECT_OK(db->listener->ReadFlushed(db->db.get()));
  });
  const auto began = std::chrono::steady_clock::now();
  for (int looks = 0; looks < 5; ++looks) {
    ASSERT_OK_AND_ASSIGN(const bool flushed, db->listener->WaitForFlush(db->db.get(), 1));
    EXPECT_FALSE(flushed);
  }
  const auto waited = std::chrono::steady_clock::now() - began;
  EXPECT_GE(waited, std::chrono::milliseconds(250));
  ended = true;
  other.join();
}

}  // namespace
}  // namespace geardb::engine
