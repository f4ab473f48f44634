// concurrent: engine/internal/cold_salvage.h
// What bad blocks of an SST file cost, and what a file that is lost: nothing of pages whose values
// are in blob files.
#include "engine/internal/cold_salvage.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "engine/internal/cold_check.h"
#include "engine/internal/cold_db.h"
#include "tests/engine/internal/cold_fault_files.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kSalvageIds = 400;
constexpr uint64_t kSalvageLsn = 5000;  // Of the last batch.

ColdPageKey SalvageKey(uint64_t id) { return {1, 0, 0, id, 0}; }

class ColdSalvageTest : public ::testing::Test {
 protected:
  static ColdStoreOptions Options() {
    ColdStoreOptions options = testing::SmallColdOptions();
    options.sst_file_bytes = uint64_t{1} << 20;
    return options;
  }
  static Lsn OlderLsn(uint64_t id) { return 1000 + id; }
  static Lsn NewerLsn(uint64_t id) { return 2000 + id; }

  /// Two versions of each page, the newer ones in an SST file of their own.
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, Options()));
    for (uint64_t generation = 1; generation <= 2; ++generation) {
      ColdBatch batch(*store);
      for (uint64_t id = 1; id <= kSalvageIds; ++id) {
        const Lsn lsn = generation == 1 ? OlderLsn(id) : NewerLsn(id);
        ASSERT_OK(testing::PutColdPage(SalvageKey(id), {generation, 2, lsn}, &batch));
      }
      ASSERT_OK(store->Write(&batch, kSalvageLsn - 2 + generation));
      ASSERT_OK(store->Flush());
    }
    ASSERT_OK(store->Close());
    files_ = testing::FilesOf(directory_);
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    std::vector<rocksdb::LiveFileMetaData> tables;
    db->db->GetLiveFilesMetaData(&tables);
    uint64_t newest = 0;
    for (const auto& table : tables) {
      // Others have a deletion of a key that is not there.
      const bool of_keys = table.column_family_name == "pages" && table.size > (8u << 10);
      if (!of_keys || table.file_number < newest) continue;
      newest = table.file_number;
      sst_ = directory_ + table.name;
    }
    ASSERT_TRUE(files_.contains(sst_)) << sst_;
  }
  uint64_t bytes() const { return files_.at(sst_).size(); }

  void RestoreAndFlip(const std::set<uint64_t>& flips) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    for (const auto& [name, content] : files_) testing::WriteBytes(name, content);
    for (const uint64_t at : flips) testing::FlipByte(sst_, at);
  }
  /// A store in which nothing moves by itself: a compaction would meet the bad block.
  Result<std::unique_ptr<ColdStore>> OpenToRead() const {
    return ColdStore::Open(directory_, {.read_only = true});
  }
  bool CanBeOpened() const {
    const auto db = OpenColdDb(directory_, {.read_only = true});
    return db.ok() && FindLostPages(**db, LostPages::kUnreadable).empty();
  }
  /// The generation that a read finds which may have none older than `lsn`; of a page whose bytes
  /// are right.
  static Result<uint64_t> Read(ColdStore* store, uint64_t id, Lsn lsn, bool* of_file = nullptr) {
    std::vector<std::byte> frame(testing::ColdLayout().frame_bytes(), std::byte{0xEE});
    ColdRead read = {
        .key = SalvageKey(id), .layout = &testing::ColdLayout(), .frame = frame, .lsn = lsn};
    const Status status = store->ReadPages({&read, 1});
    if (of_file != nullptr) *of_file = read.of_file;
    GEARDB_RETURN_IF_ERROR(status);
    EXPECT_EQ(frame, testing::ColdFrameOf(read.key, read.header));
    return read.header.generation;
  }
  /// Every page's newest version is found.
  static void ExpectWhole(ColdStore* store) {
    for (uint64_t id = 1; id <= kSalvageIds; ++id) {
      const auto found = Read(store, id, NewerLsn(id));
      ASSERT_OK(found) << "of trajectory " << id;
      EXPECT_EQ(*found, 2u);
    }
  }

  testing::TempDir dir_;
  const std::string directory_ = dir_.File("cold");
  std::map<std::string, std::string> files_;
  std::string sst_;  // Of the newer versions.
};

TEST_F(ColdSalvageTest, AFileThatWasLookedAtIsReadOnce) {
  RestoreAndFlip({bytes() / 2});
  ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
  const ColdPageKey key = SalvageKey(kSalvageIds / 2);
  std::set<uint64_t> looked;
  EXPECT_EQ(FindLostPages(*db, LostPages::kDamaged, &key, &looked).size(), 1u);
  EXPECT_GE(looked.size(), 2u) << "that with the older versions, too";
  EXPECT_TRUE(FindLostPages(*db, LostPages::kDamaged, &key, &looked).empty());
  EXPECT_EQ(FindLostPages(*db, LostPages::kDamaged, &key).size(), 1u);
}

