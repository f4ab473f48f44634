// What a cold store says of itself: its bytes, and that either copy will do.
#include "engine/internal/cold_own.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "engine/internal/cold_check.h"
#include "engine/internal/cold_db.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kOwnLsn = 700;

ColdOwn SomeOwn() {
  return {.position = {0x0807060504030201, 9},
          .removals = {{false, {"a", "bcd"}}, {true, {"", std::string("\0\1", 2)}}}};
}

TEST(ColdOwnTest, ItComesBackAndIsFrozen) {
  const std::string bytes = EncodeColdOwn(SomeOwn());
  ASSERT_EQ(bytes.size(), 8u + 24 + 12 + 4 + 12 + 2);
  const std::string_view body = std::string_view(bytes).substr(8);
  EXPECT_EQ(body, std::string_view("\4\0\0\0\2\0\0\0\1\2\3\4\5\6\7\10\11\0\0\0\0\0\0\0"
                                   "\0\0\0\0\1\0\0\0\3\0\0\0abcd"
                                   "\1\0\0\0\0\0\0\0\2\0\0\0\0\1",
                                   54));
  ASSERT_OK_AND_ASSIGN(const ColdOwn own, DecodeColdOwn(bytes));
  EXPECT_EQ(own.position.lsn, 0x0807060504030201u);
  EXPECT_EQ(own.position.batch, 9u);
  ASSERT_EQ(own.removals.size(), 2u);
  EXPECT_FALSE(own.removals[0].of_chunks);
  EXPECT_EQ(own.removals[0].keys.begin, "a");
  EXPECT_EQ(own.removals[0].keys.end, "bcd");
  EXPECT_TRUE(own.removals[1].of_chunks);
  EXPECT_EQ(own.removals[1].keys.end, std::string("\0\1", 2));
  EXPECT_EQ(own.format, kColdFormat);
}

TEST(ColdOwnTest, TheFormatBeforeIsKnownAndNoOther) {
  ColdOwn own = SomeOwn();
  own.format = kColdFormatWithoutLsns;
  ASSERT_OK_AND_ASSIGN(const ColdOwn before, DecodeColdOwn(EncodeColdOwn(own)));
  EXPECT_EQ(before.format, kColdFormatWithoutLsns);
  for (const uint32_t format : {kColdFormatWithoutLsns - 1, kColdFormat + 1}) {
    own.format = format;
    EXPECT_STATUS(kUnsupported, DecodeColdOwn(EncodeColdOwn(own)), "known is 4");
  }
}

TEST(ColdOwnTest, EveryFlippedBitAndEveryShorterLengthIsCorruption) {
  const std::string bytes = EncodeColdOwn(SomeOwn());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    EXPECT_STATUS(kCorruption, DecodeColdOwn(damaged), "the store's own keys");
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_STATUS(kCorruption, DecodeColdOwn(std::string_view(bytes).substr(0, size)), "own keys");
  }
}

class ColdOwnCopiesTest : public ::testing::Test {
 protected:
  /// A store with a page, a chunk, and a range that is to be reclaimed.
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, testing::SmallColdOptions()));
    for (uint64_t lsn = kOwnLsn - 1; lsn <= kOwnLsn; ++lsn) {
      ColdBatch batch(*store);
      ASSERT_OK(testing::PutColdPage({1, 0, 0, lsn, 0}, {2, 2}, &batch));
      ASSERT_OK(batch.PutChunk(kChunk, lsn, testing::ColdChunkBytes(kChunk, lsn)));
      ASSERT_OK(store->Write(&batch, lsn));
    }
    ASSERT_OK(store->Close());
  }
  /// What is written over a copy; nothing: it leaves.
  void Change(size_t copy, const std::string& value) {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, testing::SmallColdOptions()));
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    ASSERT_TRUE((value.empty()
                     ? db->db->Delete(unlogged, db->chunks[copy], SliceOf(kColdOwnKey))
                     : db->db->Put(unlogged, db->chunks[copy], SliceOf(kColdOwnKey), value))
                    .ok());
    ASSERT_TRUE(db->db->Flush(rocksdb::FlushOptions(), db->families()).ok());
  }
  void ExpectAll(ColdStore* store) {
    EXPECT_EQ(store->flushed_lsn(), kOwnLsn);
    EXPECT_OK(testing::CheckColdPage(store, {1, 0, 0, kOwnLsn, 0}, {2, 2}));
    ASSERT_OK_AND_ASSIGN(const ColdChunk chunk, store->ReadChunk(kChunk));
    EXPECT_EQ(chunk.lsn, kOwnLsn);
  }

  static constexpr ColdChunkKey kChunk{.table = 1, .partition = 0, .kind = 3, .chunk = 4};
  testing::TempDir dir_;
  const std::string directory_ = dir_.File("cold");
};

