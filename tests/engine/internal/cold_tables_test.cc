// SST files with a bad tail: which bits matter, and what RocksDB reads with the tail that is made.
#include "engine/internal/cold_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "engine/internal/cold_check.h"
#include "engine/internal/cold_db.h"
#include "engine/internal/cold_table_block.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

namespace fs = std::filesystem;

/// A store with a file of pages that has many blocks, values in them, and deletions of ranges.
class ColdTablesTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kPagesPut = 60;
  static constexpr uint64_t kLsn = 8;
  static constexpr ColdChunkKey kChunk{.table = 1, .partition = 0, .kind = 4, .chunk = 9};

  static ColdPageKey KeyOf(uint64_t id) { return {1, 0, 0, id, 0}; }
  static ColdPageHeader HeaderOf(uint64_t id) { return {.generation = id, .rows = 8, .lsn = kLsn}; }
  static bool IsRemoved(uint64_t id) { return id >= 20 && id < 23; }
  static ColdStoreOptions Options(bool read_only = false) {
    ColdStoreOptions options = testing::SmallColdOptions();
    options.read_only = read_only;
    options.blob_bytes_min = uint64_t{1} << 20;  // Values lie in SST files.
    return options;
  }
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options()));
    ColdBatch batch(*store);
    for (uint64_t id = 1; id <= kPagesPut; ++id) {
      ASSERT_OK(testing::PutColdPage(KeyOf(id), HeaderOf(id), &batch));
    }
    ASSERT_OK(batch.PutChunk(kChunk, kLsn, testing::ColdChunkBytes(kChunk, kLsn)));
    ASSERT_OK(store->Write(&batch, kLsn));
    ColdBatch removal(*store);
    ASSERT_OK(removal.DeleteTrajectoryPages({1, 0, 0, 20, 23}));
    ASSERT_OK(store->Write(&removal, kLsn + 1));
    ASSERT_OK(store->Close());
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, Options(/*read_only=*/true)));
    std::vector<rocksdb::LiveFileMetaData> tables;
    db->db->GetLiveFilesMetaData(&tables);
    for (const rocksdb::LiveFileMetaData& table : tables) {
      const std::string path = directory_ + "/" + table.relative_filename;
      paths_.push_back(path);
      if (table.column_family_name == "pages" && table.size > bytes_.size()) {
        path_ = path;
        bytes_ = testing::ReadBytes(path);
      }
    }
    ASSERT_FALSE(bytes_.empty());
    const auto tail = MakeTail(bytes_);
    ASSERT_TRUE(tail);
    tail_from_ = tail->from;
  }
  static bool TailOf(const std::string& bytes) {
    return HasGoodTail(bytes.size(), [&](uint64_t from) { return bytes.substr(from); });
  }
  std::string With(uint64_t at, char change) const {
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ change);
    return damaged;
  }
  /// All pages are there, but for those that were removed and, perhaps, `lost` at most.
  void ExpectAll(bool read_only, uint64_t lost = 0) {
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options(read_only)));
    uint64_t found_lost = 0;
    for (uint64_t id = 1; id <= kPagesPut; ++id) {
      const Status read = testing::CheckColdPage(store.get(), KeyOf(id), HeaderOf(id));
      if (IsRemoved(id)) {
        EXPECT_STATUS(kNotFound, read, "") << id;
      } else if (lost > 0 && read.code() == StatusCode::kCorruption) {
        ++found_lost;
      } else {
        EXPECT_OK(read) << id;
      }
    }
    EXPECT_EQ(found_lost > 0, lost > 0);
    EXPECT_LE(found_lost, lost);
    EXPECT_OK(store->ReadChunk(kChunk));
    ASSERT_OK(store->Close());
  }

  testing::TempDir dir_;
  const std::string directory_ = dir_.File("cold");
  std::vector<std::string> paths_;
  std::string path_;
  std::string bytes_;
  uint64_t tail_from_ = 0;
};

