// geardb verify on a whole store, and what every command says of a damaged one.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/tools/geardb/cli_fixture.h"

namespace geardb {
namespace {

namespace fs = std::filesystem;
using testing::CliRun;
using testing::Json;
using testing::LinesWith;
using testing::LoggedRecord;
using Keys = std::vector<std::string>;

class VerifyCommandTest : public testing::CliTest {
 protected:
  /// `geardb verify` finds damage, and one of its problems has this place and text.
  void ExpectProblem(const std::string& place, const std::string& text) {
    const Json json = RunJson("verify", {}, 1);
    EXPECT_FALSE(json["good"].truth());
    bool found = false;
    for (const Json& problem : json["problems"].items()) {
      found |= problem["place"].text() == place &&
               problem["text"].text().find(text) != std::string::npos;
    }
    const CliRun run = Run("verify");
    EXPECT_EQ(run.code, 1);
    EXPECT_TRUE(found) << place << "\n" << run.out;
    EXPECT_GE(LinesWith(run.out, "DAMAGE: "), 1U);
    EXPECT_GE(LinesWith(run.out, place), 1U) << run.out;
    EXPECT_EQ(LinesWith(run.out, place + ": " + place), 0U) << run.out;
    EXPECT_EQ(LinesWith(run.out, "no damage found"), 0U);
  }
  /// One of the losses that `geardb verify` names says this, and none counts as a problem.
  void ExpectLoss(const std::string& text, size_t problems) {
    const Json json = RunJson("verify", {}, 1);
    EXPECT_EQ(json["problems"].items().size(), problems);
    const CliRun run = Run("verify");
    EXPECT_EQ(LinesWith(run.out, "DAMAGE: "), problems) << run.out;
    EXPECT_EQ(LinesWith(run.out, std::to_string(problems) + " problem"), 1U) << run.out;
    EXPECT_EQ(LinesWith(run.out, "by this damage: "), json["losses"].items().size());
    bool found = false;
    for (const Json& loss : json["losses"].items()) {
      found |= loss.text().find(text) != std::string::npos;
    }
    EXPECT_TRUE(found) << text << "\n" << run.out;
  }
  /// The log is damaged in its middle: all commands say where, and show what is before.
  void ExpectDamageAt(Lsn lsn, const std::string& place) {
    const std::string at = "the log is damaged at LSN " + std::to_string(lsn) + ", " + place;
    ExpectProblem(place, at);
    const CliRun summary = Run("info");
    EXPECT_EQ(summary.code, 1);
    EXPECT_EQ(LinesWith(summary.out, "DAMAGE    what follows is the state before it: " + at), 1U)
        << summary.out;
    EXPECT_NE(RunJson("info", {}, 1)["recovery"]["damage"].text().find(at), std::string::npos);
    const CliRun head = Run("head", {"arcade"});
    EXPECT_EQ(head.code, 1);
    EXPECT_NE(head.err.find("DAMAGE: not all is shown: " + at), std::string::npos) << head.err;
    const CliRun log = Run("log", {"-n", "0"});
    EXPECT_EQ(log.code, 1);
    EXPECT_EQ(LinesWith(log.out, "the log cannot be read further: Corruption: " + at), 1U);
    EXPECT_NE(RunJson("log", {"-n", "0"}, 1)["damage"].text().find(at), std::string::npos);
  }
};

TEST_F(VerifyCommandTest, AWholeStoreIsGood) {
  const Json json = RunJson("verify");
  EXPECT_EQ(json.keys(),
            (Keys{"directory", "good",         "problems",  "losses",       "beyond_end",
                  "notes",     "replayed",     "memory",    "newer",        "segment_files",
                  "records",   "ring_records", "log_bytes", "log_end",      "sealed",
                  "pieces",    "piece_bytes",  "tables",    "trajectories", "rows"}));
  EXPECT_EQ(json["losses"].items().size(), 0U);
  EXPECT_TRUE(json["beyond_end"].is_null());
  EXPECT_TRUE(json["good"].truth());
  EXPECT_EQ(json["problems"].items().size(), 0U);
  EXPECT_EQ(json["notes"].items().size(), 0U);
  EXPECT_EQ(json["records"].integer(), static_cast<int64_t>(Records().size()));
  EXPECT_EQ(json["tables"].integer(), 2);
  EXPECT_EQ(json["trajectories"].integer(), 7);
  // With four final rows.
  EXPECT_EQ(json["rows"].integer(), 25 + 400 + 4);
  const CliRun run = Run("verify");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(LinesWith(run.out, "no damage found"), 1U);
}

TEST_F(VerifyCommandTest, AStoreThatNeedsMoreMemoryIsNotDamaged) {
  testing::AddTableOfGroups(store());
  const CliRun run = Run("verify", {"--memory", "2MiB"});
  EXPECT_EQ(run.code, 3) << run.out;
  EXPECT_EQ(LinesWith(run.out, "NOT REPLAYED: the pages of the database in '" + store() +
                                   "' take 4.0 MiB and do not fit --memory 2MiB: give "
                                   "--memory 4MiB: "),
            1U)
      << run.out;
  EXPECT_EQ(LinesWith(run.out, "DAMAGE"), 0U) << run.out;
  EXPECT_EQ(LinesWith(run.out, "no damage found in what needs no replay"), 1U) << run.out;
  EXPECT_EQ(Run("verify", {"--memory", "4MiB"}).code, 0);
  const Json json = RunJson("verify", {"--memory", "2MiB"}, 3);
  EXPECT_FALSE(json["good"].truth());
  EXPECT_FALSE(json["replayed"].truth());
  EXPECT_NE(json["memory"].text().find("give --memory 4MiB"), std::string::npos);
  EXPECT_EQ(json["problems"].items().size(), 0U);
  EXPECT_EQ(json["records"].integer(), static_cast<int64_t>(Records().size()));
}

TEST_F(VerifyCommandTest, DamageIsFoundWithoutTheMemoryForAReplay) {
  testing::AddTableOfGroups(store());
  const LoggedRecord record = RecordSaying("append 'walkers': rows 40…49");
  Flip(record.pieces[1]);
  const CliRun run = Run("verify", {"--memory", "2MiB"});
  EXPECT_EQ(run.code, 1) << run.out;
  EXPECT_EQ(LinesWith(run.out, "NOT REPLAYED: "), 1U) << run.out;
  EXPECT_EQ(LinesWith(run.out, "does not fit its checksum"), 1U) << run.out;
}

TEST_F(VerifyCommandTest, MemoryThatCannotBeMeantIsRefused) {
  for (const std::string command : {"verify", "info"}) {
    const CliRun run = Run(command, {"--memory", "1MiB"});
    EXPECT_EQ(run.code, 2) << run.out;
    EXPECT_NE(run.err.find("--memory is 1.0 MiB; expected at least 2.0 MiB"), std::string::npos)
        << run.err;
    // The library's name for it is none of the command's.
    EXPECT_EQ(run.err.find("budgets"), std::string::npos) << run.err;
  }
}

TEST_F(VerifyCommandTest, AFlippedByteOfAPieceNamesFileOffsetAndTrajectory) {
  const LoggedRecord record =
      RecordSaying("append 'walkers': rows 40…49 of trajectory " + std::to_string(sample().walker));
  ASSERT_GE(record.pieces.size(), 2U);
  Flip(record.pieces[1] + 5);
  ExpectProblem(PlaceOf(record.pieces[1]).text(),
                "does not fit its checksum; the record: append 'walkers': rows 40…49 of "
                "trajectory " +
                    std::to_string(sample().walker));
  const std::string lost =
      "trajectories with damaged pages: 'walkers'/" + std::to_string(sample().walker);
  ExpectLoss(
      "1 page cannot be restored, and the trajectories that they belong to are lost: " + lost, 1);
  const Json json = RunJson("verify", {}, 1);
  EXPECT_EQ(json["problems"][0]["lsn"].integer(), static_cast<int64_t>(record.lsn));
  EXPECT_EQ(json["trajectories"].integer(), 6);
}

TEST_F(VerifyCommandTest, AFlippedByteOfAPartNamesTheFileThatHoldsIt) {
  const LoggedRecord tail = RecordSaying("append 'walkers': rows 200…399 of trajectory");
  const Lsn piece = tail.pieces[3];
  ASSERT_LT(piece, tail.lsn);
  Flip(piece);
  ExpectProblem(PlaceOf(piece).text(), "piece 3 of " + std::to_string(tail.pieces.size()));
}

TEST_F(VerifyCommandTest, EveryCommandWarnsOfALostTrajectory) {
  const LoggedRecord record = RecordSaying("append 'walkers': rows 40…49");
  Flip(record.pieces[0]);
  const std::string lost = "'walkers'/" + std::to_string(sample().walker);
  const CliRun summary = Run("info");
  EXPECT_EQ(summary.code, 1);
  EXPECT_EQ(LinesWith(summary.out, "DAMAGE    1 damaged page"), 1U) << summary.out;
  EXPECT_EQ(LinesWith(summary.out, lost), 1U) << summary.out;
  const CliRun head = Run("head", {"arcade"});
  EXPECT_EQ(head.code, 1);
  EXPECT_NE(head.err.find(lost), std::string::npos) << head.err;
  EXPECT_EQ(LinesWith(head.out, "terminated"), 2U) << "what is whole is shown all the same";
  const CliRun log = Run("log", {"-n", "0"});
  EXPECT_EQ(log.code, 1);
  EXPECT_EQ(LinesWith(log.out, "DAMAGED: a piece does not fit its checksum"), 1U);
}

TEST_F(VerifyCommandTest, AFlippedByteOfAHeaderEndsWhatCanBeRead) {
  const LoggedRecord record = RecordSaying("remove 'arcade'");
  Flip(record.lsn + 20);
  ExpectDamageAt(record.lsn, PlaceOf(record.lsn).text());
  const CliRun head = Run("head", {"walkers"});
  EXPECT_EQ(head.code, 1);
  EXPECT_NE(head.err.find("has no table 'walkers'; it has arcade"), std::string::npos);
  EXPECT_NE(head.err.find("not all is shown"), std::string::npos);
}

TEST_F(VerifyCommandTest, ATruncatedLastSegmentIsNamedWithItsSize) {
  // What the newest opening wrote is in the ring, too. What stands before that is not.
  const LoggedRecord tag = RecordSaying("tag: 'quote");
  const Place place = PlaceOf(tag.lsn);
  fs::resize_file(place.path, place.offset);
  ExpectProblem(place.path,
                "the file has " + std::to_string(place.offset) + " bytes, expected 65536");
  ExpectDamageAt(tag.lsn, place.text());
}

TEST_F(VerifyCommandTest, AProblemOfAFileSaysItsNameOnce) {
  testing::WriteBytes(File("log/segment-000098"), "something else");
  const CliRun run = Run("verify");
  EXPECT_EQ(LinesWith(run.out, "DAMAGE: " + File("log/segment-000098") + " has 14 bytes and is"),
            1U)
      << run.out;
}

TEST_F(VerifyCommandTest, WhatIsNoFileIsNamedAndTheRestIsRead) {
  const int64_t records = RunJson("verify")["records"].integer();
  const std::string path = File("log/segment-000098");
  fs::create_directory(path);
  ExpectProblem(path, path + " is a directory, expected a regular file");
  EXPECT_EQ(RunJson("verify", {}, 1)["problems"].items().size(), 1U);
  EXPECT_EQ(RunJson("verify", {}, 1)["records"].integer(), records);
  EXPECT_EQ(RunJson("verify", {}, 1)["trajectories"].integer(), 7);
  EXPECT_EQ(Run("info").code, 0) << "a reader passes over it";
  EXPECT_STATUS(kCorruption, Database::Open(store(), testing::SampleOptions()), path);
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0644), 0);
  ExpectProblem(path, path + " is a FIFO, expected a regular file");
  EXPECT_STATUS(kCorruption, Database::Open(store(), testing::SampleOptions()), path);
  fs::remove(path);
  EXPECT_EQ(Run("verify").code, 0);
}

