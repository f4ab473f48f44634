// A repair that dies at any of its steps: whoever runs it again gets what one run gives.
#include "tools/geardb/repair_steps.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/crash_point.h"
#include "tests/tools/geardb/cli_fixture.h"
#include "tools/geardb/command.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;

/// Where the hook copies what a death would leave.
std::string* the_store = nullptr;
std::string* the_copies = nullptr;
std::vector<std::string>* the_points = nullptr;

void CopyAtPoint(const char* name) {
  if (!std::string_view(name).starts_with("repair_") && std::string_view(name) != "manifest")
    return;
  fs::copy(*the_store, *the_copies + "/" + std::to_string(the_points->size()),
           fs::copy_options::recursive);
  the_points->emplace_back(name);
}

class RepairStepsTest : public testing::CliTest {
 protected:
  /// Repairs the store, and what it was at each point of that; all come to the same text.
  void ExpectTheSameFromEverywhere(std::set<std::string>* points) {
    std::string copied = store(), copies = Scratch("copies");
    fs::remove_all(copies);
    fs::create_directory(copies);
    std::vector<std::string> names;
    the_store = &copied;
    the_copies = &copies;
    the_points = &names;
    SetCrashHook(&CopyAtPoint);
    const testing::CliRun run = testing::RunCli({"repair", store()});
    SetCrashHook(nullptr);
    ASSERT_EQ(run.code, 0) << run.out << run.err;
    ASSERT_FALSE(names.empty());
    const std::string expected = Heads(store());
    for (size_t i = 0; i < names.size(); ++i) {
      SCOPED_TRACE(names[i]);
      const std::string copy = copies + "/" + std::to_string(i);
      const testing::CliRun again = testing::RunCli({"repair", copy});
      ASSERT_EQ(again.code, 0) << again.out << again.err;
      EXPECT_EQ(
          testing::RunCli({"repair", copy}).out.find("nothing to repair") == std::string::npos,
          false);
      EXPECT_EQ(Heads(copy), expected);
      points->insert(names[i]);
    }
  }
  /// What the tables hold.
  static std::string Heads(const std::string& directory) {
    std::string all;
    for (const char* table : {"arcade", "walkers"}) {
      all += testing::RunCli({"head", directory, table, "-n", "1000"}).out;
    }
    return all;
  }
};

TEST_F(RepairStepsTest, ARepairThatDiesIsFinishedByTheNext) {
  std::set<std::string> points;
  // The log is cut, and a stranger is there.
  Flip(RecordSaying("step-10").lsn + 20);
  testing::WriteBytes(File("log/segment-000777"), "not a segment");
  ExpectTheSameFromEverywhere(&points);
  // A ring, a manifest and a segment's first record are made again.
  fs::remove_all(store());
  Restore();
  fs::remove(File("log/ring"));
  fs::remove(File("MANIFEST"));
  testing::FlipByte(File("log/segment-000002"), 9);
  ExpectTheSameFromEverywhere(&points);
  // A page is damaged.
  fs::remove_all(store());
  Restore();
  Lsn piece = kNoLsn;
  for (const auto& record : Records()) {
    if (!record.pieces.empty()) piece = record.pieces.front();
  }
  ASSERT_NE(piece, kNoLsn);
  Flip(piece);
  if (testing::RunCli({"repair", store(), "--dry-run"}).code != 0) {
    ExpectTheSameFromEverywhere(&points);
  }
  for (const char* point :
       {"repair_keep", "repair_manifest", "repair_aside", "repair_ring", "repair_head"}) {
    EXPECT_TRUE(points.contains(point)) << point;
  }
}

}  // namespace
}  // namespace geardb
