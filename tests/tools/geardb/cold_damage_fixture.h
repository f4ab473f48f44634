// A store whose pages and index chunks lie in blob files, whose files tests damage one by one; one
// for all tests of a suite, and a copy of it for each.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/internal/cold_db.h"
#include "tests/testing/random_programs.h"
#include "tests/tools/geardb/cli_fixture.h"
#include "tests/tools/geardb/large_store.h"
#include "tests/tools/geardb/must.h"
#include "tools/geardb/command.h"

namespace geardb::testing {

class ColdDamageStoreTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_dir_ = new TempDir;
    next_ = 1;
    Make(made_dir_->File("store"));
    const std::string cold = made_dir_->File("store") + "/cold";
    const auto db = engine::OpenColdDb(cold, {.read_only = true}).value();
    for (rocksdb::ColumnFamilyHandle* const family : db->families()) {
      rocksdb::ColumnFamilyMetaData meta;
      db->db->GetColumnFamilyMetaData(family, &meta);
      for (const auto& level : meta.levels) {
        for (const auto& file : level.files) files_[meta.name].push_back(file.name);
      }
      for (const auto& blob : meta.blob_files) {
        files_[meta.name].push_back(blob.blob_file_name.substr(blob.blob_file_name.rfind('/')));
      }
    }
  }
  static void TearDownTestSuite() {
    delete made_dir_;
    made_dir_ = nullptr;
    files_.clear();
  }
  void SetUp() override { Restore(); }
  /// The first, the last and a middle one of a family's files whose names end so, or the middle one
  /// under a sanitizer: each takes seconds.
  static std::vector<std::string> SomeFiles(const std::string& family, const std::string& ending) {
    std::vector<std::string> all;
    for (const std::string& name : files_[family]) {
      if (name.ends_with(ending)) all.push_back(name);
    }
    std::sort(all.begin(), all.end());
    if (all.size() <= ShareOf(3)) return all;
    if (ShareOf(3) == 1) return {all[all.size() / 2]};
    return {all.front(), all[all.size() / 2], all.back()};
  }
  static std::vector<std::string> SomeFiles(const std::string& family) {
    std::vector<std::string> some = SomeFiles(family, ".sst");
    const std::vector<std::string> blobs = SomeFiles(family, ".blob");
    some.insert(some.end(), blobs.begin(), blobs.end());
    return some;
  }
  void Restore() {
    std::filesystem::remove_all(store());
    std::filesystem::copy(made_dir_->File("store"), store(),
                          std::filesystem::copy_options::recursive);
  }
  std::string store() const { return dir_.File("store"); }
  CliRun Run(const std::string& command, const std::vector<std::string>& words = {}) const {
    std::vector<std::string> all = {command, store(), "--memory", "64MB"};
    all.insert(all.end(), words.begin(), words.end());
    return RunCli(all);
  }
  static std::vector<uint8_t> BytesOf(TrajectoryId id) {
    std::mt19937_64 random(id);
    std::vector<uint8_t> bytes(size_t{kRows} * kRowBytes);
    // Pages of some are so small that their values lie beside their keys.
    const size_t noise = id % 3 == 0 ? 40 : bytes.size();
    for (size_t i = 0; i < noise; i += sizeof(uint64_t)) {
      const uint64_t eight = random();
      std::memcpy(&bytes[i], &eight, sizeof(eight));
    }
    return bytes;
  }
  static Status AppendTo(Database* database, TrajectoryId ids) {
    GEARDB_ASSIGN_OR_RETURN(const auto table, database->OpenTable("frames"));
    GEARDB_ASSIGN_OR_RETURN(const auto writer, table->NewWriter({}));
    for (TrajectoryId i = 0; i < ids; ++i) {
      const std::vector<uint8_t> bytes = BytesOf(next_);
      const TensorView rows(bytes.data(), DType::kU8, Shape({kRows, kRowBytes}));
      GEARDB_ASSIGN_OR_RETURN(
          const auto appended,
          writer->AppendTrajectory({{"frame", rows}}, {.end = End::kTerminated}));
      if (appended.id != next_) return Status::Internal("id ", appended.id, ", not ", next_);
      ++next_;
    }
    return Status::Ok();
  }
  static void Make(const std::string& directory) {
    const auto database = Must(Database::Open(directory, LargeStoreOptions()));
    TableSpec spec;
    spec.name = "frames";
    spec.columns = {{.name = "frame", .dtype = DType::kU8, .shape = {kRowBytes}}};
    spec.steps_per_page = 4;
    Must(database->CreateTable(spec));
    ASSERT_OK(AppendTo(database.get(), kTrajectories));
    ASSERT_OK(database->Close());
  }
  /// Opens, and appends more than the log takes; the first error.
  Status Append() {
    next_ = kTrajectories + 1;
    GEARDB_ASSIGN_OR_RETURN(const auto database, Database::Open(store(), LargeStoreOptions()));
    GEARDB_RETURN_IF_ERROR(AppendTo(database.get(), kTrajectories));
    return database->Close();
  }
  /// Those of the first ids that are there, each byte for byte; all can be read.
  std::set<TrajectoryId> Left() {
    std::set<TrajectoryId> left;
    const auto database = Database::Open(store(), LargeStoreOptions());
    EXPECT_OK(database);
    if (!database.ok()) return left;
    const auto table = (*database)->OpenTable("frames").value();
    for (TrajectoryId id = 1; id <= kTrajectories; ++id) {
      const auto rows = table->Read(id, {}, {});
      if (rows.status().code() == StatusCode::kNotFound) continue;
      EXPECT_OK(rows) << id;
      if (!rows.ok()) continue;
      EXPECT_TRUE(HasBytes((*rows)[0].view(), BytesOf(id))) << id;
      left.insert(id);
    }
    EXPECT_OK((*database)->Close());
    return left;
  }
  void ExpectGood() {
    const CliRun verify = Run("verify");
    EXPECT_EQ(verify.code, cli::kExitGood) << verify.out << verify.err;
    const CliRun repair = Run("repair");
    EXPECT_EQ(repair.out, "nothing to repair\n");
  }
  /// Repairs it, after which all that was not said to be lost is there, and appends go on.
  void ExpectRepaired() {
    const CliRun repair = Run("repair");
    ASSERT_EQ(repair.code, cli::kExitGood) << repair.out << repair.err;
    ExpectGood();
    const std::set<TrajectoryId> left = Left();
    if (left.size() < kTrajectories) {
      EXPECT_GE(LinesWith(repair.out, "LOST: table frames: "), 1u) << repair.out;
    }
    ASSERT_OK(Append());
    EXPECT_EQ(Left(), left);
    ExpectGood();
  }

  static constexpr int64_t kRows = 8;
  static constexpr int64_t kRowBytes = 4096;
  static constexpr TrajectoryId kTrajectories = 500;
  static inline TrajectoryId next_ = 1;
  static inline TempDir* made_dir_ = nullptr;
  static inline std::map<std::string, std::vector<std::string>> files_;
  TempDir dir_;
};

}  // namespace geardb::testing