TEST_F(VerifyCommandTest, AFifoInPlaceOfTheRingIsNamed) {
  fs::remove(File("log/ring"));
  ASSERT_EQ(::mkfifo(File("log/ring").c_str(), 0644), 0);
  ExpectProblem(File("log/ring"), File("log/ring") + " is a FIFO, expected a regular file");
  ExpectLoss("the log cannot be replayed: ", 1);
  EXPECT_STATUS(kCorruption, Database::Open(store(), testing::SampleOptions()),
                File("log/ring") + " is a FIFO");
}

TEST_F(VerifyCommandTest, AMissingSegmentIsNamed) {
  const Lsn middle = testing::SampleOptions().segment_bytes;
  fs::remove(PlaceOf(middle).path);
  ExpectDamageAt(middle, File("log") + " (no file holds that segment)");
}

TEST_F(VerifyCommandTest, AMissingFirstSegmentIsNoEmptyLog) {
  fs::remove(PlaceOf(0).path);
  const std::string place = File("log") + " (no file holds that segment)";
  ExpectProblem(place, "the log is damaged at LSN 0");
  const CliRun summary = Run("info");
  EXPECT_EQ(summary.code, 1);
  EXPECT_EQ(LinesWith(summary.out, "nothing was ever logged"), 0U) << summary.out;
}

