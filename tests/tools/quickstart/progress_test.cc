#include "tools/quickstart/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace geardb::quickstart {
namespace {

std::string Shown(bool terminal, uint64_t first, uint64_t last, uint64_t total) {
  ::testing::internal::CaptureStdout();
  Progress progress(terminal);
  for (uint64_t steps = first; steps <= last; ++steps) {
    progress.Show({.steps = steps,
                   .steps_total = total,
                   .episodes = 1234,
                   .average_return = 21.25,
                   .trial_score = 475,
                   .loss = 0.125});
  }
  progress.Say("done");
  return ::testing::internal::GetCapturedStdout();
}

TEST(ProgressTest, AFileGetsAFewLines) {
  const std::string text = Shown(false, 1, 60'000, 60'000);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21);
  EXPECT_TRUE(
      text.starts_with("step 3,000 of 60,000 · episode 1,234 · return 21.2 · greedy 475.0 "
                       "· loss 0.1250 · "))
      << text;
  EXPECT_NE(text.find("\nstep 60,000 of 60,000 · "), std::string::npos);
  EXPECT_TRUE(text.ends_with("steps/s\ndone\n"));
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(ProgressTest, AGoOnDoesNotRepeatLines) {
  const std::string text = Shown(false, 30'000, 60'000, 60'000);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 12) << text;
}

TEST(ProgressTest, ATerminalGetsOneLineThatIsWrittenOver) {
  const std::string text = Shown(true, 1, 1000, 1000);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << "behind the last, and behind 'done'";
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 501);
  EXPECT_TRUE(text.ends_with("steps/s\ndone\n"));
}

TEST(ProgressTest, NumbersReadWell) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(123), "123");
  EXPECT_EQ(Grouped(1234567), "1,234,567");
  EXPECT_EQ(Decimal(1.25, 1), "1.2");
  EXPECT_EQ(Decimal(-3, 0), "-3");
}

}  // namespace
}  // namespace geardb::quickstart
