// geardb info.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

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
  EXPECT_EQ(json.keys(), (Keys{"directory", "format", "uuid", "term", "open_count", "log",
                               "recovery", "tables", "tags"}));
  EXPECT_EQ(json["log"].keys(),
            (Keys{"start", "end", "segment_bytes", "segment_files", "ring_bytes"}));
  EXPECT_EQ(json["recovery"].keys(),
            (Keys{"records", "bytes", "ring_records", "orphaned", "damaged_pages",
                  "damaged_priorities", "damaged_tags", "clean", "seconds", "note", "damage"}));
  const Json& table = json["tables"][0];
  EXPECT_EQ(table.keys(), (Keys{"name",
                                "id",
                                "final_row",
                                "stream",
                                "steps_per_page",
                                "trajectories_max",
                                "steps_max",
                                "bytes_max",
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
                                "priority_tables"}));
  EXPECT_EQ(table["columns"][0].keys(), (Keys{"name", "dtype", "shape", "kind", "in_final_row",
                                              "group", "default", "compression"}));
  const Keys priority_keys = {"name",     "item",         "selector",    "alpha",
                              "initial",  "seed",         "items",       "drawable_items",
                              "draws",    "max_priority", "scale_shift", "limits",
                              "inserts",  "samples",      "deletes",     "deleted_unsampled",
                              "exhausted"};
  EXPECT_EQ(Named(table["priority_tables"], "episodes").keys(), priority_keys);
  Keys window_keys = priority_keys;
  window_keys.insert(window_keys.begin() + 2, "window");
  const Json& per = Named(table["priority_tables"], "per");
  EXPECT_EQ(per.keys(), window_keys);
  EXPECT_EQ(per["window"].keys(), (Keys{"before", "length", "after", "stride", "stride_from_end",
                                        "left", "right", "cross_ends"}));
  EXPECT_EQ(json["tags"][0].keys(), (Keys{"name", "lsn", "created_us", "blob_bytes", "damaged"}));
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