TEST_F(VerifyCommandTest, AMissingOrShortRingIsNamed) {
  fs::resize_file(File("log/ring"), 4096);
  ExpectProblem(File("log/ring"), "the file has 4096 bytes, expected 32768");
  ExpectLoss("the log cannot be replayed: ", 1);
  fs::remove(File("log/ring"));
  ExpectProblem(File("log/ring"), "the ring is missing");
  ExpectLoss("the log cannot be replayed: ", 1);
  EXPECT_EQ(Run("info").code, 1);
}

TEST_F(VerifyCommandTest, ABlobThatIsDamagedIsNamedByItsTag) {
  const LoggedRecord tag = RecordSaying("tag: 'quote");
  Flip(tag.pieces[1] + 100);
  ExpectProblem(PlaceOf(tag.pieces[1]).text(), "the record: tag: 'quote");
  EXPECT_EQ(Run("info").code, 1);
}

TEST_F(VerifyCommandTest, ForeignFilesAreNotedAndAreNoDamage) {
  const int64_t files = RunJson("verify")["segment_files"].integer();
  for (const std::string name : {"log/notes.txt", "log/segment-abc", "log/segment-1"}) {
    testing::WriteBytes(File(name), "mine");
    const Json json = RunJson("verify");
    ASSERT_EQ(json["notes"].items().size(), 1U);
    EXPECT_NE(json["notes"][0].text().find(File(name)), std::string::npos);
    EXPECT_EQ(json["segment_files"].integer(), files);
    EXPECT_EQ(RunJson("info")["log"]["segment_files"].integer(), files);
    ASSERT_OK(Database::Open(store(), testing::SampleOptions()));
    fs::remove(File(name));
  }
}

