// Index chunks are kept twice: whatever happens to one of the copies, the store opens for writing,
// every chunk is read as it was put, and after a mending both copies have it again.
// GEARDB_COLD_FLIPS sets how many bits of each file are flipped, one at a time.
#include "engine/internal/cold_chunks.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "engine/internal/cold_check.h"
#include "engine/internal/cold_db.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

using testing::FilesOf;
using testing::Random;
using testing::SmallColdOptions;

constexpr uint64_t kKeys = 40;
constexpr uint64_t kRounds = 4;
constexpr uint64_t kLastLsn = kRounds * 100;
constexpr ColdPageKey kPage{1, 0, 0, 1, 0};

ColdChunkKey KeyOf(uint64_t k) { return {static_cast<uint32_t>(k % 3), 0, 4, k}; }

/// Every third lies in a blob file, the others in the SST file with the key.
std::string BytesOf(uint64_t k, uint64_t lsn) {
  Random random(k * 1000 + lsn);
  std::string bytes(k % 3 == 0 ? 2000 + k : 100 + k, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  return bytes;
}

class ColdChunksTest : public ::testing::Test {
 protected:
  /// Several files for each of the copies, on two levels.
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, SmallColdOptions()));
    for (uint64_t round = 1; round <= kRounds; ++round) {
      ColdBatch batch(*store);
      for (uint64_t k = 0; k < kKeys; ++k) {
        if (round > 1 && (k + round) % 3 != 0) continue;
        if (round > 1 && k % 10 == round) {
          batch.DeleteChunk(KeyOf(k));
          expected_.erase(k);
          continue;
        }
        const std::string bytes = BytesOf(k, round * 100);
        ASSERT_OK(batch.PutChunk(KeyOf(k), round * 100, std::as_bytes(std::span(bytes))));
        expected_[k] = round * 100;
      }
      ASSERT_OK(testing::PutColdPage(kPage, {round, 2}, &batch));
      ASSERT_OK(store->Write(&batch, round * 100));
      ASSERT_OK(store->Flush());
      if (round == 2) {
        ASSERT_OK(store->CompactForSpace());
      }
    }
    ASSERT_OK(store->Close());
    store.reset();
    for (const auto& [path, bytes] : FilesOf(directory_)) files_[path] = bytes;
    FindFiles();
  }

  /// Which files have which copy.
  void FindFiles() {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    for (size_t copy = 0; copy < kChunkCopies; ++copy) {
      rocksdb::ColumnFamilyMetaData family;
      db->db->GetColumnFamilyMetaData(db->chunks[copy], &family);
      for (const auto& level : family.levels) {
        for (const auto& file : level.files) copies_[copy].push_back(directory_ + file.name);
      }
      for (const auto& file : family.blob_files) {
        copies_[copy].push_back(directory_ + "/" +
                                file.blob_file_name.substr(file.blob_file_name.rfind('/') + 1));
      }
      ASSERT_GE(copies_[copy].size(), 4u);
      for (const std::string& path : copies_[copy]) ASSERT_EQ(files_.count(path), 1u) << path;
    }
  }

  void Restore() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    for (const auto& [path, bytes] : files_) testing::WriteBytes(path, bytes);
  }

  static void ExpectChunk(uint64_t k, uint64_t lsn, const Result<ColdChunk>& chunk) {
    ASSERT_OK(chunk) << k;
    EXPECT_EQ(chunk->lsn, lsn) << k;
    EXPECT_EQ(chunk->bytes, BytesOf(k, lsn)) << k;
  }
  void ExpectAll(ColdStore* store) {
    for (uint64_t k = 0; k < kKeys; ++k) {
      const auto chunk = store->ReadChunk(KeyOf(k));
      if (expected_.contains(k)) {
        ExpectChunk(k, expected_[k], chunk);
      } else {
        EXPECT_STATUS(kNotFound, chunk, "chunk " + std::to_string(k) + " of kind 4");
      }
    }
    uint64_t visited = 0;
    for (uint32_t table = 0; table < 3; ++table) {
      EXPECT_OK(
          store->ForEachChunk({table, 0, 4, 0}, [&](const ColdChunkKey& key, ColdChunk chunk) {
            ++visited;
            ExpectChunk(key.chunk, expected_[key.chunk], std::move(chunk));
            return Status::Ok();
          }));
    }
    EXPECT_EQ(visited, expected_.size());
  }
  static ColdStoreOptions Options() {
    ColdStoreOptions options = SmallColdOptions();
    options.log_start = kLastLsn;
    return options;
  }
  /// Opened for writing, the store has all there was. What it says of damage.
  std::vector<std::string> ExpectOpensWhole() {
    auto store = ColdStore::Open(directory_, Options());
    EXPECT_OK(store);
    if (!store.ok()) return {};
    EXPECT_FALSE((*store)->read_only());
    EXPECT_EQ((*store)->flushed_lsn(), kLastLsn);
    ExpectAll(store->get());
    EXPECT_OK(testing::CheckColdPage(store->get(), kPage, {kRounds, 2}));
    const auto damage = (*store)->damage();
    EXPECT_OK((*store)->Close());
    return damage;
  }
  /// Opened for reading, too, which changes nothing.
  void ExpectReadsWhole() {
    const auto before = FilesOf(directory_);
    ColdStoreOptions options = Options();
    options.read_only = true;
    {
      ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, options));
      ExpectAll(store.get());
    }
    EXPECT_TRUE(FilesOf(directory_) == before);
  }
  /// Each copy by itself has all, and nothing else.
  void ExpectBothWhole() {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    for (size_t copy = 0; copy < kChunkCopies; ++copy) {
      EXPECT_OK(FindMark(*db, copy)) << copy;
      for (uint64_t k = 0; k < kKeys; ++k) {
        const auto chunk = ReadChunkCopy(*db, KeyOf(k), copy);
        if (expected_.contains(k)) {
          ExpectChunk(k, expected_[k], chunk);
        } else {
          EXPECT_STATUS(kNotFound, chunk, "in the cold store");
        }
      }
    }
    ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(directory_));
    EXPECT_EQ(check.chunks, expected_.size());
    EXPECT_TRUE(check.damage().empty()) << check.damage()[0];
  }
  /// One copy is damaged: all is read, a mending makes it whole, and nothing bad is left behind.
  void ExpectMended() {
    ExpectReadsWhole();
    ExpectOpensWhole();
    ASSERT_OK(MendColdChunks(directory_, kLastLsn));
    ExpectBothWhole();
    EXPECT_TRUE(ExpectOpensWhole().empty());
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options()));
    EXPECT_OK(store->CompactForSpace());
    ExpectAll(store.get());
  }
  /// RocksDB as it is, for what no store of today would write.
  void Change(const std::function<void(ColdDb*)>& change) {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, SmallColdOptions()));
    db->listener->Watch({});  // Families may leave.
    change(db.get());
    rocksdb::FlushOptions flush;
    ASSERT_TRUE(db->db->Flush(flush, db->families()).ok());
  }
  void Put(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, std::string_view key,
           std::string_view value) {
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    ASSERT_TRUE(db->Put(unlogged, family, SliceOf(key), SliceOf(value)).ok());
  }
  void Delete(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, std::string_view key) {
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    ASSERT_TRUE(db->Delete(unlogged, family, SliceOf(key)).ok());
  }
  /// What is written over a chunk in one copy.
  void Spoil(uint64_t k, size_t copy) {
    Change([&](ColdDb* db) {
      std::string value;
      const std::string bytes = BytesOf(k, expected_[k]);
      ASSERT_OK(EncodeColdChunk(KeyOf(k), expected_[k], std::as_bytes(std::span(bytes)), &value));
      value.back() = static_cast<char>(value.back() ^ 1);
      Put(db->db.get(), db->chunks[copy], EncodeColdKey(KeyOf(k)), value);
    });
  }

  testing::TempDir dir_;
  const std::string directory_ = dir_.File("cold");
  std::map<std::string, std::string> files_;
  std::array<std::vector<std::string>, kChunkCopies> copies_;
  std::map<uint64_t, uint64_t> expected_;  // LSNs.
};

