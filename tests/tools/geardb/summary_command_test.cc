// geardb info.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/database.h"
#include "tests/tools/geardb/cli_fixture.h"
#include "tools/geardb/words.h"

namespace geardb {
namespace {

using testing::CliRun;
using testing::Json;
using Keys = std::vector<std::string>;

class SummaryCommandTest : public testing::CliTest {};

/// The item of an array of objects that has this name.
const Json& Named(const Json& array, const std::string& name) {
  for (const Json& item : array.items()) {
    if (item["name"].text() == name) return item;
  }
  ADD_FAILURE() << "nothing is called " << name;
  static const Json kNone;
  return kNone;
}

TEST_F(SummaryCommandTest, KeysOfJsonAreStable) {
  const Json json = RunJson("info");
  EXPECT_EQ(json.keys(), (Keys{"directory", "running", "format", "uuid", "term", "open_count",
                               "log", "cold", "activity", "recovery", "tables", "tags"}));
  EXPECT_EQ(json["log"].keys(),
            (Keys{"start", "end", "segment_bytes", "segment_files", "ring_bytes", "synced",
                  "lag_bytes", "pages_from", "released", "segments_live", "segments_free", "image",
                  "cleaner_lag_bytes"}));
  EXPECT_EQ(json["cold"].keys(),
            (Keys{"disk_bytes", "live_bytes", "space_amplification", "reserve_bytes"}));
  EXPECT_EQ(json["activity"].keys(), (Keys{"known", "note", "opening", "since", "opened_us",
                                           "written_us", "last", "total", "budgets"}));
  EXPECT_EQ(json["recovery"].keys(),
            (Keys{"records", "bytes", "ring_records", "orphaned", "damaged_pages",
                  "damaged_priorities", "damaged_tags", "clean", "seconds", "note", "damage"}));
  EXPECT_EQ(json["tags"][0].keys(), (Keys{"name", "lsn", "created_us", "blob_bytes", "damaged"}));
}

TEST_F(SummaryCommandTest, KeysOfATablesJsonAreStable) {
  const Json json = RunJson("info");
  const Json& table = json["tables"][0];
  EXPECT_EQ(table.keys(), (Keys{"name",
                                "id",
                                "final_row",
                                "stream",
                                "steps_per_page",
                                "trajectories_max",
                                "steps_max",
                                "bytes_max",
                                "ttl_ms",
                                "orphan_timeout_ms",
                                "remover",
                                "remover_priority_table",
                                "remover_seed",
                                "columns",
                                "groups",
                                "steps",
                                "trajectories",
                                "open",
                                "closed",
                                "orphaned",
                                "pages",
                                "frame_bytes",
                                "row_bytes",
                                "fill",
                                "frame_bytes_per_row_byte",
                                "places",
                                "priority_tables"}));
  EXPECT_EQ(table["places"][0].keys(), (Keys{"group", "frame_bytes", "pages", "framed", "in_log",
                                             "in_cold", "in_both", "only_framed"}));
  EXPECT_EQ(table["columns"][0].keys(), (Keys{"name", "dtype", "shape", "kind", "in_final_row",
                                              "group", "default", "compression"}));
  const Keys priority_keys = {"name",
                              "item",
                              "selector",
                              "alpha",
                              "initial",
                              "seed",
                              "items",
                              "drawable_items",
                              "draws",
                              "max_priority",
                              "scale_shift",
                              "limits",
                              "limiter",
                              "max_times_sampled",
                              "remove_when_exhausted",
                              "inserts",
                              "samples",
                              "deletes",
                              "deleted_unsampled",
                              "exhausted"};
  EXPECT_EQ(Named(table["priority_tables"], "episodes").keys(), priority_keys);
  EXPECT_EQ(Named(table["priority_tables"], "episodes")["limiter"].keys(),
            (Keys{"kind", "min_size", "samples_per_insert", "error_buffer", "capacity"}));
  Keys window_keys = priority_keys;
  window_keys.insert(window_keys.begin() + 2, "window");
  const Json& per = Named(table["priority_tables"], "per");
  EXPECT_EQ(per.keys(), window_keys);
  EXPECT_EQ(per["window"].keys(), (Keys{"before", "length", "after", "stride", "stride_from_end",
                                        "left", "right", "cross_ends"}));
}

TEST_F(SummaryCommandTest, StandingFiltersAreShown) {
  const std::string directory = Scratch("filtered");
  {
    TableSpec spec{.name = "runs"};
    spec.columns = {{.name = "reward"}};
    spec.priority_tables = {{.name = "all"}, {.name = "long", .filter = "length > 3"}};
    ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(directory, {}));
    ASSERT_OK_AND_ASSIGN(const auto table, database->CreateTable(spec));
    ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
    for (const size_t steps : {2u, 5u, 3u}) {
      const std::vector<float> rewards(steps, 1);
      ASSERT_OK(writer->AppendSteps({{"reward", TensorView::Of<float>(rewards)}},
                                    {.end = End::kTerminated}));
    }
  }
  const CliRun text = testing::RunCli({"info", directory});
  EXPECT_EQ(testing::LinesWith(text.out, "long hides what fails length > 3: 5 items"), 1u)
      << text.out;
  const CliRun run = testing::RunCli({"info", directory, "--json"});
  const Json json = *testing::Json::Parse(run.out);
  const Json& table = json["tables"][0];
  EXPECT_FALSE(Named(table["priority_tables"], "all").has("filter"));
  const Json& filter = Named(table["priority_tables"], "long")["filter"];
  EXPECT_EQ(filter.keys(), (Keys{"text", "action", "items"}));
  EXPECT_EQ(filter["text"].text(), "length > 3");
  EXPECT_EQ(filter["action"].text(), "hide");
  EXPECT_EQ(filter["items"].integer(), 5);
}

TEST_F(SummaryCommandTest, DrawGroupsAreShown) {
  const std::string directory = Scratch("grouped");
  {
    TableSpec spec{.name = "runs"};
    spec.columns = {{.name = "reward"},
                    {.name = "prompt", .dtype = DType::kI64, .kind = ColumnKind::kPerTrajectory}};
    spec.priority_tables = {
        {.name = "prompts",
         .item = ItemKind::kGroup,
         .group = {.key = "prompt", .count = 3, .at_least = 2, .deadline_ms = 3'600'000}}};
    ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(directory, {}));
    ASSERT_OK_AND_ASSIGN(const auto table, database->CreateTable(spec));
    ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
    const float reward = 1;
    for (const int64_t prompt : {7, 7, 8, 7, 9, 9}) {
      const ColumnValue key[] = {{"prompt", TensorView::Scalar(prompt)}};
      ASSERT_OK(writer->Append({{"reward", TensorView::Scalar(reward)}},
                               {.end = End::kTerminated, .trajectory = key}));
    }
    ASSERT_OK(table->priority_table("prompts")->SealGroup(8));
  }
  const CliRun text = testing::RunCli({"info", directory});
  const char* const items = "groups of 3 by prompt, ready with 2 after 3600000 ms";
  EXPECT_EQ(testing::LinesWith(text.out, items), 1u) << text.out;
  EXPECT_EQ(testing::LinesWith(text.out,
                               "prompts: 2 groups ready (1 complete, 1 sealed by hand, 0 by "
                               "deadline, 0 still taking members), 1 waiting; 6 members"),
            1u)
      << text.out;
  const CliRun run = testing::RunCli({"info", directory, "--json"});
  const Json json = *testing::Json::Parse(run.out);
  const Json& table = Named(json["tables"][0]["priority_tables"], "prompts");
  EXPECT_EQ(table["item"].text(), "group");
  const Json& group = table["group"];
  EXPECT_EQ(group.keys(),
            (Keys{"key", "count", "at_least", "deadline_ms", "waiting", "ready", "members",
                  "taking", "complete", "sealed_by_hand", "sealed_by_deadline"}));
  EXPECT_EQ(group["key"].text(), "prompt");
  EXPECT_EQ(group["count"].integer(), 3);
  EXPECT_EQ(group["at_least"].integer(), 2);
  EXPECT_EQ(group["waiting"].integer(), 1);
  EXPECT_EQ(group["ready"].integer(), 2);
  EXPECT_EQ(group["members"].integer(), 6);
  EXPECT_EQ(group["sealed_by_hand"].integer(), 1);
  const CliRun log = testing::RunCli({"log", directory, "-n", "0"});
  EXPECT_EQ(testing::LinesWith(log.out, "seal_groups 'runs'/'prompts': 1 group by hand"), 1u)
      << log.out;
}

