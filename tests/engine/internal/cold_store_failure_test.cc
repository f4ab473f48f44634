// A full disk, reads and syncs that fail.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/internal/cold_reserve.h"
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
using testing::ColdModel;
using testing::PutColdPage;
using testing::Random;
using testing::SmallColdOptions;
using testing::TempDir;

class ColdStoreFailureTest : public ::testing::Test {
 protected:
  void Open() {
    store_.reset();
    options_.files = files_;
    ASSERT_OK_AND_ASSIGN(store_, ColdStore::Open(dir_.File("cold"), options_));
  }
  Status Put(uint64_t id) {
    ColdBatch batch(*store_);
    GEARDB_RETURN_IF_ERROR(PutColdPage({1, 0, 0, id, 0}, {id, 8}, &batch));
    return store_->Write(&batch, id);
  }

  TempDir dir_;
  std::shared_ptr<ColdFaultFiles> files_ = std::make_shared<ColdFaultFiles>();
  ColdStoreOptions options_ = [] {
    ColdStoreOptions options = SmallColdOptions();
    options.clock = std::make_shared<testing::ColdHastyClock>();
    return options;
  }();
  std::unique_ptr<ColdStore> store_;
};

TEST_F(ColdStoreFailureTest, AFullDiskIsSaidAndRecoveredFrom) {
  Open();
  for (uint64_t id = 1; id <= 10; ++id) ASSERT_OK(Put(id));
  ASSERT_OK(store_->Flush());
  for (uint64_t id = 11; id <= 20; ++id) ASSERT_OK(Put(id));
  files_->SetSpace(1000);
  EXPECT_STATUS(kResourceExhausted, store_->Flush(), "full");
  EXPECT_STATUS(kResourceExhausted, store_->status(), "full");
  EXPECT_EQ(store_->flushed_lsn(), 10u);
  EXPECT_STATUS(kResourceExhausted, Put(21), "full");
  EXPECT_STATUS(kResourceExhausted, store_->Flush(), "full");
  EXPECT_EQ(store_->written_lsn(), 20u);
  for (uint64_t id = 1; id <= 20; ++id) {
    EXPECT_OK(CheckColdPage(store_.get(), {1, 0, 0, id, 0}, {id, 8}));
  }
  EXPECT_STATUS(kNotFound, CheckColdPage(store_.get(), {1, 0, 0, 21, 0}, {}), "21");

  files_->SetSpace(int64_t{1} << 40);
  EXPECT_OK(Put(21));
  EXPECT_OK(store_->status());
  EXPECT_OK(store_->Flush());
  EXPECT_EQ(store_->flushed_lsn(), 21u);
  ASSERT_OK(store_->Close());
  Open();
  EXPECT_EQ(store_->flushed_lsn(), 21u);
  for (uint64_t id = 1; id <= 21; ++id) {
    EXPECT_OK(CheckColdPage(store_.get(), {1, 0, 0, id, 0}, {id, 8}));
  }
}

// A store that has used up its disk and its reserve, and was killed: each open writes a manifest
// before it deletes the one before, and what it took is there for the next.
TEST_F(ColdStoreFailureTest, AnOpenHasAReserveOfItsOwn) {
  files_->DeletesMakeSpace();
  Open();
  for (uint64_t id = 1; id <= 100; ++id) ASSERT_OK(Put(id));
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Close());
  std::filesystem::remove(dir_.File("cold") + "/" + kColdReserveName);
  for (int i = 0; i < 3; ++i) {
    files_->SetSpace(0);
    Open();
    EXPECT_GT(files_->failures(), 0u);
    for (uint64_t id = 1; id <= 100; ++id) {
      EXPECT_OK(CheckColdPage(store_.get(), {1, 0, 0, id, 0}, {id, 8}));
    }
    EXPECT_GE(std::filesystem::file_size(dir_.File("cold") + "/" + kColdOpenReserveName),
              kColdOpenReserveBytes / 2);
    (void)store_->Close();  // There is no room for a flush.
  }
}

