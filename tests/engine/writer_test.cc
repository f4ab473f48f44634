#include "engine/writer.h"

#include <gtest/gtest.h>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Count;
using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;
using testing::WindowSpec;

class WriterTest : public StoreTest {
 protected:
  /// What a refused call must not have changed.
  void ExpectNothingChanged() {
    EXPECT_EQ(table_->Count(), 0u);
    EXPECT_EQ(table_->StepCount(), 0u);
    EXPECT_EQ(writer_->open_trajectory(), 0u);
    EXPECT_EQ(table_->Stats().pages, 0u);
  }
  /// A call with one column value replaced.
  std::vector<ColumnValue> With(size_t column, const TensorView& value) {
    std::vector<ColumnValue> values = two_.many();
    values[column].value = value;
    return values;
  }
  Status AppendSteps(const std::vector<ColumnValue>& values, const AppendOptions& options = {}) {
    return writer_->AppendSteps(ColumnValues(values), options).status();
  }

  const Rows two_{0, 2};
  const Rows last_{9, 1};
};

TEST_F(WriterTest, SingleStepsMakeATrajectory) {
  Create(StepSpec());
  for (int64_t k = 0; k < 9; ++k) {
    const Rows row(k, 1);
    const auto appended = writer_->Append(row.one(), {.end = k == 8 ? End::kTerminated : End::kGo});
    ASSERT_OK(appended);
    EXPECT_EQ(appended->id, 1u);
    EXPECT_EQ(appended->first_row, k);
    EXPECT_EQ(appended->rows, 1);
    EXPECT_EQ(writer_->open_trajectory(), k == 8 ? 0u : 1u);
  }
  EXPECT_EQ(Numbers(1), Count(0, 9));
  const auto record = table_->Find(1);
  ASSERT_OK(record);
  EXPECT_EQ(record->state, TrajectoryState::kClosed);
  EXPECT_EQ(record->end, End::kTerminated);
  EXPECT_EQ(record->steps_end, 9);
  EXPECT_EQ(record->rows_end, 9);
}

TEST_F(WriterTest, ManyStepsCrossPagesAnywhere) {
  Create(StepSpec());
  int64_t next = 0;
  for (const int64_t count : {1, 2, 3, 4, 5, 7, 8, 9, 16, 1}) {
    const Appended appended = Append(next, count);
    EXPECT_EQ(appended.first_row, next);
    EXPECT_EQ(appended.rows, count);
    next += count;
  }
  EXPECT_EQ(Numbers(1), Count(0, static_cast<int32_t>(next)));
  EXPECT_EQ(table_->StepCount(), static_cast<uint64_t>(next));
  EXPECT_EQ(table_->Find(1)->state, TrajectoryState::kOpen);
}

TEST_F(WriterTest, WholeTrajectoriesClose) {
  Create(StepSpec());
  for (int64_t t = 0; t < 3; ++t) {
    const Rows rows(100 * t, 5);
    const auto appended = writer_->AppendTrajectory(rows.many(), {.end = End::kCut});
    ASSERT_OK(appended);
    EXPECT_EQ(appended->id, static_cast<TrajectoryId>(t + 1));
    EXPECT_EQ(Numbers(appended->id), Count(static_cast<int32_t>(100 * t), 5));
    EXPECT_EQ(table_->Find(appended->id)->end, End::kCut);
  }
}

TEST_F(WriterTest, FinalRowsAreStoredOnce) {
  Create(StepSpec(true));
  for (const End end : {End::kTerminated, End::kTruncated}) {
    const TrajectoryId id = AppendClosed(0, 4, end);
    const auto record = table_->Find(id);
    ASSERT_OK(record);
    EXPECT_EQ(record->steps_end, 4);
    EXPECT_EQ(record->rows_end, 5);
    EXPECT_EQ(Obs(id), (std::vector<float>{0, 1, 2, 3, 4}));
    EXPECT_EQ(Numbers(id), (std::vector<int32_t>{0, 1, 2, 3, 0}));  // No action after the end.
  }
  EXPECT_EQ(table_->StepCount(), 8u);
}

TEST_F(WriterTest, CutMakesTheLastRowTheFinalRow) {
  Create(StepSpec(true));
  const TrajectoryId id = AppendClosed(0, 4, End::kCut);
  EXPECT_EQ(table_->Find(id)->steps_end, 3);
  EXPECT_EQ(table_->Find(id)->rows_end, 4);
  const TrajectoryId other = Append(0, 4).id;
  ASSERT_OK(writer_->Cut());
  EXPECT_EQ(table_->Find(other)->steps_end, 3);
  EXPECT_EQ(table_->Find(other)->rows_end, 4);
  EXPECT_EQ(table_->Find(other)->end, End::kCut);
  EXPECT_EQ(table_->StepCount(), 6u);
}

