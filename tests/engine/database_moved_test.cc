// A directory that is moved while its database is open: its path may lead to another store by then.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/database.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb {
namespace {

DatabaseOptions Small() {
  DatabaseOptions options;
  options.segment_bytes = uint64_t{1} << 20;
  options.ring_bytes = uint64_t{1} << 20;
  return options;
}

// Appends steps until `count` are there or one is refused; returns how many were acknowledged.
int64_t Append(Database* database, int64_t count, Status* refused) {
  TableSpec spec{.name = "replay"};
  spec.columns = {{.name = "obs", .shape = {4096}}};
  auto table = database->OpenOrCreateTable(spec).value();
  auto writer = table->NewWriter({}).value();
  const std::vector<float> obs(4096, 1.0f);
  for (int64_t i = 0; i < count; ++i) {
    *refused = writer->AppendSteps({{"obs", TensorView::Of<float>(obs, {1, 4096})}}).status();
    if (!refused->ok()) return i;
  }
  return count;
}

int64_t Stored(const std::string& directory) {
  auto database = Database::Open(directory, Small());
  EXPECT_OK(database);
  if (!database.ok()) return -1;
  return static_cast<int64_t>((*database)->OpenTable("replay").value()->StepCount());
}

TEST(DatabaseMovedTest, NeverWritesIntoTheStoreThatTookItsPlace) {
  const testing::TempDir directory;
  const std::string run = directory.path() + "/run";
  const std::string moved = directory.path() + "/moved";
  ASSERT_OK_AND_ASSIGN(auto first, Database::Open(run, Small()));
  Status refused;
  ASSERT_EQ(Append(first.get(), 10, &refused), 10) << refused;
  std::filesystem::rename(run, moved);
  ASSERT_OK_AND_ASSIGN(auto second, Database::Open(run, Small()));
  ASSERT_EQ(Append(second.get(), 1000, &refused), 1000) << refused;
  // Its spare segments are used up soon.
  const int64_t acknowledged = 10 + Append(first.get(), 1000, &refused);
  EXPECT_LT(acknowledged, 1010);
  EXPECT_STATUS(kFailedPrecondition, refused, "is not the directory that was opened any more");
  EXPECT_OK(first->Close());
  EXPECT_OK(second->Close());
  first.reset();
  second.reset();
  EXPECT_EQ(Stored(moved), acknowledged);
  EXPECT_EQ(Stored(run), 1000);
}

}  // namespace
}  // namespace geardb
