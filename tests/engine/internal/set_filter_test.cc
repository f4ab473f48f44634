// Filters that are set, and what they expire.
#include "engine/internal/set_filter.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/internal/live_core.h"
#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::WindowSpec;
using SetFilterTest = testing::StoreTest;

TEST_F(SetFilterTest, WhatFailsExpiresOnceItIsClosed) {
  TableSpec spec = testing::StepSpec();
  spec.priority_tables = {WindowSpec("fresh"), WindowSpec("all")};
  spec.priority_tables[0].filter = "version >= 3";
  spec.priority_tables[0].filter_action = FilterAction::kExpire;
  Create(spec);
  const uint32_t versions[] = {5, 2, 3};
  std::vector<TrajectoryId> ids;
  for (const uint32_t version : versions) {
    const ColumnValue value{"version", TensorView::Scalar(version)};
    const testing::Rows rows(0, 4);
    ASSERT_OK_AND_ASSIGN(const Appended open,
                         writer_->AppendSteps(rows.many(), {.trajectory = {&value, 1}}));
    ids.push_back(open.id);
    // An open one that fails is hidden.
    EXPECT_EQ(priority("fresh")->Stats().filtered_items, version < 3 ? 4u : 0u);
    ASSERT_OK(writer_->AppendSteps(rows.many(), {.end = End::kTerminated}));
  }
  EXPECT_EQ(table_->Stats().trajectories, 2u);
  EXPECT_EQ(table_->Stats().removed_by[static_cast<size_t>(RemovalReason::kFilter)], 1u);
  ASSERT_OK_AND_ASSIGN(Removals removed, table_->ReadRemovals(0));
  EXPECT_EQ(removed.removals, (std::vector<Removal>{{ids[1], RemovalReason::kFilter, "fresh"}}));
  EXPECT_EQ(removed.next, 1u);
  ASSERT_OK(priority("fresh")->SetFilter("version >= 4", FilterAction::kExpire));
  ASSERT_OK(table_->Remove({&ids[0], 1}));
  ASSERT_OK_AND_ASSIGN(removed, table_->ReadRemovals(removed.next));
  EXPECT_EQ(removed.removals, (std::vector<Removal>{{ids[2], RemovalReason::kFilter, "fresh"},
                                                    {ids[0], RemovalReason::kByHand, ""}}));
  EXPECT_EQ(table_->Stats().trajectories, 0u);
  Reopen();
  // The stored filter holds, whatever the learner opens with.
  ASSERT_OK_AND_ASSIGN(table_, database_->OpenOrCreateTable(spec));
  EXPECT_EQ(table_->spec().priority_tables[0].filter, "version >= 4");
  ASSERT_OK_AND_ASSIGN(removed, table_->ReadRemovals(0));
  EXPECT_EQ(removed.removals.size(), 3u);
  EXPECT_STATUS(kInvalidArgument, table_->ReadRemovals(4), "number 4");
  EXPECT_STATUS(kInvalidArgument, table_->ReadRemovals(0, {.removals_max = 0}), "removals_max");
}

TEST_F(SetFilterTest, WhoWaitsIsToldThatAllIsHidden) {
  TableSpec spec = testing::StepSpec();
  spec.priority_tables = {WindowSpec("fresh")};
  spec.priority_tables[0].filter = "length > 8";
  Create(spec);
  AppendClosed(0, 2);
  AppendClosed(2, 3);
  EXPECT_EQ(priority("fresh")->WhyBlocked().samples.reason,
            "no item can be drawn: of 5 items 5 fail the filter");
  auto sampler = priority("fresh")->NewSampler({.batch = 2});
  ASSERT_OK(sampler);
  EXPECT_STATUS(kDeadlineExceeded, (*sampler)->Next(Deadline::Now()),
                "has nothing to draw: of 5 items 5 fail the filter");
}

