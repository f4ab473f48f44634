// geardb repair: each kind of damage, against what a store holds without it.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/tools/geardb/cli_fixture.h"
#include "tools/geardb/command.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;
using testing::CliRun;
using testing::Json;

/// What a table holds: each trajectory's rows, as bytes of all its columns.
using Content = std::map<TrajectoryId, std::string>;
using Contents = std::map<std::string, Content>;

Contents ContentsOf(const std::string& directory) {
  DatabaseOptions options = testing::SampleOptions();
  options.read_only = true;
  options.create_if_missing = false;
  const auto database = Database::Open(directory, options);
  EXPECT_OK(database);
  Contents contents;
  if (!database.ok()) return contents;
  EXPECT_OK((*database)->recovery().damage);
  for (const std::string& name : (*database)->Tables()) {
    const auto table = (*database)->OpenTable(name).value();
    Content& content = contents[name];
    for (const TrajectoryRecord& record : table->Scan({})) {
      const auto rows = table->Read(record.id, {}, {});
      EXPECT_OK(rows) << name << "/" << record.id;
      std::string bytes = std::to_string(record.first_row) + "…";
      if (rows.ok()) {
        for (const ColumnRows& column : *rows) {
          bytes += column.column;
          bytes.append(reinterpret_cast<const char*>(column.bytes.data()), column.bytes.size());
        }
      }
      content[record.id] = bytes;
    }
  }
  return contents;
}

class RepairCommandTest : public testing::CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    whole_ = ContentsOf(store());
  }
  CliRun Repair(const std::vector<std::string>& words = {}) {
    std::vector<std::string> all = {"repair", store()};
    all.insert(all.end(), words.begin(), words.end());
    return testing::RunCli(all);
  }
  Json RepairJson(const std::vector<std::string>& words, int code) {
    std::vector<std::string> all = words;
    all.push_back("--json");
    const CliRun run = Repair(all);
    EXPECT_EQ(run.code, code) << run.out << run.err;
    auto json = Json::Parse(run.out);
    EXPECT_TRUE(json.has_value()) << run.out;
    return json ? std::move(*json) : Json();
  }
  /// The store can be opened for writing, twice, and a table takes rows.
  void ExpectOpens() {
    for (int i = 0; i < 2; ++i) {
      auto database = Database::Open(store(), testing::SampleOptions());
      ASSERT_OK(database);
      ASSERT_OK((*database)->WriteTag("after repair", {}));
      ASSERT_OK((*database)->Close());
    }
  }
  /// What a plan says is lost, by table.
  static std::map<std::string, std::set<TrajectoryId>> LostOf(const Json& json) {
    std::map<std::string, std::set<TrajectoryId>> lost;
    for (const Json& table : json["tables"].items()) {
      for (const Json& id : table["trajectories"].items()) {
        lost[table["name"].text()].insert(static_cast<TrajectoryId>(id.integer()));
      }
    }
    return lost;
  }
  static bool Named(const Json& table, TrajectoryId id) {
    for (const Json& one : table["trajectories"].items()) {
      if (static_cast<TrajectoryId>(one.integer()) == id) return true;
    }
    for (const Json& range : table["unnamed"].items()) {
      const bool open = range["last"].is_null();
      if (static_cast<TrajectoryId>(range["first"].integer()) <= id &&
          (open || id <= static_cast<TrajectoryId>(range["last"].integer()))) {
        return true;
      }
    }
    return false;
  }
  /// A dry run changes nothing and says what the repair then does; what is there afterwards is what
  /// was there before, but for what was said to be lost. Returns the contents.
  void ExpectRepaired(const std::string& what) {
    SCOPED_TRACE(what);
    const auto before = testing::FilesOf(store());
    const Json plan = RepairJson({"--dry-run"}, cli::kExitDamage);
    EXPECT_TRUE(testing::FilesOf(store()) == before);
    EXPECT_FALSE(plan["repaired"].truth());
    EXPECT_FALSE(plan["damage"].items().empty());
    const Json done = RepairJson({}, cli::kExitGood);
    EXPECT_TRUE(done["repaired"].truth());
    for (const char* key : {"damage", "actions", "losses", "notes"}) {
      ASSERT_EQ(done[key].items().size(), plan[key].items().size()) << key;
      for (size_t i = 0; i < plan[key].items().size(); ++i) {
        EXPECT_EQ(done[key][i].text(), plan[key][i].text());
      }
    }
    EXPECT_EQ(LostOf(done), LostOf(plan));
    ExpectOnlyNamedLost(plan);
    const auto repaired = testing::FilesOf(store());
    const CliRun again = Repair();
    EXPECT_EQ(again.code, 0) << again.out << again.err;
    EXPECT_NE(again.out.find("nothing to repair"), std::string::npos) << again.out;
    EXPECT_TRUE(testing::FilesOf(store()) == repaired);
    ExpectOpens();
  }
  void ExpectOnlyNamedLost(const Json& plan) {
    const Contents now = ContentsOf(store());
    std::map<std::string, const Json*> losses;
    for (const Json& table : plan["tables"].items()) losses[table["name"].text()] = &table;
    for (const auto& [name, content] : whole_) {
      const auto loss = losses.find(name);
      if (!now.contains(name)) {
        ASSERT_TRUE(loss != losses.end()) << name;
        EXPECT_TRUE((*loss->second)["whole"].truth()) << name;
        continue;
      }
      const Content& rows = now.at(name);
      for (const auto& [id, bytes] : content) {
        const auto there = rows.find(id);
        if (there != rows.end() && there->second == bytes) continue;
        ASSERT_TRUE(loss != losses.end()) << name << "/" << id;
        if (there == rows.end()) {
          EXPECT_TRUE(Named(*loss->second, id)) << name << "/" << id;
          continue;
        }
        // Rows are missing at its end: it was open at the cut; or a trim is undone with the rest.
        EXPECT_TRUE(plan.has("log") && plan["log"].has("from")) << name << "/" << id;
      }
      for (const auto& [id, bytes] : rows) {
        // What was removed behind the cut is there again; what was said to be lost is not.
        if (loss != losses.end()) {
          const auto lost = LostOf(plan)[name];
          EXPECT_FALSE(lost.contains(id)) << name << "/" << id;
        }
      }
    }
  }
  /// The log's first segment is gone, and with it all that the others go on from.
  void ExpectLost(const std::string& file) {
    EXPECT_TRUE(file.ends_with("segment-000001")) << file;
    const auto before = testing::FilesOf(store());
    const CliRun run = Repair();
    EXPECT_EQ(run.code, cli::kExitLost);
    EXPECT_NE(run.out.find("CANNOT BE REPAIRED"), std::string::npos) << run.out;
    EXPECT_TRUE(testing::FilesOf(store()) == before);
  }
  std::vector<std::string> SegmentFiles() const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(File("log"))) {
      if (entry.path().filename().string().starts_with("segment-")) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  /// The store again as it was made.
  void Restore() {
    fs::remove_all(store());
    CliTest::Restore();
  }

  Contents whole_;
};

