#include "engine/internal/cold_store.h"

#include <gtest/gtest.h>

#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

using testing::CheckColdPage;
using testing::ColdLayout;
using testing::ColdModel;
using testing::PutColdPage;
using testing::Random;
using testing::SmallColdOptions;
using testing::TempDir;

class ColdStoreTest : public ::testing::Test {
 protected:
  void Open(ColdStoreOptions options = SmallColdOptions()) {
    store_.reset();
    ASSERT_OK_AND_ASSIGN(store_, ColdStore::Open(dir_.File("cold"), options));
  }
  void Put(const ColdPageKey& key, const ColdPageHeader& header, uint64_t lsn) {
    ColdBatch batch(*store_);
    ASSERT_OK(PutColdPage(key, header, &batch));
    ASSERT_OK(store_->Write(&batch, lsn));
  }

  TempDir dir_;
  std::unique_ptr<ColdStore> store_;
};

TEST_F(ColdStoreTest, ANewStoreIsEmptyAndCovered) {
  Open();
  EXPECT_EQ(store_->flushed_lsn(), 0u);
  EXPECT_EQ(store_->written_lsn(), 0u);
  EXPECT_STATUS(kNotFound, CheckColdPage(store_.get(), {3, 0, 1, 77, 4}, {}),
                "page 4 of number 77 (table 3, partition 0, group 1)");
  EXPECT_STATUS(kNotFound, store_->ReadChunk({3, 0, 2, 5}), "chunk 5 of kind 2 (table 3");
  EXPECT_OK(store_->Flush());
  EXPECT_EQ(store_->flushed_lsn(), 0u);
  EXPECT_OK(store_->Close());
  EXPECT_OK(store_->Close());
  Open();
  EXPECT_EQ(store_->flushed_lsn(), 0u);
}

TEST_F(ColdStoreTest, WhatIsFlushedIsFoundAndTheRestIsNot) {
  Open();
  const ColdPageKey large = {UINT32_MAX, UINT16_MAX, UINT16_MAX, UINT64_MAX - 1, UINT64_MAX};
  Put({1, 0, 0, uint64_t{1} << 33, 0}, {7, 8}, 100);
  Put(large, {8, 1}, 100);
  EXPECT_EQ(store_->written_lsn(), 100u);
  EXPECT_EQ(store_->flushed_lsn(), 0u);
  EXPECT_OK(store_->Flush());
  EXPECT_EQ(store_->flushed_lsn(), 100u);
  Put({1, 0, 0, uint64_t{1} << 33, 0}, {9, 3}, 200);
  EXPECT_OK(CheckColdPage(store_.get(), {1, 0, 0, uint64_t{1} << 33, 0}, {9, 3}));
  EXPECT_EQ(store_->flushed_lsn(), 100u);

  Open();  // Without a flush.
  EXPECT_EQ(store_->flushed_lsn(), 100u);
  EXPECT_EQ(store_->written_lsn(), 100u);
  EXPECT_OK(CheckColdPage(store_.get(), {1, 0, 0, uint64_t{1} << 33, 0}, {7, 8}));
  EXPECT_OK(CheckColdPage(store_.get(), large, {8, 1}));
  EXPECT_STATUS(kNotFound, CheckColdPage(store_.get(), {1, 0, 0, 1, 0}, {}), "number 1 ");
}