TEST_F(VerifyCommandTest, AForeignFileWithASegmentsNameIsNamedAndRefusedByOpens) {
  for (const size_t bytes : {size_t{7000}, size_t{65536}}) {
    testing::WriteBytes(File("log/segment-000098"), std::string(bytes, 'g'));
    ExpectProblem(File("log/segment-000098"),
                  "has " + std::to_string(bytes) + " bytes and is neither a segment of database ");
    EXPECT_EQ(RunJson("verify", {}, 1)["problems"].items().size(), 1U);
    const auto before = testing::FilesOf(store() + "/log");
    EXPECT_STATUS(kCorruption, Database::Open(store(), testing::SampleOptions()),
                  File("log/segment-000098"));
    EXPECT_TRUE(testing::FilesOf(store() + "/log") == before);
  }
}

TEST_F(VerifyCommandTest, ASpareFileThatWasCutShortIsNotedAndMadeWholeByAnOpen) {
  testing::WriteBytes(File("log/segment-000098"), std::string(7000, '\0'));
  const Json json = RunJson("verify");
  ASSERT_EQ(json["notes"].items().size(), 1U);
  EXPECT_NE(json["notes"][0].text().find("segment-000098' has 7000 bytes: a spare file"),
            std::string::npos);
  ASSERT_OK(Database::Open(store(), testing::SampleOptions()));
  EXPECT_EQ(RunJson("verify")["notes"].items().size(), 0U);
}