TEST_F(ColdSalvageTest, AFlippedBitOfAnSstFileThatOpensCostsNoPage) {
  uint64_t opened = 0, met = 0;
  for (uint64_t at = 1; at < bytes(); at += bytes() / 60) {
    SCOPED_TRACE(at);
    RestoreAndFlip({at});
    if (!CanBeOpened()) continue;
    ++opened;
    ASSERT_OK_AND_ASSIGN(const auto store, OpenToRead());
    ExpectWhole(store.get());
    met += store->damage().size();
  }
  EXPECT_GT(opened, 50u);
  EXPECT_GT(met, 40u);  // Others are of what no read needs.
}

TEST_F(ColdSalvageTest, AFileThatIsLostCostsNoPageNeitherBeforeARepairNorAfterIt) {
  const auto lose = [&](int how) {
    RestoreAndFlip({});
    if (how == 0) std::filesystem::remove(sst_);
    if (how == 1) std::filesystem::resize_file(sst_, bytes() / 2);
    if (how == 2) testing::WriteBytes(sst_, std::string(bytes(), '\0'));
  };
  for (int how = 0; how < 3; ++how) {
    SCOPED_TRACE(how);
    for (const bool read_only : {true, false}) {
      lose(how);
      ColdStoreOptions options = Options();
      options.read_only = read_only;
      ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, options));
      ExpectWhole(store.get());
      EXPECT_TRUE(store->read_only());
      EXPECT_GT(store->stats().pages_salvaged, 0u);
    }
    // A death before the file is dropped, and another try.
    lose(how);
    {
      ASSERT_OK_AND_ASSIGN(const auto db, OpenInSpiteOfDamage(directory_, {}));
      ASSERT_OK(db->FlushAll());
      ASSERT_OK(db->Close());
    }
    ASSERT_OK(MendColdPages(directory_, kSalvageLsn));
    ASSERT_OK_AND_ASSIGN(const ColdCheck after, CheckColdChunks(directory_));
    EXPECT_TRUE(after.damage().empty()) << after.damage()[0];
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options()));
    ExpectWhole(store.get());
    EXPECT_OK(store->CompactForSpace());
    ExpectWhole(store.get());
  }
}

// A file of one deletion may stand before all pages: they are not written again for it.
TEST_F(ColdSalvageTest, WhatOtherFilesHaveIsNotWrittenAgain) {
  RestoreAndFlip({});
  std::string wide;
  {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, Options()));
    // One would come at once for a file of deletions.
    ASSERT_TRUE(db->db->SetOptions(db->pages, {{"disable_auto_compactions", "true"}}).ok());
    rocksdb::WriteBatch batch;
    for (const uint64_t id : {uint64_t{0}, kSalvageIds + 1}) {
      ASSERT_TRUE(batch.Delete(db->pages, EncodeColdKey(SalvageKey(id))).ok());
    }
    ASSERT_OK(db->Write(&batch));
    ASSERT_OK(db->FlushAll());
    std::vector<rocksdb::LiveFileMetaData> tables;
    db->db->GetLiveFilesMetaData(&tables);
    uint64_t newest = 0;
    for (const auto& table : tables) {
      if (table.column_family_name != "pages" || table.file_number < newest) continue;
      newest = table.file_number;
      wide = directory_ + table.name;
      EXPECT_LE(table.smallestkey, EncodeColdKey(SalvageKey(0)));
      EXPECT_GE(table.largestkey, EncodeColdKey(SalvageKey(kSalvageIds + 1)));
    }
    EXPECT_FALSE(files_.contains(wide));
    ASSERT_OK(db->Close());
  }
  ASSERT_FALSE(wide.empty());
  std::filesystem::remove(wide);
  const auto blobs = [&] {
    uint64_t all = 0;
    for (const auto& [name, content] : testing::FilesOf(directory_)) {
      if (name.ends_with(".blob")) all += content.size();
    }
    return all;
  };
  const uint64_t before = blobs();
  ASSERT_OK(MendColdPages(directory_, kSalvageLsn));
  EXPECT_LT(blobs(), before + before / 10);
  ASSERT_OK_AND_ASSIGN(const auto store, OpenToRead());
  ExpectWhole(store.get());
}

