#include "tests/testing/thread_limit.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace geardb::testing {
namespace {

constexpr int kNoUser = 77;

// Below 65536, so that user namespaces know it; of few processes that run at once the same.
uid_t OwnUser() { return 20'000 + static_cast<uid_t>(::getpid()) % 40'000; }

bool BecomeOnlyProcess(const std::string& directory) {
  const uid_t user = OwnUser();
  if (::geteuid() != 0 || ::chown(directory.c_str(), user, user) != 0) return false;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (::lchown(entry.path().c_str(), user, user) != 0) return false;
  }
  if (::setgid(user) != 0 || ::setuid(user) != 0) return false;
  // The folders above may be closed to it.
  return ::access(directory.c_str(), R_OK | W_OK | X_OK) == 0;
}

}  // namespace

bool RunAsOnlyProcess(const std::string& directory, const std::function<void()>& function) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!BecomeOnlyProcess(directory)) ::_exit(kNoUser);
    [&]() noexcept { function(); }();  // What is thrown must not leave the child.
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoUser) return false;
  EXPECT_EQ(status, 0);
  return true;
}

ThreadLimit::ThreadLimit(rlim_t threads) {
  EXPECT_EQ(::getrlimit(RLIMIT_NPROC, &before_), 0);
  const rlimit low{.rlim_cur = threads, .rlim_max = before_.rlim_max};
  EXPECT_EQ(::setrlimit(RLIMIT_NPROC, &low), 0);
}

ThreadLimit::~ThreadLimit() { EXPECT_EQ(::setrlimit(RLIMIT_NPROC, &before_), 0); }

}  // namespace geardb::testing