TEST_F(ColdStoreTest, CallersMistakesChangeNothing) {
  Open();
  Put({1, 0, 0, 5, 0}, {1, 4}, 50);
  ColdBatch batch(*store_);
  const std::vector<std::byte> frame(ColdLayout().frame_bytes());
  const ColumnCodecSpec bad_level[] = {{ColumnCodec::kZstd, 0}};
  const ColumnCodecSpec two[2] = {};
  EXPECT_STATUS(kInvalidArgument, batch.PutPage({}, {&ColdLayout(), frame, {1, 9}, {}}), "9 rows");
  EXPECT_STATUS(kInvalidArgument,
                batch.PutPage({}, {&ColdLayout(), std::span(frame).first(9), {1, 1}, {}}),
                "frame of 9 bytes");
  EXPECT_STATUS(kInvalidArgument, batch.PutPage({}, {&ColdLayout(), frame, {1, 1}, bad_level}),
                "level 0");
  EXPECT_STATUS(kInvalidArgument, batch.PutPage({}, {&ColdLayout(), frame, {1, 1}, two}),
                "2 codecs for 4 columns");
  EXPECT_STATUS(kInvalidArgument, batch.DeleteTrajectoryPages({1, 0, 0, 6, 5}), "from 6 to 5");
  batch.DeletePage({1, 0, 0, 5, 0});
  EXPECT_STATUS(kInvalidArgument, store_->Write(&batch, 49), "LSN 49 after one with 50");
  EXPECT_OK(CheckColdPage(store_.get(), {1, 0, 0, 5, 0}, {1, 4}));
  EXPECT_OK(store_->Write(&batch, 50));
  EXPECT_STATUS(kNotFound, CheckColdPage(store_.get(), {1, 0, 0, 5, 0}, {}), "page 0");
  EXPECT_OK(store_->Close());
  EXPECT_STATUS(kFailedPrecondition, store_->Write(&batch, 60), "is closed");
  EXPECT_STATUS(kFailedPrecondition, store_->Flush(), "is closed");
  EXPECT_STATUS(kFailedPrecondition, CheckColdPage(store_.get(), {1, 0, 0, 5, 0}, {}), "closed");
  ColdStoreOptions bounds;
  bounds.space_amplification_max = 1;
  EXPECT_STATUS(kInvalidArgument, ColdStore::Open(dir_.File("cold"), bounds), "above 1");
}

TEST_F(ColdStoreTest, ReadOnlyReadsAndWritesNothing) {
  ColdStoreOptions read_only = SmallColdOptions();
  read_only.read_only = true;
  EXPECT_STATUS(kNotFound, ColdStore::Open(dir_.File("cold"), read_only), "no cold store");
  EXPECT_TRUE(testing::FilesOf(dir_.path()).empty());
  Open();
  Put({1, 0, 0, 5, 0}, {1, 4}, 50);
  ASSERT_OK(store_->Close());
  Open(read_only);
  EXPECT_TRUE(store_->read_only());
  EXPECT_EQ(store_->flushed_lsn(), 50u);
  EXPECT_OK(CheckColdPage(store_.get(), {1, 0, 0, 5, 0}, {1, 4}));
  ColdBatch batch(*store_);
  EXPECT_STATUS(kFailedPrecondition, store_->Write(&batch, 60), "for reading only");
  EXPECT_STATUS(kFailedPrecondition, store_->Flush(), "for reading only");
  EXPECT_STATUS(kFailedPrecondition, store_->CompactForSpace(), "for reading only");
  EXPECT_TRUE(store_->damage().empty());
  EXPECT_OK(store_->Close());
}

TEST_F(ColdStoreTest, ChunksKeepTheirOwnLsnAndOrder) {
  Open();
  ColdBatch batch(*store_);
  const std::vector<std::byte> bytes((1 << 20) + 3, std::byte{5});
  ASSERT_OK(batch.PutChunk({1, 0, 2, 300}, 11, bytes));
  ASSERT_OK(batch.PutChunk({1, 0, 2, 4}, 12, {}));
  ASSERT_OK(batch.PutChunk({1, 0, 3, 0}, 13, std::span(bytes).first(7)));
  ASSERT_OK(store_->Write(&batch, 20));
  EXPECT_EQ(batch.bytes(), ColdBatch(*store_).bytes());
  ASSERT_OK(store_->Flush());
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  ASSERT_OK(store_->ForEachChunk({1, 0, 2, 0}, [&](const ColdChunkKey& key, ColdChunk chunk) {
    seen.emplace_back(key.chunk, chunk.lsn);
    return Status::Ok();
  }));
  EXPECT_EQ(seen, (std::vector<std::pair<uint64_t, uint64_t>>{{4, 12}, {300, 11}}));
  ASSERT_OK_AND_ASSIGN(const ColdChunk chunk, store_->ReadChunk({1, 0, 2, 300}));
  EXPECT_EQ(chunk.bytes, std::string(bytes.size(), '\5'));
}

