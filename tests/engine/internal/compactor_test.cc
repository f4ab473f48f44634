// concurrent: engine/internal/compactor.h engine/internal/compactor.cc
// Compactions for space run beside the passes of the cleaner, and end with the database.
#include "engine/internal/compactor.h"

#include <filesystem>
#include <string_view>
#include <thread>
#include <vector>

#include "base/crash_point.h"
#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

/// Holds who comes to the crash point "compaction" there.
struct Gate {
  Mutex mutex;
  CondVar changed;
  bool closed GEARDB_GUARDED_BY(mutex) = false;
  int inside GEARDB_GUARDED_BY(mutex) = 0;
  int passes GEARDB_GUARDED_BY(mutex) = 0;  // So many come by, though it is closed.

  static Gate& The() {
    static Gate gate;
    return gate;
  }
  static void Pass(const char* point) {
    if (std::string_view(point) != "compaction") return;
    Gate& gate = The();
    MutexLock lock(&gate.mutex);
    if (gate.passes > 0) {
      --gate.passes;
      return;
    }
    ++gate.inside;
    gate.changed.NotifyAll();
    while (gate.closed) gate.changed.WaitUntil(&gate.mutex, Deadline::Infinite());
    --gate.inside;
  }
  void Close(int but_for = 0) {
    MutexLock lock(&mutex);
    closed = true;
    passes = but_for;
  }
  void Open() {
    MutexLock lock(&mutex);
    closed = false;
    passes = 0;
    changed.NotifyAll();
  }
  void WaitForOne() {
    MutexLock lock(&mutex);
    while (inside == 0) changed.WaitUntil(&mutex, Deadline::Infinite());
  }
};

class CompactorConcurrentTest : public FramesTest {
 protected:
  void SetUp() override {
    options_.log_bytes_max = 8 << 20;  // Eight segments.
    FramesTest::SetUp();
    SetCrashHook(Gate::Pass);
  }
  void TearDown() override {
    Gate::The().Open();
    FramesTest::TearDown();
    SetCrashHook(nullptr);
  }
  engine::Cleaner& Cleaner() { return *testing::CoreOf(*database_)->cleaner; }
  /// Cold files whose space is to be given back, but for an empty table's.
  void DropWhatIsCold() {
    for (int i = 0; i < 300; ++i) Add(8, 8);
    ASSERT_OK(Cleaner().CleanNow(/*all=*/true));
    ASSERT_GT(ColdBytes(), 6u << 20);
    writer_.reset();
    table_.reset();
    ASSERT_OK(database_->DropTable("frames"));
    Make();
    numbers_.clear();
  }
  uint64_t ColdBytes() { return database_->Stats().cold.disk_bytes; }
};

TEST_F(CompactorConcurrentTest, PassesDoNotWaitForIt) {
  Gate::The().Close();
  DropWhatIsCold();
  for (int i = 0; i < 60; ++i) Add(8, 8);  // Segments for the next pass.
  ASSERT_OK(Cleaner().CleanNow(/*all=*/true));
  Gate::The().WaitForOne();
  // Many times what the log holds, while the compaction stands still.
  const uint64_t before = Cleaner().stats().segments;
  for (int i = 0; i < 600; ++i) Add(8, 8);
  EXPECT_GT(Cleaner().stats().segments, before + 8);
  Gate::The().Open();
  Cleaner().compactor().WaitIdle();
  ASSERT_OK(Cleaner().stats().last);
  ExpectAll();
}

TEST_F(CompactorConcurrentTest, TheSpaceOfADroppedTableComesBack) {
  DropWhatIsCold();
  for (int i = 0; i < 30; ++i) Add(8, 8);
  ASSERT_OK(Cleaner().CleanNow(/*all=*/true));
  Cleaner().compactor().WaitIdle();
  ASSERT_OK(Cleaner().compactor().last());
  EXPECT_LT(ColdBytes(), 3u << 20);
  EXPECT_FALSE(testing::CoreOf(*database_)->cold->if_open()->NeedsCompaction());
  ExpectAll();
}

// No file is without a page that is still there.
TEST_F(CompactorConcurrentTest, TheSpaceOfWhatIsRemovedHereAndThereComesBack) {
  for (int i = 0; i < 300; ++i) Add(8, 8);
  ASSERT_OK(Cleaner().CleanNow(/*all=*/true));
  const uint64_t before = ColdBytes();
  ASSERT_GT(before, 6u << 20);
  std::vector<TrajectoryId> removed;
  for (const auto& [id, number] : numbers_) {
    if (number % 4 != 0) removed.push_back(id);
  }
  ASSERT_OK(table_->Remove(removed));
  for (const TrajectoryId id : removed) numbers_.erase(id);
  for (int i = 0; i < 30; ++i) Add(8, 8);
  ASSERT_OK(Cleaner().CleanNow(/*all=*/true));
  Cleaner().compactor().WaitIdle();
  ASSERT_OK(Cleaner().compactor().last());
  EXPECT_LT(ColdBytes(), before * 2 / 3);
  EXPECT_FALSE(testing::CoreOf(*database_)->cold->if_open()->NeedsCompaction());
  ExpectAll();
}

// Tables that are dropped while a compaction runs want another.
TEST_F(CompactorConcurrentTest, WhatIsDroppedMeanwhileIsCompactedNext) {
  Gate::The().Close();
  DropWhatIsCold();
  for (int i = 0; i < 60; ++i) Add(8, 8);  // Segments for the next pass.
  ASSERT_OK(Cleaner().CleanNow(/*all=*/true));
  Gate::The().WaitForOne();
  DropWhatIsCold();
  for (int i = 0; i < 30; ++i) Add(8, 8);
  ASSERT_OK(Cleaner().CleanNow(/*all=*/true));
  Gate::The().Open();
  Cleaner().compactor().WaitIdle();
  EXPECT_LT(ColdBytes(), 3u << 20);
  EXPECT_FALSE(testing::CoreOf(*database_)->cold->if_open()->NeedsCompaction());
  ExpectAll();
}

TEST_F(CompactorConcurrentTest, WithoutThreadsThePassCompacts) {
  options_.background = false;
  Again();
  DropWhatIsCold();
  for (int i = 0; i < 30; ++i) Add(8, 8);
  ASSERT_OK(Cleaner().CleanNow(/*all=*/true));
  EXPECT_LT(ColdBytes(), 3u << 20);
  EXPECT_FALSE(testing::CoreOf(*database_)->cold->if_open()->NeedsCompaction());
  ExpectAll();
}

TEST_F(CompactorConcurrentTest, ACloseEndsIt) {
  Gate::The().Close();
  DropWhatIsCold();
  for (int i = 0; i < 60; ++i) Add(8, 8);  // Segments for the next pass.
  ASSERT_OK(Cleaner().CleanNow(/*all=*/true));
  Gate::The().WaitForOne();
  const auto core = testing::CoreOf(*database_);
  core->cold->if_open()->EndCompactions();
  Gate::The().Open();
  core->cleaner->compactor().WaitIdle();
  EXPECT_OK(core->cleaner->compactor().last());  // Being ended is no failure.
  EXPECT_STATUS(kCancelled, core->cold->if_open()->CompactForSpace(), "closed");
  Again();
  ExpectAll();
  for (int i = 0; i < 30; ++i) Add(8, 8);
  ASSERT_OK(Cleaner().CleanNow(/*all=*/true));
  Cleaner().compactor().WaitIdle();
  ExpectAll();
}

}  // namespace
}  // namespace geardb
