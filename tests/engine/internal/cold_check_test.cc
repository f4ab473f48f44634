// What a look at both copies of index chunks says of them; cold_chunks_test.cc has what they read.
#include "engine/internal/cold_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "engine/internal/cold_db.h"
#include "engine/internal/image_versions.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

constexpr ImageChunk kPages{7, ImageKind::kPages, 3};
constexpr ColdChunkKey kHead{.table = 0, .partition = 0, .kind = 0xFFFF, .chunk = 0};
constexpr uint64_t kLsn = 50;

class ColdCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, testing::SmallColdOptions()));
    ColdBatch batch(*store);
    for (const ColdChunkKey& key : Keys()) {
      ASSERT_OK(batch.PutChunk(key, kLsn, testing::ColdChunkBytes(key, kLsn)));
    }
    ASSERT_OK(store->Write(&batch, kLsn));
    ASSERT_OK(store->Close());
  }
  static std::vector<ColdChunkKey> Keys() {
    return {ImageVersions::KeyOf(kPages, 0), ImageVersions::KeyOf(kPages, 1), kHead};
  }
  /// What is written over a chunk in one copy; nothing: it leaves.
  void Change(const ColdChunkKey& key, size_t copy, const std::string& value) {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, testing::SmallColdOptions()));
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    const std::string bytes = EncodeColdKey(key);
    ASSERT_TRUE((value.empty() ? db->db->Delete(unlogged, db->chunks[copy], bytes)
                               : db->db->Put(unlogged, db->chunks[copy], bytes, value))
                    .ok());
    ASSERT_TRUE(db->db->Flush(rocksdb::FlushOptions(), db->families()).ok());
  }
  std::vector<std::string> Damage() {
    const auto found = CheckColdChunks(directory_);
    EXPECT_OK(found);
    if (!found.ok()) return {};
    EXPECT_EQ(found->chunks, Keys().size());
    EXPECT_EQ(found->mendable, !found->copies.empty());
    EXPECT_TRUE(found->files.empty());
    return found->damage();
  }

  testing::TempDir dir_;
  const std::string directory_ = dir_.File("cold");
};

TEST_F(ColdCheckTest, NothingIsSaidOfAWholeStoreAndNothingIsChanged) {
  const auto before = testing::FilesOf(directory_);
  EXPECT_TRUE(Damage().empty());
  EXPECT_TRUE(testing::FilesOf(directory_) == before);
}

TEST_F(ColdCheckTest, EachBadCopyIsNamedAndMended) {
  Change(ImageVersions::KeyOf(kPages, 1), 1, "no chunk");
  Change(kHead, 0, std::string(40, 'x'));
  Change(ImageVersions::KeyOf(kPages, 0), 1, "");
  const auto damage = Damage();
  ASSERT_EQ(damage.size(), 3u);
  EXPECT_EQ(damage[0].find("the first copy of chunk 0 of kind 65535"), 0u) << damage[0];
  EXPECT_EQ(damage[1].find("the second copy of chunk 3 of the pages of table 7 in the index image "
                           "is missing"),
            0u)
      << damage[1];
  EXPECT_EQ(damage[2].find("the second copy of chunk 3 of the pages of table 7 in the index image "
                           "is damaged"),
            0u)
      << damage[2];
  ASSERT_OK(MendColdChunks(directory_, kLsn));
  EXPECT_TRUE(Damage().empty());
  ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, {.read_only = true}));
  for (const ColdChunkKey& key : Keys()) {
    ASSERT_OK_AND_ASSIGN(const ColdChunk chunk, store->ReadChunk(key));
    const auto bytes = testing::ColdChunkBytes(key, kLsn);
    EXPECT_EQ(chunk.lsn, kLsn);
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(chunk.bytes)), bytes));
  }
}

TEST_F(ColdCheckTest, WhatBothHaveLostStaysNamed) {
  for (const size_t copy : {0u, 1u}) Change(kHead, copy, "no chunk");
  EXPECT_EQ(Damage().size(), 2u);
  ASSERT_OK(MendColdChunks(directory_, kLsn));
  EXPECT_EQ(Damage().size(), 2u);
}

