// geardb log.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/tools/geardb/cli_fixture.h"

namespace geardb {
namespace {

using testing::CliRun;
using testing::Json;
using testing::LinesWith;
using testing::LoggedRecord;
using Keys = std::vector<std::string>;

class LogCommandTest : public testing::CliTest {};

TEST_F(LogCommandTest, KeysOfJsonAreStable) {
  const Json json = RunJson("log");
  EXPECT_EQ(json.keys(), (Keys{"records", "next_lsn", "log_end", "sealed", "damage"}));
  for (const Json& record : json["records"].items()) {
    EXPECT_EQ(record.keys(),
              (Keys{"lsn", "end", "type", "term", "open", "length", "synced_lsn", "part",
                    "group_lsn", "from_ring", "pieces", "page_damage", "what", "operations"}));
  }
}

TEST_F(LogCommandTest, EveryTypeAndEveryOperationIsShown) {
  const Json json = RunJson("log", {"-n", "0"});
  std::set<std::string> types;
  std::set<std::string> operations;
  for (const Json& record : json["records"].items()) {
    types.insert(record["type"].text());
    EXPECT_NE(record["what"].text(), "");
    for (const Json& operation : record["operations"].items()) {
      operations.insert(operation["name"].text());
      Keys keys = {"name", "table", "table_name", "text"};
      if (operation.has("priority_table")) {
        keys.insert(keys.begin() + 3, {"priority_table", "priority_table_name"});
      }
      if (operation["name"].text() == "tag") keys = {"name", "text"};
      if (operation.has("audit")) keys.push_back("audit");
      EXPECT_EQ(operation.keys(), keys);
      EXPECT_NE(operation["text"].text(), "");
    }
  }
  EXPECT_EQ(types, (std::set<std::string>{"data", "pad", "part", "seal", "segment", "tag"}));
  EXPECT_EQ(operations,
            (std::set<std::string>{"adopt", "append", "begin_epoch", "close", "configure",
                                   "create_priority_table", "create_table", "drop_table",
                                   "hand_over", "ranges", "remove", "rescale", "restart_draws",
                                   "set_all", "set_columns", "set_priorities", "tag"}));
}

TEST_F(LogCommandTest, RecordsFollowOneAnotherToTheEnd) {
  const Json json = RunJson("log", {"-n", "0"});
  const std::vector<LoggedRecord> records = Records();
  ASSERT_EQ(json["records"].items().size(), records.size());
  Lsn end = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    const Json& record = json["records"][i];
    EXPECT_EQ(record["lsn"].integer(), static_cast<int64_t>(end));
    EXPECT_EQ(record["lsn"].integer(), static_cast<int64_t>(records[i].lsn));
    EXPECT_EQ(record["end"].integer(), record["lsn"].integer() + record["length"].integer());
    EXPECT_FALSE(record["page_damage"].truth());
    end = static_cast<Lsn>(record["end"].integer());
  }
  EXPECT_EQ(json["log_end"].integer(), static_cast<int64_t>(end));
  EXPECT_TRUE(json["next_lsn"].is_null());
  EXPECT_TRUE(json["sealed"].truth());
  EXPECT_EQ(json["damage"].text(), "");
  EXPECT_EQ(RunJson("info")["log"]["end"].integer(), static_cast<int64_t>(end));
}

TEST_F(LogCommandTest, RecordsSayWhatTheyDo) {
  const CliRun run = Run("log", {"-n", "0"});
  EXPECT_EQ(run.code, 0);
  for (const char* part :
       {"create_table 1: 'arcade': frame u8, half f16, brain bf16, alive bool, reward f64, count "
        "i64, level u32, weights f32 | create_priority_table 'arcade': 'per'",
        "append 'arcade': trajectory 1 begins in slot 0; rows 0…6 of trajectory 1, terminated with "
        "a final row, closed; 2 new pages; sets 2 column values",
        "remove 'arcade': drops the rows of trajectory 3 before row 5",
        "remove 'arcade': removes trajectory 4",
        "close 'arcade': trajectory 5 ends, cut",
        "set_columns 'arcade': 1 column value",
        "drop_table 'passing': with all it holds",
        "append 'walkers': rows 10…19 of trajectory 1, terminated; 1 new page",
        "part 8 of the group at LSN ",
        "hand_over 'arcade'/'per': draw 0: 8 items from ",
        "restart_draws 'arcade'/'per': seed 99, next draw 20",
        ", of epoch 1, pass 1",
        "hand_over 'arcade'/'per': draw 20: 8 items from ",
        " trajectories; drawn at LSN ",
        " by 'learner?' with seed 99, handed over 20",
        ", and 5 more (--json)",
        "set_priorities 'arcade'/'per': 2 priorities from 0.25 to 4",
        "set_priorities 'arcade'/'per': 4,000 priorities, each its own",
        "set_all 'arcade'/'per': all 21 items to 2",
        "rescale 'arcade'/'per': weights are stored",
        "set_all 'arcade'/'episodes': all 4 items, each its own",
        "create_priority_table 'walkers': 'late'",
        "configure 'walkers'/'late': min size 2, items sampled at most 9 times",
        "tag: 'step-10' with a blob",
        "tag: 'quote\" back\\slash?ä' with a blob in pieces, written 20",
        "fills the segment",
        "begins a segment",
        "everything before it is synced",
        "adopt 'arcade': trajectory 7 has a new writer",
        "append 'arcade': rows 2…3 of trajectory 7",
        "the log ends at LSN "}) {
    EXPECT_GE(LinesWith(run.out, part), 1U) << part;
  }
  EXPECT_EQ(LinesWith(run.out, "DAMAGED"), 0U);
  EXPECT_EQ(LinesWith(run.out, ", sealed"), 1U);
}

TEST_F(LogCommandTest, AuditsHaveAllRowsOfABatch) {
  size_t audits = 0;
  const Json json = RunJson("log", {"-n", "0"});
  for (const Json& record : json["records"].items()) {
    for (const Json& operation : record["operations"].items()) {
      if (!operation.has("audit")) continue;
      ++audits;
      const Json& audit = operation["audit"];
      EXPECT_EQ(audit.keys(),
                (Keys{"sampler", "draw", "seed", "first_draw", "drawn_lsn", "handed_us", "rows"}));
      EXPECT_EQ(audit["sampler"].text(), "learner\x01");
      EXPECT_EQ(audit["draw"].integer(), 20);
      EXPECT_EQ(audit["first_draw"].integer(), 20);
      EXPECT_EQ(audit["seed"].integer(), 99);
      EXPECT_GT(audit["drawn_lsn"].integer(), 0);
      EXPECT_LE(audit["drawn_lsn"].integer(), record["lsn"].integer());
      EXPECT_GT(audit["handed_us"].integer(), 0);
      ASSERT_EQ(audit["rows"].items().size(), 8U);
      for (size_t i = 0; i < 8; ++i) {
        const Json& row = audit["rows"][i];
        EXPECT_EQ(row.keys(),
                  (Keys{"trajectory", "anchor", "priority", "probability", "draw_row"}));
        EXPECT_EQ(row["draw_row"].integer(), static_cast<int64_t>(i));
        EXPECT_EQ(row["priority"].number(), 1);
      }
    }
  }
  EXPECT_EQ(audits, 1U);
}

TEST_F(LogCommandTest, ALongLogIsReadInPieces) {
  std::vector<int64_t> seen;
  std::string from = "0";
  while (true) {
    const Json json = RunJson("log", {"--from", from, "-n", "7"});
    for (const Json& record : json["records"].items()) seen.push_back(record["lsn"].integer());
    if (json["next_lsn"].is_null()) break;
    ASSERT_EQ(json["records"].items().size(), 7U);
    EXPECT_TRUE(json["log_end"].is_null());
    from = json["next_lsn"].digits();
  }
  std::vector<int64_t> all;
  for (const LoggedRecord& record : Records()) all.push_back(static_cast<int64_t>(record.lsn));
  EXPECT_EQ(seen, all);
  EXPECT_EQ(LinesWith(Run("log", {"-n", "7"}).out, "more: --from " + std::to_string(all[7])), 1U);
}

TEST_F(LogCommandTest, FromBetweenTwoRecordsBeginsAtTheNext) {
  const std::vector<LoggedRecord> records = Records();
  const Json json = RunJson("log", {"--from", std::to_string(records[3].lsn + 1), "-n", "1"});
  EXPECT_EQ(json["records"][0]["lsn"].integer(), static_cast<int64_t>(records[4].lsn));
}

TEST_F(LogCommandTest, PartsBeforeFromAreNoDamage) {
  // The odd tag's first part is in the segment before its record.
  const LoggedRecord tag = RecordSaying("tag: 'quote");
  ASSERT_GT(tag.lsn / testing::SampleOptions().segment_bytes,
            tag.pieces[0] / testing::SampleOptions().segment_bytes);
  const Json json = RunJson("log", {"--from", std::to_string(tag.lsn)});
  EXPECT_EQ(json["records"][0]["type"].text(), "tag");
  EXPECT_FALSE(json["records"][0]["page_damage"].truth());
}

TEST_F(LogCommandTest, WhatWasNamedBeforeFromIsShownByNumber) {
  const LoggedRecord append = RecordSaying("append 'arcade': rows 2…3 of trajectory 7");
  const CliRun run = Run("log", {"--from", std::to_string(append.lsn), "-n", "1"});
  EXPECT_EQ(LinesWith(run.out, "append table 1: rows 2…3 of slot 5"), 1U) << run.out;
  const Json json = RunJson("log", {"--from", std::to_string(append.lsn), "-n", "1"});
  EXPECT_TRUE(json["records"][0]["operations"][0]["table_name"].is_null());
  EXPECT_EQ(json["records"][0]["operations"][0]["table"].integer(), 1);
}

TEST_F(LogCommandTest, TheEndIsWhereTheLogEndsNotWhereItIsAskedFor) {
  const std::vector<LoggedRecord> records = Records();
  const Lsn end = records.back().lsn + records.back().length;
  const Json json = RunJson("log", {"--from", std::to_string(end)});
  EXPECT_EQ(json["records"].items().size(), 0U);
  EXPECT_EQ(json["log_end"].integer(), static_cast<int64_t>(end));
  EXPECT_TRUE(json["sealed"].truth());
  for (const Lsn beyond : {end + 1, end + (uint64_t{1} << 40), UINT64_MAX}) {
    const CliRun run = Run("log", {"--from", std::to_string(beyond)});
    EXPECT_EQ(run.code, 2);
    EXPECT_NE(run.err.find("--from " + std::to_string(beyond) + " lies beyond the log in '" +
                           store() + "', which ends at LSN " + std::to_string(end)),
              std::string::npos)
        << run.err;
  }
}

}  // namespace
}  // namespace geardb
