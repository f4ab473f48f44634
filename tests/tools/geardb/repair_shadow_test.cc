#include "tools/geardb/repair_shadow.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/tools/geardb/cli_fixture.h"
#include "tools/geardb/open_store.h"

namespace geardb::cli {
namespace {

namespace fs = std::filesystem;

class RepairShadowTest : public testing::CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    const char* before = getenv("TMPDIR");
    before_ = before == nullptr ? "" : before;
    fs::create_directory(Scratch("tmp"));
    setenv("TMPDIR", Scratch("tmp").c_str(), 1);
  }
  void TearDown() override {
    before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1);
  }
  std::string Left(const std::string& name) {
    const std::string path = Scratch("tmp") + "/" + name;
    fs::create_directories(path + "/log");
    fs::create_symlink(File("MANIFEST"), path + "/log/link");
    return path;
  }
  Status Make(Shadow* shadow) {
    RepairPlan plan;
    plan.directory = store();
    GEARDB_ASSIGN_OR_RETURN(const wal::Manifest manifest, ReadManifest(store()));
    return shadow->Make(plan, manifest);
  }

 private:
  std::string before_;
};

TEST_F(RepairShadowTest, IsReadAsTheDatabaseAndGoneBehindIt) {
  std::string path;
  {
    Shadow shadow;
    ASSERT_OK(Make(&shadow));
    path = shadow.path();
    EXPECT_EQ(fs::path(path).parent_path(), Scratch("tmp"));
    ASSERT_OK_AND_ASSIGN(const auto database, shadow.Open(0));
    EXPECT_FALSE(database->Tables().empty());
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RepairShadowTest, WhatRepairsHaveLeftThatWereKilledGoes) {
  const std::string left = Left("geardb-repair-gone");
  const std::string other = Left("another-program");
  Shadow shadow;
  ASSERT_OK(Make(&shadow));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_TRUE(fs::exists(File("MANIFEST")));
}

TEST_F(RepairShadowTest, WhatARepairHasThatIsUnderWayStays) {
  Shadow one;
  ASSERT_OK(Make(&one));
  const std::string locked = Left("geardb-repair-busy");
  const int lock = open(locked.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  Shadow two;
  ASSERT_OK(Make(&two));
  EXPECT_TRUE(fs::exists(one.path()));
  EXPECT_TRUE(fs::exists(locked));
  EXPECT_NE(one.path(), two.path());
  close(lock);
}

}  // namespace
}  // namespace geardb::cli
