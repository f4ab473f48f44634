// `geardb info` of a database that another process has open.
#include "tools/geardb/running_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
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
  static void ExpectSame(const std::vector<std::string>& fields, const Json& now, const Json& was) {
    for (const std::string& field : fields) {
      EXPECT_EQ(now[field].digits(), was[field].digits()) << field;
    }
  }
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
                                                   "open_count", "log", "cold", "activity",
                                                   "tables_seen_us", "tables_left_out", "tables"}));
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

TEST_F(RunningStoreTest, ItsTablesAndWhereTheirPagesAreAreShown) {
  const Json closed = RunJson("info");
  ASSERT_OK_AND_ASSIGN(const auto owner, Database::Open(store(), testing::SampleOptions()));
  ASSERT_OK(testing::CoreOf(*owner)->activity->Write());
  const Json json = Info();
  EXPECT_EQ(json["tables_left_out"].integer(), 0);
  EXPECT_GT(json["tables_seen_us"].integer(), json["activity"]["opened_us"].integer());
  const auto& tables = json["tables"].items();
  ASSERT_EQ(tables.size(), closed["tables"].items().size());
  ASSERT_GT(tables.size(), 0u);
  for (size_t t = 0; t < tables.size(); ++t) {
    const Json& was = closed["tables"][t];
    EXPECT_EQ(tables[t]["name"].text(), was["name"].text());
    ExpectSame({"id", "steps", "trajectories", "open", "pages", "frame_bytes", "row_bytes"},
               tables[t], was);
    const auto& places = tables[t]["places"].items();
    ASSERT_EQ(places.size(), was["places"].items().size());
    for (size_t g = 0; g < places.size(); ++g) {
      ExpectSame({"frame_bytes", "pages", "in_log", "in_cold", "in_both"}, places[g],
                 was["places"][g]);
    }
    const auto& priorities = tables[t]["priority_tables"].items();
    ASSERT_EQ(priorities.size(), was["priority_tables"].items().size());
    for (size_t p = 0; p < priorities.size(); ++p) {
      EXPECT_EQ(priorities[p]["name"].text(), was["priority_tables"][p]["name"].text());
      ExpectSame({"items", "drawable_items", "draws"}, priorities[p], was["priority_tables"][p]);
    }
  }
  const CliRun run = RunCli({"info", store()});
  for (const char* part : {"\ntable ", "priority table", "pages of group", "in the cold store"}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << part << "\n" << run.out;
  }
  ASSERT_OK(owner->Close());
}

TEST_F(RunningStoreTest, WhoWaitsIsShownWithTheReason) {
  ASSERT_OK_AND_ASSIGN(const auto owner, Database::Open(store(), testing::SampleOptions()));
  TableSpec spec{.name = "waits", .columns = {{.name = "reward"}}};
  spec.priority_tables = {{.name = "none", .selector = SelectorKind::kUniform}};
  ASSERT_OK_AND_ASSIGN(const auto table, owner->CreateTable(spec));
  ASSERT_OK_AND_ASSIGN(const auto sampler, table->priority_table("none")->NewSampler({.batch = 1}));
  std::thread learner([&] { (void)sampler->Next(); });
  const auto priorities = table->priority_table("none");
  while (priorities->WhyBlocked().samples.waiting == 0) std::this_thread::yield();
  ASSERT_OK(testing::CoreOf(*owner)->activity->Write());
  const CliRun run = RunCli({"info", store()});
  EXPECT_NE(run.out.find("samplers wait: no item can be drawn: it has no items"), std::string::npos)
      << run.out;
  ASSERT_OK(owner->Close());
  learner.join();
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
