#include "engine/internal/cold_first_use.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "engine/database.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/temp_dir.h"

namespace geardb {
namespace {

TEST(ColdFirstUseTest, LeavesNothingOnTheDisk) {
  engine::UseColdStoreOnce();
  engine::UseColdStoreOnce();
  EXPECT_FALSE(std::filesystem::exists("/first"));
}

/// Ends the process while another thread appends, somewhere about when the cleaner makes its store.
void ExitWhileItFills(const std::string& directory, int64_t after_ms) {
  constexpr int64_t kFirstUseRowBytes = 4096;
  DatabaseOptions options;
  options.budgets.frames_bytes = 8 << 20;
  options.ring_bytes = 1 << 20;
  options.log_bytes_max = 4 << 20;
  auto* const database = Database::Open(directory, options).value().release();
  TableSpec spec{.name = "frames"};
  spec.columns = {{.name = "frame", .dtype = DType::kU8, .shape = {kFirstUseRowBytes}}};
  const auto table = database->CreateTable(spec).value();
  static const auto* const never_joined = new std::thread([table] {
    const auto writer = table->NewWriter({});
    const std::vector<uint8_t> bytes(16 * kFirstUseRowBytes);
    const TensorView rows(bytes.data(), DType::kU8, Shape({16, kFirstUseRowBytes}));
    while (writer.ok()) {
      (void)(*writer)->AppendTrajectory({{"frame", rows}}, {.end = End::kTerminated});
    }
  });
  (void)never_joined;
  Mutex mutex;
  CondVar nothing;
  MutexLock lock(&mutex);
  const Deadline deadline = Deadline::AfterMs(after_ms);
  while (nothing.WaitUntil(&mutex, deadline)) {
  }
  std::exit(0);
}

// Three of ten died of static objects that RocksDB was making as it was opened.
TEST(ColdFirstUseDeathTest, AnotherThreadMayExitWhileTheCleanerMakesItsStore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // In processes that have not used it yet.
  const testing::TempDir dir;
  for (uint64_t i = 0; i < testing::ShareOf(40); ++i) {
    EXPECT_EXIT(ExitWhileItFills(dir.File(std::to_string(i)), static_cast<int64_t>(i)),
                ::testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace geardb