TEST_F(WriterTest, CutOfASingleRowLeavesNothing) {
  Create(StepSpec(true));
  const Rows row(0, 1);
  const auto appended = writer_->Append(row.one(), {.end = End::kCut});
  ASSERT_OK(appended);
  EXPECT_EQ(appended->id, 0u);
  ExpectNothingChanged();
  Append(0, 1);
  EXPECT_EQ(table_->Count(), 1u);
  ASSERT_OK(writer_->Cut());
  ExpectNothingChanged();
}

TEST_F(WriterTest, CutNeedsAnOpenTrajectory) {
  Create(StepSpec());
  EXPECT_STATUS(kFailedPrecondition, writer_->Cut(), "lane 0 has no open trajectory");
  EXPECT_STATUS(kInvalidArgument, writer_->Cut(1), "lane 1 of a writer with 1 lanes");
}

TEST_F(WriterTest, PerTrajectoryColumnsAreSetAtAnyCall) {
  Create(StepSpec());
  const uint32_t version = 12;
  const float score = 3.5f;
  const ColumnValue first[] = {{"version", TensorView::Scalar(version)}};
  const ColumnValue second[] = {{"score", TensorView::Scalar(score)}};
  ASSERT_OK(writer_->AppendSteps(two_.many(), {.trajectory = first}));
  ASSERT_OK(writer_->AppendSteps(two_.many(), {.trajectory = second}));
  const std::string_view columns[] = {"version", "score"};
  auto read = table_->Read(1, columns, {});
  ASSERT_OK(read);
  EXPECT_EQ((*read)[0].view().values<uint32_t>()[0], 12u);
  EXPECT_EQ((*read)[1].view().values<float>()[0], 3.5f);
  // The next trajectory begins with zeros.
  ASSERT_OK(writer_->Cut());
  Append(0, 1);
  read = table_->Read(2, columns, {});
  ASSERT_OK(read);
  EXPECT_EQ((*read)[0].view().values<uint32_t>()[0], 0u);
  EXPECT_EQ((*read)[1].view().values<float>()[0], 0.0f);
}

TEST_F(WriterTest, WrongTypesAndShapesAreRefusedByName) {
  Create(StepSpec());
  const int64_t wide[2] = {0, 1};
  const float floats[8] = {};
  const std::span<const float> values(floats);
  EXPECT_STATUS(
      kInvalidArgument, AppendSteps(With(1, TensorView::Of(std::span<const int64_t>(wide)))),
      "column 'action' takes i32, not i64 (one row is a scalar; the value has shape [2])");
  EXPECT_STATUS(kInvalidArgument, AppendSteps(With(2, TensorView::Of(values.first(3)))),
                "column 'reward' takes f32[2], not f32[3]");
  // The first column says how many rows there are: before it, any number of them is right.
  EXPECT_STATUS(kInvalidArgument, AppendSteps(With(0, TensorView::Of(values.first(4)))),
                "column 'obs' takes f32[rows, 2], not f32[4] (one row has shape [2])");
  const double doubles[6] = {};
  EXPECT_STATUS(
      kInvalidArgument,
      AppendSteps(With(0, TensorView::Of(std::span<const double>(doubles), Shape({3, 2})))),
      "column 'obs' takes f32, not f64 (one row has shape [2]; the value has shape [3, 2])");
  EXPECT_STATUS(kInvalidArgument, AppendSteps(With(2, TensorView::Scalar(floats[0]))),
                "column 'reward'");
  EXPECT_STATUS(kInvalidArgument,
                AppendSteps(With(0, TensorView::Of(values.first(6), Shape({2, 3})))),
                "column 'obs' takes f32[2, 2], not f32[2, 3]");
  EXPECT_STATUS(
      kInvalidArgument,
      AppendSteps(With(0, TensorView(floats, DType::kF32, Shape({2, 2, 1, 1, 1, 1, 1, 1, 1, 1})))),
      "column 'obs'");
  EXPECT_STATUS(kInvalidArgument,
                AppendSteps(With(0, TensorView(nullptr, DType::kF32, Shape({2, 2})))),
                "column 'obs' has no bytes");
  ExpectNothingChanged();
}

