// What `geardb info` shows of places and of what was done, in a store that does not fit its
// budgets.
#include "tools/geardb/places.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/tools/geardb/cli_fixture.h"
#include "tests/tools/geardb/large_store.h"

namespace geardb {
namespace {

using testing::Json;

Json InfoOf(const std::string& directory) {
  const testing::CliRun run = testing::RunCli({"info", directory, "--json"});
  EXPECT_EQ(run.code, 0) << run.err;
  auto json = Json::Parse(run.out);
  EXPECT_TRUE(json.has_value()) << run.out;
  return json ? std::move(*json) : Json();
}

TEST(PlacesTest, AStoreThatDidNotFitSaysWhatItsLearnerDid) {
  const testing::TempDir dir;
  const std::string store = dir.File("store");
  const testing::LargeStore made = testing::MakeLargeStore(store);
  const Json json = InfoOf(store);
  const Json& activity = json["activity"];
  EXPECT_TRUE(activity["known"].truth());
  EXPECT_EQ(activity["opening"].integer(), 1);
  EXPECT_EQ(activity["since"].integer(), 1);
  const Json& last = activity["last"];
  EXPECT_EQ(last["frames_dropped"].integer(), static_cast<int64_t>(made.frames.dropped));
  EXPECT_EQ(last["frame_hits"].integer(), static_cast<int64_t>(made.frames.hits));
  EXPECT_EQ(last["frame_misses"].integer(), static_cast<int64_t>(made.frames.misses));
  EXPECT_EQ(last["log_page_reads"].integer(), static_cast<int64_t>(made.stats.log_page_reads));
  EXPECT_EQ(last["cold_page_reads"].integer(), static_cast<int64_t>(made.stats.cold_page_reads));
  EXPECT_EQ(last["cleaner_segments"].integer(), static_cast<int64_t>(made.stats.cleaner.segments));
  for (const char* key : {"frames_dropped", "log_page_reads", "cold_page_reads", "cleaner_passes",
                          "waits_for_frames", "waits_for_pages"}) {
    EXPECT_GT(last[key].integer(), 0) << key;
    EXPECT_EQ(activity["total"][key].integer(), last[key].integer()) << key;
  }
  const Json& places = json["tables"][0]["places"][0];
  EXPECT_EQ(places["pages"].integer(), static_cast<int64_t>(made.pages));
  EXPECT_EQ(places["in_log"].integer() + places["in_cold"].integer(),
            static_cast<int64_t>(made.pages));
  EXPECT_GT(places["in_log"].integer(), 0);
  EXPECT_GT(places["in_cold"].integer(), 0);
  EXPECT_EQ(json["log"]["lag_bytes"].integer(), 0);
  EXPECT_GT(json["log"]["image"].integer(), 0);
  EXPECT_EQ(json["log"]["cleaner_lag_bytes"].integer(),
            json["log"]["end"].integer() - json["log"]["image"].integer());
  EXPECT_GT(json["cold"]["disk_bytes"].integer(), 0);
  EXPECT_GE(json["cold"]["space_amplification"].number(), 1.0);
  const std::string text = testing::RunCli({"info", store}).out;
  for (const char* part : {"frames dropped", "pages read from the cold store", "waits for frames",
                           "in the cold store", "  segments  ", "  lag       ", "  cold      "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(PlacesTest, UnknownCountersAreSaidToBe) {
  const testing::TempDir dir;
  const std::string store = dir.File("store");
  testing::MakeEmptyStore(store);
  testing::WriteBytes(store + "/COUNTERS", "nonsense");
  const Json json = InfoOf(store);
  EXPECT_FALSE(json["activity"]["known"].truth());
  EXPECT_NE(json["activity"]["note"].text(), "");
  const std::string text = testing::RunCli({"info", store}).out;
  EXPECT_NE(text.find("what was done is unknown"), std::string::npos) << text;
}

TEST(PlacesTest, RatesOfNothingAreNone) {
  EXPECT_EQ(cli::HitRate(0, 0), 0.0);
  EXPECT_EQ(cli::HitRate(3, 1), 0.75);
  EXPECT_EQ(cli::SpaceAmplification({}), 1.0);
  EXPECT_EQ(cli::SpaceAmplification({.disk_bytes = 300, .live_bytes = 200}), 1.5);
  std::ostringstream out;
  cli::PrintActivity({.known = true, .since = 2}, &out);
  EXPECT_NE(out.str().find("none asked for"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("openings since 2"), std::string::npos) << out.str();
}

}  // namespace
}  // namespace geardb
