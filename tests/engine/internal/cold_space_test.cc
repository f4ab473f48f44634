#include "engine/internal/cold_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "engine/internal/cold_store.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/fault_env.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

using testing::CheckColdPage;
using testing::FilesOf;
using testing::PutColdPage;
using testing::Random;
using testing::SmallColdOptions;
using testing::TempDir;

constexpr uint64_t kIds = 900;

class ColdSpaceTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    store_.reset();
    ASSERT_OK_AND_ASSIGN(store_, ColdStore::Open(dir_.File("cold"), SmallColdOptions()));
  }
  /// Pages of trajectories [first, end), of one column group, as the newest generation.
  void Fill(uint64_t first, uint64_t end, uint32_t table = 1) {
    for (uint64_t id = first; id < end; ++id) {
      ColdBatch batch(*store_);
      ASSERT_OK(PutColdPage({table, 0, 0, id, 0}, {1, 4}, &batch));
      ASSERT_OK(store_->Write(&batch, ++lsn_));
    }
    ASSERT_OK(store_->Flush());
  }
  void Remove(uint64_t first, uint64_t end) {
    ColdBatch batch(*store_);
    ASSERT_OK(batch.DeleteTrajectoryPages({1, 0, 0, first, end}));
    batch.AddRemovedBytes((end - first) * testing::ColdLayout().frame_bytes());
    ASSERT_OK(store_->Write(&batch, ++lsn_));
  }
  void DropTable(uint32_t table) {
    ColdBatch batch(*store_);
    batch.DeleteTable(table);
    ASSERT_OK(store_->Write(&batch, ++lsn_));
    ASSERT_OK(store_->Flush());
  }
  /// Of SST and blob files, as the system has them.
  uint64_t DiskBytes() {
    uint64_t bytes = 0;
    for (const auto& [path, content] : FilesOf(dir_.path())) {
      if (path.ends_with(".sst") || path.ends_with(".blob")) bytes += content.size();
    }
    return bytes;
  }
  /// Once no compaction of RocksDB's own runs, which would hold on to its input, and the files are
  /// removed that one has left behind: those that ended beside another job leave with the next one.
  uint64_t SettledBytes() {
    for (uint64_t nothing = 2 * kIds;; ++nothing) {
      const ColdStats stats = store_->stats();
      if (!stats.compacting && DiskBytes() == stats.disk_bytes) return stats.disk_bytes;
      if (!stats.compacting) {
        Remove(nothing, nothing + 1);
        EXPECT_OK(store_->Flush());
      }
      std::this_thread::yield();
    }
  }
  void ExpectPages(uint64_t removed_end) {
    for (uint64_t id = 1; id < kIds; ++id) {
      const Status page = CheckColdPage(store_.get(), {1, 0, 0, id, 0}, {1, 4});
      if (id < removed_end) {
        ASSERT_STATUS(kNotFound, page, "");
      } else {
        ASSERT_OK(page);
      }
    }
  }

  TempDir dir_;
  std::unique_ptr<ColdStore> store_;
  uint64_t lsn_ = 0;
};

TEST_F(ColdSpaceTest, ARemovedRangeGivesItsFilesBackWithoutACompaction) {
  Fill(1, kIds);
  ASSERT_OK(store_->CompactForSpace());  // From the newest level on nothing can be dropped.
  const uint64_t before = DiskBytes();
  Remove(1, 2 * kIds / 3);
  EXPECT_GT(DiskBytes() * 10, before * 9);  // Not before the removal is in files.
  ASSERT_OK(store_->Flush());
  EXPECT_LT(SettledBytes() * 10, before * 6);
  EXPECT_FALSE(store_->NeedsCompaction());
  ExpectPages(2 * kIds / 3);
  Open();  // Without a flush: the second tombstone may be lost, the first is not.
  ExpectPages(2 * kIds / 3);
}

TEST_F(ColdSpaceTest, RangesSmallerThanAFileAddUp) {
  Fill(1, kIds);
  ASSERT_OK(store_->CompactForSpace());
  const uint64_t before = DiskBytes();
  for (uint64_t id = 1; id < 2 * kIds / 3; ++id) {
    Remove(id, id + 1);
    if (id % 50 == 0) {
      ASSERT_OK(store_->Flush());
    }
  }
  ASSERT_OK(store_->Flush());
  EXPECT_LT(SettledBytes() * 10, before * 6);
  ExpectPages(2 * kIds / 3);
}

// RocksDB drops blob files only once a file of keys refers to newer ones, and to none of them.
TEST_F(ColdSpaceTest, WhenAllIsRemovedAllOfItLeaves) {
  Fill(1, kIds);
  ASSERT_OK(store_->CompactForSpace());
  const uint64_t before = DiskBytes();
  Remove(1, kIds);
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->FindGarbage());
  EXPECT_LT(SettledBytes() * 20, before);
  ExpectPages(kIds);
}

TEST_F(ColdSpaceTest, RangesOfATableBesideAnOlderOneLeave) {
  Fill(1, kIds / 8, /*table=*/2);
  uint64_t most = 0;
  for (uint64_t round = 0; round < 8; ++round) {
    const uint64_t first = 1 + round * kIds;
    Fill(first, first + kIds);
    most = std::max(most, DiskBytes());
    Remove(first, first + kIds);
    ASSERT_OK(store_->Flush());
    ASSERT_OK(store_->FindGarbage());
    if (store_->NeedsCompaction()) {
      ASSERT_OK(store_->CompactForSpace());
    }
    EXPECT_LT(SettledBytes() * 3, most) << round;
  }
  for (uint64_t id = 1; id < kIds / 8; ++id) {
    ASSERT_OK(CheckColdPage(store_.get(), {2, 0, 0, id, 0}, {1, 4}));
  }
}