TEST_F(ColdChunksTest, BothCopiesHaveAll) {
  ExpectBothWhole();
  EXPECT_TRUE(ExpectOpensWhole().empty());
}

TEST_F(ColdChunksTest, AFlippedBitOfAFileCostsNothing) {
  Random random(7);
  uint64_t said = 0;
  for (const auto& paths : copies_) {
    for (const std::string& path : paths) {
      const uint64_t flips = testing::FromEnvironment("GEARDB_COLD_FLIPS", testing::ShareOf(4));
      const uint64_t bytes = files_[path].size();
      for (uint64_t flip = 0; flip < flips; ++flip) {
        // Evenly over the file, and more often in its last bytes, which lead to all others.
        const uint64_t at = flip % 3 == 2 ? bytes - 1 - random.Below(std::min(bytes, uint64_t{200}))
                                          : (flip * bytes + random.Below(bytes)) / (flips + 1);
        SCOPED_TRACE(path + " at " + std::to_string(at));
        Restore();
        testing::FlipByte(path, at);
        ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(directory_));
        said += check.damage().empty() ? 0u : 1u;
        ExpectMended();
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(said, 5u);
}

TEST_F(ColdChunksTest, AFileThatIsMissingOrShortCostsNothing) {
  for (const auto& paths : copies_) {
    for (const std::string& path : paths) {
      for (const bool missing : {true, false}) {
        SCOPED_TRACE(path + (missing ? " missing" : " short"));
        Restore();
        if (missing) {
          std::filesystem::remove(path);
        } else {
          std::filesystem::resize_file(path, files_[path].size() / 2);
        }
        ExpectMended();
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(ColdChunksTest, AllFilesOfACopyMayBeMissing) {
  for (const auto& paths : copies_) {
    Restore();
    for (const std::string& path : paths) std::filesystem::remove(path);
    ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(directory_));
    bool named = false;
    for (const std::string& what : check.damage()) {
      named = named || what.find(paths[0] + " is missing") != std::string::npos;
    }
    EXPECT_TRUE(named);
    ExpectMended();
  }
}

// What a read finds is written again behind it, and the next open drops the family with the bad
// block.
TEST_F(ColdChunksTest, WhatAnOpenReadsDamagedIsWholeAfterTheNext) {
  for (const uint64_t k : {9u, 10u}) {
    Restore();
    Spoil(k, 0);
    EXPECT_EQ(ExpectOpensWhole().size(), 1u);
    {
      ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
      EXPECT_OK(ReadChunkCopy(*db, KeyOf(k), 0).status());
      EXPECT_STATUS(kNotFound, FindMark(*db, 0), "cold");
      EXPECT_OK(FindMark(*db, 1));
    }
    EXPECT_TRUE(ExpectOpensWhole().empty());
    ExpectBothWhole();
  }
}

TEST_F(ColdChunksTest, DifferentChunksOfBothCopiesCostNothing) {
  Spoil(9, 0);
  Spoil(10, 1);
  Spoil(13, 0);
  ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(directory_));
  ASSERT_EQ(check.copies.size(), 3u);
  EXPECT_NE(check.damage()[0].find("the first copy of chunk 9 of the trajectories in the index"),
            std::string::npos)
      << check.damage()[0];
  ExpectMended();
}

TEST_F(ColdChunksTest, WhatBothCopiesHaveLostIsNamed) {
  Spoil(9, 0);
  Spoil(9, 1);
  for (int again = 0; again < 3; ++again) {
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options()));
    EXPECT_FALSE(store->read_only());
    EXPECT_STATUS(kCorruption, store->ReadChunk(KeyOf(9)), "chunk 9 of kind 4 (table 0");
    for (const auto& [k, lsn] : expected_) {
      if (k != 9) ExpectChunk(k, lsn, store->ReadChunk(KeyOf(k)));
    }
    ASSERT_OK(store->Close());
    ASSERT_OK(MendColdChunks(directory_, kLastLsn));
  }
  ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(directory_));
  EXPECT_EQ(check.damage().size(), 2u);
  // Another version is good again.
  ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options()));
  const std::string bytes = BytesOf(9, 900);
  ColdBatch batch(*store);
  ASSERT_OK(batch.PutChunk(KeyOf(9), 900, std::as_bytes(std::span(bytes))));
  ASSERT_OK(store->Write(&batch, 900));
  ExpectChunk(9, 900, store->ReadChunk(KeyOf(9)));
}

