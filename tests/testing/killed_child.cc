#include "tests/testing/killed_child.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "base/crash_point.h"

namespace geardb::testing {
namespace {

/// What a child says of its end.
struct LastWords {
  std::atomic<uint32_t> at_point{0};
  std::atomic<uint32_t> failed{0};
  char why[512] = {};
};

// A hook is a plain function: what it needs is here, in the child.
LastWords* hook_words = nullptr;
const char* hook_point = nullptr;
std::atomic<int64_t> hook_hits{0};

void DieAtPoint(const char* name) {
  if (std::strcmp(name, hook_point) != 0 || hook_hits.fetch_sub(1) != 1) return;
  hook_words->at_point.store(1);
  ::kill(::getpid(), SIGKILL);
}

[[noreturn]] void BeChild(const Death& death, const std::function<Status()>& work,
                          LastWords* words) {
  hook_words = words;
  hook_point = death.point;
  hook_hits.store(death.hits);
  if (death.point != nullptr) SetCrashHook(&DieAtPoint);
  const Status status = work();
  if (!status.ok()) {
    std::snprintf(words->why, sizeof(words->why), "%s", status.ToString().c_str());
    words->failed.store(1);
  }
  ::_exit(0);
}

}  // namespace

ChildEnd RunChild(const Death& death, const std::function<Status()>& work,
                  const std::function<bool()>& due) {
  SharedWithChildren<LastWords> words;
  const pid_t child = ::fork();
  GEARDB_CHECK(child >= 0);
  if (child == 0) BeChild(death, work, words.operator->());
  int how = 0;
  bool killed = false;
  // One that dies by itself is waited for without taking its processor.
  while (::waitpid(child, &how, due && !killed ? WNOHANG : 0) == 0) {
    if (due()) {
      ::kill(child, SIGKILL);
      killed = true;
    }
    ::sched_yield();
  }
  EXPECT_EQ(words->failed.load(), 0u) << words->why;
  EXPECT_TRUE(WIFSIGNALED(how) ? WTERMSIG(how) == SIGKILL : WEXITSTATUS(how) == 0)
      << "the child ended with status " << how;
  if (words->at_point.load() != 0) return ChildEnd::kAtPoint;
  return WIFSIGNALED(how) ? ChildEnd::kKilled : ChildEnd::kReturned;
}

}  // namespace geardb::testing
