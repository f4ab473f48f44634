// geardb stats, and --filter.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/geardb/cli_fixture.h"
#include "tools/geardb/command.h"

namespace geardb {
namespace {

using testing::CliRun;
using testing::Json;
using testing::LinesWith;
using Keys = std::vector<std::string>;

class StatsCommandTest : public testing::CliTest {};

TEST_F(StatsCommandTest, ColumnsAreSummed) {
  const Json json = RunJson("stats", {"arcade"});
  EXPECT_EQ(json.keys(), (Keys{"table", "filter", "trajectories", "columns"}));
  EXPECT_EQ(json["filter"].text(), "true");
  EXPECT_EQ(json["trajectories"].integer(), 6);
  std::vector<std::string> names;
  for (const Json& one : json["columns"].items()) names.push_back(one["column"].text());
  EXPECT_EQ(names, (Keys{"half", "brain", "alive", "reward", "count", "level", "length"}));
  const Json& half = json["columns"][0];
  EXPECT_EQ(half.keys(), (Keys{"column", "count", "nans", "mean", "std", "min", "max"}));
  // Steps: 6, 3, 7 (rows 5…11), 3, 2 and 4; row k of each holds k / 2.
  EXPECT_EQ(half["count"].integer(), 25);
  EXPECT_EQ(half["mean"].number(), (15 + 3 + 56 + 3 + 1 + 6) / 2.0 / 25);
  EXPECT_EQ(half["max"].number(), 5.5);
  const Json& length = json["columns"][6];
  EXPECT_EQ(length["count"].integer(), 6);
  EXPECT_EQ(length["min"].number(), 2);
  EXPECT_EQ(length["max"].number(), 7);
}

TEST_F(StatsCommandTest, AFilterChooses) {
  const Json json = RunJson("stats", {"arcade", "--filter", "end==terminated", "--columns",
                                      "length,weights[1],brain", "--bins", "2"});
  EXPECT_EQ(json["filter"].text(), "end == terminated");
  EXPECT_EQ(json["trajectories"].integer(), 2);
  const Json& length = json["columns"][0];
  EXPECT_EQ(length["histogram"].keys(), (Keys{"edges", "counts", "below", "above"}));
  EXPECT_EQ(length["histogram"]["edges"][1].number(), 6.5);
  EXPECT_EQ(length["histogram"]["counts"][0].integer(), 1);
  EXPECT_EQ(length["histogram"]["counts"][1].integer(), 1);
  EXPECT_EQ(json["columns"][1]["min"].number(), -1);
  EXPECT_EQ(json["columns"][2]["count"].integer(), 13);
  EXPECT_EQ(json["columns"][2]["min"].number(), -11);
}

TEST_F(StatsCommandTest, PeopleSeeATable) {
  const CliRun run = Run("stats", {"arcade", "--columns", "reward", "--bins", "3"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(LinesWith(run.out, "6 trajectories"), 1u);
  EXPECT_EQ(LinesWith(run.out, "std"), 1u);
  EXPECT_EQ(LinesWith(run.out, "1.375"), 2u);  // The largest, and the last edge.
  const CliRun none = Run("stats", {"arcade", "--filter", "length > 1000", "--bins", "3"});
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_EQ(LinesWith(none.out, "0 trajectories"), 1u);
}

TEST_F(StatsCommandTest, HeadTakesAFilterToo) {
  const Json json =
      RunJson("head", {"arcade", "--filter", "state == orphaned && length > 2", "-n", "9"});
  EXPECT_EQ(json.keys(), (Keys{"table", "filter", "trajectories", "shown"}));
  EXPECT_EQ(json["trajectories"].integer(), 1);
  EXPECT_EQ(json["shown"][0]["id"].integer(), static_cast<int64_t>(sample().arcade.resumed));
  const CliRun both = Run("head", {"arcade", "--filter", "true", "--id", "1"});
  EXPECT_EQ(both.code, cli::kExitUsage);
}

TEST_F(StatsCommandTest, ColumnsOfAnyLengthAreSummedOnlyWhereAskedFor) {
  const std::string store = Scratch("any_length");
  {
    DatabaseOptions options = testing::SampleOptions();
    options.ring_bytes = options.segment_bytes = uint64_t{1} << 20;
    ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(store, options));
    TableSpec spec{.name = "t"};
    spec.columns = {{.name = "x"},
                    {.name = "text", .dtype = DType::kU8, .kind = ColumnKind::kRagged},
                    {.name = "level", .dtype = DType::kI32, .kind = ColumnKind::kPerTrajectory},
                    {.name = "prompt", .dtype = DType::kU8, .kind = ColumnKind::kBlob},
                    {.name = "wide", .shape = {100}, .kind = ColumnKind::kPerTrajectory}};
    ASSERT_OK_AND_ASSIGN(const auto table, database->CreateTable(spec));
    ASSERT_OK_AND_ASSIGN(const auto writer, table->NewWriter({}));
    ASSERT_OK(writer->Append(
        {{"x", TensorView::Scalar(2.5F)}, {"text", TensorView("ab", DType::kU8, {2})}}));
    ASSERT_OK(database->Close());
  }
  const CliRun run = testing::RunCli({"stats", store, "--json"});
  EXPECT_EQ(run.code, 0) << run.err;
  const auto json = Json::Parse(run.out);
  ASSERT_TRUE(json.has_value()) << run.out;
  Keys names;
  for (const Json& one : (*json)["columns"].items()) names.push_back(one["column"].text());
  EXPECT_EQ(names, (Keys{"x", "level", "length"}));
  EXPECT_EQ((*json)["columns"][0]["mean"].number(), 2.5);
  const CliRun text = testing::RunCli({"stats", store, "--columns", "text", "--json"});
  EXPECT_EQ(text.code, 0) << text.err;
  const auto asked = Json::Parse(text.out);
  ASSERT_TRUE(asked.has_value()) << text.out;
  EXPECT_EQ((*asked)["columns"][0]["mean"].number(), ('a' + 'b') / 2.0);
  const CliRun wide = testing::RunCli({"stats", store, "--columns", "wide"});
  EXPECT_EQ(wide.code, cli::kExitUsage);
  EXPECT_NE(wide.err.find("wide is no scalar"), std::string::npos) << wide.err;
}

TEST_F(StatsCommandTest, WhatIsWrongIsNamed) {
  const CliRun text = Run("stats", {"arcade", "--filter", "length >> 3"});
  EXPECT_EQ(text.code, cli::kExitUsage);
  EXPECT_NE(text.err.find("character 9 ('>')"), std::string::npos) << text.err;
  const CliRun column = Run("stats", {"arcade", "--columns", "nothing"});
  EXPECT_EQ(column.code, cli::kExitDamage);
  EXPECT_NE(column.err.find("no column 'nothing'"), std::string::npos) << column.err;
  const CliRun table = Run("stats");
  EXPECT_EQ(table.code, cli::kExitUsage);
  EXPECT_NE(table.err.find("which table?"), std::string::npos) << table.err;
}

}  // namespace
}  // namespace geardb
