// concurrent: base/fork.cc
#include "base/fork.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"

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

std::unique_ptr<UnsharedDescriptor> Unshared(int fd) {
  return UnsharedDescriptor::Open([fd]() -> Result<int> { return fd; }).value();
}

TEST(ForkTest, AChildDoesNotHaveAnUnsharedDescriptor) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int other = ::dup(ends[0]);
  {
    const auto unshared = Unshared(ends[0]);
    EXPECT_EQ(unshared->get(), ends[0]);
    const auto is_open = [](int fd) { return ::fcntl(fd, F_GETFD) >= 0; };
    EXPECT_EQ(InChild([&] { return is_open(ends[0]) ? 1 : 0; }), 0);
    EXPECT_EQ(InChild([&] { return is_open(other) ? 1 : 0; }), 1);
    // Whose number another file has there is left alone.
    EXPECT_EQ(InChild([&] {
                const int same = ::dup2(other, ends[0]);
                auto* const copy = unshared.get();
                copy->~UnsharedDescriptor();
                return is_open(same) ? 1 : 0;
              }),
              1);
    EXPECT_TRUE(is_open(ends[0]));
  }
  EXPECT_LT(::fcntl(ends[0], F_GETFD), 0);
  ::close(other);
  ::close(ends[1]);
}

TEST(ForkConcurrentTest, ForksFindTheDescriptorsWhole) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const auto one = Unshared(::dup(0));
        const auto two = Unshared(::dup(0));
      }
    });
  }
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(InChild([] {
                const auto own = Unshared(::dup(0));
                return ::fcntl(own->get(), F_GETFD) >= 0 ? 0 : 1;
              }),
              0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// What is opened while a fork begins, no child has either.
TEST(ForkConcurrentTest, NoChildHasADescriptorFromBetweenItsOpeningAndItsBeingKnown) {
  std::atomic<bool> opened{false};
  int fd = -1;
  std::unique_ptr<UnsharedDescriptor> unshared;
  std::thread opener([&] {
    unshared =
        UnsharedDescriptor::Open([&]() -> Result<int> {
          fd = ::dup(0);
          opened = true;
          // Time enough for a fork, were it allowed to.
          const Deadline until(std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
          while (!until.passed()) std::this_thread::yield();
          return fd;
        }).value();
  });
  while (!opened) std::this_thread::yield();
  EXPECT_EQ(InChild([&] { return ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0; }), 0);
  opener.join();
  EXPECT_GE(::fcntl(fd, F_GETFD), 0);
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