TEST_F(ColdSalvageTest, TheStoreSaysThatItGoesAroundAFile) {
  RestoreAndFlip({bytes() / 3});
  ASSERT_OK_AND_ASSIGN(const auto store, OpenToRead());
  EXPECT_TRUE(store->damage().empty());
  ExpectWhole(store.get());
  EXPECT_GT(store->stats().pages_salvaged, 0u);
  EXPECT_LT(store->stats().pages_salvaged, kSalvageIds);
  EXPECT_EQ(store->stats().pages_failed, 0u);
  ASSERT_EQ(store->damage().size(), 1u);
  EXPECT_NE(store->damage()[0].find(sst_ + " cannot be read: "), std::string::npos);
}

class ColdSalvageConcurrentTest : public ColdSalvageTest {};

TEST_F(ColdSalvageConcurrentTest, ManyReadAroundABadBlock) {
  RestoreAndFlip({bytes() / 3});
  ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options()));
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&] { ExpectWhole(store.get()); });
  }
  ColdBatch batch(*store);
  ASSERT_OK(testing::PutColdPage(SalvageKey(kSalvageIds + 1), {1, 2, 4000}, &batch));
  ASSERT_OK(store->Write(&batch, kSalvageLsn + 1));
  ASSERT_OK(store->Flush());
  for (std::thread& thread : threads) thread.join();
}

// Files that it had named were gone before it looked at them: "missing".
TEST_F(ColdSalvageConcurrentTest, FilesThatACompactionRemovesAreNotLost) {
  RestoreAndFlip({});
  ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, Options()));
  std::atomic<bool> stop{false};
  uint64_t looks = 0;
  std::thread finder([&] {
    for (; !stop; ++looks) {
      const auto lost = FindLostPages(*db, LostPages::kDamaged);
      EXPECT_TRUE(lost.empty()) << lost[0].why;
    }
  });
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(db->db->CompactRange(options, db->pages, nullptr, nullptr).ok());
  }
  stop = true;
  finder.join();
  EXPECT_GT(looks, 0u);
  ASSERT_OK(db->Close());
}

// Which version is asked for, the LSN says: the oldest that is not older.
TEST_F(ColdSalvageTest, NoOtherVersionIsTaken) {
  RestoreAndFlip({bytes() / 3});
  std::set<uint64_t> hidden;
  ASSERT_OK_AND_ASSIGN(const auto store, OpenToRead());
  for (uint64_t id = 1; id <= kSalvageIds; ++id) {
    bool of_file = false;
    if (Read(store.get(), id, kNoLsn, &of_file).ok()) continue;
    EXPECT_FALSE(of_file) << "that it is nowhere else is known";
    hidden.insert(id);
  }
  ASSERT_FALSE(hidden.empty());
  EXPECT_LT(hidden.size(), kSalvageIds / 2);
  for (const uint64_t id : hidden) {
    EXPECT_STATUS(kCorruption, Read(store.get(), id, NewerLsn(id) + 1).status(),
                  "nothing else has the page");
    EXPECT_EQ(Read(store.get(), id, NewerLsn(id)).value(), 2u);
    EXPECT_EQ(Read(store.get(), id, OlderLsn(id) + 1).value(), 2u);
    EXPECT_EQ(Read(store.get(), id, OlderLsn(id)).value(), 1u);
  }
}

TEST_F(ColdSalvageTest, ABadValueBehindABadBlockCostsItsPageAlone) {
  // The newest versions are in the newest blob files, by id.
  constexpr uint64_t kVictim = 100;
  std::string blob;
  uint64_t at = 0;
  {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    const auto place = FindBlobPlace(*db, SalvageKey(kVictim));
    ASSERT_TRUE(place);
    blob = place->path;
    at = place->offset + place->bytes / 2;
  }
  // Until the block is hit that has the victim's key.
  bool both = false;
  for (uint64_t flip = 1; flip < bytes() && !both; flip += 512) {
    RestoreAndFlip({flip});
    ASSERT_OK_AND_ASSIGN(auto store, OpenToRead());
    if (Read(store.get(), kVictim, kNoLsn).ok()) continue;
    both = true;
    store.reset();
    testing::FlipByte(blob, at);
    ASSERT_OK_AND_ASSIGN(store, OpenToRead());
    for (uint64_t id = 1; id <= kSalvageIds; ++id) {
      EXPECT_EQ(Read(store.get(), id, NewerLsn(id)).ok(), id != kVictim) << id;
    }
    ASSERT_OK(MendColdPages(directory_, kSalvageLsn));
    ASSERT_OK_AND_ASSIGN(store, OpenToRead());
    for (uint64_t id = 1; id <= kSalvageIds; ++id) {
      const auto read = Read(store.get(), id, NewerLsn(id));
      EXPECT_EQ(read.ok() && *read == 2, id != kVictim) << id;
    }
  }
  EXPECT_TRUE(both);
}

