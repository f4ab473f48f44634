// A byte of a file with index chunks costs a database nothing: each is there twice. geardb verify
// names the bad copy, geardb repair writes it again.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/internal/cold_db.h"
#include "tests/testing/random_programs.h"
#include "tests/tools/geardb/cli_fixture.h"
#include "tests/tools/geardb/large_store_fixture.h"
#include "tools/geardb/command.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;
using testing::CliRun;
using testing::LinesWith;

class ColdCopiesTest : public testing::LargeStoreTest {
 protected:
  static void SetUpTestSuite() {
    LargeStoreTest::SetUpTestSuite();
    const std::string cold = made_dir_->File("store") + "/cold";
    const auto db = engine::OpenColdDb(cold, {.read_only = true}).value();
    std::vector<rocksdb::LiveFileMetaData> tables;
    db->db->GetLiveFilesMetaData(&tables);
    for (const auto& table : tables) files_[table.column_family_name].push_back(table.name);
    for (const auto* family : {db->chunks[0], db->chunks[1]}) {
      rocksdb::ColumnFamilyMetaData meta;
      db->db->GetColumnFamilyMetaData(const_cast<rocksdb::ColumnFamilyHandle*>(family), &meta);
      for (const auto& blob : meta.blob_files) {
        files_[meta.name].push_back(blob.blob_file_name.substr(blob.blob_file_name.rfind('/')));
      }
    }
  }
  static void TearDownTestSuite() {
    LargeStoreTest::TearDownTestSuite();
    files_.clear();
  }
  CliRun Run(const std::string& command, const std::vector<std::string>& words = {}) const {
    std::vector<std::string> all = {command, store(), "--memory", "64MB"};
    all.insert(all.end(), words.begin(), words.end());
    return testing::RunCli(all);
  }
  /// Everything is there, byte for byte, for one who writes; and the cold store takes more. The
  /// note of the open.
  std::string ExpectAll() {
    auto database = Database::Open(store(), testing::LargeStoreOptions());
    EXPECT_OK(database);
    if (!database.ok()) return {};
    std::string note = (*database)->recovery().note;
    const auto table = (*database)->OpenTable("frames").value();
    EXPECT_EQ(table->Count(), made_.trajectories);
    for (TrajectoryId id = 1; id <= made_.trajectories; ++id) {
      const auto rows = table->Read(id, {}, {});
      EXPECT_OK(rows) << id;
      if (!rows.ok()) return note;
      EXPECT_TRUE(testing::HasBytes((*rows)[0].view(), testing::LargeStoreBytes(id))) << id;
    }
    EXPECT_OK((*database)->Close());
    return note;
  }
  void ExpectGood() {
    const CliRun verify = Run("verify");
    EXPECT_EQ(verify.code, cli::kExitGood) << verify.out << verify.err;
    EXPECT_EQ(Run("repair").out, "nothing to repair\n");
  }

  /// By column family, each with a slash in front.
  static std::map<std::string, std::vector<std::string>> files_;
};

std::map<std::string, std::vector<std::string>> ColdCopiesTest::files_;

TEST_F(ColdCopiesTest, AWholeStoreIsGood) {
  ASSERT_FALSE(files_["chunks"].empty());
  ASSERT_FALSE(files_["copies"].empty());
  ExpectGood();
  EXPECT_EQ(ExpectAll(), "");
}

TEST_F(ColdCopiesTest, AByteOfAFileWithIndexChunksCostsNothing) {
  std::mt19937_64 random(31);
  uint64_t named = 0, cases = 0;
  for (const char* family : {"chunks", "copies"}) {
    for (const std::string& name : files_[family]) {
      for (uint64_t flip = 0; flip < 2; ++flip) {
        if (!testing::InShare(cases++)) continue;
        const std::string file = store() + "/cold" + name;
        const uint64_t at = random() % fs::file_size(file);
        SCOPED_TRACE(file + " at " + std::to_string(at));
        testing::FlipByte(file, at);
        const CliRun verify = Run("verify");
        const CliRun dry = Run("repair", {"--dry-run"});
        EXPECT_EQ(verify.code, dry.code) << verify.out << dry.out;
        if (verify.code != cli::kExitGood) {
          ++named;
          EXPECT_EQ(verify.code, cli::kExitDamage) << verify.out << verify.err;
          EXPECT_GE(LinesWith(verify.out, "/cold: ") + LinesWith(verify.out, ".sst has a bad tail"),
                    1u)
              << verify.out;
          EXPECT_EQ(LinesWith(dry.out, "nothing is lost"), 1u) << dry.out;
        }
        if (flip % 2 == 0) {
          (void)ExpectAll();
          EXPECT_EQ(Run("repair").code, cli::kExitGood);
        } else {
          EXPECT_EQ(Run("repair").code, cli::kExitGood);
          EXPECT_EQ(ExpectAll(), "");
        }
        ExpectGood();
        Restore();
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(named, 0u);
}

TEST_F(ColdCopiesTest, AMissingFileIsNamedAndCostsNothing) {
  uint64_t files = 0;
  for (const char* family : {"chunks", "copies"}) {
    for (const std::string& name : files_[family]) {
      if (!testing::InShare(files++)) continue;
      const std::string file = store() + "/cold" + name;
      SCOPED_TRACE(file);
      fs::remove(file);
      const CliRun verify = Run("verify");
      EXPECT_EQ(verify.code, cli::kExitDamage) << verify.out << verify.err;
      EXPECT_GE(LinesWith(verify.out, name.substr(1) + " is missing"), 1u) << verify.out;
      EXPECT_NE(ExpectAll().find(name.substr(1) + " is missing"), std::string::npos);
      ExpectGood();
      EXPECT_EQ(ExpectAll(), "");
      Restore();
    }
  }
}

TEST_F(ColdCopiesTest, ADamagedChunkThatAnOpenMeetsIsInItsNote) {
  std::string file = files_["chunks"].back();
  for (const std::string& name : files_["chunks"]) {
    if (name.ends_with(".blob")) file = name;
  }
  // A value in the middle of the file.
  testing::FlipByte(store() + "/cold" + file, fs::file_size(store() + "/cold" + file) / 2);
  EXPECT_GE(LinesWith(Run("verify").out, "the first copy of chunk 0 of the "), 1u);
  EXPECT_NE(ExpectAll().find("the second copy of an index chunk was taken"), std::string::npos);
  (void)ExpectAll();
  EXPECT_EQ(ExpectAll(), "");
  ExpectGood();
}

}  // namespace
}  // namespace geardb
