// Scans beside writers, whose pages leave while they are read.
// concurrent: engine/internal/table_scan.h engine/internal/table_scan.cc

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "engine/internal/table_scan.h"
#include "tests/testing/drop_frames.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/store_fixture.h"
#include "tests/testing/waiting_env.h"

namespace geardb {
namespace {

using testing::ShareOf;

class TableScanConcurrentTest : public testing::StoreTest {};

TEST_F(TableScanConcurrentTest, EachScanSeesOneMoment) {
  constexpr uint64_t kTrajectories = 50;
  constexpr int kSteps = 5;
  Create({.name = "t",
          .columns = {{.name = "number", .dtype = DType::kI64},
                      {.name = "once", .dtype = DType::kI64, .kind = ColumnKind::kPerTrajectory}},
          .steps_per_page = 4,
          .trajectories_max = kTrajectories});
  const auto append = [&](int64_t number) {
    const std::vector<int64_t> rows(kSteps, number);
    const ColumnValue once[] = {{"once", TensorView::Scalar(number)}};
    ASSERT_OK(writer_->AppendSteps({{"number", TensorView::Of(std::span<const int64_t>(rows))}},
                                   {.end = End::kTerminated, .trajectory = once}));
  };
  int64_t next = 0;
  for (; next < static_cast<int64_t>(kTrajectories); ++next) append(next);
  std::atomic<bool> done{false};
  std::thread appending([&] {
    for (const auto end = static_cast<int64_t>(ShareOf(4000)); next < end; ++next) append(next);
    done.store(true);
  });
  uint64_t scans = 0;
  while (!done.load() || scans < 10) {
    ++scans;
    const auto steps = table_->Statistics("number");
    const auto once = table_->Statistics("once");
    // The oldest leaves in the record that brings the newest: always so many, and consecutive.
    if (!steps.ok() || !once.ok() || steps->count != kTrajectories * kSteps ||
        steps->max - steps->min != kTrajectories - 1 || once->count != kTrajectories ||
        once->max - once->min != kTrajectories - 1 ||
        steps->mean != (steps->max + steps->min) / 2) {
      ADD_FAILURE() << steps.status().ToString() << ' ' << steps->count << ' ' << steps->min << ' '
                    << steps->max << ' ' << steps->mean;
      break;
    }
  }
  appending.join();
}

/// A table whose pages are read from a log that the test holds up.
using HeldUpScanConcurrentTest = testing::WaitingStoreTest;

// Thrice as many pages as one guard is for.
TEST_F(HeldUpScanConcurrentTest, DoesNotKeepWhatLeavesBeforeItComesThere) {
  constexpr uint64_t kTrajectories = 3000;
  Create(testing::StepSpec());
  for (uint64_t i = 0; i < kTrajectories; ++i) AppendClosed(static_cast<int64_t>(4 * i), 4);
  ASSERT_GT(testing::DropFrames(*database_), 0u);
  const uint64_t before = table_->StepCount();
  env_.LetRead(kTrajectories / 3);
  uint64_t counted = 0;
  std::thread scan([&] {
    const auto statistics = table_->Statistics("action");
    ASSERT_OK(statistics);
    counted = statistics->count;
  });
  while (!env_.HeldUp()) std::this_thread::yield();
  const TrajectoryId last[] = {kTrajectories};
  EXPECT_OK(table_->Remove(last));
  AppendClosed(0, 4);  // Takes its slot, and is not of the scan.
  env_.LetAllRead();
  scan.join();
  EXPECT_EQ(counted, before - 4);
}

}  // namespace
}  // namespace geardb
