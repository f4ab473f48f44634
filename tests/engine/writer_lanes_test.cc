// AppendLanes: a row for each of many environments in one call, as vectorised simulators give them.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "tests/testing/store_fixture.h"

namespace geardb {
namespace {

using testing::Rows;
using testing::StepSpec;
using testing::StoreTest;

/// An environment whose observations count up, and whose episodes have `length` steps.
struct CountingEnv {
  int64_t length = 3;
  bool truncates = false;
  int64_t next_number = 0;  // Of the observation that it shows now.
  int64_t step = 0;
};

class WriterLanesTest : public StoreTest {
 protected:
  void CreateLanes(const TableSpec& spec, uint32_t lanes) {
    Create(spec, {.lanes = lanes});
    environments_.resize(lanes);
    for (uint32_t i = 0; i < lanes; ++i) {
      environments_[i].length = 2 + i;
      environments_[i].truncates = i % 2 == 1;
      environments_[i].next_number = 1000 * (i + 1);
    }
  }

  Result<std::vector<Appended>> AppendNumbers(const std::vector<int64_t>& numbers,
                                              const std::vector<End>& ends,
                                              const std::vector<int64_t>& finals = {}) {
    std::vector<float> obs, reward, last;
    std::vector<int32_t> action;
    for (const int64_t k : numbers) {
      obs.insert(obs.end(), {static_cast<float>(k), static_cast<float>(k) + 0.5f});
      action.push_back(static_cast<int32_t>(k));
      reward.push_back(static_cast<float>(k) / 4);
    }
    for (const int64_t k : finals) {
      last.insert(last.end(), {static_cast<float>(k), static_cast<float>(k) + 0.5f});
    }
    const auto lanes = static_cast<int64_t>(numbers.size());
    const auto finals_given = static_cast<int64_t>(finals.size());
    const ColumnValue final_obs[] = {
        {"obs", TensorView::Of(std::span<const float>(last), Shape({finals_given, 2}))}};
    AppendLanesOptions options{.ends = ends};
    if (!finals.empty()) options.final = final_obs;
    return writer_->AppendLanes(
        {{"obs", TensorView::Of(std::span<const float>(obs), Shape({lanes, 2}))},
         {"action", TensorView::Of(std::span<const int32_t>(action))},
         {"reward", TensorView::Of(std::span<const float>(reward))}},
        options);
  }