TEST_F(ColdCheckTest, AStoreThatTheLogIsAheadOfIsNotTouched) {
  const auto before = testing::FilesOf(directory_);
  EXPECT_STATUS(kCorruption, MendColdPages(directory_, kLsn + 1), "the log begins at 51");
  EXPECT_TRUE(testing::FilesOf(directory_) == before);
  EXPECT_STATUS(kCorruption, MendColdChunks(directory_, kLsn + 1), "the log begins at 51");
  auto after = testing::FilesOf(directory_);
  for (const auto& [path, bytes] : before) {
    if (path.ends_with(".sst")) {
      EXPECT_TRUE(after[path] == bytes) << path;
    }
  }
}

TEST_F(ColdCheckTest, PagesWhoseFilesAreLostAreDoneWithout) {
  constexpr uint64_t kLast = 12;
  {
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, testing::SmallColdOptions()));
    for (uint64_t id = 1; id <= kLast; ++id) {
      ColdBatch batch(*store);
      ASSERT_OK(testing::PutColdPage({1, 0, 0, id, 0}, {2, 8}, &batch));
      ASSERT_OK(store->Write(&batch, kLsn + id));
      ASSERT_OK(store->Flush());
    }
    ASSERT_OK(store->Close());
  }
  const auto files = testing::FilesOf(directory_);
  std::set<std::string> of_pages;
  {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    rocksdb::ColumnFamilyMetaData meta;
    db->db->GetColumnFamilyMetaData(db->pages, &meta);
    for (const auto& level : meta.levels) {
      for (const auto& file : level.files) of_pages.insert(directory_ + file.name);
    }
    for (const auto& blob : meta.blob_files) {
      of_pages.insert(directory_ + blob.blob_file_name.substr(blob.blob_file_name.rfind('/')));
    }
  }
  ASSERT_GT(of_pages.size(), 4u);
  for (const std::string& path : of_pages) {
    SCOPED_TRACE(path);
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    for (const auto& [name, bytes] : files) testing::WriteBytes(name, bytes);
    std::filesystem::remove(path);
    ASSERT_OK_AND_ASSIGN(const ColdCheck before, CheckColdChunks(directory_));
    EXPECT_TRUE(before.pages);
    EXPECT_FALSE(before.files.empty());
    EXPECT_STATUS(kCorruption, MendColdPages(directory_, kLsn + kLast + 1), "the log begins at");
    ASSERT_OK(MendColdPages(directory_, kLsn + kLast));
    ASSERT_OK_AND_ASSIGN(const ColdCheck after, CheckColdChunks(directory_));
    EXPECT_FALSE(after.pages);
    EXPECT_TRUE(after.damage().empty()) << after.damage()[0];
    ASSERT_OK_AND_ASSIGN(const auto store,
                         ColdStore::Open(directory_, testing::SmallColdOptions()));
    EXPECT_FALSE(store->read_only());
    uint64_t lost = 0;
    for (uint64_t id = 1; id <= kLast; ++id) {
      const Status page = testing::CheckColdPage(store.get(), {1, 0, 0, id, 0}, {2, 8});
      lost += page.code() == StatusCode::kNotFound ? 1u : 0u;
      if (page.code() != StatusCode::kNotFound) {
        EXPECT_OK(page) << id;
      }
    }
    EXPECT_GT(lost, 0u);
    EXPECT_LT(lost, kLast);
    EXPECT_OK(store->CompactForSpace());
  }
}

