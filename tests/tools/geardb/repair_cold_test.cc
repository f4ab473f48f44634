// geardb repair of stores that have a cold store: what the log no longer has is there alone.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/tools/geardb/cli_fixture.h"
#include "tests/tools/geardb/large_store_fixture.h"
#include "tools/geardb/command.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;
using testing::CliRun;
using testing::Json;

class RepairColdTest : public testing::LargeStoreTest {
 protected:
  std::vector<std::string> FilesIn(const std::string& folder,
                                   const std::vector<std::string>& ends) const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(store() + "/" + folder)) {
      const std::string name = entry.path().filename();
      for (const std::string& end : ends) {
        if (name.ends_with(end) || name.starts_with(end)) paths.push_back(entry.path());
      }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  CliRun Repair(const std::vector<std::string>& words = {}) const {
    std::vector<std::string> all = {"repair", store(), "--memory", "64MB"};
    all.insert(all.end(), words.begin(), words.end());
    return testing::RunCli(all);
  }
  /// Of --json: the ids that are lost.
  static std::set<TrajectoryId> LostOf(const CliRun& run) {
    std::set<TrajectoryId> lost;
    const auto json = Json::Parse(run.out);
    EXPECT_TRUE(json.has_value()) << run.out << run.err;
    if (!json) return lost;
    for (const Json& table : (*json)["tables"].items()) {
      for (const Json& id : table["trajectories"].items()) {
        lost.insert(static_cast<TrajectoryId>(id.integer()));
      }
      for (const Json& range : table["unnamed"].items()) {
        const auto first = static_cast<TrajectoryId>(range["first"].integer());
        const TrajectoryId last = range["last"].is_null()
                                      ? made_.trajectories
                                      : static_cast<TrajectoryId>(range["last"].integer());
        for (TrajectoryId id = first; id <= last; ++id) lost.insert(id);
      }
    }
    return lost;
  }
  /// Everything but these is there, byte for byte, and the store takes more.
  void ExpectAllBut(const std::set<TrajectoryId>& lost) {
    auto database = Database::Open(store(), testing::LargeStoreOptions());
    ASSERT_OK(database);
    ASSERT_OK_AND_ASSIGN(const auto table, (*database)->OpenTable("frames"));
    for (TrajectoryId id = 1; id <= made_.trajectories; ++id) {
      const auto rows = table->Read(id, {}, {});
      if (lost.contains(id)) {
        EXPECT_EQ(rows.status().code(), StatusCode::kNotFound) << id;
        continue;
      }
      ASSERT_OK(rows) << id;
      ASSERT_TRUE(testing::HasBytes((*rows)[0].view(), testing::LargeStoreBytes(id))) << id;
    }
    ASSERT_OK((*database)->Close());
  }
  /// The dry run changes nothing, and what it said is lost is what is gone.
  void ExpectRepaired(const std::string& what) {
    SCOPED_TRACE(what);
    const auto before = testing::FilesOf(store());
    const CliRun dry = Repair({"--dry-run", "--json"});
    EXPECT_EQ(dry.code, cli::kExitDamage) << dry.out << dry.err;
    EXPECT_TRUE(testing::FilesOf(store()) == before);
    const CliRun done = Repair({"--json"});
    EXPECT_EQ(done.code, 0) << done.out << done.err;
    EXPECT_EQ(LostOf(done), LostOf(dry));
    EXPECT_EQ(Repair().code, 0);
    ExpectAllBut(LostOf(dry));
  }
};

TEST_F(RepairColdTest, AWholeStoreIsLeftAlone) {
  const auto before = testing::FilesOf(store());
  const CliRun run = Repair();
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_EQ(run.out, "nothing to repair\n");
  EXPECT_TRUE(testing::FilesOf(store()) == before);
}

TEST_F(RepairColdTest, WithoutItsColdStoreNothingCanBeSaved) {
  fs::remove_all(store() + "/cold");
  const auto before = testing::FilesOf(store());
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--dry-run"}, {}}) {
    const CliRun run = Repair(words);
    EXPECT_EQ(run.code, cli::kExitLost) << run.out << run.err;
    EXPECT_NE(run.out.find("there is no cold store"), std::string::npos) << run.out;
    EXPECT_TRUE(testing::FilesOf(store()) == before);
  }
}