TEST_F(WriterTest, NoRowsAreRefused) {
  Create(StepSpec());
  EXPECT_STATUS(kInvalidArgument, AppendSteps(Rows(0, 0).many()), "has 0 rows");
  EXPECT_STATUS(
      kInvalidArgument,
      AppendSteps(With(0, TensorView(two_.many()[0].value.bytes, DType::kF32, Shape({-2, 2})))),
      "has -2 rows");
  EXPECT_STATUS(kInvalidArgument, writer_->AppendSteps(ColumnValues(), {}), "is missing");
  ExpectNothingChanged();
}

TEST_F(WriterTest, MissingDoubledAndUnknownColumnsAreRefusedByName) {
  Create(StepSpec());
  std::vector<ColumnValue> values = two_.many();
  values.pop_back();
  EXPECT_STATUS(kInvalidArgument, AppendSteps(values), "column 'reward' is missing");
  values = two_.many();
  values.push_back(values[1]);
  EXPECT_STATUS(kInvalidArgument, AppendSteps(values), "column 'action' is given twice");
  values = two_.many();
  values[1].column = "acton";
  EXPECT_STATUS(kNotFound, AppendSteps(values), "no column 'acton'; it has obs, action");
  values = two_.many();
  const uint32_t version = 1;
  values.push_back({"version", TensorView::Scalar(version)});
  EXPECT_STATUS(kInvalidArgument, AppendSteps(values), "column 'version' is per trajectory");
  ExpectNothingChanged();
}

TEST_F(WriterTest, WrongTrajectoryColumnsAreRefusedByName) {
  Create(StepSpec());
  const float score = 1;
  const uint32_t versions[2] = {1, 2};
  const auto append = [&](std::vector<ColumnValue> trajectory) {
    return AppendSteps(two_.many(), {.trajectory = trajectory});
  };
  EXPECT_STATUS(kInvalidArgument, append({{"version", TensorView::Scalar(score)}}), "'version'");
  EXPECT_STATUS(kInvalidArgument,
                append({{"version", TensorView::Of(std::span<const uint32_t>(versions))}}),
                "'version'");
  EXPECT_STATUS(kInvalidArgument, append({{"reward", TensorView::Scalar(score)}}), "per step");
  EXPECT_STATUS(kNotFound, append({{"sc", TensorView::Scalar(score)}}), "no column 'sc'");
  EXPECT_STATUS(
      kInvalidArgument,
      append({{"score", TensorView::Scalar(score)}, {"score", TensorView::Scalar(score)}}),
      "given twice");
  ExpectNothingChanged();
}

TEST_F(WriterTest, WrongFinalColumnsAreRefusedByName) {
  Create(StepSpec(true));
  const auto append = [&](End end, std::vector<ColumnValue> last) {
    return AppendSteps(two_.many(), {.end = end, .final = last});
  };
  const std::vector<ColumnValue>& good = last_.final_row();
  for (const End end : {End::kTerminated, End::kTruncated}) {
    EXPECT_STATUS(kInvalidArgument, append(end, {}), "column 'obs' is missing from the final row");
    EXPECT_STATUS(kInvalidArgument, append(end, {good[0], good[0]}), "given twice");
    EXPECT_STATUS(kInvalidArgument, append(end, {good[0], last_.one()[1]}),
                  "column 'action' is not in the final row");
    EXPECT_STATUS(kInvalidArgument, append(end, {last_.many()[0]}), "column 'obs' takes f32[2]");
  }
  for (const End end : {End::kGo, End::kCut}) {
    EXPECT_STATUS(kInvalidArgument, append(end, {good[0]}), "final row is given");
  }
  ExpectNothingChanged();
}

TEST_F(WriterTest, FinalColumnsWithoutFinalRowAreRefused) {
  Create(StepSpec());
  EXPECT_STATUS(kInvalidArgument,
                AppendSteps(two_.many(), {.end = End::kTerminated, .final = last_.final_row()}),
                "final row is given");
  ExpectNothingChanged();
}

TEST_F(WriterTest, EndsThatDoNotFitTheCallAreRefused) {
  Create(StepSpec());
  EXPECT_STATUS(kInvalidArgument, AppendSteps(two_.many(), {.end = End::kSkip}), "skip");
  EXPECT_STATUS(kInvalidArgument, AppendSteps(two_.many(), {.end = static_cast<End>(9)}),
                "unknown end 9");
  EXPECT_STATUS(kInvalidArgument, writer_->AppendTrajectory(two_.many(), {}), "its end is go");
  EXPECT_STATUS(kInvalidArgument, AppendSteps(two_.many(), {.lane = 1}), "lane 1");
  ExpectNothingChanged();
  Append(0, 1);
  EXPECT_STATUS(kFailedPrecondition,
                writer_->AppendTrajectory(two_.many(), {.end = End::kTerminated}),
                "lane 0 has trajectory 1 open");
  EXPECT_EQ(table_->StepCount(), 1u);
}

