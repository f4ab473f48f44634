#include "engine/removals.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "engine/write_batch.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using RemovalsTest = testing::StoreTest;

TEST_F(RemovalsTest, EachSaysWhy) {
  TableSpec spec = testing::StepSpec();
  spec.trajectories_max = 3;
  spec.priority_tables = {testing::WindowSpec("once")};
  spec.priority_tables[0].max_times_sampled = 1;
  spec.priority_tables[0].remove_when_exhausted = true;
  Create(spec);
  std::vector<TrajectoryId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(AppendClosed(i, 1));
  ASSERT_OK(table_->Remove({&ids[2], 1}));
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("once")->NewSampler({.batch = 2}));
  ASSERT_OK(sampler->Next());
  ASSERT_OK_AND_ASSIGN(const Removals found, table_->ReadRemovals(0));
  ASSERT_EQ(found.removals.size(), 4u);
  EXPECT_EQ(found.removals[0], (Removal{ids[0], RemovalReason::kCapacity, ""}));
  EXPECT_EQ(found.removals[1], (Removal{ids[2], RemovalReason::kByHand, ""}));
  for (size_t i = 2; i < 4; ++i) {
    EXPECT_EQ(found.removals[i].reason, RemovalReason::kExhausted);
  }
  EXPECT_EQ(found.next, 4u);
  EXPECT_EQ(found.missed, 0u);
  ASSERT_OK_AND_ASSIGN(const Removals two, table_->ReadRemovals(1, {.removals_max = 2}));
  EXPECT_EQ(two.removals,
            std::vector<Removal>(found.removals.begin() + 1, found.removals.begin() + 3));
  EXPECT_EQ(two.next, 3u);
  EXPECT_EQ(table_->Stats().removed_trajectories, 4u);
}

TEST_F(RemovalsTest, ACutThatLeavesNothingIsByHand) {
  Create(testing::StepSpec(/*final_row=*/true));
  const TrajectoryId id = Append(0, 1, End::kGo).id;
  ASSERT_OK_AND_ASSIGN(const Appended cut, writer_->Cut());
  EXPECT_EQ(cut.id, 0u);
  ASSERT_OK_AND_ASSIGN(const Removals found, table_->ReadRemovals(0));
  EXPECT_EQ(found.removals, (std::vector<Removal>{{id, RemovalReason::kByHand, ""}}));
}

TEST_F(RemovalsTest, WhatABatchRemovesIsByHandAlsoBesideAnAppend) {
  TableSpec spec = testing::StepSpec();
  spec.trajectories_max = 4;
  Create(spec);
  std::vector<TrajectoryId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(AppendClosed(10 * i, 2));
  const testing::Rows two(100, 2), other(200, 2);
  // One by hand, and for the second append one more, since the table is full.
  ASSERT_OK_AND_ASSIGN(const auto writer, table_->NewWriter({.lanes = 2}));
  WriteBatch batch;
  batch.Remove(table_, {&ids[2], 1});
  batch.AppendTrajectory(writer.get(), two.many(), {.lane = 0, .end = End::kTerminated});
  batch.AppendTrajectory(writer.get(), other.many(), {.lane = 1, .end = End::kTerminated});
  ASSERT_OK(database_->Write(batch));
  // Alone, without an append to its table.
  WriteBatch alone;
  alone.Remove(table_, {&ids[1], 1});
  ASSERT_OK(database_->Write(alone));
  AppendClosed(300, 1);
  AppendClosed(310, 1);  // The table is full again.
  const std::vector<Removal> expected = {{ids[2], RemovalReason::kByHand, ""},
                                         {ids[0], RemovalReason::kCapacity, ""},
                                         {ids[1], RemovalReason::kByHand, ""},
                                         {ids[3], RemovalReason::kCapacity, ""}};
  for (const bool reopened : {false, true}) {
    if (reopened) {
      Reopen();
      OpenAgain("steps");
    }
    ASSERT_OK_AND_ASSIGN(const Removals found, table_->ReadRemovals(0));
    EXPECT_EQ(found.removals, expected) << reopened;
  }
}

TEST_F(RemovalsTest, AReaderWaits) {
  Create(testing::StepSpec());
  const TrajectoryId id = AppendClosed(0, 3);
  ASSERT_OK_AND_ASSIGN(const Removals none, table_->ReadRemovals(0));
  EXPECT_TRUE(none.removals.empty());
  Removals seen;
  std::thread reader([&] {
    auto read = table_->ReadRemovals(0, {.timeout_ms = 600'000});
    if (read.ok()) seen = std::move(*read);
  });
  ASSERT_OK(table_->Remove({&id, 1}));
  reader.join();
  EXPECT_EQ(seen.removals, (std::vector<Removal>{{id, RemovalReason::kByHand, ""}}));
}

TEST_F(RemovalsTest, ReasonsHaveNames) {
  EXPECT_STREQ(RemovalReasonName(RemovalReason::kByHand), "by hand");
  EXPECT_STREQ(RemovalReasonName(RemovalReason::kDamaged), "damaged");
}

}  // namespace
}  // namespace geardb