TEST_F(RepairCommandTest, AStoreWithNothingWrongIsLeftAlone) {
  const auto before = testing::FilesOf(store());
  for (const char* word : {"--dry-run", "--json"}) {
    const CliRun run = Repair({word});
    EXPECT_EQ(run.code, 0) << run.out << run.err;
  }
  const CliRun run = Repair();
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, "nothing to repair\n");
  EXPECT_TRUE(testing::FilesOf(store()) == before);
  EXPECT_TRUE(RepairJson({}, 0)["nothing_wrong"].truth());
}

TEST_F(RepairCommandTest, KeysOfJsonAreStable) {
  EXPECT_EQ(
      RepairJson({}, 0).keys(),
      (std::vector<std::string>{"directory", "nothing_wrong", "repaired", "impossible", "damage",
                                "actions", "log", "tables", "losses", "notes", "kept_in"}));
}

TEST_F(RepairCommandTest, AStoreInUseIsRefused) {
  auto database = Database::Open(store(), testing::SampleOptions());
  ASSERT_OK(database);
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"--dry-run"}}) {
    const CliRun run = Repair(words);
    EXPECT_EQ(run.code, cli::kExitDamage);
    EXPECT_NE(run.err.find("FailedPrecondition"), std::string::npos) << run.err;
  }
}

TEST_F(RepairCommandTest, NoDatabaseIsSaidSo) {
  fs::create_directory(Scratch("empty"));
  const CliRun run = testing::RunCli({"repair", Scratch("empty")});
  EXPECT_EQ(run.code, cli::kExitDamage);
  EXPECT_NE(run.err.find("there is no database"), std::string::npos) << run.err;
}

TEST_F(RepairCommandTest, DamageInTheLogCutsItThere) {
  // Bits all over the log, each in a store of its own.
  const auto records = Records();
  std::mt19937_64 random(3);
  for (int i = 0; i < 24; ++i) {
    const testing::LoggedRecord& record = records[random() % records.size()];
    const uint64_t offset = random() % std::min<uint64_t>(record.length, 64);
    Flip(record.lsn + offset);
    if (Repair({"--dry-run"}).code == cli::kExitDamage) {
      ExpectRepaired("LSN " + std::to_string(record.lsn) + " + " + std::to_string(offset));
    }
    Restore();
  }
}