TEST_F(ColdSpaceTest, ADroppedTableGivesItsSpaceBack) {
  Fill(1, kIds);
  Fill(1, kIds / 2, 2);
  {
    ColdBatch batch(*store_);
    const std::vector<std::byte> chunk(100000, std::byte{3});
    for (uint64_t i = 0; i < 10; ++i) ASSERT_OK(batch.PutChunk({2, 0, 0, i}, lsn_, chunk));
    ASSERT_OK(batch.PutChunk({1, 0, 0, 0}, lsn_, chunk));  // Lest nothing be left of all chunks.
    ASSERT_OK(store_->Write(&batch, ++lsn_));
  }
  ASSERT_OK(store_->CompactForSpace());
  const uint64_t before = DiskBytes();
  DropTable(2);
  EXPECT_TRUE(store_->NeedsCompaction());
  ASSERT_OK(store_->CompactForSpace());
  EXPECT_FALSE(store_->NeedsCompaction());
  EXPECT_LT(SettledBytes() + 1500000, before);
  EXPECT_OK(store_->ReadChunk({1, 0, 0, 0}));
  EXPECT_STATUS(kNotFound, CheckColdPage(store_.get(), {2, 0, 0, 1, 0}, {}), "table 2");
  EXPECT_STATUS(kNotFound, store_->ReadChunk({2, 0, 0, 1}), "table 2");
  ExpectPages(1);
}

// Nothing but its compaction gives it back.
TEST_F(ColdSpaceTest, ADroppedTableIsStillToBeCompactedAfterAReopen) {
  Fill(1, kIds);
  Fill(1, kIds / 2, 2);
  ASSERT_OK(store_->CompactForSpace());
  const uint64_t before = DiskBytes();
  DropTable(2);
  EXPECT_TRUE(store_->NeedsCompaction());
  store_->EndCompactions();
  EXPECT_STATUS(kCancelled, store_->FindGarbage(), "closed");
  for (int open = 0; open < 2; ++open) {
    ASSERT_OK(store_->Close());
    Open();
    EXPECT_TRUE(store_->NeedsCompaction());
    Fill(kIds, kIds + 1);
  }
  ASSERT_OK(store_->FindGarbage());
  if (store_->NeedsCompaction()) {
    ASSERT_OK(store_->CompactForSpace());
  }
  EXPECT_LT(SettledBytes() * 10, before * 8);
  ASSERT_OK(store_->Close());
  Open();
  EXPECT_FALSE(store_->NeedsCompaction());
  ExpectPages(1);
}

TEST_F(ColdSpaceTest, PagesRemovedAtRandomGiveTheirSpaceBackInACompaction) {
  Fill(1, kIds);
  ASSERT_OK(store_->CompactForSpace());
  const uint64_t before = DiskBytes();
  Random random(1);
  std::vector<bool> removed(kIds);
  for (uint64_t i = 0; i < 3 * kIds; ++i) {
    const uint64_t id = 1 + random.Below(kIds - 1);
    if (removed[id] || random.OneIn(3)) continue;
    removed[id] = true;
    ColdBatch batch(*store_);
    batch.DeletePage({1, 0, 0, id, 0});
    ASSERT_OK(store_->Write(&batch, ++lsn_));
  }
  const auto left = static_cast<uint64_t>(std::count(removed.begin() + 1, removed.end(), false));
  ASSERT_LT(left, kIds / 3);
  ASSERT_OK(store_->CompactForSpace());
  EXPECT_LT(SettledBytes(), before * (left + kIds / 10) / kIds);
  for (uint64_t id = 1; id < kIds; ++id) {
    const Status page = CheckColdPage(store_.get(), {1, 0, 0, id, 0}, {1, 4});
    EXPECT_EQ(page.ok(), !removed[id]) << page;
  }
}

TEST_F(ColdSpaceTest, OverwrittenPagesGiveTheirSpaceBack) {
  Fill(1, kIds);
  const ColdStats filled = store_->stats();
  ASSERT_OK(store_->CompactForSpace());
  const uint64_t once = DiskBytes();
  const ColdStats compacted = store_->stats();
  EXPECT_GT(compacted.compactions, filled.compactions);
  EXPECT_GE(compacted.compaction_bytes, filled.compaction_bytes + once);
  EXPECT_GE(compacted.flush_bytes, once);
  EXPECT_FALSE(store_->NeedsCompaction());
  for (int again = 0; again < 6; ++again) Fill(1, kIds);
  EXPECT_GT(DiskBytes(), once * 3 / 2);
  ASSERT_OK(store_->CompactForSpace());
  EXPECT_FALSE(store_->NeedsCompaction());
  EXPECT_LT(SettledBytes() * 10, once * 11);
  const ColdStats stats = store_->stats();
  EXPECT_LE(static_cast<double>(stats.disk_bytes), 1.1 * static_cast<double>(stats.live_bytes));
  EXPECT_EQ(DiskBytes(), stats.disk_bytes);
  ExpectPages(1);
}

}  // namespace
}  // namespace geardb::engine