TEST_F(ColdStoreTest, StatsCountReadsAndMemoryStaysNearItsBudget) {
  Open();
  for (uint64_t id = 1; id <= 400; ++id) Put({1, 0, 0, id, 0}, {1, 8}, id);
  ASSERT_OK(store_->Flush());
  for (uint64_t id = 1; id <= 400; ++id) {
    ASSERT_OK(CheckColdPage(store_.get(), {1, 0, 0, id, 0}, {1, 8}));
  }
  EXPECT_STATUS(kNotFound, CheckColdPage(store_.get(), {2, 0, 0, 1, 0}, {}), "table 2");
  const ColdStats stats = store_->stats();
  EXPECT_EQ(stats.pages_read, 401u);
  EXPECT_EQ(stats.pages_missing, 1u);
  EXPECT_EQ(stats.pages_failed, 0u);
  EXPECT_EQ(stats.bytes_read, 400 * 8 * ColdLayout().bytes_per_step());
  EXPECT_GT(stats.block_cache_hits, 0u);
  EXPECT_GT(stats.block_cache_misses, 0u);
  EXPECT_GT(stats.flushes, 0u);
  EXPECT_GT(stats.bytes_written, 400u * 1024);
  EXPECT_GT(stats.disk_bytes, 400u * 1024);
  EXPECT_GE(stats.disk_bytes, stats.live_bytes);
  EXPECT_EQ(stats.memory_bytes, store_->memory_used());
  EXPECT_GT(store_->memory_used(), 0u);
  EXPECT_LE(store_->memory_used(), 2 * SmallColdOptions().memory_bytes);
}

// Random programs: changes, flushes, compactions, closes, and closes without a flush.
TEST_F(ColdStoreTest, HoldsWhatTheModelHoldsThroughReopens) {
  const uint64_t programs = testing::ShareOf(5);
  for (uint64_t seed = 1; seed <= programs; ++seed) {
    SCOPED_TRACE(seed);
    TempDir dir;
    Random random(seed);
    auto model = std::make_unique<ColdModel>(seed);
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(dir.File("cold"), SmallColdOptions()));
    for (int step = 0; step < 90; ++step) {
      ColdBatch batch(*store);
      ASSERT_OK(model->Step(&batch));
      ASSERT_OK(store->Write(&batch, ColdModel::LsnOf(model->step())));
      if (random.OneIn(7)) {
        ASSERT_OK(store->Flush());
        ASSERT_EQ(store->flushed_lsn(), ColdModel::LsnOf(model->step()));
      }
      if (random.OneIn(15)) {
        ASSERT_EQ(model->Compare(store.get()), "");
      }
      if (random.OneIn(25)) {
        ASSERT_OK(store->CompactForSpace());
      }
      if (random.OneIn(12)) {
        const bool whole = random.OneIn(2);
        if (whole) {
          ASSERT_OK(store->Close());
        }
        const uint64_t flushed = store->flushed_lsn();
        store.reset();
        ASSERT_OK_AND_ASSIGN(store, ColdStore::Open(dir.File("cold"), SmallColdOptions()));
        // A flush of RocksDB's own may have ended behind the first look.
        ASSERT_GE(store->flushed_lsn(), flushed);
        if (whole) {
          ASSERT_EQ(store->flushed_lsn(), ColdModel::LsnOf(model->step()));
        }
        model = std::make_unique<ColdModel>(seed);
        model->StepTo(store->flushed_lsn() / ColdModel::LsnOf(1));
        ASSERT_EQ(model->Compare(store.get()), "");
      }
    }
    ASSERT_EQ(model->Compare(store.get()), "");
    EXPECT_TRUE(store->damage().empty());
    EXPECT_OK(store->status());
  }
}

}  // namespace
}  // namespace geardb::engine
