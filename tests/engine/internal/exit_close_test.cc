// concurrent: engine/internal/exit_close.cc
// A process that exits with databases open closes them, and does not die of their threads.
#include "engine/internal/exit_close.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "engine/database.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb {
namespace {

constexpr int64_t kExitRowBytes = 4096;

DatabaseOptions ExitOptions() {
  DatabaseOptions options;
  options.budgets.frames_bytes = 8 << 20;
  options.ring_bytes = 1 << 20;
  options.log_bytes_max = 4 << 20;
  return options;
}

/// The cleaner, flushes and compactions are under way when it returns.
Status KeepBusy(Database* database) {
  TableSpec spec{.name = "frames"};
  spec.columns = {{.name = "frame", .dtype = DType::kU8, .shape = {kExitRowBytes}}};
  GEARDB_ASSIGN_OR_RETURN(const auto table, database->CreateTable(spec));
  GEARDB_ASSIGN_OR_RETURN(const auto writer, table->NewWriter({}));
  std::vector<uint8_t> bytes(16 * kExitRowBytes);
  for (uint64_t i = 0; i < 100; ++i) {
    for (size_t at = 0; at < bytes.size(); at += 64) bytes[at] = static_cast<uint8_t>(i + at / 64);
    const TensorView rows(bytes.data(), DType::kU8, Shape({16, kExitRowBytes}));
    GEARDB_RETURN_IF_ERROR(
        writer->AppendTrajectory({{"frame", rows}}, {.end = End::kTerminated}).status());
  }
  return Status::Ok();
}

/// Ends the process as a learner does that does not think of its database.
void ExitBusy(const std::string& directory) {
  static std::vector<std::unique_ptr<Database>>* const never_closed =
      new std::vector<std::unique_ptr<Database>>;
  auto database = Database::Open(directory, ExitOptions());
  Status status = database.status();
  if (database.ok()) {
    status = KeepBusy(database->get());
    never_closed->push_back(std::move(*database));
  }
  std::exit(status.ok() ? 0 : 1);
}

// Every other one died of a thread that used RocksDB's static objects.
TEST(ExitCloseDeathTest, AProcessThatExitsDoesNotDieAndItsDatabaseIsClosed) {
  const testing::TempDir dir;
  for (uint64_t i = 0; i < testing::ShareOf(12); ++i) {
    const std::string directory = dir.File(std::to_string(i));
    EXPECT_EXIT(ExitBusy(directory), ::testing::ExitedWithCode(0), "");
    ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(directory, ExitOptions()));
    EXPECT_TRUE(database->recovery().clean);
    EXPECT_EQ(database->OpenTable("frames").value()->Count(), 100u);
  }
}

// It waited for a thread of RocksDB that only the parent has.
TEST(ExitCloseTest, AForkOfABusyProcessEndsWithItsStatus) {
  const testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(dir.path(), ExitOptions()));
  ASSERT_OK(KeepBusy(database.get()));
  for (uint64_t i = 0; i < testing::ShareOf(8); ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      std::exit(3);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
  }
  EXPECT_EQ(database->OpenTable("frames").value()->Count(), 100u);
}

TEST(ExitCloseTest, EachIsClosedOnceUnlessItIsForgotten) {
  int closed[3] = {};
  for (int& count : closed) engine::CloseAtExit(&count, [&count] { ++count; });
  engine::ForgetAtExit(&closed[1]);
  engine::CloseAllForExit();
  engine::CloseAllForExit();
  EXPECT_EQ(closed[0], 1);
  EXPECT_EQ(closed[1], 0);
  EXPECT_EQ(closed[2], 1);
}

TEST(ExitCloseTest, AForkLeavesItToTheProcessThatOpenedIt) {
  int closed = 0;
  engine::CloseAtExit(&closed, [&closed] { ++closed; });
  const pid_t child = ::fork();
  if (child == 0) {
    const bool inherited = engine::CloseAllForExit();
    ::_exit(inherited ? closed : 7);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(engine::CloseAllForExit());
  EXPECT_EQ(closed, 1);
}

TEST(ExitCloseTest, AForkWhileADatabaseIsOpenedHasInheritedIt) {
  const engine::OpeningBeforeExit opening;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(engine::CloseAllForExit() ? 5 : 7);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5) << status;
}

// It went on under the open, and destroyed what that used.
TEST(ExitCloseConcurrentTest, AnExitWaitsForWhatIsOpenedAndClosesIt) {
  for (int i = 0; i < 50; ++i) {
    std::atomic<int> closed{0};
    std::atomic<bool> exits{false};
    std::thread exit;
    {
      const engine::OpeningBeforeExit opening;
      exit = std::thread([&] {
        exits.store(true);
        engine::CloseAllForExit();
      });
      while (!exits.load()) std::this_thread::yield();
      engine::CloseAtExit(&closed, [&closed] { ++closed; });
    }
    exit.join();
    // It may have come before the exit began, and then it waits for nothing.
    engine::CloseAllForExit();
    EXPECT_EQ(closed.load(), 1);
  }
}

TEST(ExitCloseConcurrentTest, WhoForgetsWaitsForAnExitThatCloses) {
  for (int i = 0; i < 50; ++i) {
    std::atomic<bool> alive{true};
    std::atomic<int> closed{0};
    engine::CloseAtExit(&alive, [&] {
      std::this_thread::yield();
      EXPECT_TRUE(alive.load());
      ++closed;
    });
    std::thread exits([] { engine::CloseAllForExit(); });
    engine::ForgetAtExit(&alive);
    alive.store(false);
    exits.join();
    EXPECT_LE(closed.load(), 1);
  }
}

}  // namespace
}  // namespace geardb
