// Draw groups of streams, whose trajectories may be cut to where no step is left.

#include "tests/engine/internal/draw_groups_fixture.h"

namespace geardb {
namespace {

class StreamGroupsTest : public testing::DrawGroupsFixture {
 protected:
  /// A closed stream of two steps, a final row, and another: an episode of one row that was cut.
  TrajectoryId CompleteStream(int32_t prompt) {
    const testing::Rows steps(0, 2);
    const testing::Rows last(9, 1);
    const ColumnValue key[] = {{"prompt", TensorView::Scalar(prompt)}};
    EXPECT_OK(writer_->AppendSteps(
        steps.many(), {.end = End::kTerminated, .final = steps.final_row(), .trajectory = key}));
    const auto cut = writer_->AppendSteps(last.many(), {.end = End::kCut});
    EXPECT_OK(cut);
    EXPECT_OK(writer_->Cut());
    return cut.ok() ? cut->id : 0;
  }
};

TEST_F(StreamGroupsTest, AMemberLeavesWithTheLastOfItsSteps) {
  TableSpec spec = TableOf(GroupsSpec({.key = "prompt", .count = 3, .at_least = 2}));
  spec.stream = spec.final_row = spec.columns[0].in_final_row = true;
  Create(spec);
  const TrajectoryId first = CompleteStream(7);
  const TrajectoryId second = CompleteStream(7);
  const TrajectoryId alone = CompleteStream(8);
  EXPECT_EQ(Groups(), (GroupStats{.waiting = 1, .ready = 1, .members = 3, .taking = 1}));
  ASSERT_OK(table_->Truncate(first, 1));
  EXPECT_EQ(Groups().members, 3u);
  ASSERT_OK(table_->Truncate(first, 2));
  ASSERT_OK(table_->Truncate(alone, 2));
  const GroupStats left{.waiting = 0, .ready = 1, .members = 1, .taking = 1};
  EXPECT_EQ(Groups(), left);
  EXPECT_EQ(table_->Count(), 3u);
  ASSERT_OK_AND_ASSIGN(const Batch batch,
                       SampleGroups({.batch = 1, .views = {{.column = "obs"}}})->Next());
  ASSERT_EQ(batch.trajectory_ids().size(), 1u);
  EXPECT_EQ(batch.trajectory_ids()[0], second);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Groups(), left);
  // There is room in the group for two more.
  CompleteStream(7);
  CompleteStream(7);
  EXPECT_EQ(Groups(), (GroupStats{.ready = 1, .members = 3, .complete = 1}));
}

}  // namespace
}  // namespace geardb
