// The whole of the quickstart in little: two thousand steps, a real SIGKILL, and a learner that is
// not yet good, which it must say.

#include "tools/quickstart/supervisor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "tests/testing/temp_dir.h"
#include "tools/quickstart/replay.h"

namespace geardb::quickstart {
namespace {

struct Ended {
  int code = -1;
  std::string text;  ///< Of stdout and stderr.
};

/// In a process of its own, since it forks and prints; with another TMPDIR, if one is given.
Ended SuperviseInChild(const QuickstartOptions& options, const std::string& temporary = "") {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    if (!temporary.empty()) ::setenv("TMPDIR", temporary.c_str(), 1);
    ::_exit(Supervise(options));
  }
  ::close(ends[1]);
  Ended run;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    run.text.append(buffer.data(), static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  run.code = WEXITSTATUS(status);
  return run;
}

TEST(SupervisorTest, AKilledLearnerGoesOnAndNothingIsLost) {
  const testing::TempDir dir;
  const std::string store = dir.File("store");
  const Ended run = SuperviseInChild({.directory = store, .steps = kStepsMin});
  size_t at = 0;
  for (const char* part :
       {"CartPole-v1 by a DQN", "step 100 of 2,000 · ", "SIGKILL for process ", " at step 1,000\n",
        "nothing is lost: all ", " acknowledged rows (1,000 steps, ", "a new process reopened",
        "the network of step 950 (the newest tag) and all 1,000 steps", "step 2,000 of 2,000 · ",
        "greedy average return ", "  steps stored          2,000 in ", "  bytes per step ",
        "  appends/s ", "  batches/s ", "  a draw takes ", "  recovery took ",
        "nothing is lost: all ", " acknowledged rows (2,000 steps, ", "the store stays"}) {
    const size_t found = run.text.find(part, at);
    ASSERT_NE(found, std::string::npos) << "'" << part << "' is missing in\n" << run.text;
    at = found;
  }
  // So few steps may or may not do; what is said must be what is returned.
  const bool solved = run.text.find("\nsolved: ") != std::string::npos;
  EXPECT_EQ(run.code, solved ? 0 : 1) << run.text;
  EXPECT_EQ(run.text.find("try another --seed or more --steps") == std::string::npos, solved);
  EXPECT_TRUE(std::filesystem::exists(store + "/MANIFEST"));
}

TEST(SupervisorTest, AStoreThatIsThereIsRefused) {
  const testing::TempDir dir;
  ReplayOptions options;
  options.directory = dir.File("store");
  options.create = true;
  AppendReporter reporter;
  ASSERT_TRUE((*Replay::Open(options, &reporter))->Close().ok());
  const Ended run = SuperviseInChild({.directory = options.directory, .steps = kStepsMin});
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.text.find("quickstart: AlreadyExists: "), std::string::npos) << run.text;
  EXPECT_NE(run.text.find(options.directory), std::string::npos) << run.text;
  EXPECT_EQ(run.text.find("before it was killed"), std::string::npos) << run.text;
}

TEST(SupervisorTest, ADirectoryForTemporaryFilesThatIsNotThereIsNamed) {
  const testing::TempDir dir;
  const std::string nowhere = dir.File("nowhere");
  const Ended run = SuperviseInChild({.directory = "", .steps = kStepsMin}, nowhere);
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.text.find("cannot make a directory in '" + nowhere + "': No such file"),
            std::string::npos)
      << run.text;
}

}  // namespace
}  // namespace geardb::quickstart
