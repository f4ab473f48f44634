// A directory that is moved, replaced or removed while its database is open: its path may lead to
// another store by then.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/crash_point.h"
#include "engine/database.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"
#include "tests/testing/temp_dir.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;

// More than the spare segments that an open has made.
constexpr int64_t kMany = 1000;

std::unique_ptr<Database> OpenAt(const std::string& directory) {
  auto database = Database::Open(directory, testing::SmallOptions());
  EXPECT_OK(database);
  return database.ok() ? std::move(database).value() : nullptr;
}

// Appends steps of 16 KiB, all of `value`, until `count` are there or one is refused; returns how
// many were acknowledged.
int64_t Append(Database* database, float value, int64_t count, Status* refused) {
  TableSpec spec{.name = "replay"};
  spec.columns = {{.name = "obs", .shape = {4096}}};
  auto table = database->OpenOrCreateTable(spec).value();
  auto writer = table->NewWriter({}).value();
  const std::vector<float> obs(4096, value);
  for (int64_t i = 0; i < count; ++i) {
    *refused = writer->AppendSteps({{"obs", TensorView::Of<float>(obs, {1, 4096})}}).status();
    if (!refused->ok()) return i;
  }
  return count;
}

void AppendAll(Database* database, float value, int64_t count) {
  Status refused;
  EXPECT_EQ(Append(database, value, count, &refused), count) << refused;
}

// The steps of each value, in the order in which they were appended. Read by a new open.
using Steps = std::vector<std::pair<float, int64_t>>;

Steps Stored(const std::string& directory) {
  Steps steps;
  const auto database = OpenAt(directory);
  if (database == nullptr) return steps;
  const auto table = database->OpenTable("replay").value();
  for (const TrajectoryRecord& trajectory : table->Scan({})) {
    const auto columns = table->Read(trajectory.id, {}, {}).value();
    const auto* const obs = reinterpret_cast<const float*>(columns.at(0).bytes.data());
    for (int64_t row = 0; row < trajectory.rows_end; ++row) {
      const float value = obs[row * 4096 + 4095];
      if (steps.empty() || steps.back().first != value) steps.emplace_back(value, 0);
      ++steps.back().second;
    }
  }
  return steps;
}

class DatabaseMovedTest : public ::testing::Test {
 protected:
  // A store with ten steps of value 1, closed.
  void SetUp() override {
    const auto database = OpenAt(run_);
    ASSERT_NE(database, nullptr);
    AppendAll(database.get(), 1, 10);
  }
  void TearDown() override {
    SetCrashHook(nullptr);
    fs::current_path(before_);
  }

  const testing::TempDir directory_;
  const std::string run_ = directory_.File("run");
  const std::string moved_ = directory_.File("moved");
  const fs::path before_ = fs::current_path();
};

TEST_F(DatabaseMovedTest, GoesOnWhereItsDirectoryWent) {
  auto first = OpenAt(run_);
  fs::rename(run_, moved_);
  auto second = OpenAt(run_);
  AppendAll(second.get(), 2, kMany);
  AppendAll(first.get(), 3, kMany);
  AppendAll(second.get(), 4, kMany);
  EXPECT_STATUS(kFailedPrecondition, Database::Open(moved_, testing::SmallOptions()),
                "is held by process");
  EXPECT_OK(first->Close());
  EXPECT_OK(second->Close());
  first.reset();
  second.reset();
  EXPECT_EQ(Stored(moved_), (Steps{{1, 10}, {3, kMany}}));
  EXPECT_EQ(Stored(run_), (Steps{{2, kMany}, {4, kMany}}));
}

// Its files have the numbers that the first one makes next, and it is the same database to them.
TEST_F(DatabaseMovedTest, ACopyThatTookItsPlaceStaysAsItIs) {
  auto first = OpenAt(run_);
  fs::rename(run_, moved_);
  fs::copy(moved_, run_, fs::copy_options::recursive);
  AppendAll(first.get(), 2, kMany);
  auto second = OpenAt(run_);
  AppendAll(second.get(), 3, kMany);
  AppendAll(first.get(), 4, kMany);
  first.reset();
  second.reset();
  EXPECT_EQ(Stored(moved_), (Steps{{1, 10}, {2, kMany}, {4, kMany}}));
  EXPECT_EQ(Stored(run_), (Steps{{1, 10}, {3, kMany}}));
}