TEST_F(VerifyCommandTest, ASealThatOnlyTheRingHoldsIsNoted) {
  const LoggedRecord seal = Records().back();
  ASSERT_EQ(seal.type, wal::RecordType::kSeal);
  Flip(seal.lsn + 8);
  const Json json = RunJson("verify");
  EXPECT_EQ(json["ring_records"].integer(), 1);
  ASSERT_EQ(json["notes"].items().size(), 1U);
  EXPECT_NE(json["notes"][0].text().find("of its last 1 record only the ring's copy is good"),
            std::string::npos);
}

TEST_F(VerifyCommandTest, DamageThatTheRingCanMendIsDamageUntilAnOpenMendsIt) {
  std::vector<LoggedRecord> records = Records();
  while (records.back().type != wal::RecordType::kData) records.pop_back();
  const Lsn byte = records.back().lsn + 20;
  Flip(byte);
  ExpectProblem(PlaceOf(byte).text(), "the ring has a good copy, and the next open for writing");
  const Json json = RunJson("verify", {}, 1);
  EXPECT_EQ(json["problems"].items().size(), 1U) << "what follows it in the file is whole";
  EXPECT_EQ(json["problems"][0]["lsn"].integer(), static_cast<int64_t>(records.back().lsn));
  EXPECT_NE(json["problems"][0]["text"].text().find("; the record: "), std::string::npos);
  EXPECT_EQ(json["notes"].items().size(), 0U);
  ASSERT_OK(Database::Open(store(), testing::SampleOptions()));
  CliRun run = Run("verify");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_EQ(RunJson("verify")["trajectories"].integer(), 7);
  // A repair is such an open.
  Flip(byte);
  EXPECT_EQ(Run("verify").code, cli::kExitDamage);
  EXPECT_EQ(testing::RunCli({"repair", store()}).code, 0);
  run = Run("verify");
  EXPECT_EQ(run.code, 0) << run.out;
}

TEST_F(VerifyCommandTest, APieceThatNothingNeedsAnyMoreIsNoDamage) {
  const LoggedRecord record = RecordSaying("append 'walkers': rows 40…49");
  Flip(record.pieces[1]);
  EXPECT_EQ(Run("verify").code, cli::kExitDamage);
  // Its trajectory is removed.
  const CliRun repair = testing::RunCli({"repair", store()});
  ASSERT_EQ(repair.code, cli::kExitGood) << repair.out << repair.err;
  const CliRun run = Run("verify");
  EXPECT_EQ(run.code, cli::kExitGood) << run.out;
  EXPECT_EQ(LinesWith(run.out, "note: 1 piece of the log cannot be read (the first: " +
                                   PlaceOf(record.pieces[1]).text() + ")"),
            1U)
      << run.out;
  EXPECT_EQ(LinesWith(run.out, "no damage found"), 1U) << run.out;
  EXPECT_TRUE(RunJson("verify")["good"].truth());
  EXPECT_EQ(RunJson("info")["recovery"]["damaged_pages"].integer(), 0);
  EXPECT_EQ(LinesWith(Run("head", {"arcade"}).err, "not all is shown"), 0U);
}

