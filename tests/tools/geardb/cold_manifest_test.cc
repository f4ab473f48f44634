// The file that says of what files the cold store consists, and the one that names it, damaged:
// geardb goes by the copy, verify says so, repair writes it again.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/testing/random_programs.h"
#include "tests/tools/geardb/cli_fixture.h"
#include "tests/tools/geardb/large_store_fixture.h"
#include "tools/geardb/command.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;
using testing::CliRun;
using testing::LinesWith;

class ColdManifestCommandsTest : public testing::LargeStoreTest {
 protected:
  std::string FileIn(const std::string& begin) const {
    for (const auto& entry : fs::directory_iterator(store() + "/cold")) {
      if (entry.path().filename().string().starts_with(begin)) return entry.path();
    }
    return {};
  }
  CliRun Run(const std::string& command, const std::vector<std::string>& words = {}) const {
    std::vector<std::string> all = {command, store()};
    if (command != "info") all.insert(all.end(), {"--memory", "64MB"});
    all.insert(all.end(), words.begin(), words.end());
    return testing::RunCli(all);
  }
  /// Every row is there for one who writes. The note of the open.
  static std::string NoteOfAll(const std::string& store) {
    const auto database = Database::Open(store, testing::LargeStoreOptions());
    EXPECT_OK(database);
    if (!database.ok()) return {};
    const auto table = (*database)->OpenTable("frames").value();
    EXPECT_EQ(table->Count(), made_.trajectories);
    for (TrajectoryId id = 1; id <= made_.trajectories; ++id) EXPECT_OK(table->Read(id, {}, {}));
    EXPECT_OK((*database)->Close());
    return (*database)->recovery().note;
  }
  void ExpectGood() {
    const CliRun verify = Run("verify");
    EXPECT_EQ(verify.code, cli::kExitGood) << verify.out << verify.err;
    EXPECT_EQ(LinesWith(verify.out, "MANIFEST_COPY"), 0u) << verify.out;
    EXPECT_EQ(Run("repair").out, "nothing to repair\n");
  }
};

TEST_F(ColdManifestCommandsTest, DamageIsNamedAndRepairedAndCostsNothing) {
  ExpectGood();
  uint64_t cases = 0;
  for (const char* begin : {"CURRENT", "MANIFEST-"}) {
    for (const char* way : {"flipped", "cut", "missing"}) {
      for (const bool repairs : {true, false}) {
        if (!testing::InShare(cases++)) continue;
        Restore();
        const std::string file = FileIn(begin);
        SCOPED_TRACE(file + " " + way + (repairs ? ", repaired" : ", opened"));
        if (way == std::string("flipped")) testing::FlipByte(file, fs::file_size(file) / 2);
        if (way == std::string("cut")) fs::resize_file(file, fs::file_size(file) / 2);
        if (way == std::string("missing")) fs::remove(file);
        const auto before = testing::FilesOf(store() + "/cold");
        EXPECT_EQ(Run("info").code, cli::kExitGood);
        const CliRun verify = Run("verify");
        EXPECT_EQ(verify.code, cli::kExitDamage) << verify.out << verify.err;
        EXPECT_GE(LinesWith(verify.out, file), 1u) << verify.out;
        EXPECT_EQ(LinesWith(verify.out, "nothing is lost, and geardb repair"), 1u) << verify.out;
        const CliRun dry = Run("repair", {"--dry-run"});
        EXPECT_EQ(dry.code, cli::kExitDamage) << dry.out << dry.err;
        EXPECT_EQ(LinesWith(dry.out, "would do: what says which files the cold store has"), 1u)
            << dry.out;
        EXPECT_EQ(LinesWith(dry.out, "nothing is lost"), 1u) << dry.out;
        EXPECT_TRUE(testing::FilesOf(store() + "/cold") == before);
        if (repairs) {
          const CliRun done = Run("repair");
          EXPECT_EQ(done.code, cli::kExitGood) << done.out << done.err;
          EXPECT_EQ(LinesWith(done.out, "done: what says which files the cold store has"), 1u)
              << done.out;
          ExpectGood();
          EXPECT_EQ(NoteOfAll(store()), "");
        } else {
          EXPECT_NE(NoteOfAll(store()).find(file), std::string::npos);
          ExpectGood();
        }
      }
    }
  }
}

TEST_F(ColdManifestCommandsTest, ACopyThatIsNotWholeIsANoteAndNoDamage) {
  fs::remove(FileIn("MANIFEST_COPY-"));
  const CliRun verify = Run("verify");
  EXPECT_EQ(verify.code, cli::kExitGood) << verify.out << verify.err;
  EXPECT_EQ(LinesWith(verify.out, "MANIFEST_COPY-"), 1u) << verify.out;
  EXPECT_EQ(Run("repair").code, cli::kExitGood);
  EXPECT_EQ(NoteOfAll(store()), "");
  ExpectGood();
}

TEST_F(ColdManifestCommandsTest, DamageToBothCannotBeRepairedAndNamesBoth) {
  const std::vector<std::string> files = {FileIn("MANIFEST-"), FileIn("MANIFEST_COPY-")};
  for (const std::string& file : files) testing::FlipByte(file, 12);
  const auto before = testing::FilesOf(store());
  const CliRun verify = Run("verify");
  const CliRun repair = Run("repair");
  EXPECT_EQ(verify.code, cli::kExitDamage) << verify.out << verify.err;
  EXPECT_EQ(repair.code, cli::kExitLost) << repair.out << repair.err;
  for (const std::string& file : files) {
    EXPECT_GE(LinesWith(verify.out, file), 1u) << verify.out;
    EXPECT_GE(LinesWith(repair.out, file), 1u) << repair.out;
  }
  EXPECT_TRUE(testing::FilesOf(store()) == before);
}

}  // namespace
}  // namespace geardb