TEST_F(SummaryCommandTest, CountsAreThoseOfTheStoresOwnStats) {
  const Json json = RunJson("info");
  ASSERT_EQ(json["tables"].items().size(), sample().tables.size());
  for (const Json& table : json["tables"].items()) {
    const std::string name = table["name"].text();
    const TableStats& stats = sample().tables.at(name);
    EXPECT_EQ(table["steps"].integer(), static_cast<int64_t>(stats.steps)) << name;
    EXPECT_EQ(table["trajectories"].integer(), static_cast<int64_t>(stats.trajectories)) << name;
    EXPECT_EQ(table["pages"].integer(), static_cast<int64_t>(stats.pages)) << name;
    EXPECT_EQ(table["frame_bytes"].integer(), static_cast<int64_t>(stats.frame_bytes)) << name;
    EXPECT_EQ(table["row_bytes"].integer(), static_cast<int64_t>(stats.row_bytes)) << name;
    EXPECT_EQ(table["open"].integer() + table["closed"].integer() + table["orphaned"].integer(),
              table["trajectories"].integer());
    for (const Json& priorities : table["priority_tables"].items()) {
      const std::string key = name + "/" + priorities["name"].text();
      const PriorityTableStats& expected = sample().priority_tables.at(key);
      EXPECT_EQ(priorities["items"].integer(), static_cast<int64_t>(expected.items)) << key;
      EXPECT_EQ(priorities["drawable_items"].integer(),
                static_cast<int64_t>(expected.drawable_items))
          << key;
      EXPECT_EQ(priorities["draws"].integer(), static_cast<int64_t>(expected.draws)) << key;
      EXPECT_EQ(static_cast<float>(priorities["max_priority"].number()), expected.max_priority);
      EXPECT_EQ(priorities["scale_shift"].integer(), expected.scale_shift) << key;
    }
  }
}