TEST_F(RepairColdTest, FlippedBitsInItsFilesCostNoMoreThanIsSaid) {
  std::mt19937_64 random(17);
  int repaired = 0;
  int harmless = 0;
  for (int i = 0; i < 12 || (repaired == 0 && i < 60); ++i) {
    const auto files = FilesIn("cold", {".sst", ".blob"});
    ASSERT_FALSE(files.empty());
    const std::string file = files[random() % files.size()];
    testing::FlipByte(file, random() % fs::file_size(file));
    const auto before = testing::FilesOf(store());
    const CliRun dry = Repair({"--dry-run"});
    if (dry.code == cli::kExitDamage) {
      ExpectRepaired(file);
      ++repaired;
    } else if (dry.code == cli::kExitLost) {
      EXPECT_TRUE(testing::FilesOf(store()) == before);
    } else {
      EXPECT_EQ(dry.code, 0) << dry.out << dry.err;
      ExpectAllBut({});
      ++harmless;
    }
    Restore();
  }
  std::printf("%d flips cost what was said, %d nothing\n", repaired, harmless);
  EXPECT_GT(repaired, 0);
}

TEST_F(RepairColdTest, DamageInTheLogCostsPagesBeforeTheImageAndAllBehindIt) {
  const auto segments = FilesIn("log", {"segment-"});
  const auto shown = Json::Parse(testing::RunCli({"info", store(), "--json"}).out);
  ASSERT_TRUE(shown.has_value());
  const int64_t image = (*shown)["log"]["image"].integer();
  const int64_t pages = (*shown)["log"]["pages_from"].integer();
  const int64_t end = (*shown)["log"]["end"].integer();
  const int64_t segment_bytes = (*shown)["log"]["segment_bytes"].integer();
  ASSERT_LT(image, end);
  std::mt19937_64 random(23);
  int repaired = 0;
  for (int i = 0; i < 8; ++i) {
    const int64_t from = i % 2 == 0 ? image : pages;
    const auto at = static_cast<uint64_t>(
        from + static_cast<int64_t>(random() % static_cast<uint64_t>(end - from)));
    fs::remove(store() + "/log/ring");  // It may have a good copy.
    const uint64_t base = at - at % static_cast<uint64_t>(segment_bytes);
    for (const std::string& file : segments) {
      const std::string bytes = testing::ReadBytes(file);
      uint64_t lsn = 0;
      std::memcpy(&lsn, bytes.data() + 8, sizeof(lsn));
      if (lsn == base) testing::FlipByte(file, at - base);
    }
    const CliRun dry = Repair({"--dry-run"});
    EXPECT_EQ(dry.code, cli::kExitDamage) << dry.out << dry.err;
    ExpectRepaired("LSN " + std::to_string(at));
    ++repaired;
    Restore();
  }
  EXPECT_EQ(repaired, 8);
}

// Nothing reads them before they are written over.
TEST_F(RepairColdTest, SegmentsThatAreFreeAreNoDamage) {
  const auto shown = Json::Parse(testing::RunCli({"info", store(), "--json"}).out);
  ASSERT_TRUE(shown.has_value());
  const auto pages = static_cast<uint64_t>((*shown)["log"]["pages_from"].integer());
  int free = 0;
  for (const std::string& file : FilesIn("log", {"segment-"})) {
    uint64_t lsn = 0;
    std::memcpy(&lsn, testing::ReadBytes(file).data() + 8, sizeof(lsn));
    if (lsn >= pages) continue;
    ++free;
    for (const bool gone : {true, false}) {
      SCOPED_TRACE(file + (gone ? " is gone" : " is damaged"));
      if (gone) fs::remove(file);
      if (!gone) testing::FlipByte(file, 136);  // In the header of its second record.
      const CliRun verify = testing::RunCli({"verify", store()});
      EXPECT_EQ(verify.code, cli::kExitGood) << verify.out;
      EXPECT_EQ(Repair().out, "nothing to repair\n");
      Restore();
    }
  }
  EXPECT_GT(free, 0);
}

TEST_F(RepairColdTest, ALogThatEndsBeforeTheImageBeginsAnewBehindIt) {
  // All of the log is gone but the files' names.
  for (const std::string& file : FilesIn("log", {"segment-"})) fs::remove(file);
  fs::remove(store() + "/log/ring");
  ExpectRepaired("a log without segments");
}

}  // namespace
}  // namespace geardb