TEST_F(ColdTablesTest, RocksDbsOwnTailsAreGoodAndBeginBehindTheKeys) {
  for (const std::string& path : paths_) EXPECT_TRUE(TailOf(testing::ReadBytes(path))) << path;
  EXPECT_GT(tail_from_, bytes_.size() / 2);
  EXPECT_LT(tail_from_, bytes_.size());
  ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, Options(/*read_only=*/true)));
  for (const std::string& path : paths_)
    EXPECT_EQ(db->tables->Shown(path, fs::file_size(path)), nullptr);
  EXPECT_TRUE(db->listener->damage().empty());
}

TEST_F(ColdTablesTest, NoBitOfTheTailThatMattersIsOverlooked) {
  for (uint64_t at = tail_from_; at < bytes_.size(); ++at) {
    if (!TailOf(With(at, 1))) continue;
    // What fills up the end: RocksDB does not look at it.
    EXPECT_GT(at, bytes_.size() - 53) << at;
    EXPECT_EQ(bytes_[at], 0) << at;
  }
  for (uint64_t bytes = 0; bytes < bytes_.size(); bytes += 7) {
    EXPECT_FALSE(TailOf(bytes_.substr(0, bytes))) << bytes;
  }
}

TEST_F(ColdTablesTest, ATailThatIsMadeAgainIsAGoodOneOfTheSameLength) {
  for (uint64_t at = tail_from_; at < bytes_.size(); at += 11) {
    const std::string damaged = With(at, 4);
    const auto made = MakeTail(damaged);
    ASSERT_TRUE(made) << at;
    EXPECT_EQ(made->from, tail_from_);
    const std::string whole = damaged.substr(0, made->from) + made->tail;
    EXPECT_EQ(whole.size(), bytes_.size());
    EXPECT_TRUE(TailOf(whole)) << at;
    // Its index, which has keys too, is not taken for keys.
    const auto again = MakeTail(whole);
    ASSERT_TRUE(again) << at;
    EXPECT_EQ(again->from, made->from);
    EXPECT_EQ(again->tail, made->tail);
  }
}

TEST_F(ColdTablesTest, NothingIsLostWithAFlippedBitAnywhereInTheTail) {
  for (uint64_t at = tail_from_; at < bytes_.size(); at += (bytes_.size() - tail_from_) / 23) {
    SCOPED_TRACE(at);
    const std::string damaged = With(at, 16);
    if (TailOf(damaged)) continue;
    const auto made = MakeTail(damaged);
    ASSERT_TRUE(made);
    // The block itself that says what was deleted: that has to be said.
    if (made->lost_deletions) continue;
    testing::WriteBytes(path_, damaged);
    ExpectAll(/*read_only=*/true);
    EXPECT_EQ(testing::ReadBytes(path_), damaged);
    ASSERT_OK_AND_ASSIGN(ColdCheck found, CheckColdChunks(directory_));
    ASSERT_EQ(found.damage().size(), 1u);
    EXPECT_TRUE(found.damage()[0].starts_with(path_ + " has a bad tail")) << found.damage()[0];
    EXPECT_EQ(found.files_of_pages, 0u);
    ASSERT_OK(MendColdFiles(directory_, 0));
    EXPECT_TRUE(TailOf(testing::ReadBytes(path_)));
    ASSERT_OK_AND_ASSIGN(found, CheckColdChunks(directory_));
    EXPECT_TRUE(found.damage().empty()) << found.damage()[0];
    ExpectAll(/*read_only=*/true);
  }
  ExpectAll(/*read_only=*/false);
}

TEST_F(ColdTablesTest, AStoreGoesOnAndItsCompactionsReadTheTailThatIsShown) {
  testing::WriteBytes(path_, With(bytes_.size() - 3, 1));
  {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, Options()));
    ASSERT_OK(db->Writable());
    rocksdb::CompactRangeOptions all;
    all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    EXPECT_TRUE(db->db->CompactRange(all, db->pages, nullptr, nullptr).ok());
    ASSERT_OK(db->Close());
  }
  EXPECT_FALSE(fs::exists(path_));
  ExpectAll(/*read_only=*/true);
}