TEST_F(DatabaseMovedTest, ALinkThatIsPointedElsewhereLeadsTheNextOpenThere) {
  const std::string link = directory_.File("link");
  fs::rename(run_, moved_);
  fs::create_directory_symlink(moved_, link);
  auto first = OpenAt(link);
  AppendAll(OpenAt(run_).get(), 2, 10);
  fs::remove(link);
  fs::create_directory_symlink(run_, link);
  AppendAll(first.get(), 3, kMany);
  first.reset();
  EXPECT_EQ(Stored(moved_), (Steps{{1, 10}, {3, kMany}}));
  EXPECT_EQ(Stored(link), (Steps{{2, 10}}));
}

TEST_F(DatabaseMovedTest, ARelativePathIsThatOfTheOpen) {
  for (const char* const name : {"run", "./run/", "."}) {
    fs::current_path(name == std::string_view(".") ? run_ : directory_.path());
    auto first = OpenAt(name);
    fs::current_path(before_);
    fs::create_directory(directory_.File("elsewhere"));
    fs::current_path(directory_.File("elsewhere"));
    auto second = OpenAt("run");
    AppendAll(second.get(), 2, kMany);
    AppendAll(first.get(), 1, kMany);
    AppendAll(second.get(), 2, kMany);
    first.reset();
    second.reset();
    EXPECT_EQ(Stored("run"), (Steps{{2, 2 * kMany}})) << name;
    fs::remove_all(directory_.File("elsewhere"));
  }
  EXPECT_EQ(Stored(run_), (Steps{{1, 10 + 3 * kMany}}));
}

TEST_F(DatabaseMovedTest, OneThatWasRemovedSaysSoAndLeavesWhatTookItsPlaceAlone) {
  auto first = OpenAt(run_);
  fs::remove_all(run_);
  auto second = OpenAt(run_);
  AppendAll(second.get(), 2, kMany);
  Status refused;
  EXPECT_LT(Append(first.get(), 3, kMany, &refused), kMany);
  EXPECT_STATUS(kFailedPrecondition, refused, run_ + "/log' was removed while it was in use");
  AppendAll(second.get(), 4, kMany);
  first.reset();
  second.reset();
  EXPECT_EQ(Stored(run_), (Steps{{2, kMany}, {4, kMany}}));
}

TEST_F(DatabaseMovedTest, WhatSomebodyElseMadeInItIsLeftAlone) {
  auto first = OpenAt(run_);
  const std::string foreign = run_ + "/log/segment-000009";
  std::ofstream(foreign) << "foreign";
  fs::create_directory(run_ + "/log/segment-000010");
  AppendAll(first.get(), 2, kMany);
  first.reset();
  EXPECT_EQ(fs::file_size(foreign), 7u);
  // Nobody has said yet whose it is.
  EXPECT_STATUS(kCorruption, Database::Open(run_, testing::SmallOptions()), "segment-0000");
  fs::remove(foreign);
  fs::remove(run_ + "/log/segment-000010");
  EXPECT_EQ(Stored(run_), (Steps{{1, 10}, {2, kMany}}));
}

// Once, where the hook is reached first.
void SwapAt(const char* point, std::function<void()> swap) {
  static const char* at;
  static std::function<void()> then;
  at = point;
  then = std::move(swap);
  SetCrashHook([](const char* name) {
    if (at == nullptr || std::string_view(name) != at) return;
    at = nullptr;
    then();
  });
}

TEST_F(DatabaseMovedTest, AnOpenThatIsUnderWayGoesOnWhereItsDirectoryWent) {
  for (const char* const point :
       {"recovery_read", "recovery_sync", "recovery_epoch", "manifest", "recovery_serve"}) {
    SwapAt(point, [this] {
      fs::rename(run_, moved_);
      fs::copy(moved_, run_, fs::copy_options::recursive);
    });
    auto first = OpenAt(run_);
    AppendAll(first.get(), 2, kMany);
    first.reset();
    EXPECT_EQ(Stored(run_), (Steps{{1, 10}})) << point;
    EXPECT_EQ(Stored(moved_), (Steps{{1, 10}, {2, kMany}})) << point;
    fs::remove_all(moved_);
  }
}

TEST_F(DatabaseMovedTest, WhatIsCreatedIsWhatIsOpened) {
  const std::string fresh = directory_.File("fresh");
  SwapAt("manifest", [&] {
    fs::rename(fresh, moved_);
    fs::rename(run_, fresh);
  });
  DatabaseOptions options = testing::SmallOptions();
  options.error_if_exists = true;
  ASSERT_OK_AND_ASSIGN(auto created, Database::Open(fresh, options));
  AppendAll(created.get(), 2, kMany);
  created.reset();
  EXPECT_EQ(Stored(fresh), (Steps{{1, 10}}));
  EXPECT_EQ(Stored(moved_), (Steps{{2, kMany}}));
}

}  // namespace
}  // namespace geardb