TEST_F(ColdSalvageTest, ARepairWritesAllPagesAgain) {
  for (const std::set<uint64_t>& flips :
       std::vector<std::set<uint64_t>>{{bytes() / 3}, {1}, {bytes() / 4, bytes() / 2}}) {
    RestoreAndFlip(flips);
    ASSERT_OK(MendColdPages(directory_, kSalvageLsn));
    ASSERT_OK_AND_ASSIGN(const ColdCheck after, CheckColdChunks(directory_));
    EXPECT_TRUE(after.damage().empty()) << after.damage()[0];
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options()));
    ExpectWhole(store.get());
    EXPECT_OK(store->CompactForSpace());
    ExpectWhole(store.get());
    EXPECT_TRUE(store->damage().empty());
  }
}

// A store that is written on: what comes later is never taken for what was there.
TEST_F(ColdSalvageTest, WhatIsWrittenLaterIsFound) {
  RestoreAndFlip({bytes() / 3});
  ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options()));
  ExpectWhole(store.get());
  ColdBatch batch(*store);
  for (uint64_t id = 1; id <= kSalvageIds; id += 2) {
    ASSERT_OK(testing::PutColdPage(SalvageKey(id), {3, 2, 3000 + id}, &batch));
  }
  ASSERT_OK(store->Write(&batch, kSalvageLsn + 1));
  ASSERT_OK(store->Flush());
  for (uint64_t id = 1; id <= kSalvageIds; ++id) {
    EXPECT_EQ(Read(store.get(), id, NewerLsn(id)).value(), id % 2 == 1 ? 3u : 2u);
  }
}

// RocksDB waited for a flush for ever: it takes one that failed for none, in a store that is opened
// in spite of damage.
TEST_F(ColdSalvageTest, ARepairOnAFullDiskEndsAndMayBeMadeAgain) {
  uint64_t full = 0;
  for (int64_t space = 1 << 10; space < 1 << 20; space *= 9) {
    SCOPED_TRACE(space);
    RestoreAndFlip({});
    std::filesystem::remove(sst_);
    const auto files = std::make_shared<testing::ColdFaultFiles>();
    files->SetSpace(space);
    const Status mended = MendColdPages(directory_, kSalvageLsn, files);
    if (!mended.ok()) {
      ++full;
      EXPECT_EQ(mended.code(), StatusCode::kResourceExhausted) << mended;
      ASSERT_OK(MendColdPages(directory_, kSalvageLsn));
    }
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options()));
    ExpectWhole(store.get());
    EXPECT_TRUE(store->damage().empty());
  }
  EXPECT_GT(full, 1u);
}

/// Of a file that was cut RocksDB reads nothing.
TEST(ColdSalvageSmallTest, AFileThatIsCutKeepsTheValuesInItsFirstBlocks) {
  constexpr uint64_t kSmallIds = 200;
  ColdStoreOptions options = testing::SmallColdOptions();
  options.blob_bytes_min = uint64_t{1} << 20;
  const testing::TempDir dir;
  {
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(dir.path(), options));
    ColdBatch batch(*store);
    for (uint64_t id = 1; id <= kSmallIds; ++id) {
      ASSERT_OK(testing::PutColdPage(SalvageKey(id), {1, 2, 100 + id}, &batch));
    }
    ASSERT_OK(store->Write(&batch, kSalvageLsn));
    ASSERT_OK(store->Close());
  }
  std::string sst;
  for (const auto& [path, bytes] : testing::FilesOf(dir.path())) {
    const bool larger = sst.empty() || bytes.size() > std::filesystem::file_size(sst);
    if (path.ends_with(".sst") && larger) sst = path;
  }
  std::filesystem::resize_file(sst, std::filesystem::file_size(sst) / 2);
  const auto found = [&](ColdStore* store) {
    std::set<uint64_t> ids;
    for (uint64_t id = 1; id <= kSmallIds; ++id) {
      std::vector<std::byte> frame(testing::ColdLayout().frame_bytes(), std::byte{0xEE});
      ColdRead read = {
          .key = SalvageKey(id), .layout = &testing::ColdLayout(), .frame = frame, .lsn = 100 + id};
      if (!store->ReadPages({&read, 1}).ok()) continue;
      EXPECT_EQ(frame, testing::ColdFrameOf(read.key, read.header));
      ids.insert(id);
    }
    return ids;
  };
  std::set<uint64_t> before;
  {
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(dir.path(), {.read_only = true}));
    before = found(store.get());
    EXPECT_EQ(store->stats().pages_salvaged, before.size());
  }
  EXPECT_GT(before.size(), kSmallIds / 4);
  EXPECT_LT(before.size(), kSmallIds * 3 / 4);
  ASSERT_OK(MendColdPages(dir.path(), kSalvageLsn));
  ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(dir.path(), options));
  EXPECT_EQ(found(store.get()), before);
}

}  // namespace
}  // namespace geardb::engine