// RocksDB takes no removal before it has flushed what the failed flush has left in memory.
TEST_F(ColdStoreFailureTest, ARemovalOnAFullDiskUsesTheReserve) {
  files_->DeletesMakeSpace();
  Open();
  for (uint64_t id = 1; id <= 600; ++id) ASSERT_OK(Put(id));
  ASSERT_OK(store_->Flush());
  // What is removed is more than the reserve and what attempts leave in the manifest together.
  uint64_t last = 600;
  files_->SetSpace(1000);
  while (Put(last + 1).ok()) ++last;
  const auto remove = [&] {
    ColdBatch batch(*store_);
    GEARDB_RETURN_IF_ERROR(batch.DeleteTrajectoryPages({1, 0, 0, 1, 590}));
    GEARDB_RETURN_IF_ERROR(store_->Write(&batch, last));
    return store_->Flush();
  };
  EXPECT_STATUS(kResourceExhausted, remove(), "full");
  EXPECT_EQ(store_->flushed_lsn(), 600u);
  store_->UseReserve(true);
  EXPECT_OK(remove());
  store_->UseReserve(false);
  EXPECT_EQ(store_->flushed_lsn(), last);
  for (uint64_t id = 580; id <= last; ++id) {
    const Status page = CheckColdPage(store_.get(), {1, 0, 0, id, 0}, {id, 8});
    EXPECT_EQ(page.code(), id < 590 ? StatusCode::kNotFound : StatusCode::kOk) << page;
  }
  // What RocksDB lets go of leaves a little later.
  ASSERT_OK(store_->CompactForSpace());
  while (!store_->KeepReserve().ok()) ASSERT_OK(store_->CompactForSpace());
}

// Somebody else has filled the disk.
TEST_F(ColdStoreFailureTest, AnOpenOnAFullDiskUsesTheReserve) {
  files_->DeletesMakeSpace();
  Open();
  for (uint64_t id = 1; id <= 400; ++id) ASSERT_OK(Put(id));
  ASSERT_OK(store_->Close());
  files_->SetSpace(0);
  Open();
  EXPECT_GT(files_->failures(), 0u);
  store_->UseReserve(true);
  ColdBatch batch(*store_);
  ASSERT_OK(batch.DeleteTrajectoryPages({1, 0, 0, 1, 390}));
  ASSERT_OK(store_->Write(&batch, 400));
  EXPECT_OK(store_->Flush());
  store_->UseReserve(false);
  EXPECT_OK(CheckColdPage(store_.get(), {1, 0, 0, 400, 0}, {400, 8}));
  EXPECT_OK(store_->CompactForSpace());
  while (!store_->KeepReserve().ok()) ASSERT_OK(store_->CompactForSpace());
}

// RocksDB waits for its compactions, and tries them again for ever: first what flushes for a
// compaction by hand, then who writes.
TEST_F(ColdStoreFailureTest, NobodyWaitsForCompactionsThatHaveNoRoom) {
  files_->RefuseCompactions(true);
  Open();
  uint64_t last = 0;
  while (last < 25) {
    ASSERT_OK(Put(++last));
    ASSERT_OK(store_->Flush());
  }
  ASSERT_OK(Put(++last));
  EXPECT_STATUS(kResourceExhausted, store_->CompactForSpace(), "full");
  Status written;
  while (last < 1000 && (written = Put(last + 1)).ok()) {
    ++last;
    ASSERT_OK(store_->Flush());
  }
  EXPECT_STATUS(kResourceExhausted, written, "too full for the compactions");
  EXPECT_STATUS(kResourceExhausted, Put(last + 1), "too full for the compactions");
  EXPECT_OK(store_->Flush());
  for (uint64_t id = 1; id <= last; ++id) {
    EXPECT_OK(CheckColdPage(store_.get(), {1, 0, 0, id, 0}, {id, 8}));
  }
  files_->RefuseCompactions(false);
  EXPECT_OK(store_->CompactForSpace());
  EXPECT_OK(Put(last + 1));
  EXPECT_OK(store_->Flush());
  EXPECT_OK(store_->Close());
}