// A process died while it made a copy anew: behind the drop, behind the new family, behind some of
// the chunks.
TEST_F(ColdChunksTest, AMakingThatDiedIsMadeAgain) {
  for (const size_t copy : {0u, 1u}) {
    for (const uint64_t copied : {0u, 1u, 7u, 40u}) {
      SCOPED_TRACE(copied);
      Restore();
      Change([&](ColdDb* db) {
        rocksdb::ColumnFamilyDescriptor described;
        ASSERT_TRUE(db->chunks[copy]->GetDescriptor(&described).ok());
        ASSERT_TRUE(db->db->DropColumnFamily(db->chunks[copy]).ok());
        ASSERT_TRUE(db->db->DestroyColumnFamilyHandle(db->chunks[copy]).ok());
        db->chunks[copy] = nullptr;
        if (copied == 0) return;
        ASSERT_TRUE(
            db->db->CreateColumnFamily(described.options, described.name, &db->chunks[copy]).ok());
        for (const auto& [k, lsn] : expected_) {
          if (k >= copied) break;
          std::string value;
          const std::string bytes = BytesOf(k, lsn);
          ASSERT_OK(EncodeColdChunk(KeyOf(k), lsn, std::as_bytes(std::span(bytes)), &value));
          Put(db->db.get(), db->chunks[copy], EncodeColdKey(KeyOf(k)), value);
        }
      });
      ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(directory_));
      EXPECT_TRUE(check.damage().empty());
      ExpectReadsWhole();
      EXPECT_TRUE(ExpectOpensWhole().empty());
      ExpectBothWhole();
    }
  }
}

