// Flipped bits and missing files: what a damaged store still gives, and that it never gives
// anything wrong. GEARDB_COLD_FLIPS sets how many bits of each file are flipped, one at a time.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "engine/internal/cold_db.h"
#include "engine/internal/cold_store.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

using testing::CheckColdPage;
using testing::FilesOf;
using testing::PutColdPage;
using testing::Random;
using testing::SmallColdOptions;
using testing::TempDir;

constexpr uint64_t kIds = 300;
constexpr uint64_t kLsn = 2 * kIds;  // Of the last batch; each has its own.

ColdPageKey KeyOf(uint64_t id) { return {1, 0, 0, id, 0}; }

/// What a damaged store gave.
struct Found {
  bool opened = false;
  bool read_only = false;
  Status open_status;
  uint64_t flushed_lsn = 0;
  std::set<uint64_t> damaged;
  std::vector<std::string> damage;
};

class ColdStoreDamageTest : public ::testing::Test {
 protected:
  /// A store of several SST and blob files on two levels, every page of generation 2.
  void SetUp() override {
    ColdStoreOptions options = SmallColdOptions();
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, options));
    for (uint64_t generation = 1; generation <= 2; ++generation) {
      for (uint64_t id = 1; id <= kIds; ++id) {
        ColdBatch batch(*store);
        ASSERT_OK(PutColdPage(KeyOf(id), {generation, 2}, &batch));
        ASSERT_OK(store->Write(&batch, (generation - 1) * kIds + id));
        if (id % 100 == 0) {
          ASSERT_OK(store->Flush());
        }
      }
      if (generation == 1) {
        ASSERT_OK(store->CompactForSpace());
      }
    }
    ASSERT_OK(store->Close());
    store.reset();
    for (const auto& [path, bytes] : FilesOf(directory_)) files_[path] = bytes;
  }

  void Restore() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    for (const auto& [path, bytes] : files_) testing::WriteBytes(path, bytes);
  }

  /// Opens, and reads every page: it is right, or damaged by name.
  Found Look() {
    Found found;
    ColdStoreOptions options = SmallColdOptions();
    options.log_start = kLsn;
    auto store = ColdStore::Open(directory_, options);
    found.open_status = store.status();
    if (!store.ok()) return found;
    found.opened = true;
    found.read_only = (*store)->read_only();
    found.flushed_lsn = (*store)->flushed_lsn();
    for (uint64_t id = 1; id <= kIds; ++id) {
      const Status page = CheckColdPage(store->get(), KeyOf(id), {2, 2});
      if (page.ok()) continue;
      found.damaged.insert(id);
      EXPECT_STATUS(kCorruption, page, "page 0 of number " + std::to_string(id) + " (table 1");
    }
    found.damage = (*store)->damage();
    return found;
  }

  std::vector<std::string> FilesEndingWith(const std::string& end) const {
    std::vector<std::string> paths;
    for (const auto& [path, bytes] : files_) {
      if (path.ends_with(end)) paths.push_back(path);
    }
    return paths;
  }

  TempDir dir_;
  const std::string directory_ = dir_.File("cold");
  std::map<std::string, std::string> files_;
};

TEST_F(ColdStoreDamageTest, AnUndamagedStoreIsWhole) {
  EXPECT_GE(FilesEndingWith(".sst").size(), 4u);
  EXPECT_GE(FilesEndingWith(".blob").size(), 6u);
  const Found found = Look();
  ASSERT_TRUE(found.opened);
  EXPECT_FALSE(found.read_only);
  EXPECT_EQ(found.flushed_lsn, kLsn);
  EXPECT_TRUE(found.damaged.empty());
  EXPECT_TRUE(found.damage.empty());
}

