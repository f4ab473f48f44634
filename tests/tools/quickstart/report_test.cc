#include "tools/quickstart/report.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/tools/quickstart/replay_fixture.h"

namespace geardb::quickstart {
namespace {

class ReportTest : public ReplayTest {};

TEST_F(ReportTest, EveryFigureIsThere) {
  AppendEpisode(7);
  AppendEpisode(5);
  ASSERT_OK(replay_->Draw(0.4));
  ASSERT_OK(replay_->SetPriorities(std::vector<float>(64, 1.0f)));
  const std::string text = ReportText(replay_.get(), 12.34);
  // Rows of 24 bytes: f32[4], i32, f32; two final rows.
  for (const char* part :
       {"steps stored          12 in 2 episodes\n", "bytes per step        28.0 of rows, ",
        " in memory\n", "log   ", "appends/s  ", "batches/s  ", "priority updates/s  ",
        "a draw takes          p50 ", ", p99 ", "recovery took  ",
        "whole run             12.3 s"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(ReportTest, AnEmptyStoreDividesByNothing) {
  const std::string text = ReportText(replay_.get(), 0);
  EXPECT_NE(text.find("steps stored          0 in 0 episodes\n"), std::string::npos) << text;
  EXPECT_NE(text.find("appends/s             - "), std::string::npos) << text;
  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
}

}  // namespace
}  // namespace geardb::quickstart
