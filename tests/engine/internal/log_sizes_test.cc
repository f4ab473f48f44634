#include "engine/internal/log_sizes.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/fault_env.h"
#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

constexpr uint64_t kKiBOfLog = uint64_t{1} << 10;
constexpr uint64_t kMiBOfLog = uint64_t{1} << 20;

TEST(LogSizesTest, SegmentsAreAnEighthOfTheLog) {
  EXPECT_EQ(ChooseSegmentBytes(uint64_t{4} << 30), 64 * kMiBOfLog);
  EXPECT_EQ(ChooseSegmentBytes(512 * kMiBOfLog), 64 * kMiBOfLog);
  EXPECT_EQ(ChooseSegmentBytes(512 * kMiBOfLog - 1), 32 * kMiBOfLog);
  EXPECT_EQ(ChooseSegmentBytes(64 * kMiBOfLog), 8 * kMiBOfLog);
  EXPECT_EQ(ChooseSegmentBytes(100 * kMiBOfLog), 8 * kMiBOfLog);
  EXPECT_EQ(ChooseSegmentBytes(kMiBOfLog), 128 * kKiBOfLog);
  EXPECT_EQ(ChooseSegmentBytes(1), 64 * kKiBOfLog);
  EXPECT_EQ(ChooseSegmentBytes(UINT64_MAX), 64 * kMiBOfLog);
}

TEST(LogSizesTest, OnASmallDiskTheLogLeavesMostToTheColdStore) {
  testing::FaultEnv env(1);
  ASSERT_OK(env.CreateDirectory("."));
  constexpr LogBytes kMost = {UINT64_MAX, 64 * kMiBOfLog};
  const auto on_disk = [&](const LogBytes& asked, uint64_t segment_bytes = 0) {
    return LogBytesOnDisk(&env, "database", asked, segment_bytes);
  };
  constexpr LogBytes kDefaults = {uint64_t{4} << 30, 64 * kMiBOfLog};
  EXPECT_EQ(on_disk(kDefaults), kDefaults);
  EXPECT_EQ(on_disk(kMost).ring, kMost.ring);
  env.set_free_bytes(48 * kMiBOfLog);
  const LogBytes little = {4 * kMiBOfLog, kMiBOfLog};
  EXPECT_EQ(on_disk(little), little);
  // A third is 16 MiB: the ring and its spare segments leave 12, of which five eighths count.
  EXPECT_EQ(on_disk(kMost), (LogBytes{12 * kMiBOfLog / 8 * 5, 2 * kMiBOfLog}));  // Not there yet.
  EXPECT_EQ(on_disk(kMost, 2 * kMiBOfLog), (LogBytes{5 * kMiBOfLog, 4 * kMiBOfLog}));
  // What it has there is its own.
  const std::vector<std::byte> bytes(kMiBOfLog);
  ASSERT_OK(env.CreateDirectory("database"));
  for (const char* part : {"database/log", "database/cold"}) {
    ASSERT_OK(env.CreateDirectory(part));
    ASSERT_OK_AND_ASSIGN(auto file, env.OpenFile(JoinPath(part, "1"), {FileMode::kCreate}));
    ASSERT_OK(file->Write(0, bytes));
  }
  env.set_free_bytes(46 * kMiBOfLog);
  EXPECT_EQ(on_disk(kMost), (LogBytes{12 * kMiBOfLog / 8 * 5, 2 * kMiBOfLog}));
  env.set_free_bytes(0);
  EXPECT_EQ(on_disk(kMost), (LogBytes{2 * kMiBOfLog / 3 / 4, kMiBOfLog}));
  EXPECT_EQ(LogBytesOnDisk(&env, ".", kMost, 0), (LogBytes{1, kMiBOfLog}));
}

TEST(LogSizesTest, ALogOfLessThanTwoSegmentsDoesNotGoRound) {
  EXPECT_OK(CheckGoesRound(2 * kMiBOfLog, kMiBOfLog, ""));
  EXPECT_STATUS(kInvalidArgument, CheckGoesRound(2 * kMiBOfLog - 1, kMiBOfLog, " in 'x'"),
                "log_bytes_max is 2097151; expected at least 2097152, two segments of "
                "segment_bytes = 1048576 in 'x'");
}

}  // namespace
}  // namespace geardb::engine
