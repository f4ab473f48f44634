// concurrent: tools/bench/slow_sync_env.h tools/bench/slow_sync_env.cc
#include "tools/bench/slow_sync_env.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::bench {
namespace {

TEST(SlowSyncEnvConcurrentTest, SyncsAreServedOneAfterTheOther) {
  constexpr int kThreads = 4;
  constexpr int kSyncs = 5;
  constexpr auto kExtra = std::chrono::microseconds(500);
  const testing::TempDir directory;
  SlowSyncEnv env(kExtra);
  ASSERT_OK_AND_ASSIGN(auto file, env.OpenFile(directory.path() + "/file",
                                               {.mode = FileMode::kCreate, .direct = false}));
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&file] {
      for (int i = 0; i < kSyncs; ++i) EXPECT_OK(file->Sync());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(std::chrono::steady_clock::now() - begun, kThreads * kSyncs * kExtra);
}

}  // namespace
}  // namespace geardb::bench
