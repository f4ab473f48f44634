// concurrent: engine/internal/cold_space.h engine/internal/cold_db.h engine/internal/cold_store.h
// concurrent: engine/internal/cold_reserve.h
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/internal/cold_db.h"
#include "engine/internal/cold_reserve.h"
#include "engine/internal/cold_space.h"
#include "engine/internal/cold_store.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

using testing::ColdFrameOf;
using testing::ColdLayout;
using testing::PutColdPage;
using testing::Random;
using testing::SmallColdOptions;
using testing::TempDir;

constexpr uint64_t kIds = 64;

class ColdStoreConcurrentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(store_, ColdStore::Open(dir_.File("cold"), SmallColdOptions()));
  }

  TempDir dir_;
  std::unique_ptr<ColdStore> store_;
};

// Pages of ids below kIds are overwritten in order of their generation; a reader sees each whole,
// never older than one that was written before it asked. Others are added and removed as ranges.
TEST_F(ColdStoreConcurrentTest, ReadersBesideWritersSeeWholePages) {
  std::atomic<uint64_t> newest[kIds] = {};
  std::atomic<uint64_t> lsn{0};
  std::atomic<bool> ended{false};
  std::atomic<uint64_t> reads{0};
  std::vector<std::thread> threads;
  for (uint64_t reader = 0; reader < 3; ++reader) {
    threads.emplace_back([&, reader] {
      Random random(reader);
      while (!ended.load()) {
        const size_t count = 1 + random.Below(24);
        std::vector<std::vector<std::byte>> frames(count);
        std::vector<ColdRead> list(count);
        std::vector<uint64_t> least(count);
        for (size_t i = 0; i < count; ++i) {
          const uint64_t id = random.Below(kIds);
          least[i] = newest[id].load();
          frames[i].assign(ColdLayout().frame_bytes(), std::byte{0xEE});
          list[i].key = {1, 0, 0, id, 0};
          list[i].layout = &ColdLayout();
          list[i].frame = frames[i];
        }
        (void)store_->ReadPages(list);
        for (size_t i = 0; i < count; ++i) {
          if (list[i].status.code() == StatusCode::kNotFound) {
            EXPECT_EQ(least[i], 0u);
            continue;
          }
          ASSERT_OK(list[i].status);
          ASSERT_GE(list[i].header.generation, least[i]);
          ASSERT_EQ(frames[i], ColdFrameOf(list[i].key, list[i].header));
          reads.fetch_add(1);
        }
      }
    });
  }
  threads.emplace_back([&] {
    while (!ended.load()) {
      const uint64_t written = lsn.load();
      ASSERT_OK(store_->Flush());
      ASSERT_GE(store_->flushed_lsn(), written);
      ASSERT_LE(store_->stats().pages_failed, 0u);
      (void)store_->NeedsCompaction();
      ASSERT_GT(store_->memory_used(), 0u);
    }
  });
  Random random(99);
  const uint64_t steps = testing::ShareOf(2000);
  uint64_t removed = kIds;
  for (uint64_t step = 1; step <= steps; ++step) {
    const uint64_t id = random.Below(kIds);
    ColdBatch batch(*store_);
    ASSERT_OK(PutColdPage({1, 0, 0, id, 0}, {step, 8}, &batch));
    ASSERT_OK(PutColdPage({1, 0, 0, kIds + step, 0}, {step, 8}, &batch));
    if (step % 100 == 0) {
      ASSERT_OK(batch.DeleteTrajectoryPages({1, 0, 0, removed, kIds + step - 10}));
      removed = kIds + step - 10;
    }
    ASSERT_OK(store_->Write(&batch, step));
    newest[id].store(step);
    lsn.store(step);
    if (step == steps / 2) {
      ASSERT_OK(store_->CompactForSpace());
    }
  }
  while (reads.load() == 0) std::this_thread::yield();
  ended = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(store_->Close());
}

// Whoever keeps it, and whoever gives it up: afterwards it is there, or not.
// Batches of pages alone and of chunks alone fill memtables that RocksDB flushes by itself, while
// it is told to compact: whatever it then flushes together has one reason.
TEST_F(ColdStoreConcurrentTest, CompactionsBesideWritesThatFillMemtables) {
  std::atomic<bool> ended{false};
  std::thread compactor([&] {
    while (!ended.load()) {
      ASSERT_OK(store_->FindGarbage());
      ASSERT_OK(store_->CompactForSpace());
    }
  });
  const std::vector<std::byte> chunk(20'000, std::byte{7});
  for (uint64_t lsn = 1; lsn <= 600; ++lsn) {
    ColdBatch batch(*store_);
    if (lsn % 8 < 4) {
      for (uint64_t page = 0; page < 40; ++page) {
        ASSERT_OK(PutColdPage({1, 0, 0, lsn % kIds, page}, {.generation = lsn, .rows = 8}, &batch));
      }
    } else {
      ASSERT_OK(batch.PutChunk({.table = 1, .kind = 1, .chunk = lsn % 16}, lsn, chunk));
    }
    ASSERT_OK(store_->Write(&batch, lsn));
  }
  ended = true;
  compactor.join();
  ASSERT_OK(store_->Flush());
}

TEST_F(ColdStoreConcurrentTest, TheReserveIsKeptAndGivenUpAtOnce) {
  ColdReserve reserve(rocksdb::FileSystem::Default().get(), dir_.path(), uint64_t{1} << 20);
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 100; ++i) {
        if ((i + thread) % 2 == 0) {
          failed += reserve.Keep().ok() ? 0 : 1;
        } else {
          reserve.GiveUp();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_OK(reserve.Keep());
  EXPECT_TRUE(reserve.GiveUp());
  EXPECT_FALSE(reserve.GiveUp());
}

}  // namespace
}  // namespace geardb::engine