// Random programs on a disk that is full now and then, also in the middle of flushes of RocksDB's
// own, of compactions and of reclamations.
TEST_F(ColdStoreFailureTest, ADiskThatFillsAtRandomLosesNothing) {
  uint64_t refused = 0;
  for (uint64_t seed = 1; seed <= testing::ShareOf(5); ++seed) {
    SCOPED_TRACE(seed);
    TempDir dir;
    files_ = std::make_shared<ColdFaultFiles>();
    options_.files = files_;
    Random random(seed);
    ColdModel model(seed);
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(dir.File("cold"), options_));
    uint64_t flushed = 0;
    for (int step = 0; step < 80; ++step) {
      ColdBatch batch(*store);
      ASSERT_OK(model.Step(&batch));
      if (random.OneIn(12)) files_->SetSpace(static_cast<int64_t>(random.Below(300000)));
      const uint64_t lsn = ColdModel::LsnOf(model.step());
      Status written = store->Write(&batch, lsn);
      if (!written.ok()) {
        ++refused;
        ASSERT_EQ(written.code(), StatusCode::kResourceExhausted) << written;
        ASSERT_GE(store->flushed_lsn(), flushed);
        files_->SetSpace(int64_t{1} << 40);
        ASSERT_OK(store->Write(&batch, lsn));  // The batch is as it was.
      }
      if (random.OneIn(5)) {
        const Status flush = store->Flush();
        if (flush.ok()) {
          flushed = lsn;
        } else {
          ++refused;
          ASSERT_EQ(flush.code(), StatusCode::kResourceExhausted) << flush;
        }
      }
    }
    files_->SetSpace(int64_t{1} << 40);
    ASSERT_OK(store->Flush());
    ASSERT_EQ(model.Compare(store.get()), "");
    ASSERT_OK(store->Close());
    ASSERT_OK_AND_ASSIGN(store, ColdStore::Open(dir.File("cold"), options_));
    ASSERT_EQ(store->flushed_lsn(), ColdModel::LsnOf(model.step()));
    ASSERT_EQ(model.Compare(store.get()), "");
  }
  EXPECT_GT(refused, 0u);
}

TEST_F(ColdStoreFailureTest, AFailingReadIsIoErrorAndPasses) {
  Open();
  for (uint64_t id = 1; id <= 50; ++id) ASSERT_OK(Put(id));
  ASSERT_OK(store_->Flush());
  Open();
  files_->FailReads(true);
  EXPECT_STATUS(kIoError, CheckColdPage(store_.get(), {1, 0, 0, 7, 0}, {7, 8}),
                "page 0 of number 7 ");
  files_->FailReads(false);
  EXPECT_OK(CheckColdPage(store_.get(), {1, 0, 0, 7, 0}, {7, 8}));
  EXPECT_EQ(store_->stats().pages_failed, 1u);
}

TEST_F(ColdStoreFailureTest, AFailingSyncIsFinalUntilTheNextOpen) {
  Open();
  for (uint64_t id = 1; id <= 5; ++id) ASSERT_OK(Put(id));
  ASSERT_OK(store_->Flush());
  ASSERT_OK(Put(6));
  files_->FailSyncs(true);
  EXPECT_STATUS(kIoError, store_->Flush(), "sync");
  files_->FailSyncs(false);
  EXPECT_STATUS(kIoError, Put(7), "sync");
  EXPECT_STATUS(kIoError, store_->Flush(), "sync");
  EXPECT_STATUS(kIoError, store_->status(), "sync");
  EXPECT_EQ(store_->flushed_lsn(), 5u);
  EXPECT_OK(CheckColdPage(store_.get(), {1, 0, 0, 6, 0}, {6, 8}));
  EXPECT_STATUS(kIoError, store_->Close(), "sync");
  Open();
  EXPECT_EQ(store_->flushed_lsn(), 5u);
  EXPECT_STATUS(kNotFound, CheckColdPage(store_.get(), {1, 0, 0, 6, 0}, {}), "6");
  EXPECT_OK(Put(6));
  EXPECT_OK(store_->Flush());
}

}  // namespace
}  // namespace geardb::engine