TEST_F(SetFilterTest, WhatExpiredByACrashLeavesAtTheNextOpen) {
  TableSpec spec = testing::StepSpec();
  spec.priority_tables = {WindowSpec("fresh")};
  Create(spec);
  for (int i = 0; i < 3; ++i) AppendClosed(i * 10, 2 + i);
  // As a process that died behind the record of the filter: what it expires is still there.
  {
    const auto core = testing::CoreOf(*database_);
    const auto table = core->FindTable("steps");
    MutexLock lock(&table->state->mutex);
    ASSERT_OK(table->state->PrepareFilter(0));
    flatbuffers::FlatBufferBuilder body;
    body.Finish(engine::fb::CreateSetFilter(body, body.CreateString("length > 2"), 1));
    table->state->Apply(*flatbuffers::GetRoot<engine::fb::SetFilter>(body.GetBufferPointer()), 0);
  }
  EXPECT_EQ(table_->Stats().trajectories, 3u);
  EXPECT_EQ(priority("fresh")->DrawableCount(), 7u);
  ASSERT_OK(priority("fresh")->SetFilter("length > 2", FilterAction::kExpire));
  EXPECT_EQ(table_->Stats().trajectories, 2u);
}

TEST_F(SetFilterTest, FiltersThatCannotStandAreRefused) {
  TableSpec spec = testing::StepSpec();
  spec.priority_tables = {WindowSpec("hides")};
  spec.priority_tables[0].filter = "version >= 1";
  Create(spec);
  PriorityTable* const table = priority("hides");
  EXPECT_STATUS(kInvalidArgument, table->SetFilter("version >="), "the filter of");
  EXPECT_STATUS(kNotFound, table->SetFilter("colour == 3"), "colour");
  EXPECT_STATUS(kInvalidArgument, table->SetFilter("reward > 0"), "per step");
  EXPECT_STATUS(kInvalidArgument, table->SetFilter("!(times_sampled > 2)"), "max_times_sampled");
  EXPECT_STATUS(kInvalidArgument, table->SetFilter(std::string(5000, ' ') + "true"), "characters");
  EXPECT_STATUS(kInvalidArgument, table->SetFilter("true", static_cast<FilterAction>(7)), "action");
  PriorityTableSpec epochs = WindowSpec("epochs");
  epochs.selector = SelectorKind::kEpoch;
  epochs.filter = "true";
  EXPECT_STATUS(kInvalidArgument, table_->CreatePriorityTable(epochs), "epochs take none");
  TableSpec wrong = testing::StepSpec();
  wrong.name = "wrong";
  wrong.priority_tables = {WindowSpec("one")};
  wrong.priority_tables[0].filter = "colour == 3";
  EXPECT_STATUS(kNotFound, database_->CreateTable(wrong), "colour");
  EXPECT_STATUS(kNotFound, database_->OpenTable("wrong"), "wrong");
  EXPECT_EQ(table_->spec().priority_tables[0].filter, "version >= 1");
}

TEST_F(SetFilterTest, AColumnThatAFilterNamesStays) {
  TableSpec spec = testing::StepSpec();
  spec.priority_tables = {WindowSpec("one")};
  Create(spec);
  ASSERT_OK(priority("one")->SetFilter("length > 2 || !(version in {1, 2})"));
  const std::string_view version[] = {"version"};
  EXPECT_STATUS(kFailedPrecondition, table_->DropColumns(version), "the filter of");
  ASSERT_OK(priority("one")->SetFilter(""));
  ASSERT_OK(table_->DropColumns(version));
  EXPECT_STATUS(kNotFound, priority("one")->SetFilter("version > 2"), "version");
}

TEST_F(SetFilterTest, APriorityTableThatComesLaterHidesWhatFails) {
  Create(testing::StepSpec());
  for (int i = 0; i < 6; ++i) AppendClosed(i * 10, 1 + i);
  PriorityTableSpec late = WindowSpec("late");
  late.filter = "length > 3";
  late.filter_action = FilterAction::kExpire;
  ASSERT_OK(table_->CreatePriorityTable(late));
  EXPECT_EQ(table_->Stats().trajectories, 3u);
  EXPECT_EQ(table_->priority_table("late")->DrawableCount(), 4u + 5u + 6u);
}

}  // namespace
}  // namespace geardb
