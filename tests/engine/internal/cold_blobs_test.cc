// Blob files without their header or footer: what they should be, and what RocksDB reads then.
#include "engine/internal/cold_blobs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "engine/internal/cold_check.h"
#include "engine/internal/cold_db.h"
#include "tests/engine/internal/cold_fixture.h"
#include "tests/testing/files.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

namespace fs = std::filesystem;

class ColdBlobsTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kPagesPut = 30;
  static constexpr uint64_t kLsn = 8;

  static ColdPageKey KeyOf(uint64_t id) { return {1, 0, 0, id, 0}; }
  static ColdPageHeader HeaderOf(uint64_t id) { return {.generation = id, .rows = 8, .lsn = kLsn}; }
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, Options()));
    ColdBatch batch(*store);
    for (uint64_t id = 1; id <= kPagesPut; ++id) {
      ASSERT_OK(testing::PutColdPage(KeyOf(id), HeaderOf(id), &batch));
    }
    ASSERT_OK(store->Write(&batch, kLsn));
    ASSERT_OK(store->Close());
    ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
    for (const BlobFile& file : LiveBlobFiles(*db)) {
      if (file.family == db->pages->GetID()) file_ = file;
    }
    ASSERT_EQ(fs::file_size(file_.path), file_.expected_bytes);
    for (uint64_t id = 1; id <= kPagesPut; ++id) {
      ASSERT_TRUE(FindBlobPlace(*db, KeyOf(id)).has_value());
      places_.push_back(*FindBlobPlace(*db, KeyOf(id)));
    }
  }
  static ColdStoreOptions Options() {
    ColdStoreOptions options = testing::SmallColdOptions();
    options.blob_bytes_min = 16;
    options.blob_file_bytes = uint64_t{64} << 20;
    return options;
  }
  /// Each page is there where its value lies before `end`, and else said to be damaged.
  void ExpectReads(uint64_t end, bool read_only) {
    ColdStoreOptions options = Options();
    options.read_only = read_only;
    ASSERT_OK_AND_ASSIGN(const auto store, ColdStore::Open(directory_, options));
    for (uint64_t id = 1; id <= kPagesPut; ++id) {
      const BlobPlace& place = places_[id - 1];
      const Status read = testing::CheckColdPage(store.get(), KeyOf(id), HeaderOf(id));
      if (place.offset + place.bytes <= end) {
        EXPECT_OK(read) << id;
      } else {
        EXPECT_STATUS(kCorruption, read, "page 0 of number " + std::to_string(id) + " ");
        const std::string where = "at offset " + std::to_string(place.offset);
        EXPECT_EQ(read.message().find(where) != std::string::npos, read_only) << read;
      }
    }
  }

  testing::TempDir dir_;
  const std::string directory_ = dir_.File("cold");
  BlobFile file_;
  std::vector<BlobPlace> places_;
};

TEST_F(ColdBlobsTest, HeaderAndFooterAreThoseOfRocksDb) {
  const std::string bytes = testing::ReadBytes(file_.path);
  EXPECT_EQ(bytes.substr(0, kBlobHeaderBytes), BlobHeader(file_.family));
  EXPECT_EQ(bytes.substr(bytes.size() - kBlobFooterBytes), BlobFooter(kPagesPut));
  EXPECT_EQ(file_.records, kPagesPut);
}

TEST_F(ColdBlobsTest, EveryFlippedBitOfHeaderAndFooterIsFoundAndMended) {
  const std::string bytes = testing::ReadBytes(file_.path);
  ASSERT_OK_AND_ASSIGN(const auto db, OpenColdDb(directory_, {.read_only = true}));
  EXPECT_TRUE(FindBrokenBlobs(*db).empty());
  for (uint64_t bit = 0; bit < 8 * (kBlobHeaderBytes + kBlobFooterBytes); ++bit) {
    const bool in_header = bit / 8 < kBlobHeaderBytes;
    const uint64_t at =
        in_header ? bit / 8 : bytes.size() - kBlobFooterBytes + bit / 8 - kBlobHeaderBytes;
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit % 8);
    testing::WriteBytes(file_.path, damaged);
    const auto broken = FindBrokenBlobs(*db);
    ASSERT_EQ(broken.size(), 1u) << at;
    EXPECT_EQ(broken[0].header.empty(), !in_header) << at;
    EXPECT_EQ(broken[0].footer.empty(), in_header) << at;
    EXPECT_FALSE(broken[0].cut);
    ASSERT_OK(db->blobs->Mend(broken[0]));
    EXPECT_TRUE(FindBrokenBlobs(*db).empty()) << at;
  }
}

TEST_F(ColdBlobsTest, WhatLiesBeforeACutIsReadAndNothingBehindIt) {
  const std::string bytes = testing::ReadBytes(file_.path);
  const BlobPlace& third = places_[2];
  const uint64_t end = third.offset + third.bytes;
  for (const uint64_t at :
       {uint64_t{0}, uint64_t{1}, uint64_t{29}, uint64_t{30}, uint64_t{31}, third.offset - 1,
        third.offset, end - 1, end, end + 1, bytes.size() - 33, bytes.size() - 32,
        bytes.size() - 31, bytes.size() - 1}) {
    SCOPED_TRACE(at);
    testing::WriteBytes(file_.path, bytes.substr(0, at));
    ExpectReads(at, /*read_only=*/true);
    EXPECT_EQ(fs::file_size(file_.path), at);
    ExpectReads(at, /*read_only=*/false);
    ASSERT_OK_AND_ASSIGN(ColdCheck found, CheckColdChunks(directory_));
    EXPECT_EQ(found.blobs.size(), 1u);
    EXPECT_EQ(found.blobs_cut, at < bytes.size() - kBlobFooterBytes);
    ASSERT_OK(MendColdFiles(directory_, 0));
    ASSERT_OK_AND_ASSIGN(found, CheckColdChunks(directory_));
    EXPECT_TRUE(found.damage().empty()) << found.damage()[0];
    ExpectReads(at, /*read_only=*/true);
  }
}

TEST_F(ColdBlobsTest, AMendThatDiedIsMadeAgain) {
  const std::string bytes = testing::ReadBytes(file_.path);
  const BlobPlace& third = places_[2];
  const uint64_t end = third.offset + third.bytes;
  // Some of a footer, where it was to be.
  testing::WriteBytes(file_.path, bytes.substr(0, end) + BlobFooter(kPagesPut).substr(0, 13));
  ASSERT_OK(MendColdFiles(directory_, 0));
  ExpectReads(end, /*read_only=*/true);
  EXPECT_EQ(fs::file_size(file_.path), end + 13 + kBlobFooterBytes);
}

TEST(ColdBlobPlaceTest, IsReadFromAnyBytes) {
  const auto place = DecodeBlobPlace("d", std::string("\x01\x81\x01\x05\x80\x08\x00", 7));
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->path, "d/000129.blob");
  EXPECT_EQ(place->number, 129u);
  EXPECT_EQ(place->offset, 5u);
  EXPECT_EQ(place->bytes, 1024u);
  EXPECT_FALSE(DecodeBlobPlace("d", "").has_value());
  EXPECT_FALSE(DecodeBlobPlace("d", std::string("\x00\x01\x05\x04", 4)).has_value());
  EXPECT_FALSE(DecodeBlobPlace("d", "\x01\x81").has_value());
  EXPECT_FALSE(DecodeBlobPlace("d", "\x01\x05\x05").has_value());
  EXPECT_FALSE(DecodeBlobPlace("d", "\x01" + std::string(30, '\x81')).has_value());
}

}  // namespace
}  // namespace geardb::engine