TEST_F(RepairCommandTest, ADamagedRecordLosesWhatFollowsItAndKeepsTheFiles) {
  const auto record = RecordSaying("step-10");
  const auto before = testing::FilesOf(store());
  Flip(record.lsn + 20);
  const auto damaged = testing::FilesOf(store());
  ExpectRepaired("a record");
  size_t kept = 0;
  for (const auto& [path, bytes] : damaged) {
    const fs::path relative = fs::relative(path, store());
    const fs::path copy = fs::path(store()) / "repair-1" / relative;
    if (!fs::is_regular_file(copy)) continue;
    EXPECT_EQ(testing::ReadBytes(copy), bytes) << copy;
    ++kept;
  }
  EXPECT_GE(kept, 3u);  // The manifest, the ring, a segment at least.
}

TEST_F(RepairCommandTest, ADamagedPageCostsItsTrajectory) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 8; ++i) {
    std::vector<Lsn> pieces;
    for (const auto& record : Records()) {
      pieces.insert(pieces.end(), record.pieces.begin(), record.pieces.end());
    }
    Flip(pieces[random() % pieces.size()]);
    const Json plan = RepairJson({"--dry-run"}, Repair({"--dry-run"}).code);
    if (!plan["nothing_wrong"].truth()) ExpectRepaired("a piece");
    Restore();
  }
}

TEST_F(RepairCommandTest, EachFileMayBeMissing) {
  std::vector<std::string> files = SegmentFiles();
  for (const char* name : {"MANIFEST", "LOCK", "log/ring"}) files.push_back(File(name));
  for (const std::string& file : files) {
    fs::remove(file);
    const CliRun run = Repair({"--dry-run"});
    if (run.code == cli::kExitLost) {
      ExpectLost(file);
    } else if (run.code == cli::kExitDamage) {
      ExpectRepaired(file);
    } else {
      EXPECT_EQ(run.code, 0) << file << run.out << run.err;
      EXPECT_EQ(ContentsOf(store()), whole_) << file;
    }
    Restore();
  }
}

TEST_F(RepairCommandTest, NothingIsLostByTheManifestTheLockOrARingThatWasClosed) {
  for (const char* name : {"MANIFEST", "LOCK", "log/ring"}) {
    fs::remove(File(name));
    ExpectRepaired(name);
    EXPECT_EQ(ContentsOf(store()), whole_) << name;
    Restore();
  }
}

TEST_F(RepairCommandTest, EachFileMayBeCutShort) {
  std::vector<std::string> files = SegmentFiles();
  for (const char* name : {"MANIFEST", "log/ring"}) files.push_back(File(name));
  std::mt19937_64 random(9);
  for (const std::string& file : files) {
    fs::resize_file(file, random() % fs::file_size(file));
    const CliRun run = Repair({"--dry-run"});
    if (run.code == cli::kExitLost) {
      ExpectLost(file);
    } else if (run.code == cli::kExitDamage) {
      ExpectRepaired(file);
    } else {
      EXPECT_EQ(run.code, 0) << file << run.out << run.err;
      EXPECT_EQ(ContentsOf(store()), whole_) << file;
    }
    Restore();
  }
}

TEST_F(RepairCommandTest, ASegmentThatLostItsFirstRecordGetsItAgain) {
  for (const std::string& file : SegmentFiles()) {
    std::string bytes = testing::ReadBytes(file);
    if (bytes.substr(0, 128) == std::string(128, '\0')) continue;
    std::fill_n(bytes.begin(), 128, 'x');
    testing::WriteBytes(file, bytes);
    ExpectRepaired(file);
    EXPECT_EQ(ContentsOf(store()), whole_) << file;
    Restore();
  }
}

TEST_F(RepairCommandTest, AFileThatIsNoneOfTheLogsIsPutAside) {
  const std::string stranger = File("log/segment-000777");
  testing::WriteBytes(stranger, "not a segment");
  ExpectRepaired(stranger);
  EXPECT_FALSE(fs::exists(stranger));
  EXPECT_EQ(testing::ReadBytes(File("repair-1/log/segment-000777")), "not a segment");
  EXPECT_EQ(ContentsOf(store()), whole_);
}

TEST_F(RepairCommandTest, ALogThatIsGoneLosesTables) {
  fs::remove_all(File("log"));
  const CliRun run = Repair({"--dry-run"});
  EXPECT_NE(run.code, 0) << run.out;
  EXPECT_TRUE(run.code == cli::kExitDamage || run.code == cli::kExitLost) << run.code;
}

TEST_F(RepairCommandTest, AManifestThatNothingCanReplaceIsSaidSo) {
  fs::remove(File("MANIFEST"));
  for (const std::string& file : SegmentFiles()) testing::WriteBytes(file, std::string(64, 'x'));
  const auto before = testing::FilesOf(store());
  EXPECT_NE(Repair().code, 0);
  EXPECT_TRUE(testing::FilesOf(store()) == before);
}

}  // namespace
}  // namespace geardb
