// Patches beside writers of the same pages, samplers and removals.
//
// concurrent: engine/internal/patch.h engine/internal/patch.cc
#include "engine/internal/patch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

/// One trajectory grows row by row while its rewards are patched over and over: each row's reward
/// is its own number, or what a patch said of it.
class PatchConcurrentTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    options_.ring_bytes = uint64_t{1} << 20;
    Open();
    TableSpec spec = testing::StepSpec();
    spec.steps_per_page = 16;
    spec.groups = {{.name = "late", .late = true}};
    spec.columns.push_back({.name = "target", .group = "late", .default_value = -1});
    spec.priority_tables = {testing::WindowSpec("per")};
    Create(spec, {.lanes = 1, .ack = Ack::kMemory});
  }
  std::vector<float> Floats(TrajectoryId id, std::string_view column) const {
    const auto rows = table_->Read(id, {&column, 1}, {});
    EXPECT_OK(rows);
    const auto values = (*rows)[0].view().values<float>();
    return {values.begin(), values.end()};
  }
  Status PatchAll(TrajectoryId id, int64_t rows, float value) {
    const std::vector<float> values(static_cast<size_t>(rows), value);
    const TensorView view = TensorView::Of(std::span<const float>(values));
    const ColumnValue columns[] = {{"reward", view}, {"target", view}};
    const RowSpan span{id, 0, rows};
    return table_->Patch({&span, 1}, columns).status();
  }
};

TEST_F(PatchConcurrentTest, AWriterLosesNoRowToAPatchOfItsPage) {
  constexpr int64_t kRows = 3000;
  const TrajectoryId id = Append(0, 1).id;
  std::atomic<int64_t> appended{1};
  std::thread writer([&] {
    for (int64_t row = 1; row < kRows; ++row) {
      Append(row, 1);
      appended.store(row + 1);
    }
  });
  int patches = 0;
  int64_t patched = 0;
  do {
    ++patches;
    const Result<TrajectoryRecord> record = table_->Find(id);
    ASSERT_OK(record);
    ASSERT_OK(PatchAll(id, record->rows_end, static_cast<float>(-patches)));
    patched = record->rows_end;
  } while (appended.load() < kRows);
  writer.join();
  ASSERT_OK(database_->Sync());
  const auto check = [&] {
    EXPECT_EQ(Numbers(id), testing::Count(0, kRows));
    const std::vector<float> rewards = Floats(id, "reward");
    const std::vector<float> targets = Floats(id, "target");
    ASSERT_EQ(rewards.size(), static_cast<size_t>(kRows));
    for (int64_t row = 0; row < kRows; ++row) {
      const auto r = static_cast<size_t>(row);
      const bool was = row < patched;
      EXPECT_EQ(rewards[r], was ? static_cast<float>(-patches) : static_cast<float>(row) / 4);
      EXPECT_EQ(targets[r], was ? static_cast<float>(-patches) : -1.0f) << row;
    }
  };
  check();
  Reopen();
  OpenAgain("steps");
  check();
}

TEST_F(PatchConcurrentTest, ABatchShowsAPageBeforeAPatchOrAfterIt) {
  std::vector<TrajectoryId> ids;
  for (int i = 0; i < 8; ++i) ids.push_back(AppendClosed(0, 16));
  for (const TrajectoryId id : ids) ASSERT_OK(PatchAll(id, 16, 0));
  std::atomic<bool> stop{false};
  std::thread patcher([&] {
    for (int round = 1; !stop.load(); ++round) {
      ASSERT_OK(PatchAll(ids[static_cast<size_t>(round) % 8], 16, static_cast<float>(round)));
    }
  });
  const auto sampler = priority("per")->NewSampler(
      {.batch = 64, .views = {{.column = "reward"}, {.column = "target"}}, .prefetch = 2});
  ASSERT_OK(sampler);
  for (int i = 0; i < 300; ++i) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, (*sampler)->Next());
    const auto rewards = batch["reward"].values<float>();
    const auto targets = batch["target"].values<float>();
    EXPECT_TRUE(std::equal(rewards.begin(), rewards.end(), targets.begin()))
        << "the two groups of a patch are one change";
  }
  stop.store(true);
  patcher.join();
}

TEST_F(PatchConcurrentTest, WhatIsRemovedMeanwhileIsStale) {
  for (int round = 0; round < 60; ++round) {
    const TrajectoryId id = AppendClosed(0, 40);
    std::thread remover([&] { ASSERT_OK(table_->Remove({&id, 1})); });
    const Status patched = PatchAll(id, 40, 5);
    remover.join();
    ASSERT_OK(patched);
    EXPECT_EQ(table_->Count(), 0u);
  }
  EXPECT_EQ(table_->Stats().frame_bytes, 0u);
}

}  // namespace
}  // namespace geardb