TEST_F(ColdOwnCopiesTest, BothSayTheSame) {
  ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
  std::string values[kChunkCopies];
  for (size_t copy = 0; copy < kChunkCopies; ++copy) {
    ASSERT_TRUE(db->db->Get({}, db->chunks[copy], SliceOf(kColdOwnKey), &values[copy]).ok());
  }
  EXPECT_TRUE(values[0] == values[1]);
  ASSERT_OK_AND_ASSIGN(const ColdOwn own, ReadColdOwn(*db));
  EXPECT_EQ(own.position.lsn, kOwnLsn);
  EXPECT_EQ(own.position.batch, 2u);
}

TEST_F(ColdOwnCopiesTest, ADamagedCopyIsNamedAndMendedByTheNextOpen) {
  for (const size_t copy : {0u, 1u}) {
    Change(copy, "no such");
    ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(directory_));
    EXPECT_TRUE(check.mendable);
    ASSERT_FALSE(check.damage().empty());
    EXPECT_NE(check.damage()[0].find("of the cold store's own keys the "), std::string::npos);
    for (const bool again : {false, true}) {
      ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, testing::SmallColdOptions()));
      EXPECT_FALSE(store->read_only());
      EXPECT_EQ(store->damage().empty(), again);
      ExpectAll(store.get());
      ASSERT_OK(store->Close());
    }
    ASSERT_OK_AND_ASSIGN(const ColdCheck mended, CheckColdChunks(directory_));
    EXPECT_TRUE(mended.damage().empty()) << mended.damage()[0];
  }
}

TEST_F(ColdOwnCopiesTest, ACopyThatIsGoneComesBack) {
  for (const size_t copy : {0u, 1u}) {
    Change(copy, "");
    ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, testing::SmallColdOptions()));
    ExpectAll(store.get());
    ColdBatch batch(*store);
    ASSERT_OK(store->Write(&batch, kOwnLsn));
    ASSERT_OK(store->Close());
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    std::string value;
    EXPECT_TRUE(db->db->Get({}, db->chunks[copy], SliceOf(kColdOwnKey), &value).ok());
  }
}

TEST_F(ColdOwnCopiesTest, WithBothDamagedAStoreIsOnlyRead) {
  {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, testing::SmallColdOptions()));
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    for (rocksdb::ColumnFamilyHandle* family : db->chunks) {
      ASSERT_TRUE(db->db->Put(unlogged, family, SliceOf(kColdOwnKey), "no such").ok());
    }
    ASSERT_TRUE(db->db->Flush(rocksdb::FlushOptions(), db->families()).ok());
  }
  ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, testing::SmallColdOptions()));
  EXPECT_TRUE(store->read_only());
  EXPECT_STATUS(kFailedPrecondition, store->Flush(), "the store's own keys, 7 bytes, are damaged");
  EXPECT_OK(testing::CheckColdPage(store.get(), {1, 0, 0, kOwnLsn, 0}, {2, 2}));
}

// Each SST file of each family, and each bit of a byte of it in turn.
TEST_F(ColdOwnCopiesTest, NoFileThatHasItCostsIt) {
  std::map<std::string, std::string> files = testing::FilesOf(directory_);
  std::set<std::string> of_copies;
  {
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    std::vector<rocksdb::LiveFileMetaData> tables;
    db->db->GetLiveFilesMetaData(&tables);
    for (const auto& table : tables) {
      EXPECT_NE(table.column_family_name, "default");
      if (table.column_family_name != "pages") of_copies.insert(directory_ + table.name);
    }
  }
  ASSERT_GE(of_copies.size(), 2u);
  for (const std::string& path : of_copies) {
    const size_t step = 116 / testing::ShareOf(4);
    for (size_t at = 0; at <= files[path].size(); at += at + 40 < files[path].size() ? step : 1) {
      SCOPED_TRACE(path + " at " + std::to_string(at));
      std::filesystem::remove_all(directory_);
      std::filesystem::create_directories(directory_);
      for (const auto& [name, bytes] : files) testing::WriteBytes(name, bytes);
      if (at < files[path].size()) {
        testing::FlipByte(path, at);
      } else {
        std::filesystem::remove(path);
      }
      ColdStoreOptions options = testing::SmallColdOptions();
      options.log_start = kOwnLsn;
      ASSERT_OK_AND_ASSIGN(auto store, ColdStore::Open(directory_, options));
      ASSERT_FALSE(store->read_only());
      ExpectAll(store.get());
      ColdBatch batch(*store);
      ASSERT_OK(batch.DeleteTrajectoryPages({1, 0, 0, 1, 5}));
      ASSERT_OK(store->Write(&batch, kOwnLsn));
      ASSERT_OK(store->Close());
      ASSERT_OK(MendColdChunks(directory_, kOwnLsn));
      ASSERT_OK_AND_ASSIGN(const ColdCheck check, CheckColdChunks(directory_));
      ASSERT_TRUE(check.damage().empty()) << check.damage()[0];
    }
  }
}

}  // namespace
}  // namespace geardb::engine
