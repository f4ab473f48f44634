#include "base/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

namespace geardb {
namespace {

TEST(DeadlineTest, InfiniteNeverPasses) {
  EXPECT_TRUE(Deadline::Infinite().infinite());
  EXPECT_FALSE(Deadline::Infinite().passed());
}

TEST(DeadlineTest, NowHasPassed) {
  EXPECT_FALSE(Deadline::Now().infinite());
  EXPECT_TRUE(Deadline::Now().passed());
}

TEST(DeadlineTest, PassesAtItsTime) {
  EXPECT_FALSE(Deadline::AfterMs(3'600'000).passed());
  EXPECT_TRUE(Deadline::AfterMs(-1).passed());
  const auto before = std::chrono::steady_clock::now();
  const Deadline deadline = Deadline::AfterMs(1000);
  const auto after = std::chrono::steady_clock::now();
  EXPECT_GE(deadline.at(), before + std::chrono::milliseconds(1000));
  EXPECT_LE(deadline.at(), after + std::chrono::milliseconds(1000));
}

TEST(DeadlineTest, MoreThanTheClockCountsIsNeverOrNow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  // From the largest down to beyond what nanoseconds count, and one that they do.
  for (const int64_t ms : {kMax, kMax - 1, kMax / 1000, kMax / 1'000'000}) {
    EXPECT_TRUE(Deadline::AfterMs(ms).infinite()) << ms;
    EXPECT_FALSE(Deadline::AfterMs(ms).passed()) << ms;
  }
  const Deadline late = Deadline::AfterMs(kMax / 2'000'000);
  EXPECT_FALSE(late.infinite());
  EXPECT_FALSE(late.passed());
  for (const int64_t ms : {-kMax - 1, -kMax, -kMax / 1000, -kMax / 1'000'000}) {
    EXPECT_TRUE(Deadline::AfterMs(ms).passed()) << ms;
  }
}

TEST(ClockTest, SystemClockIsInMicrosecondsSince1970) {
  ASSERT_NE(Clock::System(), nullptr);
  EXPECT_EQ(Clock::System(), Clock::System());
  // Between the years 2020 and 2200.
  EXPECT_GT(Clock::System()->WallTimeUs(), int64_t{1'577'836'800} * 1'000'000);
  EXPECT_LT(Clock::System()->WallTimeUs(), int64_t{7'258'118'400} * 1'000'000);
}

TEST(ClockTest, AClockThatKnowsTheTimeOfDayAloneHasNoOther) {
  class DayClock final : public Clock {
   public:
    int64_t WallTimeUs() const override { return 7; }
  };
  EXPECT_EQ(DayClock().SteadyTimeUs(), 7);
  const int64_t before = Clock::System()->SteadyTimeUs();
  EXPECT_GE(Clock::System()->SteadyTimeUs(), before);
}

}  // namespace
}  // namespace geardb
