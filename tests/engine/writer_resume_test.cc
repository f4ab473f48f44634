// Orphans that are resumed while memory is full: their last pages come back in place of others, and
// where none can go, a refused call has changed nothing.
#include <array>

#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

class WriterResumeTest : public FramesTest {
 protected:
  /// Trajectories of five rows each, left by this writer's lane 0.
  void LeaveOrphans(int count) {
    for (int i = 0; i < count; ++i) {
      const TrajectoryId id = AddRows(next_, 0, 5, End::kGo);
      numbers_[id] = next_++;
      ASSERT_OK_AND_ASSIGN(const TrajectoryId left, writer_->Detach());
      ASSERT_EQ(left, id);
      orphans_.push_back(id);
    }
  }
  /// Rows 5 to 7 of each, by the lane that goes on with it.
  void GoOn(TrajectoryId id) {
    ASSERT_OK(writer_->Resume(id));
    EXPECT_EQ(AddRows(numbers_.at(id), 5, 3, End::kTerminated), id);
  }
  /// Takes all memory for rows that are nowhere else.
  void FillMemory() {
    TableSpec spec;
    spec.name = "volatile";
    spec.groups = {{.name = "scratch", .is_volatile = true}};
    spec.columns = {
        {.name = "reward"},
        {.name = "frame", .dtype = DType::kU8, .shape = {kFrameBytes}, .group = "scratch"}};
    spec.steps_per_page = kPageRows;
    ASSERT_OK_AND_ASSIGN(filling_, database_->CreateTable(spec));
    ASSERT_OK_AND_ASSIGN(const auto writer, filling_->NewWriter({.admission_timeout_ms = 0}));
    const std::vector<uint8_t> bytes(4 * kFrameBytes, 1);
    const std::array<float, 4> rewards{};
    const std::vector<ColumnValue> values = {
        {"frame", TensorView(bytes.data(), DType::kU8, Shape({4, kFrameBytes}))},
        {"reward", TensorView::Of(std::span<const float>(rewards))}};
    Status status;
    while (status.ok()) {
      status = writer->AppendTrajectory(values, {.end = End::kTerminated}).status();
    }
    ASSERT_STATUS(kResourceExhausted, status, "frame");
  }

  std::vector<TrajectoryId> orphans_;
  std::shared_ptr<Table> filling_;
};

TEST_F(WriterResumeTest, PagesOfOthersMakeRoom) {
  LeaveOrphans(100);
  for (const TrajectoryId id : orphans_) {
    for (int i = 0; i < 8; ++i) Add(8, 8);  // More than memory holds, all in all.
    GoOn(id);
  }
  EXPECT_GT(Frames().dropped, 500u);
  ExpectAll();
  Again();
  ExpectAll();
}

TEST_F(WriterResumeTest, ARefusedOneHasChangedNothing) {
  LeaveOrphans(60);
  DropAll();
  FillMemory();
  writer_.reset();
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({.lanes = 2, .admission_timeout_ms = 0}));
  EXPECT_STATUS(kResourceExhausted, writer_->Resume(orphans_[0]), "frame");
  EXPECT_EQ(writer_->open_trajectory(), 0u);
  ASSERT_OK(database_->DropTable("volatile"));
  filling_.reset();
  // The lane begins a trajectory, and the orphan is one still.
  const int64_t number = next_++;
  const TrajectoryId id = AddRows(number, 0, 2, End::kGo);
  EXPECT_NE(id, orphans_[0]);
  numbers_[id] = number;
  EXPECT_EQ(AddRows(number, 2, 3, End::kTerminated), id);
  for (const TrajectoryId orphan : orphans_) GoOn(orphan);
  ExpectAll();
  Again();
  ExpectAll();
}

}  // namespace
}  // namespace geardb