TEST_F(ColdStoreDamageTest, AFlippedBitCostsAtMostTheFilesPages) {
  uint64_t harmless = 0, some = 0, read_only = 0, refused = 0;
  Random random(1);
  for (const auto& [path, bytes] : files_) {
    const std::string name = std::filesystem::path(path).filename().string();
    if (bytes.empty() || name.starts_with("LOG")) continue;
    const bool counted = name.ends_with(".sst") || name.ends_with(".blob");
    const uint64_t flips =
        testing::FromEnvironment("GEARDB_COLD_FLIPS", testing::ShareOf(counted ? 4 : 6));
    for (uint64_t flip = 0; flip < flips; ++flip) {
      Restore();
      const uint64_t bit = random.Below(bytes.size() * 8);
      SCOPED_TRACE(name + ", bit " + std::to_string(bit));
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
      testing::WriteBytes(path, damaged);
      const Found found = Look();
      if (!found.opened) {
        ++refused;
        EXPECT_EQ(found.open_status.code(), StatusCode::kCorruption) << found.open_status;
        EXPECT_FALSE(counted) << "not opened at all";
        continue;
      }
      EXPECT_LE(found.flushed_lsn, kLsn);
      if (found.read_only) {
        ++read_only;
        EXPECT_FALSE(found.damage.empty());
      } else {
        EXPECT_EQ(found.flushed_lsn, kLsn);
      }
      ++(found.damaged.empty() ? harmless : some);
      // One blob file has 64 KiB, one SST file what one flush brought, or 8 KiB of keys.
      EXPECT_LE(found.damaged.size(), 2 * kIds / 3);
    }
  }
  std::printf("%llu harmless, %llu cost pages, %llu opened for reading, %llu refused\n",
              static_cast<unsigned long long>(harmless), static_cast<unsigned long long>(some),
              static_cast<unsigned long long>(read_only), static_cast<unsigned long long>(refused));
  EXPECT_GT(some, 0u);
}

// RocksDB takes a record of its manifest that seems to end beyond the file, or to be of an unknown
// kind, for the manifest's end. Its copy is damaged in the same place: otherwise it stands in.
TEST_F(ColdStoreDamageTest, AManifestThatEndsEarlyIsFoundByTheLogsStart) {
  const std::string path = FilesEndingWith("CURRENT")[0];
  std::string name = files_[path];
  while (!name.empty() && name.back() == '\n') name.pop_back();
  const std::string manifest = directory_ + "/" + name;
  const std::string copy = directory_ + "/MANIFEST_COPY" + name.substr(name.find('-'));
  const std::string bytes = files_[manifest];
  uint64_t refused = 0;
  size_t record = 0;
  while (record + 7 < bytes.size()) {
    const auto length = static_cast<size_t>(static_cast<uint8_t>(bytes[record + 4]) |
                                            static_cast<uint8_t>(bytes[record + 5]) << 8);
    for (const size_t at : {record + 5, record + 6}) {  // The length's high byte, the type.
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (at == record + 5 ? 0x40 : 0x04));
      testing::WriteBytes(manifest, damaged);
      testing::WriteBytes(copy, damaged);
      const Found found = Look();
      if (found.opened) {
        EXPECT_TRUE(found.read_only || (found.flushed_lsn == kLsn && found.damaged.empty()))
            << "record at " << record;
        Restore();
      } else {
        ++refused;
        EXPECT_STATUS(kCorruption, found.open_status, directory_);
        auto again = FilesOf(directory_);
        for (const auto& [other, content] : files_) {
          if (other.ends_with(".sst") || other.ends_with(".blob")) {
            EXPECT_EQ(again[other], content) << other;
          }
        }
      }
    }
    record += 7 + length;
  }
  EXPECT_GT(refused, 4u);
}

TEST_F(ColdStoreDamageTest, AStoreBehindTheLogIsRefusedUntouched) {
  ColdStoreOptions options = SmallColdOptions();
  options.log_start = kLsn + 1;
  EXPECT_STATUS(kCorruption, ColdStore::Open(directory_, options), "the log begins at 601");
  EXPECT_STATUS(kCorruption, ColdStore::Open(dir_.File("other"), options), "no cold store");
  EXPECT_FALSE(std::filesystem::exists(dir_.File("other")));
  options.log_start = kLsn;
  EXPECT_OK(ColdStore::Open(directory_, options));
}

TEST_F(ColdStoreDamageTest, AMissingFileCostsItsPagesAndIsNamed) {
  std::set<uint64_t> lost;
  for (const auto& [path, bytes] : files_) {
    const std::string name = std::filesystem::path(path).filename().string();
    SCOPED_TRACE(name);
    Restore();
    std::filesystem::remove(path);
    const Found found = Look();
    if (name.ends_with(".sst") || name.ends_with(".blob")) {
      ASSERT_TRUE(found.opened) << found.open_status;
      ASSERT_FALSE(found.damage.empty());
      bool named = false;
      for (const std::string& what : found.damage) {
        named = named || what.find(name) != std::string::npos;
      }
      EXPECT_TRUE(named) << found.damage[0];
      EXPECT_LT(found.damaged.size(), kIds);
      lost.insert(found.damaged.begin(), found.damaged.end());
      EXPECT_LE(found.flushed_lsn, kLsn);
    } else if (name == "CURRENT" || name.starts_with("MANIFEST-")) {
      // Its copy stands in for it.
      ASSERT_TRUE(found.opened) << found.open_status;
      EXPECT_FALSE(found.read_only);
      EXPECT_TRUE(found.damaged.empty());
      ASSERT_FALSE(found.damage.empty());
      EXPECT_NE(found.damage[0].find(name + " is missing"), std::string::npos) << found.damage[0];
    } else {
      EXPECT_TRUE(found.opened) << found.open_status;
      EXPECT_TRUE(found.damaged.empty());
    }
  }
  EXPECT_EQ(lost.size(), kIds);  // Each page was in some of them.
}