TEST_F(SummaryCommandTest, SchemasAreThoseThatWereStored) {
  const Json json = RunJson("info");
  EXPECT_EQ(json["directory"].text(), store());
  EXPECT_EQ(json["open_count"].integer(), 2);
  EXPECT_EQ(json["uuid"].text().size(), 32U);
  const Json& arcade = Named(json["tables"], "arcade");
  EXPECT_TRUE(arcade["final_row"].truth());
  EXPECT_FALSE(arcade["stream"].truth());
  EXPECT_EQ(arcade["trajectories_max"].integer(), 1000);
  EXPECT_EQ(arcade["orphaned"].integer(), 2);
  const Json& frame = Named(arcade["columns"], "frame");
  EXPECT_EQ(frame["dtype"].text(), "u8");
  EXPECT_EQ(frame["shape"][1].integer(), 3);
  EXPECT_TRUE(frame["in_final_row"].truth());
  EXPECT_EQ(frame["compression"].text(), "xor_delta");
  EXPECT_EQ(Named(arcade["columns"], "half")["compression"].text(), "lz4");
  EXPECT_EQ(Named(arcade["columns"], "weights")["kind"].text(), "per_trajectory");
  const Json& walkers = Named(json["tables"], "walkers");
  EXPECT_TRUE(walkers["stream"].truth());
  const Json& windows = Named(walkers["priority_tables"], "windows");
  EXPECT_EQ(windows["window"]["stride"].integer(), 2);
  EXPECT_EQ(windows["window"]["left"].text(), "pad");
  EXPECT_EQ(windows["selector"].text(), "uniform");
}