// The store's other files are looked at before a copy is dropped: a manifest that ends early misses
// files of the copies, too.
TEST_F(ColdChunksTest, NothingIsDroppedWhereOtherFilesAreMissing) {
  std::string other;
  {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    rocksdb::ColumnFamilyMetaData family;
    db->db->GetColumnFamilyMetaData(db->pages, &family);
    for (const auto& level : family.levels) {
      for (const auto& file : level.files) other = directory_ + file.name;
    }
  }
  std::filesystem::remove(other);
  std::filesystem::remove(copies_[0][0]);
  const auto before = FilesOf(directory_);
  {
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options()));
    EXPECT_TRUE(store->read_only());
    ExpectAll(store.get());
  }
  EXPECT_STATUS(kFailedPrecondition, MendColdChunks(directory_, kLastLsn), "damaged");
  auto after = FilesOf(directory_);
  for (const auto& [path, bytes] : before) {
    if (!path.ends_with(".sst") && !path.ends_with(".blob")) continue;
    EXPECT_TRUE(after[path] == bytes) << path;
  }
}

TEST(ColdChunksValueTest, AValueIsOfItsKeyAndLsn) {
  const std::string bytes = "some bytes";
  std::string value;
  ASSERT_OK(EncodeColdChunk({1, 0, 2, 3}, 77, std::as_bytes(std::span(bytes)), &value));
  ASSERT_OK_AND_ASSIGN(const ColdChunk chunk, DecodeColdChunk({1, 0, 2, 3}, value));
  EXPECT_EQ(chunk.lsn, 77u);
  EXPECT_EQ(chunk.bytes, bytes);
  EXPECT_STATUS(kCorruption, DecodeColdChunk({1, 0, 2, 4}, value), "chunk 4 of kind 2");
  for (size_t at = 0; at < value.size(); ++at) {
    std::string damaged = value;
    damaged[at] = static_cast<char>(damaged[at] ^ 16);
    EXPECT_STATUS(kCorruption, DecodeColdChunk({1, 0, 2, 3}, damaged), "the checksum is");
    EXPECT_STATUS(kCorruption, DecodeColdChunk({1, 0, 2, 3}, value.substr(0, at)), "chunk 3");
  }
}

TEST(ColdChunksWornTest, WhatWasNotedIsTakenOnce) {
  WornCopies worn;
  EXPECT_FALSE(worn.Take().any());
  worn.Note(1, "b");
  worn.Note(1, "a");
  worn.Note(1, "b");
  worn.NoteFamily("pages");
  WornCopies::Found found = worn.Take();
  EXPECT_FALSE(found.any(0));
  EXPECT_EQ(found.keys[1], (std::set<std::string>{"a", "b"}));
  EXPECT_FALSE(worn.Take().any());
  worn.NoteFamily("chunks");
  worn.GiveBack(found);
  found = worn.Take();
  EXPECT_TRUE(found.family[0]);
  EXPECT_FALSE(found.family[1]);
  EXPECT_EQ(found.keys[1].size(), 2u);
}

// Whatever a store is put through, both copies say the same.
TEST(ColdChunksRandomTest, CopiesStayTheSame) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    testing::TempDir dir;
    testing::ColdModel model(seed);
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(dir.File("cold"), SmallColdOptions()));
    for (uint64_t step = 0; step < 400; ++step) {
      ColdBatch batch(*store);
      ASSERT_OK(model.Step(&batch));
      ASSERT_OK(store->Write(&batch, testing::ColdModel::LsnOf(model.step())));
      if (step % 50 == 49) {
        ASSERT_OK(store->Flush());
      }
      if (step % 150 == 149) {
        ASSERT_OK(store->CompactForSpace());
      }
    }
    EXPECT_EQ(model.Compare(store.get()), "");
    ASSERT_OK(store->Close());
    ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(dir.File("cold")));
    EXPECT_GT(check.chunks, 0u);
    EXPECT_TRUE(check.damage().empty()) << check.damage()[0];
  }
}

}  // namespace
}  // namespace geardb::engine
