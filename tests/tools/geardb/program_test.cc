// The program geardb itself: exit codes, and outputs that cannot be written.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "tests/tools/geardb/cli_fixture.h"

namespace geardb {
namespace {

using testing::CliRun;

/// Reads until the other end is closed.
std::string ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  ::close(fd);
  return text;
}

class ProgramTest : public testing::CliTest {
 protected:
  /// Starts the program with these outputs, and returns waitpid's status.
  static int Spawn(std::vector<std::string> words, int out, int err) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(out, STDOUT_FILENO);
      ::dup2(err, STDERR_FILENO);
      ::signal(SIGPIPE, SIG_DFL);
      words.insert(words.begin(), GEARDB_CLI);
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      ::execv(GEARDB_CLI, arguments.data());
      ::_exit(99);
    }
    ::close(out);
    ::close(err);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
  /// For outputs that fit a pipe.
  static CliRun RunProgram(const std::vector<std::string>& words) {
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    EXPECT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(err.data(), O_CLOEXEC), 0);
    const int status = Spawn(words, out[1], err[1]);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return {WEXITSTATUS(status), ReadAll(out[0]), ReadAll(err[0])};
  }
};

TEST_F(ProgramTest, ItIsWhatTheLibrarySays) {
  const CliRun run = RunProgram({"head", store(), "arcade"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, Run("head", {"arcade"}).out);
  EXPECT_EQ(run.err, "");
}

TEST_F(ProgramTest, ExitCodesAreThoseOfHelp) {
  EXPECT_EQ(RunProgram({"verify", store()}).code, 0);
  EXPECT_EQ(RunProgram({"--help"}).code, 0);
  EXPECT_EQ(RunProgram({"info", Scratch("nowhere")}).code, 1);
  EXPECT_EQ(RunProgram({"info"}).code, 2);
  EXPECT_EQ(RunProgram({"info", store(), "--bogus"}).code, 2);
  Flip(RecordSaying("append 'walkers': rows 40…49").pieces[0]);
  EXPECT_EQ(RunProgram({"verify", store()}).code, 1);
}

TEST_F(ProgramTest, AFullDiskIsAnError) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "there is no /dev/full";
  std::array<int, 2> err{};
  ASSERT_EQ(::pipe2(err.data(), O_CLOEXEC), 0);
  const int status = Spawn({"info", store(), "--json"}, full, err[1]);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(ReadAll(err[0]), "geardb info: IoError: the output cannot be written\n");
}

TEST_F(ProgramTest, AClosedPipeEndsItAsItEndsOtherPrograms) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  ASSERT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(err.data(), O_CLOEXEC), 0);
  ::close(out[0]);
  const auto before = testing::FilesOf(store());
  const int status = Spawn({"log", store(), "-n", "0"}, out[1], err[1]);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGPIPE);
  EXPECT_EQ(ReadAll(err[0]), "");
  EXPECT_TRUE(testing::FilesOf(store()) == before);
}

}  // namespace
}  // namespace geardb
