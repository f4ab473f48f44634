// ThreadLimit: a process that may have only so many threads.
#pragma once

#include <sys/resource.h>

#include <functional>
#include <string>

namespace geardb::testing {

/// Runs `function` in a child whose user has no other processes, since a limit of threads counts a
/// user's, and root's not at all. What is in `directory` becomes that user's. A failure of the
/// child's is one of the test. False, and nothing has run, where no such child can be had.
bool RunAsOnlyProcess(const std::string& directory, const std::function<void()>& function);

/// In such a child: from its making to its end there are at most `threads`, the caller among them.
class ThreadLimit {
 public:
  explicit ThreadLimit(rlim_t threads);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace geardb::testing
