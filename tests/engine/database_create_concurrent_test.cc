// Many open one directory at the same time, in which there is no database yet.
//
// concurrent: engine/internal/table_create.cc
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/database.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"
#include "tests/testing/temp_dir.h"

namespace geardb {
namespace {

constexpr int kOpeners = 4;

// As a creation leaves it that was killed.
void PutLeftovers(const std::string& path) {
  std::filesystem::create_directories(path + "/log");
  for (const char* const name : {"/log/ring", "/log/segment-000001"}) std::ofstream(path + name);
}

// Each opens it once, creates a table of its own, and closes it.
TEST(DatabaseCreateConcurrentTest, WhoIsLateOpensWhatAnotherHasCreated) {
  const testing::TempDir directory;
  const DatabaseOptions options = testing::SmallOptions();
  for (int round = 0; round < 20; ++round) {
    const std::string path = directory.File(std::to_string(round));
    if (round % 2 == 1) PutLeftovers(path);
    std::vector<std::thread> openers;
    for (int i = 0; i < kOpeners; ++i) {
      openers.emplace_back([&, i] {
        auto database = Database::Open(path, options);
        while (!database.ok()) {
          ASSERT_STATUS(kFailedPrecondition, database.status(), "LOCK is held by");
          std::this_thread::yield();
          database = Database::Open(path, options);
        }
        TableSpec spec{.name = "table" + std::to_string(i)};
        spec.columns = {{.name = "reward"}};
        EXPECT_OK((*database)->CreateTable(spec));
      });
    }
    for (std::thread& opener : openers) opener.join();
    ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(path, options));
    EXPECT_EQ(database->Tables().size(), size_t{kOpeners});
  }
}

TEST(DatabaseCreateConcurrentTest, OneOfThoseWhoWantANewOneGetsIt) {
  const testing::TempDir directory;
  DatabaseOptions options = testing::SmallOptions();
  options.error_if_exists = true;
  for (int round = 0; round < 50; ++round) {
    const std::string path = directory.File(std::to_string(round));
    if (round % 2 == 1) PutLeftovers(path);
    std::vector<Result<std::unique_ptr<Database>>> opened;
    for (int i = 0; i < kOpeners; ++i) opened.push_back(Status::Internal("not called"));
    std::vector<std::thread> openers;
    for (auto& database : opened) {
      openers.emplace_back([&] { database = Database::Open(path, options); });
    }
    for (std::thread& opener : openers) opener.join();
    int created = 0;
    for (const auto& database : opened) {
      const StatusCode code = database.status().code();
      created += database.ok() ? 1 : 0;
      EXPECT_TRUE(database.ok() || code == StatusCode::kAlreadyExists ||
                  code == StatusCode::kFailedPrecondition)
          << database.status();
    }
    EXPECT_EQ(created, 1);
  }
}

}  // namespace
}  // namespace geardb