/// A store of pages whose values lie beside their keys, in many blocks.
class ColdCheckBlocksTest : public ColdCheckTest {
 protected:
  static constexpr uint64_t kLast = 80;
  ColdPageKey KeyOf(uint64_t id) const {
    // As companion tables have them: the page behind a bad block is not its trajectory's first.
    if (tables_ > 1) return {static_cast<TableId>(1 + id * tables_ / (kLast + 1)), 0, 0, 7, id};
    return {1, 0, static_cast<uint16_t>(id / group_pages_), id % group_pages_ + 1, 0};
  }
  static ColdStoreOptions Options() {
    ColdStoreOptions options = testing::SmallColdOptions();
    options.blob_bytes_min = uint64_t{1} << 20;
    return options;
  }
  /// As they were flushed (a compaction may come by itself), or in files of a few blocks.
  void MakePages(bool compacted) {
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, Options()));
    ColdBatch batch(*store);
    for (uint64_t id = 1; id <= kLast; ++id) {
      ASSERT_OK(testing::PutColdPage(KeyOf(id), {2, 2}, &batch));
    }
    ASSERT_OK(store->Write(&batch, kLsn));
    if (compacted) {
      ASSERT_OK(store->CompactForSpace());
    }
    ASSERT_OK(store->Close());
    files_ = testing::FilesOf(directory_);
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    std::vector<rocksdb::LiveFileMetaData> tables;
    db->db->GetLiveFilesMetaData(&tables);
    for (const auto& table : tables) {
      // The others hold no page, only deletions of keys that nobody has.
      if (table.column_family_name != "pages" || table.size < bytes_) continue;
      of_pages_ = directory_ + table.name;
      bytes_ = table.size;
    }
    ASSERT_TRUE(files_.contains(of_pages_)) << of_pages_;
  }
  /// With these bytes of the file flipped, all pages are kept that can be read.
  void ExpectWrittenAgain(const std::vector<uint64_t>& flips) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    for (const auto& [name, content] : files_) testing::WriteBytes(name, content);
    for (const uint64_t at : flips) testing::FlipByte(of_pages_, at);
    std::set<uint64_t> lost;
    {
      ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, {.read_only = true}));
      for (uint64_t id = 1; id <= kLast; ++id) {
        if (!testing::CheckColdPage(store.get(), KeyOf(id), {2, 2}).ok()) lost.insert(id);
      }
    }
    EXPECT_GE(lost.size(), flips.size());
    EXPECT_LT(lost.size(), kLast / 4);
    ASSERT_OK_AND_ASSIGN(const ColdCheck before, CheckColdChunks(directory_));
    EXPECT_TRUE(before.pages);
    ASSERT_EQ(before.files.size(), 1u);
    EXPECT_NE(before.files[0].find(of_pages_ + " cannot be read: "), std::string::npos);
    ASSERT_OK(MendColdPages(directory_, kLsn));
    ASSERT_OK_AND_ASSIGN(const ColdCheck after, CheckColdChunks(directory_));
    EXPECT_TRUE(after.damage().empty()) << after.damage()[0];
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options()));
    for (uint64_t id = 1; id <= kLast; ++id) {
      const Status page = testing::CheckColdPage(store.get(), KeyOf(id), {2, 2});
      EXPECT_EQ(page.code(), lost.contains(id) ? StatusCode::kNotFound : StatusCode::kOk) << page;
    }
    EXPECT_OK(store->CompactForSpace());
    EXPECT_TRUE(store->damage().empty());
  }

  std::map<std::string, std::string> files_;
  std::string of_pages_;
  uint64_t bytes_ = 0;
  uint64_t group_pages_ = 1000;
  uint64_t tables_ = 1;
};

TEST_F(ColdCheckBlocksTest, WhatCanBeReadOfADamagedFileOfPagesIsWrittenAgain) {
  MakePages(/*compacted=*/false);
  // A block in the middle, the first one, two.
  ExpectWrittenAgain({bytes_ / 2});
  ExpectWrittenAgain({3});
  ExpectWrittenAgain({bytes_ / 4, bytes_ * 3 / 4});
}

// Also the last page by itself, behind a bad block: backwards RocksDB does not come to it.
TEST_F(ColdCheckBlocksTest, APageAtTheEndOfAFileBehindABadBlockIsWrittenAgain) {
  MakePages(/*compacted=*/true);
  for (uint64_t at = 3; at < bytes_ * 4 / 5; at += bytes_ / 7) ExpectWrittenAgain({at});
  ExpectWrittenAgain({3, bytes_ * 7 / 10});
}

// A bad block with the end of one group and the begin of the next: the first page behind it was
// looked for in the first group alone.
TEST_F(ColdCheckBlocksTest, APageBehindABadBlockInAnotherGroupIsWrittenAgain) {
  group_pages_ = 7;
  MakePages(/*compacted=*/false);
  for (uint64_t at = 3; at < bytes_ * 4 / 5; at += bytes_ / testing::ShareOf(31)) {
    ExpectWrittenAgain({at});
  }
}

TEST_F(ColdCheckBlocksTest, APageBehindABadBlockIsWrittenAgainThoughItIsNotItsTrajectorysFirst) {
  for (const uint64_t tables : {2u, 5u}) {
    tables_ = tables;
    MakePages(/*compacted=*/false);
    for (uint64_t at = 3; at < bytes_ * 4 / 5; at += bytes_ / testing::ShareOf(31)) {
      ExpectWrittenAgain({at});
    }
    std::filesystem::remove_all(directory_);
    bytes_ = 0;
  }
}

