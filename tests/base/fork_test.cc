// concurrent: base/fork.cc
#include "base/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace geardb {
namespace {

/// What a child says of itself: the exit code.
template <typename Function>
int InChild(const Function& function) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(function());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(ForkTest, AMarkTellsTheProcessFromItsChildren) {
  const ForkMark mark;
  EXPECT_FALSE(mark.forked());
  EXPECT_EQ(mark.pid(), ::getpid());
  EXPECT_EQ(InChild([&] { return mark.forked() ? 1 : 0; }), 1);
  EXPECT_EQ(InChild([] { return ForkMark().forked() ? 1 : 0; }), 0);
  EXPECT_EQ(InChild([&] { return InChild([&] { return mark.forked() ? 1 : 0; }); }), 1);
  EXPECT_FALSE(mark.forked());
}

TEST(ForkConcurrentTest, ManyThreadsMayMakeMarksAndAsk) {
  const ForkMark first;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) {
        const ForkMark mark;
        EXPECT_FALSE(mark.forked() || first.forked());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ForkTest, OnlyTheProcessThatMadeItDeletes) {
  struct Flag {
    explicit Flag(bool* deleted_in) : deleted(deleted_in) {}
    ~Flag() { *deleted = true; }
    bool* deleted;
  };
  bool deleted = false;
  const DeleteUnlessForked<Flag> remove;
  auto* const flag = new Flag(&deleted);
  EXPECT_EQ(InChild([&] {
              remove(flag);
              return deleted ? 1 : 0;
            }),
            0);
  remove(flag);
  EXPECT_TRUE(deleted);
}

}  // namespace
}  // namespace geardb
