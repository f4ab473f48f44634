// concurrent: base/thread.h
#include "base/thread.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/thread_limit.h"

namespace geardb {
namespace {

TEST(ThreadConcurrentTest, RunsTheFunction) {
  auto value = std::make_unique<int>(1);
  int* const seen = value.get();
  ASSERT_OK_AND_ASSIGN(std::thread thread,
                       StartThread("adds", [value = std::move(value), seen] { *seen += 1; }));
  thread.join();
}

TEST(ThreadTest, WhereThereIsNoneItSaysWhatFor) {
  const testing::TempDir directory;
  const bool ran = testing::RunAsOnlyProcess(directory.path(), [] {
    {
      const testing::ThreadLimit limit(1);
      const auto refused = StartThread("adds", [] {});
      EXPECT_STATUS(kResourceExhausted, refused,
                    "starting the thread that adds: Resource temporarily unavailable");
      EXPECT_TRUE(IsSystemLack(refused.status()));
    }
    auto thread = StartThread("adds", [] {});
    ASSERT_OK(thread);
    thread->join();
  });
  if (!ran) GTEST_SKIP() << "a process of a user of its own cannot be had";
}

TEST(ThreadConcurrentTest, WhatRunsBesideEndsWithItsScope) {
  int value = 0;
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id there = here;
  {
    const BesideThread beside(
        "adds",
        [&] {
          there = std::this_thread::get_id();
          ++value;
        },
        true);
  }
  EXPECT_EQ(value, 1);
  EXPECT_NE(there, here);
  {
    const BesideThread beside(
        "adds", [&] { ++value; }, false);
  }
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace geardb