/// A store of index chunks whose values lie beside their keys, in many blocks.
class ColdCheckBothTest : public ColdCheckTest {
 protected:
  static constexpr uint64_t kMany = 60;
  static ColdChunkKey ManyKey(uint64_t i) { return {7, 0, 1, i}; }
  static std::vector<std::byte> ManyBytes(uint64_t i) {
    return std::vector<std::byte>(1000, static_cast<std::byte>(i));
  }
  void SetUp() override {
    ColdStoreOptions options = testing::SmallColdOptions();
    options.blob_bytes_min = uint64_t{1} << 20;
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, options));
    ColdBatch batch(*store);
    for (uint64_t i = 0; i < kMany; ++i) {
      ASSERT_OK(batch.PutChunk(ManyKey(i), kLsn, ManyBytes(i)));
    }
    ASSERT_OK(store->Write(&batch, kLsn));
    ASSERT_OK(store->Close());
    store.reset();
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    std::vector<rocksdb::LiveFileMetaData> tables;
    db->db->GetLiveFilesMetaData(&tables);
    for (size_t copy = 0; copy < kChunkCopies; ++copy) {
      uint64_t most = 0;
      for (const auto& table : tables) {
        if (table.column_family_name != kChunkFamilies[copy] || table.size < most) continue;
        most = table.size;
        paths_[copy] = directory_ + table.name;
      }
      ASSERT_GT(most, kMany * 1000);
    }
  }
  uint64_t FileBytes(size_t copy) const { return std::filesystem::file_size(paths_[copy]); }
  void ExpectAll() {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    for (uint64_t i = 0; i < kMany; ++i) {
      for (size_t copy = 0; copy < kChunkCopies; ++copy) {
        ASSERT_OK_AND_ASSIGN(const ColdChunk chunk, ReadChunkCopy(*db, ManyKey(i), copy));
        const auto bytes = ManyBytes(i);
        EXPECT_EQ(chunk.bytes.size(), bytes.size());
        EXPECT_EQ(std::memcmp(chunk.bytes.data(), bytes.data(), bytes.size()), 0);
      }
    }
    for (size_t copy = 0; copy < kChunkCopies; ++copy) EXPECT_OK(FindMark(*db, copy));
  }

  std::string paths_[kChunkCopies];
};

// Each chunk has a good copy, but neither family can be read to its end.
TEST_F(ColdCheckBothTest, ABadBlockInEachCopyIsMended) {
  testing::FlipByte(paths_[0], FileBytes(0) / 4);
  testing::FlipByte(paths_[1], FileBytes(1) * 3 / 4);
  ASSERT_OK_AND_ASSIGN(const ColdCheck before, CheckColdChunks(directory_));
  EXPECT_GE(before.copies.size(), 2u);
  EXPECT_TRUE(before.mendable);
  EXPECT_FALSE(before.both_bad);
  ASSERT_OK(MendColdChunks(directory_, kLsn));
  ASSERT_OK_AND_ASSIGN(const ColdCheck after, CheckColdChunks(directory_));
  EXPECT_TRUE(after.damage().empty()) << after.damage()[0];
  EXPECT_EQ(after.chunks, kMany);
  ExpectAll();
}

TEST_F(ColdCheckBothTest, AChunkThatNoCopyHasIsSaid) {
  for (size_t copy = 0; copy < kChunkCopies; ++copy) {
    testing::FlipByte(paths_[copy], FileBytes(copy) / 2);
  }
  ASSERT_OK_AND_ASSIGN(const ColdCheck before, CheckColdChunks(directory_));
  (void)MendColdChunks(directory_, kLsn);
  ASSERT_OK_AND_ASSIGN(const ColdCheck after, CheckColdChunks(directory_));
  EXPECT_FALSE(after.damage().empty());
  EXPECT_FALSE(before.damage().empty());
  EXPECT_TRUE(before.both_bad);
}

TEST_F(ColdCheckTest, WithoutAStoreThereIsNothingToLookAt) {
  EXPECT_STATUS(kNotFound, CheckColdChunks(dir_.File("other")), "no cold store");
}

}  // namespace
}  // namespace geardb::engine
