#include "tools/quickstart/oracle.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/tools/quickstart/replay_fixture.h"

namespace geardb::quickstart {
namespace {

using Rows = std::vector<int64_t>;

class OracleTest : public ReplayTest {
 protected:
  OracleFindings Check(const Oracle& oracle) {
    const auto findings = oracle.Check(replay_->table());
    EXPECT_OK(findings);
    return findings.ok() ? *findings : OracleFindings();
  }
};

AppendReport Acknowledged(TrajectoryId id, int64_t row) {
  AppendReport report;
  report.kind = AppendReport::Kind::kAcknowledged;
  report.id = id;
  report.row = row;
  report.checksum = 1234;
  return report;
}

TEST_F(OracleTest, WhatWasReportedIsWhatIsThere) {
  AppendEpisode(5);
  AppendEpisode(3, End::kTruncated);
  Append(0);
  const OracleFindings findings = Check(ReadReports());
  EXPECT_TRUE(findings.good()) << findings.ToString();
  EXPECT_EQ(findings.acknowledged, 11U);
  EXPECT_EQ(findings.final_rows, 2U);
  EXPECT_EQ(findings.found, 11U);
  EXPECT_EQ(findings.pending, 0U);
  EXPECT_EQ(findings.ToString(), "");
}

TEST_F(OracleTest, MissingTrajectoriesAreNamed) {
  for (int i = 0; i < 4; ++i) AppendEpisode(2);
  ASSERT_OK(replay_->table().Remove(std::array<TrajectoryId, 2>{2, 3}));
  const OracleFindings findings = Check(ReadReports());
  EXPECT_FALSE(findings.good());
  EXPECT_EQ(findings.found, 6U);
  EXPECT_EQ(findings.missing.at(2), (Rows{0, 1, 2}));
  EXPECT_EQ(findings.ToString(),
            "6 rows missing, of trajectories 2, 3\n"
            "  trajectory 2: rows 0…2\n"
            "  trajectory 3: rows 0…2\n");
}

TEST_F(OracleTest, MissingRowsAtTheEndAreNamed) {
  AppendEpisode(2);
  Append(0);
  Oracle oracle = ReadReports();
  oracle.Add(Acknowledged(2, 1));
  oracle.Add(Acknowledged(2, 2));
  const OracleFindings findings = Check(oracle);
  EXPECT_EQ(findings.ToString(), "2 rows missing, of trajectory 2\n  trajectory 2: rows 1, 2\n");
}

TEST_F(OracleTest, OtherBytesAreSeen) {
  Append(0);
  Oracle oracle = ReadReports();
  AppendReport changed = Acknowledged(1, 0);
  Oracle other;
  other.Add(changed);
  const OracleFindings findings = Check(other);
  EXPECT_EQ(findings.changed.at(1), Rows{0});
  EXPECT_EQ(findings.ToString(),
            "1 row with other bytes, of trajectory 1\n  trajectory 1: rows 0\n");
  EXPECT_TRUE(Check(oracle).good());
}

TEST_F(OracleTest, RowsThatNobodyAppendedAreUnexpected) {
  AppendEpisode(2);
  const OracleFindings findings = Check(Oracle());
  EXPECT_EQ(findings.unexpected.at(1), (Rows{0, 1, 2}));
  EXPECT_FALSE(findings.good());
}

TEST_F(OracleTest, TheCallUnderWayMayBeThereWhollyOrNotAtAll) {
  // A report of the call before it, none of its acknowledgement.
  const auto pending_of_row_0 = [&] {
    Oracle oracle;
    AppendReport report;
    const auto checksums = RowChecksums(replay_->table(), 1);
    EXPECT_OK(checksums);
    report.checksum = (*checksums)[0];
    oracle.Add(report);
    return oracle;
  };
  Append(0);
  OracleFindings findings = Check(pending_of_row_0());
  EXPECT_TRUE(findings.good());
  EXPECT_EQ(findings.pending, 1U);
  Append(1);
  findings = Check(pending_of_row_0());
  EXPECT_EQ(findings.unexpected.at(1), (Rows{0, 1})) << "half of it, or more than it, is wrong";
  Oracle none;
  AppendReport report;
  report.checksum = 77;
  none.Add(report);
  EXPECT_FALSE(Check(none).good());
}

TEST_F(OracleTest, ARowThatWasGivenTwiceIsSeen) {
  Append(0);
  Oracle oracle = ReadReports();
  AppendReport again = Acknowledged(1, 0);
  again.checksum = (*RowChecksums(replay_->table(), 1))[0];
  oracle.Add(again);
  const OracleFindings findings = Check(oracle);
  EXPECT_EQ(findings.doubled.at(1), Rows{0});
  EXPECT_FALSE(findings.good());
}

TEST_F(OracleTest, OfManyTrajectoriesOnlySomeAreNamedWithTheirRows) {
  Oracle oracle;
  for (TrajectoryId id = 1; id <= 20; ++id) oracle.Add(Acknowledged(id, 0));
  const std::string text = oracle.AllMissing().ToString();
  EXPECT_TRUE(text.starts_with("20 rows missing, of trajectories 1…20\n")) << text;
  EXPECT_NE(text.find("  trajectory 8: rows 0\n  …\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("trajectory 9:"), std::string::npos) << text;
}

TEST_F(OracleTest, APipeThatNobodyReadsIsAnError) {
  ::signal(SIGPIPE, SIG_IGN);
  ::close(pipe_[0]);
  pipe_[0] = -1;
  EXPECT_STATUS(kIoError, reporter_.Report({}), "supervisor");
  EXPECT_OK(AppendReporter().Report({}));
}

TEST_F(OracleTest, RangesReadWell) {
  EXPECT_EQ(RangesText(Rows{}), "");
  EXPECT_EQ(RangesText(Rows{4}), "4");
  EXPECT_EQ(RangesText(Rows{4, 5}), "4, 5");
  EXPECT_EQ(RangesText(Rows{3, 4, 5, 7, 9, 10, 11}), "3…5, 7, 9…11");
}

}  // namespace
}  // namespace geardb::quickstart
