// What was found to have expired may pass its filter again by the time that it is removed: it was
// removed all the same, behind a SetColumns that had been acknowledged.
//
// concurrent: engine/internal/table_change.cc engine/internal/set_filter.cc
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "engine/internal/table_change.h"
#include "engine/write_batch.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

/// A table that removes the closed trajectories of version 0.
class FinishedAgainConcurrentTest : public testing::StoreTest {
 protected:
  static constexpr int kRounds = 300;
  static constexpr int kSetters = 3;

  void SetUp() override {
    StoreTest::SetUp();
    TableSpec spec = testing::StepSpec();
    spec.priority_tables = {testing::WindowSpec("passing")};
    spec.priority_tables[0].selector = SelectorKind::kUniform;
    spec.priority_tables[0].filter = "version >= 1";
    spec.priority_tables[0].filter_action = FilterAction::kExpire;
    Create(spec);
  }
  TrajectoryId AppendPassing() {
    const testing::Rows rows(0, 1);
    const uint32_t version = 1;
    const ColumnValue passes[] = {{"version", TensorView::Scalar(version)}};
    const auto appended =
        writer_->AppendSteps(rows.many(), {.end = End::kTerminated, .trajectory = passes});
    EXPECT_OK(appended);
    return appended.ok() ? appended->id : 0;
  }
  /// Where the record ends; 0: the trajectory had left.
  Lsn SetVersion(TrajectoryId id, uint32_t version) {
    const ColumnValue value[] = {{"version", TensorView::Scalar(version)}};
    WriteBatch batch;
    batch.SetColumns(table_, id, value);
    const auto written = database_->Write(batch);
    if (written.ok()) return written->end_lsn;
    EXPECT_STATUS(kNotFound, written, "has no trajectory");
    return 0;
  }
};

TEST_F(FinishedAgainConcurrentTest, WhatWasSetToPassIsThere) {
  for (int round = 0; round < kRounds; ++round) {
    const TrajectoryId id = AppendPassing();
    std::array<Lsn, kSetters> passes = {};
    std::atomic<int> begun{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> setters;
    for (Lsn& last : passes) {
      setters.emplace_back([&] {
        last = SetVersion(id, 1);
        ++begun;
        while (!stop) {
          const Lsn end = SetVersion(id, 1);
          if (end == 0) return;
          last = end;
        }
      });
    }
    while (begun < kSetters) std::this_thread::yield();
    const Lsn fails = SetVersion(id, 0);
    stop = true;
    for (std::thread& setter : setters) setter.join();
    const bool passed_last = *std::max_element(passes.begin(), passes.end()) > fails;
    ASSERT_EQ(table_->Find(id).ok(), passed_last) << "round " << round;
    if (!passed_last) continue;
    ASSERT_OK(table_->Remove({&id, 1}));
  }
}

using FinishedAgainTest = FinishedAgainConcurrentTest;

TEST_F(FinishedAgainTest, WhatIsNotFoundAgainStays) {
  const TrajectoryId id = AppendPassing();
  const auto core = testing::CoreOf(*database_);
  int asked = 0;
  const auto find_once = [&](const engine::TableState&) {
    engine::FinishedByCause found;
    if (asked++ == 0) found[{RemovalReason::kFilter}].push_back(id);
    return found;
  };
  EXPECT_OK(engine::RemoveAllOf(core.get(), core->TableById(table_->id()), find_once));
  EXPECT_OK(table_->Find(id));
}

}  // namespace
}  // namespace geardb