TEST_F(WriterTest, ARefusedCallLeavesTheOpenTrajectoryAsItWas) {
  Create(StepSpec());
  Append(0, 3);
  EXPECT_FALSE(AppendSteps(With(1, TensorView::Scalar(1.0f))).ok());
  EXPECT_EQ(Numbers(1), Count(0, 3));
  Append(3, 3);
  EXPECT_EQ(Numbers(1), Count(0, 6));
}

TEST_F(WriterTest, StreamsGoOnAfterAnEnd) {
  TableSpec spec = StepSpec(true);
  spec.stream = true;
  Create(spec);
  const Appended first = Append(0, 3, End::kTerminated);
  EXPECT_EQ(writer_->open_trajectory(), first.id);
  const Appended second = Append(10, 2, End::kTruncated);
  EXPECT_EQ(second.id, first.id);
  EXPECT_EQ(second.first_row, 4);
  Append(20, 3, End::kCut);
  EXPECT_EQ(table_->Find(first.id)->state, TrajectoryState::kOpen);
  EXPECT_EQ(table_->Find(first.id)->rows_end, 10);
  EXPECT_EQ(Obs(first.id), (std::vector<float>{0, 1, 2, 3, 10, 11, 12, 20, 21, 22}));
  EXPECT_EQ(table_->StepCount(), 3u + 2 + 2);
  // Cut closes the stream; the next row begins another.
  ASSERT_OK(writer_->Cut());
  EXPECT_EQ(table_->Find(first.id)->state, TrajectoryState::kClosed);
  EXPECT_EQ(Append(0, 1).id, first.id + 1);
}

TEST_F(WriterTest, StreamsTakeWholeEpisodesBetweenEpisodes) {
  TableSpec spec = StepSpec();
  spec.stream = true;
  Create(spec);
  const Rows rows(0, 3);
  ASSERT_OK(writer_->AppendTrajectory(rows.many(), {.end = End::kTerminated}));
  ASSERT_OK(writer_->AppendTrajectory(rows.many(), {.end = End::kTruncated}));
  EXPECT_EQ(table_->Count(), 1u);
  Append(9, 1);
  EXPECT_STATUS(kFailedPrecondition,
                writer_->AppendTrajectory(rows.many(), {.end = End::kTerminated}), "open");
}

TEST_F(WriterTest, LanesAreIndependent) {
  Create(StepSpec(), {.lanes = 3});
  for (int64_t k = 0; k < 10; ++k) {
    for (uint32_t lane = 0; lane < 3; ++lane) Append(100 * lane + k, 1, End::kGo, lane);
  }
  for (uint32_t lane = 0; lane < 3; ++lane) {
    EXPECT_EQ(writer_->open_trajectory(lane), lane + 1);
    EXPECT_EQ(Numbers(lane + 1), Count(static_cast<int32_t>(100 * lane), 10));
  }
  ASSERT_OK(writer_->Cut(1));
  EXPECT_EQ(writer_->open_trajectory(1), 0u);
  EXPECT_EQ(writer_->open_trajectory(2), 3u);
}

TEST_F(WriterTest, DestroyedWriterLeavesOrphans) {
  Create(StepSpec());
  Append(0, 3);
  writer_.reset();
  EXPECT_EQ(table_->Find(1)->state, TrajectoryState::kOrphaned);
  EXPECT_EQ(table_->Stats().open_trajectories, 0u);
  auto writer = table_->NewWriter({});
  ASSERT_OK(writer);
  writer_ = std::move(*writer);
  ASSERT_OK(writer_->Resume(1));
  EXPECT_EQ(table_->Find(1)->state, TrajectoryState::kOpen);
  EXPECT_EQ(writer_->open_trajectory(), 1u);
  Append(3, 4, End::kTerminated);
  EXPECT_EQ(Numbers(1), Count(0, 7));
}

