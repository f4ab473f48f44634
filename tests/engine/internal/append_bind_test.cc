// Rows of calls as pointers into what the caller gave.
#include "engine/internal/append_bind.h"

#include "engine/internal/append.h"
#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using engine::AppendKind;
using testing::Rows;

class AppendBindTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    Create(testing::StepSpec(/*final_row=*/true));
    const auto core = testing::CoreOf(*database_);
    impl_ =
        std::make_unique<Writer::Impl>(core, core->FindTable("steps"), WriterOptions{.lanes = 3});
  }
  void TearDown() override {
    impl_.reset();
    Close();
  }
  std::unique_ptr<Writer::Impl> impl_;
};

TEST_F(AppendBindTest, ACallPointsToItsRows) {
  const Rows rows(5, 4);
  const float score = 2;
  const ColumnValue trajectory[] = {{"score", TensorView::Scalar(score)}};
  const AppendOptions options{
      .lane = 1, .end = End::kTruncated, .final = rows.final_row(), .trajectory = trajectory};
  ASSERT_OK_AND_ASSIGN(
      const engine::BoundAppend bound,
      engine::BindAppend(impl_.get(), AppendKind::kTrajectory, rows.many(), options));
  EXPECT_TRUE(bound.nothing.empty());
  ASSERT_EQ(bound.calls.size(), 1u);
  const engine::LaneRows& call = bound.calls[0];
  EXPECT_EQ(call.lane, 1u);
  EXPECT_EQ(call.rows, 4u);
  EXPECT_EQ(call.end, End::kTruncated);
  ASSERT_EQ(call.columns.size(), 3u);
  for (size_t c = 0; c < 3; ++c) {
    const auto number = impl_->layout().FindStepColumn(rows.many()[c].column);
    EXPECT_EQ(static_cast<const void*>(call.columns[*number]), rows.many()[c].value.bytes);
  }
  EXPECT_EQ(static_cast<const void*>(call.final_columns[0]), rows.final_row()[0].value.bytes);
  EXPECT_EQ(call.final_columns[1], nullptr);
  const auto number = impl_->layout().FindTrajectoryColumn("score");
  EXPECT_EQ(static_cast<const void*>(call.trajectory[*number]), &score);
}

TEST_F(AppendBindTest, TheCutOfAFirstRowLeavesNothing) {
  const Rows one(0, 1), lanes(0, 3);
  ASSERT_OK_AND_ASSIGN(
      const engine::BoundAppend bound,
      engine::BindAppend(impl_.get(), AppendKind::kOneRow, one.one(), {.end = End::kCut}));
  EXPECT_TRUE(bound.calls.empty());
  EXPECT_EQ(bound.nothing.size(), 1u);
  const End ends[] = {End::kGo, End::kCut, End::kSkip};
  ASSERT_OK_AND_ASSIGN(const engine::BoundAppend of_lanes,
                       engine::BindAppendLanes(impl_.get(), lanes.many(), {.ends = ends}));
  ASSERT_EQ(of_lanes.calls.size(), 1u);
  EXPECT_EQ(of_lanes.calls[0].lane, 0u);
  ASSERT_EQ(of_lanes.nothing.size(), 1u);
  EXPECT_EQ(of_lanes.nothing[0].lane, 1u);
}

TEST_F(AppendBindTest, LanesAndEndsAreChecked) {
  const Rows rows(0, 2);
  EXPECT_STATUS(kInvalidArgument, engine::CheckLane(impl_.get(), 3),
                "lane 3 of a writer with 3 lanes");
  EXPECT_STATUS(kInvalidArgument,
                engine::BindAppend(impl_.get(), AppendKind::kTrajectory, rows.many(), {}),
                "a whole trajectory must end");
  EXPECT_STATUS(
      kInvalidArgument,
      engine::BindAppend(impl_.get(), AppendKind::kSteps, rows.many(), {.end = End::kSkip}),
      "skip is for AppendLanes");
  const End ends[] = {End::kGo};
  EXPECT_STATUS(kInvalidArgument, engine::BindAppendLanes(impl_.get(), rows.many(), {.ends = ends}),
                "1 ends for 3 lanes");
}

}  // namespace
}  // namespace geardb
