// concurrent: engine/internal/activity.h engine/internal/activity.cc engine/internal/wait_count.h
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "engine/internal/activity.h"
#include "engine/internal/wait_count.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::engine {
namespace {

TEST(ActivityConcurrentTest, WritersReadersAndCountersMeet) {
  const testing::TempDir dir;
  const ActivityKeeper::Place place{
      .env = std::shared_ptr<Env>(std::shared_ptr<Env>(), Env::Posix()),
      .directory = dir.path(),
      .seed = 5,
      .clock = Clock::System()};
  WaitCounter waits;
  ActivityKeeper keeper(place);
  keeper.Begin({.number = 1,
                .collect =
                    [&] {
                      ActivityCounters counters;
                      counters.waits_for_pages = waits.count().waits;
                      counters.wait_for_pages_us = waits.count().us;
                      return counters;
                    },
                .background = true});
  constexpr int kThreads = 4, kTimes = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      uint64_t seen = 0;
      for (int i = 0; i < kTimes; ++i) {
        waits.Add(3);
        const WaitTimer timer(&waits);
        const Status written = i % 8 == 0 ? keeper.Write() : Status::Ok();
        EXPECT_OK(written);
        const uint64_t now = keeper.activity().last.waits_for_pages;
        EXPECT_GE(now, seen);
        seen = now;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  keeper.Stop();
  ASSERT_OK(keeper.Write());
  ActivityKeeper reader(place);
  EXPECT_EQ(reader.activity().last.waits_for_pages, 2u * kThreads * kTimes);
  EXPECT_GE(reader.activity().last.wait_for_pages_us, 3u * kThreads * kTimes);
}

}  // namespace
}  // namespace geardb::engine