TEST_F(ColdTablesTest, DeletionsThatAreLostAreSaid) {
  uint64_t said = 0;
  for (uint64_t at = tail_from_; at < bytes_.size(); at += 4) {
    const auto made = MakeTail(With(at, 2));
    ASSERT_TRUE(made);
    said += made->lost_deletions;
    if (!made->lost_deletions || said > 1) continue;
    testing::WriteBytes(path_, With(at, 2));
    ASSERT_OK_AND_ASSIGN(const ColdCheck found, CheckColdChunks(directory_));
    ASSERT_EQ(found.damage().size(), 1u);
    EXPECT_TRUE(found.damage()[0].ends_with("and has lost what it says was deleted"));
  }
  // A key with its end, and what every block has.
  EXPECT_GT(said, 2 * kColdPageKeyBytes / 4);
  EXPECT_LT(said, 50u);
}

TEST_F(ColdTablesTest, ABadBlockInAFileWithABadTailCostsWhatIsInIt) {
  const uint64_t pages_lost = 12;
  // The last block of keys has a deletion alone.
  for (const auto& bad : std::vector<std::vector<uint64_t>>{
           {40}, {tail_from_ / 2}, {tail_from_ - 300}, {tail_from_ - 300, tail_from_ - 10}}) {
    SCOPED_TRACE(bad[0]);
    std::string damaged = With(bytes_.size() - 3, 1);
    for (const uint64_t at : bad) damaged[at] = static_cast<char>(damaged[at] ^ 1);
    testing::WriteBytes(path_, damaged);
    ExpectAll(/*read_only=*/true, pages_lost);
    ASSERT_OK(MendColdFiles(directory_, 0));
    ExpectAll(/*read_only=*/true, pages_lost);
  }
}

TEST_F(ColdTablesTest, NoPlaceInAnIndexLiesBeyondTheFile) {
  const auto block = [](const std::string& key) {
    TableBlockWriter made(kEntriesPerRestart);
    made.Add(key + std::string("\1\0\0\0\0\0\0\0", 8), "value");
    return std::move(made).Finish();
  };
  const std::string file = block("a") + "xyz" + block("b") + std::string(1000, '\0');
  const auto made = MakeTail(file);
  ASSERT_TRUE(made);
  const std::string whole = file.substr(0, made->from) + made->tail;
  uint64_t places = 0;
  for (uint64_t at = made->from; at < whole.size(); ++at) {
    const auto index = ReadTableBlock(whole, at, kEntriesPerRestart);
    if (!index || index->entries.front().key[0] != 'a') continue;
    for (const TableEntry& entry : index->entries) {
      std::string_view value = entry.value;
      const auto place = TakePlace(&value);
      ASSERT_TRUE(place);
      EXPECT_LE(place->bytes, whole.size());
      ++places;
    }
  }
  EXPECT_EQ(places, 2u);
}

TEST_F(ColdTablesTest, AFileThatWasCutShortIsNoFileWithABadTail) {
  testing::WriteBytes(path_, bytes_.substr(0, tail_from_ / 2));
  ASSERT_OK_AND_ASSIGN(const ColdCheck found, CheckColdChunks(directory_));
  EXPECT_TRUE(found.tables.empty());
  EXPECT_EQ(found.files_of_pages, 1u);
  ASSERT_OK(MendColdFiles(directory_, 0));
  EXPECT_EQ(fs::file_size(path_), tail_from_ / 2);
}

TEST_F(ColdTablesTest, WhatIsNoTableAndHasNoRoomIsLeftAlone) {
  EXPECT_FALSE(MakeTail(""));
  EXPECT_FALSE(MakeTail(std::string(10000, '\0')));
  EXPECT_FALSE(MakeTail(bytes_.substr(0, tail_from_)));
  EXPECT_FALSE(TailOf(""));
  testing::WriteBytes(directory_ + "/999999.sst", "");
  ExpectAll(/*read_only=*/true);
}

}  // namespace
}  // namespace geardb::engine
