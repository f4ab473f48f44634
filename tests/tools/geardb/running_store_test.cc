// `geardb info` of a database that another process has open.
#include "tools/geardb/running_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/database.h"
#include "tests/engine/internal/live_core.h"
#include "tests/tools/geardb/cli_fixture.h"

namespace geardb {
namespace {

using testing::CliRun;
using testing::Json;
using testing::RunCli;

class RunningStoreTest : public testing::CliTest {
 protected:
  Json Info() {
    const CliRun run = RunCli({"info", store(), "--json"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    auto json = Json::Parse(run.out);
    EXPECT_TRUE(json.has_value()) << run.out;
    return json ? std::move(*json) : Json();
  }
};

TEST_F(RunningStoreTest, ItsOwnersLogAndWaitsAreShown) {
  const int64_t opened = RunJson("info")["open_count"].integer() + 1;
  ASSERT_OK_AND_ASSIGN(const auto owner, Database::Open(store(), testing::SampleOptions()));
  ASSERT_OK(owner->WriteTag("seen while it runs", {}));
  ASSERT_OK(testing::CoreOf(*owner)->activity->Write());  // As its thread does now and then.
  const Json json = Info();
  EXPECT_EQ(json["activity"]["opening"].integer(), opened);
  EXPECT_EQ(json["log"]["end"].integer(), static_cast<int64_t>(owner->Stats().log_published));
  EXPECT_EQ(json.keys(), (std::vector<std::string>{"directory", "running", "format", "uuid", "term",
                                                   "open_count", "log", "cold", "activity"}));
  EXPECT_TRUE(json["running"].truth());
  EXPECT_EQ(json["open_count"].integer(), opened);
  EXPECT_EQ(json["log"]["lag_bytes"].integer(), 0);
  EXPECT_GT(json["log"]["segments_live"].integer(), 0);
  EXPECT_GT(json["activity"]["last"]["log_records"].integer(), 0);
  const Json& frames = json["activity"]["budgets"]["frames"];
  EXPECT_EQ(frames["limit_bytes"].integer(), int64_t{64} << 20);
  EXPECT_GT(frames["used_bytes"].integer(), 0);

  const CliRun run = RunCli({"info", store()});
  EXPECT_EQ(run.code, 0) << run.err;
  const std::vector<std::string> parts = {"is held by process " + std::to_string(::getpid()),
                                          "  segments  ", "  lag       ", "waits for limiters",
                                          "memory    frames "};
  for (const std::string& part : parts) {
    EXPECT_NE(run.out.find(part), std::string::npos) << part << "\n" << run.out;
  }
  ASSERT_OK(owner->Close());
  EXPECT_FALSE(RunJson("info")["running"].truth());
}

TEST_F(RunningStoreTest, AnOwnerThatHasWrittenNothingIsNamedAllTheSame) {
  std::filesystem::remove(File("COUNTERS"));
  const auto owner = Database::Open(store(), testing::SampleOptions());
  ASSERT_OK(owner);
  const Json json = Info();
  EXPECT_TRUE(json["running"].truth());
  EXPECT_FALSE(json["activity"]["known"].truth());
  const CliRun run = RunCli({"info", store()});
  EXPECT_NE(run.out.find("is held by process"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("what was done is unknown"), std::string::npos) << run.out;
  ASSERT_OK((*owner)->Close());
}

}  // namespace
}  // namespace geardb
