// geardb head.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/geardb/cli_fixture.h"

namespace geardb {
namespace {

using testing::CliRun;
using testing::Json;
using testing::LinesWith;
using Keys = std::vector<std::string>;

class HeadCommandTest : public testing::CliTest {
 protected:
  Json Rows(const std::string& table, TrajectoryId id, const std::string& count = "100") {
    return RunJson("head", {table, "--id", std::to_string(id), "-n", count});
  }
};

TEST_F(HeadCommandTest, KeysOfJsonAreStable) {
  const Json list = RunJson("head", {"arcade"});
  EXPECT_EQ(list.keys(), (Keys{"table", "trajectories", "shown"}));
  EXPECT_EQ(list["shown"][0].keys(), (Keys{"id", "state", "end", "first_row", "rows_end",
                                           "steps_end", "created_us", "times_sampled", "columns"}));
  EXPECT_EQ(list["shown"][0]["columns"].keys(), (Keys{"level", "weights"}));
  const Json rows = Rows("arcade", sample().arcade.terminated);
  EXPECT_EQ(rows.keys(), (Keys{"table", "id", "state", "end", "first_row", "rows_end", "steps_end",
                               "created_us", "times_sampled", "columns", "rows"}));
  EXPECT_EQ(rows["rows"][0].keys(), (Keys{"row", "final", "columns"}));
  EXPECT_EQ(rows["rows"][0]["columns"].keys(),
            (Keys{"frame", "half", "brain", "alive", "reward", "count"}));
}

TEST_F(HeadCommandTest, TrajectoriesHaveTheirStatesAndEnds) {
  const Json json = RunJson("head", {"arcade"});
  EXPECT_EQ(json["trajectories"].integer(), 6);
  std::vector<std::string> seen;
  for (const Json& one : json["shown"].items()) {
    seen.push_back(one["id"].digits() + " " + one["state"].text() + " " + one["end"].text() + " " +
                   one["first_row"].digits() + "-" + one["steps_end"].digits() + "-" +
                   one["rows_end"].digits());
  }
  const testing::ArcadeIds& ids = sample().arcade;
  const auto line = [](TrajectoryId id, const char* rest) {
    return std::to_string(id) + " " + rest;
  };
  EXPECT_EQ(seen,
            (std::vector<std::string>{
                line(ids.terminated, "closed terminated 0-6-7"),
                line(ids.truncated, "closed truncated 0-3-4"),
                line(ids.trimmed, "closed terminated 5-12-13"), line(ids.cut, "closed cut 0-3-4"),
                line(ids.orphaned, "orphaned go 0-2-2"), line(ids.resumed, "orphaned go 0-4-4")}));
  EXPECT_EQ(json["shown"][0]["columns"]["level"].integer(), 7);
  EXPECT_EQ(json["shown"][0]["columns"]["weights"][1].number(), -1);
  EXPECT_EQ(json["shown"][1]["columns"]["level"].integer(), 3);
}

TEST_F(HeadCommandTest, OnlySoManyAreShownFromEachSide) {
  const Json json = RunJson("head", {"arcade", "-n", "2"});
  ASSERT_EQ(json["shown"].items().size(), 4U);
  EXPECT_EQ(json["shown"][2]["id"].integer(), static_cast<int64_t>(sample().arcade.orphaned));
  EXPECT_EQ(RunJson("head", {"arcade", "-n", "3"})["shown"].items().size(), 6U);
  EXPECT_EQ(RunJson("head", {"arcade", "-n", "4"})["shown"].items().size(), 6U);
  EXPECT_EQ(RunJson("head", {"arcade", "-n", "0"})["shown"].items().size(), 0U);
  const CliRun run = Run("head", {"arcade", "-n", "1"});
  EXPECT_NE(run.out.find("the first and last of 6 trajectories; -n shows more"), std::string::npos);
}

TEST_F(HeadCommandTest, RowsOfEveryDTypeAreWhatWasAppended) {
  const Json json = Rows("arcade", sample().arcade.terminated);
  ASSERT_EQ(json["rows"].items().size(), 7U);
  for (int64_t k = 0; k < 6; ++k) {
    const Json& row = json["rows"][static_cast<size_t>(k)];
    EXPECT_EQ(row["row"].integer(), k);
    EXPECT_FALSE(row["final"].truth());
    const Json& columns = row["columns"];
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(columns["frame"][i / 3][i % 3].integer(), k + static_cast<int64_t>(i));
    }
    EXPECT_EQ(columns["half"].number(), static_cast<double>(k) / 2);
    EXPECT_EQ(columns["brain"].number(), static_cast<double>(-k));
    EXPECT_EQ(columns["alive"].truth(), k % 2 == 0);
    EXPECT_EQ(columns["reward"].number(), static_cast<double>(k) / 8);
    EXPECT_EQ(columns["count"].integer(), -k - (int64_t{1} << 40));
  }
  const Json& final_row = json["rows"][6];
  EXPECT_TRUE(final_row["final"].truth());
  EXPECT_EQ(final_row["columns"]["frame"][0][0].integer(), 6);
  EXPECT_EQ(final_row["columns"]["count"].integer(), 0);
}

TEST_F(HeadCommandTest, ATrimmedTrajectoryBeginsWhereItsRowsDo) {
  const Json json = Rows("arcade", sample().arcade.trimmed, "2");
  EXPECT_EQ(json["first_row"].integer(), 5);
  ASSERT_EQ(json["rows"].items().size(), 4U);
  EXPECT_EQ(json["rows"][0]["row"].integer(), 5);
  EXPECT_EQ(json["rows"][0]["columns"]["brain"].number(), -5);
  EXPECT_EQ(json["rows"][2]["row"].integer(), 11);
  EXPECT_EQ(json["rows"][3]["row"].integer(), 12);
  EXPECT_TRUE(json["rows"][3]["final"].truth());
}

TEST_F(HeadCommandTest, AStreamHasTheRowsOfItsWholeLife) {
  const Json json = Rows("walkers", sample().walker, "1");
  EXPECT_EQ(json["steps_end"].integer(), 400);
  ASSERT_EQ(json["rows"].items().size(), 2U);
  EXPECT_EQ(json["rows"][1]["row"].integer(), 399);
  EXPECT_FALSE(json["rows"][1]["final"].truth());
  EXPECT_EQ(json["rows"][1]["columns"]["n"].integer(), 399);
  EXPECT_EQ(json["rows"][1]["columns"]["x"].items().size(), 64U);
  EXPECT_EQ(json["rows"][1]["columns"]["x"][63].integer(), 39963);
}

TEST_F(HeadCommandTest, ResumedRowsStandBehindTheOldOnes) {
  const Json json = Rows("arcade", sample().arcade.resumed);
  ASSERT_EQ(json["rows"].items().size(), 4U);
  EXPECT_EQ(json["rows"][3]["columns"]["brain"].number(), -3);
}

TEST_F(HeadCommandTest, OnlyColumnsThatWereAskedForAreShown) {
  const std::string id = std::to_string(sample().arcade.terminated);
  const Json json = RunJson("head", {"arcade", "--id", id, "--columns", "level,brain,half"});
  EXPECT_EQ(json["columns"].keys(), Keys{"level"});
  EXPECT_EQ(json["rows"][0]["columns"].keys(), (Keys{"brain", "half"}));
  EXPECT_EQ(RunJson("head", {"arcade", "--columns", "brain"})["shown"][0]["columns"].keys(),
            Keys());
}

TEST_F(HeadCommandTest, WhatIsNotThereIsNamedBesideWhatIs) {
  const auto fails = [&](const std::vector<std::string>& words, const std::string& part) {
    const CliRun run = Run("head", words);
    EXPECT_EQ(run.code, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
  };
  fails({"nope"}, "has no table 'nope'; it has arcade, walkers");
  fails({"arcade", "--columns", "half,nope"},
        "table 'arcade' has no column 'nope'; it has frame, half, brain, alive, reward, count, "
        "level, weights");
  const std::string removed = std::to_string(sample().arcade.removed);
  fails({"arcade", "--id", removed}, "table 'arcade' has no trajectory " + removed);
  fails({"arcade", "--id", "0"}, "table 'arcade' has no trajectory 0");
  fails({"arcade", "--id", "18446744073709551615"}, "has no trajectory 18446744073709551615");
}

TEST_F(HeadCommandTest, PeopleSeeAlignedRows) {
  const CliRun run = Run("head", {"arcade", "--id", std::to_string(sample().arcade.trimmed), "-n",
                                  "2", "--columns", "frame,brain,alive,level"});
  EXPECT_EQ(run.code, 0);
  const size_t table = run.out.find("row  ");
  ASSERT_NE(table, std::string::npos) << run.out;
  EXPECT_EQ(run.out.substr(table),
            "row  frame                               brain  alive\n"
            "  5  [5, 6, 7, 8, 9, 10] of [2, 3]          -5  false\n"
            "  6  [6, 7, 8, 9, 10, 11] of [2, 3]         -6  true\n"
            "  …\n"
            " 11  [11, 12, 13, 14, 15, 16] of [2, 3]    -11  false\n"
            " 12  [12, 13, 14, 15, 16, 17] of [2, 3]      0  false  final\n");
  EXPECT_EQ(LinesWith(run.out, "trajectory 3: 7 steps, terminated, begun 20"), 1U) << run.out;
  EXPECT_EQ(LinesWith(run.out, "  level = 0"), 1U) << run.out;
}

}  // namespace
}  // namespace geardb