TEST_F(WriterTest, ResumeTakesOrphansOnly) {
  Create(StepSpec(), {.lanes = 2});
  Append(0, 3);
  AppendClosed(0, 3);  // Closes trajectory 1.
  Append(0, 3);
  EXPECT_STATUS(kNotFound, writer_->Resume(9, 1), "no trajectory 9");
  EXPECT_STATUS(kFailedPrecondition, writer_->Resume(1, 1), "is closed");
  EXPECT_STATUS(kFailedPrecondition, writer_->Resume(2, 1), "another writer has it");
  EXPECT_STATUS(kFailedPrecondition, writer_->Resume(1, 0), "lane 0 has trajectory 2 open");
  EXPECT_STATUS(kInvalidArgument, writer_->Resume(1, 2), "lane 2");
}

TEST_F(WriterTest, OptionsOfAWriterAreChecked) {
  Create(StepSpec());
  EXPECT_STATUS(kInvalidArgument, table_->NewWriter({.lanes = 0}), "0 lanes");
  EXPECT_STATUS(kInvalidArgument, table_->NewWriter({.lanes = UINT32_MAX}), "lanes");
  EXPECT_STATUS(kInvalidArgument, table_->NewWriter({.admission_timeout_ms = -1}), "-1");
  const auto unknown = static_cast<Ack>(9);
  EXPECT_STATUS(kInvalidArgument, table_->NewWriter({.ack = unknown}), "acknowledgement 9");
  EXPECT_STATUS(kInvalidArgument, AppendSteps(two_.many(), {.ack = unknown}), "acknowledgement 9");
  EXPECT_EQ(table_->Count(), 0u);
  EXPECT_STATUS(kNotFound, table_->SetColumns(7, {}), "trajectory 7");
}

TEST_F(WriterTest, EveryAcknowledgementCanBeWaitedFor) {
  Create(StepSpec());
  for (const Ack ack : {Ack::kMemory, Ack::kLog, Ack::kSync}) {
    const Rows rows(0, 2);
    const auto appended = writer_->AppendSteps(rows.many(), {.ack = ack});
    ASSERT_OK(appended);
    ASSERT_OK(database_->Wait(Ticket{appended->end_lsn}, Ack::kSync));
    EXPECT_GE(database_->Stats().log_synced, appended->end_lsn);
  }
  EXPECT_EQ(table_->StepCount(), 6u);
}

// More lanes than one record of this log can name.
TEST_F(WriterTest, AWriterOfManyLanesLeavesWhatIsOpen) {
  options_.ring_bytes = 32 << 10;
  options_.segment_bytes = 64 << 10;
  OpenEmpty();
  Create(StepSpec(), {.lanes = 1'000});
  Append(0, 2, End::kGo, 999);
  writer_.reset();
  writer_ = std::move(*table_->NewWriter({.lanes = 1'000}));
  ASSERT_OK(writer_->Resume(1, 0));
  for (uint32_t lane = 1; lane < 1'000; ++lane) Append(0, 1, End::kGo, lane);
  writer_.reset();
  writer_ = std::move(*table_->NewWriter({}));
  for (const TrajectoryRecord& record : table_->Scan({})) {
    ASSERT_EQ(record.state, TrajectoryState::kOrphaned) << record.id;
  }
  ASSERT_OK(writer_->Resume(1'000));
}

TEST_F(WriterTest, RemovedTrajectoryIsNamedOnce) {
  Create(StepSpec());
  Append(0, 5);
  const TrajectoryId ids[] = {1};
  ASSERT_OK(table_->Remove(ids));
  EXPECT_EQ(writer_->open_trajectory(), 0u);
  EXPECT_STATUS(kNotFound, AppendSteps(two_.many()), "trajectory 1");
  EXPECT_EQ(Append(0, 2).id, 2u);
  const TrajectoryId others[] = {2};
  ASSERT_OK(table_->Remove(others));
  EXPECT_STATUS(kNotFound, writer_->Cut(), "trajectory 2");
  EXPECT_EQ(Append(0, 2).id, 3u);
}

TEST_F(WriterTest, AWholeTrajectoryDoesNotMindThatTheLanesWasRemoved) {
  for (const bool stream : {false, true}) {
    TableSpec spec = StepSpec();
    spec.name = stream ? "stream" : "episodes";
    spec.stream = stream;
    Create(spec);
    const TrajectoryId open = Append(0, 5).id;
    ASSERT_OK(table_->Remove({&open, 1}));
    ASSERT_OK_AND_ASSIGN(const Appended whole,
                         writer_->AppendTrajectory(two_.many(), {.end = End::kTerminated}));
    EXPECT_GT(whole.id, open);
    EXPECT_EQ(whole.first_row, 0);
    EXPECT_EQ(table_->Count(), 1u);
  }
}

}  // namespace
}  // namespace geardb
