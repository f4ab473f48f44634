// Draw groups that are sealed by hand, and by a deadline: with a clock of the test's, and over
// reopens. (Random programs: table_draw_groups_test.cc.)
#include "engine/internal/seal_groups.h"

#include <thread>

#include "tests/engine/internal/draw_groups_fixture.h"
#include "tests/engine/internal/live_core.h"

namespace geardb {
namespace {

class SealGroupsTest : public testing::DrawGroupsFixture {
 protected:
  static GroupSpec TwoAfter100Ms() {
    return {.key = "prompt", .count = 4, .at_least = 2, .deadline_ms = 100};
  }
};

TEST_F(SealGroupsTest, ASealedGroupIsReadyAndTakesNoMore) {
  Create(TableOf(GroupsSpec(Four())));
  const std::vector<TrajectoryId> first = CompleteSome(7, 3);
  EXPECT_EQ(groups()->Count(), 0u);
  EXPECT_STATUS(kNotFound, groups()->SealGroup(8), "group of key 8 that takes members");
  ASSERT_OK(groups()->SealGroup(7));
  EXPECT_EQ(Groups(), (GroupStats{.ready = 1, .members = 3, .sealed_by_hand = 1}));
  EXPECT_STATUS(kNotFound, groups()->SealGroup(7), "");
  Complete(7);
  EXPECT_EQ(Groups(), (GroupStats{.waiting = 1, .ready = 1, .members = 4, .sealed_by_hand = 1}));
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Groups(), (GroupStats{.waiting = 1, .ready = 1, .members = 4, .sealed_by_hand = 1}));
  ASSERT_OK(groups()->SealGroup(7));
  EXPECT_EQ(groups()->Items().size(), 2u);
}

TEST_F(SealGroupsTest, KOfNTakesMoreUntilItIsSealed) {
  Create(TableOf(GroupsSpec({.key = "prompt", .count = 4, .at_least = 2})));
  CompleteSome(7, 3);
  EXPECT_EQ(Groups(), (GroupStats{.ready = 1, .members = 3, .taking = 1}));
  ASSERT_OK(groups()->SealGroup(7));
  EXPECT_EQ(Groups(), (GroupStats{.ready = 1, .members = 3, .sealed_by_hand = 1}));
  Complete(7);
  EXPECT_EQ(Groups().waiting, 1u);
}

TEST_F(SealGroupsTest, OneThatCanBeDrawnNoMoreTakesNoneAndIsNotSealed) {
  PriorityTableSpec spec = GroupsSpec({.key = "prompt", .count = 4, .at_least = 2});
  spec.max_times_sampled = 1;
  Create(TableOf(spec));
  const std::vector<TrajectoryId> deleted = CompleteSome(7, 2);
  CompleteSome(8, 3);
  const RowId row{deleted[1], 0};
  ASSERT_OK(groups()->Delete({&row, 1}));
  EXPECT_STATUS(kNotFound, groups()->SealGroup(7), "group of key 7 that takes members");
  const auto sampler = SampleGroups({.batch = 1, .views = {{.column = "obs"}}});
  ASSERT_OK(sampler->Next());
  EXPECT_STATUS(kNotFound, groups()->SealGroup(8), "group of key 8 that takes members");
  // Who comes next begins the next group.
  Complete(7);
  ASSERT_OK(groups()->SealGroup(7));
  EXPECT_EQ(Groups().sealed_by_hand, 1u);
}

TEST_F(SealGroupsTest, ADeadlineCountsFromTheFirstMember) {
  Create(TableOf(GroupsSpec(TwoAfter100Ms())));
  Complete(7);
  PassMs(60);
  Complete(7);
  Complete(8);
  PassMs(39);
  ASSERT_OK_AND_ASSIGN(uint64_t sealed, groups()->SealOverdueGroups());
  EXPECT_EQ(sealed, 0u);
  PassMs(1);
  ASSERT_OK_AND_ASSIGN(sealed, groups()->SealOverdueGroups());
  EXPECT_EQ(sealed, 1u);
  EXPECT_EQ(Groups(),
            (GroupStats{.waiting = 1, .ready = 1, .members = 3, .sealed_by_deadline = 1}));
  PassMs(1000);
  ASSERT_OK_AND_ASSIGN(sealed, groups()->SealOverdueGroups());
  EXPECT_EQ(sealed, 0u) << "it has one member, and takes two";
  Complete(8);
  ASSERT_OK_AND_ASSIGN(sealed, groups()->SealOverdueGroups());
  EXPECT_EQ(sealed, 1u);
}

TEST_F(SealGroupsTest, AStepOfTheTimeOfDayLeavesDeadlinesAlone) {
  Create(TableOf(GroupsSpec(TwoAfter100Ms())));
  CompleteSome(7, 2);
  clock_.stepped_us += int64_t{3'600'000'000};
  ASSERT_OK_AND_ASSIGN(uint64_t sealed, groups()->SealOverdueGroups());
  EXPECT_EQ(sealed, 0u);
  clock_.stepped_us -= int64_t{7'200'000'000};
  PassMs(100);
  ASSERT_OK_AND_ASSIGN(sealed, groups()->SealOverdueGroups());
  EXPECT_EQ(sealed, 1u);
}

TEST_F(SealGroupsTest, AfterAReopenADeadlineCountsFromThere) {
  Create(TableOf(GroupsSpec(TwoAfter100Ms())));
  CompleteSome(7, 2);
  PassMs(99);
  Reopen();
  OpenAgain("steps");
  PassMs(99);
  ASSERT_OK_AND_ASSIGN(uint64_t sealed, groups()->SealOverdueGroups());
  EXPECT_EQ(sealed, 0u);
  PassMs(1);
  ASSERT_OK_AND_ASSIGN(sealed, groups()->SealOverdueGroups());
  EXPECT_EQ(sealed, 1u);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Groups(), (GroupStats{.ready = 1, .members = 2, .sealed_by_deadline = 1}));
}

TEST_F(SealGroupsTest, OverdueGroupsStayWhereItIsNotToGoOn) {
  Create(TableOf(GroupsSpec(TwoAfter100Ms())));
  CompleteSome(7, 2);
  PassMs(100);
  const auto core = testing::CoreOf(*database_);
  const auto table = core->TableById(table_->id());
  ASSERT_OK_AND_ASSIGN(uint64_t sealed,
                       engine::SealOverdueGroups(core.get(), table, 0, [] { return false; }));
  EXPECT_EQ(sealed, 0u);
  EXPECT_EQ(Groups().waiting, 1u);
  ASSERT_OK_AND_ASSIGN(sealed, engine::SealOverdueGroups(core.get(), table, 0));
  EXPECT_EQ(sealed, 1u);
}

TEST_F(SealGroupsTest, TheBackgroundSealsWhatIsOverdue) {
  Close();
  options_.background = true;
  Open();
  TableSpec spec = TableOf(GroupsSpec(TwoAfter100Ms()));
  const PriorityTableSpec later = std::exchange(spec.priority_tables, {})[0];
  Create(spec);
  ASSERT_OK(table_->CreatePriorityTable(later));
  CompleteSome(7, 2);
  clock_.now_us += 100'000;
  while (Groups().ready == 0) std::this_thread::yield();
  EXPECT_EQ(Groups(), (GroupStats{.ready = 1, .members = 2, .sealed_by_deadline = 1}));
}

TEST_F(SealGroupsTest, OthersHaveNoGroups) {
  TableSpec spec = TableOf(testing::WindowSpec("groups"));
  Create(spec);
  EXPECT_STATUS(kInvalidArgument, groups()->SealGroup(7), "its items are windows");
  EXPECT_STATUS(kInvalidArgument, groups()->SealOverdueGroups(), "has no groups to seal");
}

TEST_F(SealGroupsTest, WhatWaitsIsSaid) {
  Create(TableOf(GroupsSpec(Four())));
  CompleteSome(7, 2);
  const auto sampler = SampleGroups({.batch = 1, .views = {{.column = "obs"}}});
  EXPECT_STATUS(kDeadlineExceeded, sampler->Next(),
                "1 group waits for members: that of key 7 has 2 of 4");
  EXPECT_NE(groups()->WhyBlocked().samples.reason.find("that of key 7 has 2 of 4"),
            std::string::npos);
}

TEST_F(SealGroupsTest, ASealedGroupBeginsWithTheScoreOfItsLast) {
  PriorityTableSpec spec = GroupsSpec(Four());
  spec.initial = InitialPriority::kColumn;
  spec.initial_priority_column = "score";
  Create(TableOf(spec));
  const std::vector<TrajectoryId> ids = CompleteSome(7, 2);
  for (const float score : {3.0f, 5.0f}) {
    const ColumnValue column[] = {{"score", TensorView::Scalar(score)}};
    ASSERT_OK(table_->SetColumns(ids[score == 3.0f ? 0 : 1], column));
  }
  ASSERT_OK(groups()->SealGroup(7));
  ASSERT_OK_AND_ASSIGN(const float priority, groups()->Priority({ids[0], 0}));
  EXPECT_EQ(priority, 5.0f);
}

}  // namespace
}  // namespace geardb