TEST_F(VerifyCommandTest, CountersThatCannotBeUsedAreANote) {
  testing::FlipByte(File("COUNTERS"), 30);
  const CliRun run = Run("verify");
  EXPECT_EQ(run.code, cli::kExitGood) << run.out;
  EXPECT_EQ(LinesWith(run.out, "note: '" + File("COUNTERS") + "' cannot be used"), 1U) << run.out;
}

TEST_F(VerifyCommandTest, AStoreWhoseOwnerWasKilledIsNotDamaged) {
  testing::DieAppending(store());
  const CliRun run = Run("verify");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_EQ(LinesWith(run.out, "without a seal: its owner died"), 1U) << run.out;
  EXPECT_GT(RunJson("verify")["ring_records"].integer(), 0);
  EXPECT_FALSE(RunJson("verify")["sealed"].truth());
  EXPECT_EQ(LinesWith(Run("info").out, "not closed: its owner died"), 1U);
  EXPECT_FALSE(RunJson("info")["recovery"]["clean"].truth());
  EXPECT_EQ(RunJson("info")["open_count"].integer(), 3);
  EXPECT_EQ(RunJson("head", {"arcade"})["trajectories"].integer(), 7);
  const CliRun log = Run("log", {"-n", "0"});
  EXPECT_EQ(log.code, 0);
  EXPECT_EQ(LinesWith(log.out, "  ring  append 'arcade': trajectory "), 1U) << log.out;
  EXPECT_EQ(LinesWith(log.out, ", without a seal"), 1U);
}

TEST_F(VerifyCommandTest, ValidRecordsBeyondTheEndOfAKilledStoreAreNamed) {
  testing::DieAppending(store(), 300);
  const CliRun whole = Run("verify");
  EXPECT_EQ(whole.code, 0) << whole.out;
  const Json before = RunJson("verify");
  EXPECT_TRUE(before["beyond_end"].is_null());
  const Lsn end = static_cast<Lsn>(before["log_end"].integer());
  // Drained and not synced, and overwritten in the ring since.
  std::vector<LoggedRecord> records = Records();
  const auto hit = std::ranges::find_if(records, [&](const LoggedRecord& record) {
    return record.lsn > end - 2 * testing::SampleOptions().ring_bytes &&
           record.type == wal::RecordType::kData;
  });
  ASSERT_NE(hit, records.end());
  ASSERT_LT(hit->lsn, end - testing::SampleOptions().ring_bytes);
  Flip(hit->lsn + 20);
  const int64_t dropped = std::distance(hit, records.end()) - 1;

  const Json json = RunJson("verify", {}, 5);
  EXPECT_FALSE(json["good"].truth());
  EXPECT_EQ(json["problems"].items().size(), 0U);
  EXPECT_EQ(json["log_end"].integer(), static_cast<int64_t>(hit->lsn));
  const Json& beyond = json["beyond_end"];
  EXPECT_EQ(beyond.keys(), (Keys{"place", "lsn", "records", "end_lsn", "files", "text"}));
  EXPECT_EQ(beyond["place"].text(), PlaceOf(hit->lsn).text());
  EXPECT_EQ(beyond["lsn"].integer(), static_cast<int64_t>(hit->lsn));
  EXPECT_EQ(beyond["records"].integer(), dropped);
  EXPECT_EQ(beyond["end_lsn"].integer(), static_cast<int64_t>(end));
  int64_t in_files = 0;
  for (const Json& file : beyond["files"].items()) in_files += file["records"].integer();
  EXPECT_EQ(in_files, dropped);
  EXPECT_EQ(beyond["files"][0]["path"].text(), File("log/ring"));

  const CliRun run = Run("verify");
  EXPECT_EQ(run.code, 5);
  EXPECT_EQ(LinesWith(run.out, "WARNING: the log ends at LSN " + std::to_string(hit->lsn) + ", " +
                                   PlaceOf(hit->lsn).text() + ", but beyond it lie " +
                                   std::to_string(dropped) + " valid records, up to LSN " +
                                   std::to_string(end) + " ("),
            1U)
      << run.out;
  EXPECT_EQ(LinesWith(run.out, "an open for writing drops them"), 1U);
  EXPECT_EQ(LinesWith(run.out, "DAMAGE"), 0U) << run.out;
  // And so it does.
  ASSERT_OK(Database::Open(store(), testing::SampleOptions()));
  EXPECT_EQ(Run("verify").code, 0);
}