TEST_F(ColdStoreDamageTest, AMissingSstFileOfPagesLeavesAStoreForReading) {
  std::string of_pages;
  {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    std::vector<rocksdb::LiveFileMetaData> tables;
    db->db->GetLiveFilesMetaData(&tables);
    for (const auto& table : tables) {
      if (table.column_family_name == "pages") of_pages = directory_ + table.name;
    }
  }
  ASSERT_TRUE(std::filesystem::remove(of_pages));
  ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, SmallColdOptions()));
  EXPECT_TRUE(store->read_only());
  ColdBatch batch(*store);
  EXPECT_STATUS(kFailedPrecondition, store->Write(&batch, 2 * kLsn), "damaged");
  EXPECT_STATUS(kFailedPrecondition, store->Flush(), "damaged");
  EXPECT_OK(store->Close());
}

TEST_F(ColdStoreDamageTest, ACompactionThatMeetsDamageIsGivenUpAndWritesGoOn) {
  for (const std::string& path : FilesEndingWith(".blob")) {
    std::string bytes = files_[path];
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 8);
    testing::WriteBytes(path, bytes);
  }
  ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, SmallColdOptions()));
  EXPECT_FALSE(store->read_only());
  EXPECT_STATUS(kCorruption, store->CompactForSpace(), "cold");
  EXPECT_FALSE(store->damage().empty());
  for (uint64_t id = kIds + 1; id <= 2 * kIds; ++id) {
    ColdBatch batch(*store);
    ASSERT_OK(PutColdPage(KeyOf(id), {2, 2}, &batch));
    ASSERT_OK(store->Write(&batch, 2 * kLsn));
    if (id % 20 == 0) {
      ASSERT_OK(store->Flush());
    }
  }
  EXPECT_EQ(store->flushed_lsn(), 2 * kLsn);
  EXPECT_OK(store->status());
  ASSERT_OK(store->Close());
  ASSERT_OK_AND_ASSIGN(store, ColdStore::Open(directory_, SmallColdOptions()));
  EXPECT_EQ(store->flushed_lsn(), 2 * kLsn);
  for (uint64_t id = kIds + 1; id <= 2 * kIds; ++id) {
    EXPECT_OK(CheckColdPage(store.get(), KeyOf(id), {2, 2}));
  }
}

// Files pile up while compactions fail. An open found too many for RocksDB to take a write, which
// waited for a compaction that failed again and again.
TEST_F(ColdStoreDamageTest, WhereCompactionsFailWritesGoOnBehindEveryOpen) {
  const std::vector<std::string> tables = FilesEndingWith(".sst");
  const std::string& pages = *std::ranges::max_element(
      tables, {}, [this](const std::string& path) { return files_[path].size(); });
  std::string bytes = files_[pages];
  bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 8);
  testing::WriteBytes(pages, bytes);
  uint64_t id = kIds;
  for (int open = 0; open < 4; ++open) {
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, SmallColdOptions()));
    ASSERT_FALSE(store->read_only());
    for (int i = 0; i < 20; ++i) {
      ColdBatch batch(*store);
      ASSERT_OK(PutColdPage(KeyOf(++id), {2, 2}, &batch));
      ASSERT_OK(store->Write(&batch, 2 * kLsn));
      ASSERT_OK(store->Flush());
    }
    EXPECT_FALSE(store->damage().empty());
    ASSERT_OK(store->Close());
  }
  ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, SmallColdOptions()));
  for (uint64_t written = kIds + 1; written <= id; ++written) {
    EXPECT_OK(CheckColdPage(store.get(), KeyOf(written), {2, 2}));
  }
}

}  // namespace
}  // namespace geardb::engine
