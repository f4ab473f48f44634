// concurrent: engine/internal/turn.h

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "engine/internal/turn.h"

namespace geardb::engine {
namespace {

TEST(TurnConcurrentTest, EachHasItAlone) {
  Turn turn;
  uint64_t count = 0;  // Of whoever has the turn.
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000;) {
        // Some give up, and come again.
        const Turn::Taken taken(&turn, i % 2 == 0 ? Deadline::Infinite() : Deadline::Now());
        if (!taken.ok()) continue;
        ++count;
        ++i;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4000u);
}

}  // namespace
}  // namespace geardb::engine
