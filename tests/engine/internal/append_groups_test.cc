// Limiters count groups: an append waits where it would make one ready, and only there.

#include "engine/write_batch.h"
#include "tests/engine/internal/draw_groups_fixture.h"

namespace geardb {
namespace {

class AppendGroupsTest : public testing::DrawGroupsFixture {
 protected:
  void CreateQueue(GroupSpec group, uint64_t capacity) {
    PriorityTableSpec spec = GroupsSpec(group, SelectorKind::kFifo);
    spec.limiter = {.kind = LimiterKind::kQueue, .capacity = capacity};
    Create(TableOf(spec), {.lanes = 4, .admission_timeout_ms = 0});
  }
  Status TryComplete(int32_t prompt, uint32_t lane = 0) {
    const testing::Rows rows(0, 2);
    const ColumnValue key[] = {{"prompt", TensorView::Scalar(prompt)}};
    return writer_
        ->AppendSteps(rows.many(), {.lane = lane, .end = End::kTerminated, .trajectory = key})
        .status();
  }
};

TEST_F(AppendGroupsTest, OnlyWhatMakesAGroupReadyWaits) {
  CreateQueue({.key = "prompt", .count = 2}, 1);
  ASSERT_OK(TryComplete(1));
  ASSERT_OK(TryComplete(2));
  ASSERT_OK(TryComplete(1));
  EXPECT_EQ(groups()->Stats().limiter.inserts, 1u);
  EXPECT_STATUS(kDeadlineExceeded, TryComplete(2), "priority table 'groups' waits");
  ASSERT_OK(TryComplete(1));
  ASSERT_OK(TryComplete(3));
  ASSERT_OK(SampleGroups({.batch = 1, .views = {{.column = "obs"}}})->Next());
  ASSERT_OK(TryComplete(2));
  EXPECT_STATUS(kDeadlineExceeded, TryComplete(3), "priority table 'groups' waits");
}

TEST_F(AppendGroupsTest, MembersThatComeToAReadyGroupWaitForNothing) {
  CreateQueue({.key = "prompt", .count = 3, .at_least = 2}, 1);
  ASSERT_OK(TryComplete(1));
  ASSERT_OK(TryComplete(1));
  ASSERT_OK(TryComplete(1));
  EXPECT_EQ(groups()->Stats().limiter.inserts, 1u);
  ASSERT_OK(TryComplete(1));
  EXPECT_STATUS(kDeadlineExceeded, TryComplete(1), "priority table 'groups' waits");
}

TEST_F(AppendGroupsTest, TheKeyMayHaveComeBefore) {
  CreateQueue({.key = "prompt", .count = 1}, 1);
  const testing::Rows rows(0, 2);
  const int32_t prompt = 5;
  const ColumnValue key[] = {{"prompt", TensorView::Scalar(prompt)}};
  ASSERT_OK(writer_->AppendSteps(rows.many(), {.trajectory = key}));
  ASSERT_OK(writer_->AppendSteps(rows.many(), {.end = End::kTruncated}));
  EXPECT_STATUS(kDeadlineExceeded, TryComplete(5), "priority table 'groups' waits");
  ASSERT_OK_AND_ASSIGN(const Batch batch,
                       SampleGroups({.batch = 1, .views = {{.column = "obs"}}})->Next());
  EXPECT_EQ(batch.group_keys()[0], 5);
}

TEST_F(AppendGroupsTest, ABatchOfAppendsIsCountedTogether) {
  CreateQueue({.key = "prompt", .count = 2}, 1);
  const testing::Rows rows(0, 2);
  const auto write = [&](std::vector<int32_t> prompts) {
    std::vector<std::vector<ColumnValue>> keys;
    for (const int32_t& prompt : prompts) {
      keys.push_back({{"prompt", TensorView::Scalar(prompt)}});
    }
    WriteBatch batch;
    for (uint32_t lane = 0; lane < prompts.size(); ++lane) {
      batch.AppendTrajectory(writer_.get(), rows.many(),
                             {.lane = lane, .end = End::kTerminated, .trajectory = keys[lane]});
    }
    return database_->Write(batch).status();
  };
  EXPECT_FALSE(write({1, 1, 2, 2}).ok()) << "two groups of a queue of one";
  ASSERT_OK(write({1, 1, 2}));
  EXPECT_EQ(Groups(), (GroupStats{.waiting = 1, .ready = 1, .members = 3, .complete = 1}));
}

TEST_F(AppendGroupsTest, AnAppendGivesNoInitialPriorities) {
  Create(TableOf(GroupsSpec(Four())));
  const testing::Rows rows(0, 1);
  const float one[] = {1};
  const InitialPriorities given[] = {{.priority_table = "groups", .values = one}};
  EXPECT_STATUS(kInvalidArgument,
                writer_->AppendSteps(rows.many(), {.end = End::kTerminated, .priorities = given}),
                "draws groups; an append cannot give their initial priorities");
}

}  // namespace
}  // namespace geardb
