// Per-trajectory columns that came after a writer was made: what was set of its open trajectories
// gives their priorities, and the keys of their groups. The writer knew nothing of it, or took a
// dropped column of the same name for it.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/engine/priority_fixture.h"
#include "tests/testing/matchers.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::WindowSpec;

class OlderWriterColumnsTest : public testing::PriorityFixture {
 protected:
  /// A column, and a priority table of its name that takes priorities from it.
  void AddPriorityColumn(const std::string& name, double default_value) {
    const Column column[] = {
        {.name = name, .kind = ColumnKind::kPerTrajectory, .default_value = default_value}};
    ASSERT_OK(table_->AddColumns(column));
    PriorityTableSpec spec = WindowSpec(name);
    spec.initial = InitialPriority::kColumn;
    spec.initial_priority_column = name;
    ASSERT_OK(table_->CreatePriorityTable(spec));
  }
  template <typename T>
  void SetColumn(TrajectoryId id, std::string_view name, T value) {
    const ColumnValue set[] = {{name, TensorView::Scalar(value)}};
    ASSERT_OK(table_->SetColumns(id, set));
  }
  /// Of a column that the writer gives as ever, since it was dropped, and another of its name.
  template <typename T>
  void ExpectOtherOfTheName(T given) {
    TableSpec spec = StepSpec();
    spec.columns.push_back(
        {.name = "rank", .dtype = kDTypeOf<T>, .kind = ColumnKind::kPerTrajectory});
    Create(spec);
    const std::string_view rank = "rank";
    ASSERT_OK(table_->DropColumns({&rank, 1}));
    AddPriorityColumn("rank", 5);
    const Rows rows(0, 1);
    const ColumnValue dropped[] = {{"rank", TensorView::Scalar(given)}};
    ASSERT_OK_AND_ASSIGN(const Appended appended,
                         writer_->AppendSteps(rows.many(), {.trajectory = dropped}));
    SetColumn(appended.id, "rank", 7.0f);
    ASSERT_OK(writer_->AppendSteps(rows.many(), {.trajectory = dropped}));
    EXPECT_EQ(RawPriorities("rank"), (std::vector<float>{5, 7}));
  }
};

TEST_F(OlderWriterColumnsTest, WhatIsSetGivesThePriority) {
  Create(StepSpec());
  AddPriorityColumn("rank", 1);
  SetColumn(Append(0, 2).id, "rank", 7.0f);
  Append(2, 1);
  Append(3, 1, End::kTerminated);
  Append(4, 1);  // Another trajectory, of which nothing is set.
  EXPECT_EQ(RawPriorities("rank"), (std::vector<float>{1, 1, 7, 7, 1}));
}

TEST_F(OlderWriterColumnsTest, OfTheOthersTheDefaultDoes) {
  Create(StepSpec());
  AddPriorityColumn("a", 2);
  AddPriorityColumn("b", 3);
  const TrajectoryId id = Append(0, 1).id;
  SetColumn(id, "b", 7.0f);
  Append(1, 1);
  SetColumn(id, "a", 5.0f);
  Append(2, 1);
  EXPECT_EQ(RawPriorities("a"), (std::vector<float>{2, 2, 5}));
  EXPECT_EQ(RawPriorities("b"), (std::vector<float>{3, 7, 7}));
}

TEST_F(OlderWriterColumnsTest, NotADroppedOneOfTheSameName) { ExpectOtherOfTheName(3.0f); }

// Four bytes were read of its one.
TEST_F(OlderWriterColumnsTest, NotADroppedOneOfAnotherType) {
  ExpectOtherOfTheName(static_cast<uint8_t>(200));
}

TEST_F(OlderWriterColumnsTest, AlsoOfATrajectoryThatItResumed) {
  Create(StepSpec());
  const TrajectoryId id = Append(0, 1).id;
  ASSERT_OK(writer_->Detach());
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  ASSERT_OK(writer_->Resume(id));
  AddPriorityColumn("rank", 1);
  SetColumn(id, "rank", 7.0f);
  Append(1, 1);
  EXPECT_EQ(RawPriorities("rank"), (std::vector<float>{1, 7}));
}

// A queue of one group had two: the key counted as the default.
TEST_F(OlderWriterColumnsTest, AQueueOfGroupsCountsTheKeyThatIsSet) {
  Create(StepSpec(), {.lanes = 4, .admission_timeout_ms = 0});
  const Column column[] = {
      {.name = "key", .dtype = DType::kI32, .kind = ColumnKind::kPerTrajectory}};
  ASSERT_OK(table_->AddColumns(column));
  PriorityTableSpec spec = WindowSpec("groups");
  spec.item = ItemKind::kGroup;
  spec.window = {};
  spec.group = {.key = "key", .count = 2};
  spec.selector = SelectorKind::kFifo;
  spec.limiter = {.kind = LimiterKind::kQueue, .capacity = 1};
  ASSERT_OK(table_->CreatePriorityTable(spec));
  for (uint32_t lane = 0; lane < 4; ++lane) {
    SetColumn(Append(0, 1, End::kGo, lane).id, "key", static_cast<int32_t>(7 + lane / 2));
  }
  for (uint32_t lane = 0; lane < 3; ++lane) Append(1, 1, End::kTerminated, lane);
  const Rows rows(1, 1);
  EXPECT_STATUS(kDeadlineExceeded,
                writer_->AppendSteps(rows.many(), {.lane = 3, .end = End::kTerminated}),
                "priority table 'groups' waits");
  EXPECT_EQ(priority("groups")->Stats().groups.ready, 1u);
}

}  // namespace
}  // namespace geardb