  std::vector<CountingEnv> environments_;
};

TEST_F(WriterLanesTest, EveryLaneHasItsTrajectory) {
  CreateLanes(StepSpec(), 3);
  for (int64_t k = 0; k < 6; ++k) {
    const auto appended = AppendNumbers({k, 100 + k, 200 + k}, {});
    ASSERT_OK(appended);
    ASSERT_EQ(appended->size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ((*appended)[i].id, i + 1);
      EXPECT_EQ((*appended)[i].first_row, k);
      EXPECT_EQ((*appended)[i].rows, 1);
    }
  }
  for (TrajectoryId id = 1; id <= 3; ++id) {
    EXPECT_EQ(Numbers(id), testing::Count(static_cast<int32_t>(100 * (id - 1)), 6));
  }
}

TEST_F(WriterLanesTest, NextStepAutoresetSkipsTheResetStep) {
  // Gymnasium's next-step autoreset: the call after an end resets, its action and reward are void.
  CreateLanes(StepSpec(true), 3);
  std::vector<bool> resets(3, false);
  std::map<TrajectoryId, std::vector<float>> expected;
  std::vector<std::vector<float>> episode(3);
  for (int call = 0; call < 40; ++call) {
    std::vector<int64_t> numbers, finals;
    std::vector<End> ends;
    for (size_t i = 0; i < 3; ++i) {
      CountingEnv& env = environments_[i];
      numbers.push_back(env.next_number);
      if (resets[i]) {
        ends.push_back(End::kSkip);
        resets[i] = false;
        env.step = 0;
        finals.push_back(-1);
        ++env.next_number;
        continue;
      }
      episode[i].push_back(static_cast<float>(env.next_number));
      ++env.next_number;
      const bool done = ++env.step == env.length;
      ends.push_back(!done ? End::kGo : env.truncates ? End::kTruncated : End::kTerminated);
      finals.push_back(env.next_number);
      resets[i] = done;
    }
    const auto appended = AppendNumbers(numbers, ends, finals);
    ASSERT_OK(appended);
    for (size_t i = 0; i < 3; ++i) {
      if (ends[i] == End::kSkip) {
        EXPECT_EQ((*appended)[i].id, 0u);
        EXPECT_EQ((*appended)[i].rows, 0);
      }
      if (ends[i] == End::kTerminated || ends[i] == End::kTruncated) {
        episode[i].push_back(static_cast<float>(finals[i]));
        expected[(*appended)[i].id] = episode[i];
        episode[i].clear();
      }
    }
  }
  EXPECT_GT(expected.size(), 20u);
  for (const auto& [id, obs] : expected) {
    EXPECT_EQ(Obs(id), obs);
    EXPECT_EQ(table_->Find(id)->steps_end + 1, table_->Find(id)->rows_end);
  }
}

TEST_F(WriterLanesTest, SameStepAutoresetGivesTheFinalObservation) {
  // Gymnasium's same-step autoreset: the observation shown after an end is the next episode's
  // first; the last one comes beside it.
  CreateLanes(StepSpec(true), 4);
  std::map<TrajectoryId, std::vector<float>> expected;
  std::vector<std::vector<float>> episode(4);
  for (int call = 0; call < 30; ++call) {
    std::vector<int64_t> numbers, finals;
    std::vector<End> ends;
    bool any = false;
    for (size_t i = 0; i < 4; ++i) {
      CountingEnv& env = environments_[i];
      numbers.push_back(env.next_number);
      episode[i].push_back(static_cast<float>(env.next_number));
      const bool done = ++env.step == env.length;
      ends.push_back(!done ? End::kGo : env.truncates ? End::kTruncated : End::kTerminated);
      finals.push_back(env.next_number + 1);
      env.next_number += done ? 2 : 1;
      if (done) env.step = 0;
      any |= done;
    }
    const auto appended = AppendNumbers(numbers, ends, any ? finals : std::vector<int64_t>());
    ASSERT_OK(appended);
    for (size_t i = 0; i < 4; ++i) {
      if (ends[i] == End::kGo) continue;
      episode[i].push_back(static_cast<float>(finals[i]));
      expected[(*appended)[i].id] = episode[i];
      episode[i].clear();
    }
  }
  EXPECT_GT(expected.size(), 25u);
  for (const auto& [id, obs] : expected) EXPECT_EQ(Obs(id), obs);
}

TEST_F(WriterLanesTest, SkippedLanesAreNotRead) {
  CreateLanes(StepSpec(), 2);
  ASSERT_OK(AppendNumbers({1, 2}, {End::kGo, End::kSkip}));
  EXPECT_EQ(table_->Count(), 1u);
  EXPECT_EQ(writer_->open_trajectory(1), 0u);
  const auto all = AppendNumbers({1, 2}, {End::kSkip, End::kSkip});
  ASSERT_OK(all);
  EXPECT_EQ(table_->StepCount(), 1u);
}

TEST_F(WriterLanesTest, LanesMayEndInDifferentWays) {
  CreateLanes(StepSpec(true), 5);
  for (int64_t k = 0; k < 3; ++k) {
    ASSERT_OK(AppendNumbers({k, 10 + k, 20 + k, 30 + k, 40 + k}, {}));
  }
  ASSERT_OK(AppendNumbers({3, 13, 23, 33, 43},
                          {End::kGo, End::kTerminated, End::kTruncated, End::kCut, End::kSkip},
                          {-1, 14, 24, -1, -1}));
  EXPECT_EQ(Obs(1), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(Obs(2), (std::vector<float>{10, 11, 12, 13, 14}));
  EXPECT_EQ(Obs(3), (std::vector<float>{20, 21, 22, 23, 24}));
  EXPECT_EQ(Obs(4), (std::vector<float>{30, 31, 32, 33}));
  EXPECT_EQ(Obs(5), (std::vector<float>{40, 41, 42}));
  EXPECT_EQ(table_->StepCount(), 4u + 4 + 4 + 3 + 3);
  EXPECT_EQ(table_->Find(4)->end, End::kCut);
  EXPECT_EQ(table_->Find(4)->steps_end, 3);
}

TEST_F(WriterLanesTest, CutOfASingleRowLeavesNothing) {
  CreateLanes(StepSpec(true), 2);
  const auto appended = AppendNumbers({1, 2}, {End::kCut, End::kGo});
  ASSERT_OK(appended);
  EXPECT_EQ((*appended)[0].id, 0u);
  EXPECT_EQ(table_->Count(), 1u);
}

TEST_F(WriterLanesTest, ACallThatLeavesNothingIsCheckedLikeAnyOther) {
  TableSpec spec = StepSpec(true);
  spec.priority_tables = {testing::WindowSpec("per")};
  spec.priority_tables[0].initial = InitialPriority::kColumn;
  spec.priority_tables[0].initial_priority_column = "score";
  CreateLanes(spec, 2);
  const Rows rows(0, 2);
  const End cuts[2] = {End::kCut, End::kCut}, skips[2] = {End::kSkip, End::kSkip};
  const End goes[2] = {End::kCut, End::kGo};
  const std::vector<float> many(5000, 1.0f);
  const InitialPriorities none_new[] = {{"per", many}};
  const float scores[2] = {std::nanf(""), 1};
  const ColumnValue score[] = {{"score", TensorView::Scalar(scores[0])}};
  const ColumnValue lane_scores[] = {{"score", TensorView::Of(std::span<const float>(scores))}};
  const auto unknown = static_cast<Ack>(9);

  const char* const count = "5000 initial priorities for 0 items";
  EXPECT_STATUS(kInvalidArgument,
                writer_->Append(rows.one(), {.end = End::kCut, .priorities = none_new}), count);
  EXPECT_STATUS(kInvalidArgument,
                writer_->AppendLanes(rows.many(), {.ends = cuts, .priorities = none_new}), count);
  EXPECT_STATUS(kInvalidArgument,
                writer_->AppendLanes(rows.many(), {.ends = skips, .priorities = none_new}), count);
  EXPECT_STATUS(kInvalidArgument,
                writer_->Append(rows.one(), {.end = End::kCut, .trajectory = score}), "'score'");
  // Also where another lane leaves something.
  for (const auto& ends : {cuts, goes}) {
    EXPECT_STATUS(kInvalidArgument,
                  writer_->AppendLanes(rows.many(), {.ends = {ends, 2}, .trajectory = lane_scores}),
                  "'score'");
  }
  EXPECT_STATUS(kInvalidArgument, writer_->Append(rows.one(), {.end = End::kCut, .ack = unknown}),
                "unknown acknowledgement 9");
  EXPECT_STATUS(kInvalidArgument,
                writer_->AppendLanes(rows.many(), {.ends = skips, .ack = unknown}),
                "unknown acknowledgement 9");
  EXPECT_EQ(table_->Count(), 0u);
  EXPECT_OK(writer_->AppendLanes(rows.many(), {.ends = cuts}));

  ASSERT_OK(database_->DropTable("steps"));
  EXPECT_STATUS(kCancelled, writer_->Append(rows.one(), {.end = End::kCut}), "dropped");
  EXPECT_STATUS(kCancelled, writer_->AppendLanes(rows.many(), {.ends = cuts}), "dropped");
  ASSERT_OK(database_->Close());
  EXPECT_STATUS(kCancelled, writer_->Append(rows.one(), {.end = End::kCut}), "closed");
  EXPECT_STATUS(kCancelled, writer_->AppendLanes(rows.many(), {.ends = skips}), "closed");
}

TEST_F(WriterLanesTest, StreamsKeepTheirTrajectory) {
  TableSpec spec = StepSpec(true);
  spec.stream = true;
  CreateLanes(spec, 2);
  ASSERT_OK(AppendNumbers({0, 10}, {}));
  ASSERT_OK(AppendNumbers({1, 11}, {End::kTerminated, End::kGo}, {2, -1}));
  ASSERT_OK(AppendNumbers({100, 12}, {End::kGo, End::kTruncated}, {-1, 13}));
  ASSERT_OK(AppendNumbers({101, 200}, {End::kCut, End::kGo}));
  EXPECT_EQ(table_->Count(), 2u);
  EXPECT_EQ(Obs(1), (std::vector<float>{0, 1, 2, 100, 101}));
  EXPECT_EQ(Obs(2), (std::vector<float>{10, 11, 12, 13, 200}));
  EXPECT_EQ(table_->StepCount(), 3u + 4);  // Less a final row each, and the row that was cut.
}

TEST_F(WriterLanesTest, PerTrajectoryColumnsAreSetPerLane) {
  CreateLanes(StepSpec(), 3);
  const Rows rows(0, 3);
  const uint32_t versions[3] = {7, 8, 9};
  const ColumnValue trajectory[] = {
      {"version", TensorView::Of(std::span<const uint32_t>(versions))}};
  const End ends[3] = {End::kGo, End::kSkip, End::kTerminated};
  ASSERT_OK(writer_->AppendLanes(rows.many(), {.ends = ends, .trajectory = trajectory}));
  const std::string_view columns[] = {"version"};
  EXPECT_EQ((*table_->Read(1, columns, {}))[0].view().values<uint32_t>()[0], 7u);
  EXPECT_EQ((*table_->Read(2, columns, {}))[0].view().values<uint32_t>()[0], 9u);
  EXPECT_EQ(table_->Count(), 2u);
}

TEST_F(WriterLanesTest, WrongCallsAreRefusedWholly) {
  CreateLanes(StepSpec(true), 3);
  EXPECT_STATUS(kInvalidArgument, AppendNumbers({1, 2}, {}), "column 'obs' takes f32[3, 2]");
  EXPECT_STATUS(kInvalidArgument, AppendNumbers({1, 2, 3}, {End::kGo}), "1 ends for 3 lanes");
  EXPECT_STATUS(kInvalidArgument,
                AppendNumbers({1, 2, 3}, {End::kGo, End::kGo, static_cast<End>(5)}),
                "unknown end 5");
  EXPECT_STATUS(kInvalidArgument, AppendNumbers({1, 2, 3}, {End::kGo, End::kTerminated, End::kGo}),
                "column 'obs' is missing from the final row");
  EXPECT_STATUS(kInvalidArgument,
                AppendNumbers({1, 2, 3}, {End::kGo, End::kTerminated, End::kGo}, {1, 2}),
                "column 'obs'");
  EXPECT_EQ(table_->Count(), 0u);
  for (uint32_t lane = 0; lane < 3; ++lane) EXPECT_EQ(writer_->open_trajectory(lane), 0u);
}

TEST_F(WriterLanesTest, OneRemovedLaneRefusesTheCallAndIsFreeAfterwards) {
  CreateLanes(StepSpec(), 3);
  ASSERT_OK(AppendNumbers({0, 10, 20}, {}));
  const TrajectoryId removed[] = {2};
  ASSERT_OK(table_->Remove(removed));
  EXPECT_STATUS(kNotFound, AppendNumbers({1, 11, 21}, {}), "trajectory 2");
  EXPECT_EQ(table_->StepCount(), 2u);
  const auto appended = AppendNumbers({1, 11, 21}, {});
  ASSERT_OK(appended);
  EXPECT_EQ((*appended)[0].first_row, 1);
  EXPECT_EQ((*appended)[1].id, 4u);
  EXPECT_EQ((*appended)[1].first_row, 0);
}

TEST_F(WriterLanesTest, FourThousandEnvironmentsGoIntoOneRecordEach) {
  options_.ring_bytes = uint64_t{16} << 20;
  options_.segment_bytes = uint64_t{16} << 20;
  OpenEmpty();
  CreateLanes(StepSpec(), 4096);
  const uint64_t records = database_->Stats().log_records;
  for (int64_t k = 0; k < 10; ++k) {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < 4096; ++i) numbers.push_back(100 * i + k);
    ASSERT_OK(AppendNumbers(numbers, {}));
  }
  EXPECT_LE(database_->Stats().log_records - records, 20u);
  EXPECT_EQ(table_->StepCount(), 40'960u);
  for (const TrajectoryId id : {1u, 2049u, 4096u}) {
    EXPECT_EQ(Numbers(id), testing::Count(static_cast<int32_t>(100 * (id - 1)), 10));
  }
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(database_->recovery().orphaned, 4096u);
  EXPECT_EQ(Numbers(4096), testing::Count(409'500, 10));
}

}  // namespace
}  // namespace geardb