TEST_F(SummaryCommandTest, TimesLimitsAndGroupsAreThoseOfTheSchema) {
  TableSpec spec;
  spec.name = "timed";
  spec.groups = {{.name = "labels", .late = true}, {.name = "seen", .is_volatile = true}};
  spec.columns = {{.name = "x"},
                  {.name = "label", .group = "labels"},
                  {.name = "score", .group = "labels"},
                  {.name = "views", .group = "seen"}};
  spec.ttl_ms = 90'000;
  spec.orphan_timeout_ms = 1500;
  spec.priority_tables = {{.name = "ratio"}, {.name = "queue"}, {.name = "plain"}};
  spec.priority_tables[0].limiter = {
      .kind = LimiterKind::kRatio, .min_size = 7, .samples_per_insert = 2.5, .error_buffer = 40};
  spec.priority_tables[0].max_times_sampled = 9;
  spec.priority_tables[1].selector = SelectorKind::kFifo;
  spec.priority_tables[1].limiter = {.kind = LimiterKind::kQueue, .capacity = 12};
  spec.priority_tables[1].max_times_sampled = 1;
  {
    auto database = Database::Open(store(), testing::SampleOptions());
    ASSERT_OK(database);
    ASSERT_OK((*database)->CreateTable(spec));
    ASSERT_OK((*database)->Close());
  }
  const Json json = RunJson("info");
  const Json& timed = Named(json["tables"], "timed");
  EXPECT_EQ(timed["ttl_ms"].integer(), 90'000);
  EXPECT_EQ(timed["orphan_timeout_ms"].integer(), 1500);
  EXPECT_EQ(timed["groups"].items().size(), 2U);
  EXPECT_TRUE(Named(timed["groups"], "labels")["late"].truth());
  EXPECT_TRUE(Named(timed["groups"], "seen")["volatile"].truth());
  EXPECT_EQ(timed["places"].items().size(), 3U);
  const Json& ratio = Named(timed["priority_tables"], "ratio");
  EXPECT_EQ(ratio["limiter"]["kind"].text(), "ratio");
  EXPECT_EQ(ratio["limiter"]["min_size"].integer(), 7);
  EXPECT_EQ(ratio["limiter"]["samples_per_insert"].number(), 2.5);
  EXPECT_EQ(ratio["limiter"]["error_buffer"].number(), 40);
  EXPECT_TRUE(ratio["limiter"]["capacity"].is_null());
  EXPECT_EQ(ratio["max_times_sampled"].integer(), 9);
  EXPECT_FALSE(ratio["remove_when_exhausted"].truth());
  const Json& queue = Named(timed["priority_tables"], "queue");
  EXPECT_EQ(queue["limiter"]["kind"].text(), "queue");
  EXPECT_EQ(queue["limiter"]["capacity"].integer(), 12);
  EXPECT_TRUE(queue["limiter"]["min_size"].is_null());
  EXPECT_TRUE(queue["remove_when_exhausted"].truth());
  const Json& plain = Named(timed["priority_tables"], "plain");
  EXPECT_EQ(plain["limiter"]["kind"].text(), "min_size");
  EXPECT_EQ(plain["limiter"]["min_size"].integer(), 1);
  const std::string text = testing::RunCli({"info", store()}).out;
  for (const char* part :
       {"  time      closed trajectories leave after 90.0 s, orphans are cut after 1.5 s",
        "  groups    labels, late: 2 columns; seen, volatile: 1 column", "queue of capacity 12"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(SummaryCommandTest, SelectorsHaveNamesOfTheirOwn) {
  const std::vector<std::string_view> names = {
      "uniform",  "prioritized",         "fifo", "lifo", "min_heap",
      "max_heap", "without_replacement", "epoch"};
  ASSERT_EQ(names.size(), static_cast<size_t>(kSelectorKindLast) + 1);
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(cli::Word(static_cast<SelectorKind>(i)), names[i]);
}

TEST_F(SummaryCommandTest, RemoversHaveNamesOfTheirOwn) {
  const std::vector<std::string_view> names = {"none",    "fifo",     "lifo",
                                               "uniform", "min_heap", "max_heap"};
  ASSERT_EQ(names.size(), static_cast<size_t>(kRemoverLast) + 1);
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(cli::Word(static_cast<Remover>(i)), names[i]);
  }
}

TEST_F(SummaryCommandTest, AnEpochSaysWhereItStands) {
  const Json json = RunJson("info");
  const Json& walkers = Named(json["tables"], "walkers");
  const Json& epochs = Named(walkers["priority_tables"], "epochs");
  EXPECT_EQ(epochs["selector"].text(), "epoch");
  EXPECT_EQ(epochs["epoch"].keys(),
            (Keys{"epoch", "pass", "passes", "items", "remaining", "exhausted", "remove_covered"}));
  EXPECT_EQ(epochs["epoch"]["epoch"].integer(), 1);
  EXPECT_EQ(epochs["epoch"]["pass"].integer(), 1);
  EXPECT_EQ(epochs["epoch"]["passes"].integer(), 2);
  const int64_t items = epochs["epoch"]["items"].integer();
  EXPECT_EQ(epochs["epoch"]["remaining"].integer(), items - 3);
  EXPECT_FALSE(epochs["epoch"]["exhausted"].truth());
  const std::string text = testing::RunCli({"info", store()}).out;
  EXPECT_NE(text.find("epoch 1, pass 1 of 2, "), std::string::npos) << text;
}

TEST_F(SummaryCommandTest, TagsComeWithAllBytesOfTheirNames) {
  const Json json = RunJson("info");
  ASSERT_EQ(json["tags"].items().size(), 2U);
  EXPECT_EQ(json["tags"][0]["name"].text(), "step-10");
  EXPECT_EQ(json["tags"][0]["blob_bytes"].integer(), 3);
  // The one byte that is no UTF-8 is U+FFFD.
  std::string odd = sample().odd_tag;
  odd.replace(odd.find('\xFF'), 1, "\xEF\xBF\xBD");
  EXPECT_EQ(json["tags"][1]["name"].text(), odd);
  EXPECT_EQ(json["tags"][1]["blob_bytes"].integer(), 70'000);
}

TEST_F(SummaryCommandTest, ADirectoryOfAnyNameGivesJson) {
  const std::string directory = Scratch("odd \" \\ \n \x1B \xFF");
  std::filesystem::rename(store(), directory);
  const auto json = Json::Parse(testing::RunCli({"info", directory, "--json"}).out);
  ASSERT_TRUE(json.has_value());
  EXPECT_TRUE((*json)["directory"].text().ends_with("odd \" \\ \n \x1B \xEF\xBF\xBD"));
  EXPECT_TRUE(Json::Parse(testing::RunCli({"verify", directory, "--json"}).out).has_value());
  const std::string text = testing::RunCli({"info", directory}).out;
  EXPECT_NE(text.find("odd \" \\ ? ? ?\n"), std::string::npos) << text;
  const auto failed = Json::Parse(testing::RunCli({"head", directory, "nope", "--json"}).out);
  ASSERT_TRUE(failed.has_value());
  EXPECT_TRUE(failed->has("error"));
}

TEST_F(SummaryCommandTest, PeopleReadWhatThereIs) {
  const CliRun run = Run("info");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
  for (const char* part :
       {"opened 2 times for writing", "closed cleanly",
        "table arcade (number 1): 25 steps in 6 trajectories (0 open, 4 closed, 2 orphaned)",
        "at most 1,000 trajectories, then the oldest leave", "episodes with a final row",
        "table walkers (number 3): 400 steps in 1 trajectory", "streams without a final row",
        "\n  frame    u8     [2, 3]  step        yes                           xor_delta\n",
        "windows {1, 2, 1}, stride 2, left pad, "
        "right require",
        "whole trajectories", "quote\" back\\slash?ä"}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << part << "\n" << run.out;
  }
  EXPECT_EQ(run.out.find("DAMAGE"), std::string::npos);
}

TEST_F(SummaryCommandTest, AnEmptyDatabaseIsNotCalledDead) {
  testing::MakeEmptyStore(Scratch("empty"));
  const CliRun run = testing::RunCli({"info", Scratch("empty")});
  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.out.find("nothing was ever logged"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("died"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace geardb