TEST_F(VerifyCommandTest, ALastRecordThatIsDamagedHasNothingBeyondIt) {
  testing::DieAppending(store(), 1);
  const Lsn last = Records().back().lsn;
  testing::FlipByte(File("log/ring"), last % testing::SampleOptions().ring_bytes + 20);
  const CliRun run = Run("verify");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_EQ(LinesWith(run.out, "has its header, but is not whole"), 1U) << run.out;
  EXPECT_TRUE(RunJson("verify")["beyond_end"].is_null());
}

TEST_F(VerifyCommandTest, ALastSegmentThatIsGoneIsSeenByWhatTheRingHoldsBeyondIt) {
  testing::DieAppending(store(), 300);
  const Json before = RunJson("verify");
  const Lsn end = static_cast<Lsn>(before["log_end"].integer());
  const Place last = PlaceOf(end - 1);
  ASSERT_GT(last.offset, testing::SampleOptions().ring_bytes);
  fs::resize_file(last.path, 0);
  const Json json = RunJson("verify", {}, 5);
  EXPECT_EQ(json["log_end"].integer(), static_cast<int64_t>(end - 1 - last.offset));
  EXPECT_EQ(json["beyond_end"]["end_lsn"].integer(), static_cast<int64_t>(end));
}

TEST_F(VerifyCommandTest, WhatANewerVersionWroteIsNoDamage) {
  std::vector<LoggedRecord> records = Records();
  while (records.back().type != wal::RecordType::kData) records.pop_back();
  const LoggedRecord record = records.back();
  RetypeRecord(record, 99);
  const CliRun run = Run("verify");
  EXPECT_EQ(run.code, 4) << run.out << run.err;
  EXPECT_EQ(LinesWith(run.out, "DAMAGE"), 0U) << run.out;
  EXPECT_EQ(
      LinesWith(run.out, "NOT REPLAYED: written by a newer GearDB: record of type 99 at LSN " +
                             std::to_string(record.lsn)),
      1U)
      << run.out;
  EXPECT_EQ(LinesWith(run.out, "no damage found in what this version can read"), 1U) << run.out;
  const Json json = RunJson("verify", {}, 4);
  EXPECT_FALSE(json["good"].truth());
  EXPECT_FALSE(json["replayed"].truth());
  EXPECT_EQ(json["problems"].items().size(), 0U);
  EXPECT_NE(json["newer"].text().find("type 99"), std::string::npos);
  EXPECT_EQ(Run("info").code, 4);
  EXPECT_EQ(Run("head", {"arcade"}).code, 4);
  EXPECT_EQ(Run("log", {"-n", "0"}).code, 4);
}

TEST_F(VerifyCommandTest, AnEmptyDatabaseIsGood) {
  testing::MakeEmptyStore(Scratch("empty"));
  const CliRun run = testing::RunCli({"verify", Scratch("empty")});
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_EQ(LinesWith(run.out, "nothing was ever logged"), 1U);
  EXPECT_EQ(LinesWith(run.out, "died"), 0U) << run.out;
}

}  // namespace
}  // namespace geardb
