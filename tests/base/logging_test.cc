// concurrent: base/logging.cc
#include "base/logging.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace geardb {
namespace {

// Collects lines while it lives. The sink runs under the logger's lock, so `lines` needs none.
class CapturedLog {
 public:
  CapturedLog() {
    SetLogSink([this](LogLevel level, std::string_view line) { lines.emplace_back(level, line); });
  }
  ~CapturedLog() { SetLogSink(nullptr); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  std::vector<std::pair<LogLevel, std::string>> lines;
};

TEST(LoggingTest, LineReachesTheSinkWhole) {
  const CapturedLog log;
  Log(LogLevel::kWarning, "segment ", 3, " has ", 0.5, " of its bytes");
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_EQ(log.lines[0].first, LogLevel::kWarning);
  EXPECT_EQ(log.lines[0].second, "segment 3 has 0.5 of its bytes");
}

TEST(LoggingTest, DefaultPrintsWarningsAndErrorsOnly) {
  ::testing::internal::CaptureStderr();
  LogLine(LogLevel::kInfo, "quiet");
  LogLine(LogLevel::kWarning, "careful");
  LogLine(LogLevel::kError, "broken");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "geardb W: careful\ngeardb E: broken\n");
}

TEST(LoggingConcurrentTest, LinesOfManyThreadsStayApart) {
  const CapturedLog log;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) Log(LogLevel::kInfo, "a line ", "in three ", "parts");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log.lines.size(), 800u);
  for (const auto& [level, line] : log.lines) EXPECT_EQ(line, "a line in three parts");
}

}  // namespace
}  // namespace geardb
