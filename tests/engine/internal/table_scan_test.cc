// Scans of a table by filters, against a plain list of what was appended; removal by filters.

#include "engine/internal/table_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/engine/internal/scan_fixture.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

using testing::Known;
using testing::Meaning;
using testing::MeaningMaker;
using testing::ScanSpec;
using testing::ShareOf;

class TableScanTest : public testing::ScanTest {};

TEST_F(TableScanTest, RandomFiltersAreTheirPredicates) {
  for (const bool final_row : {false, true}) {
    Fill(4, final_row, 1200);
    MeaningMaker maker(&known_, 3);
    uint64_t divide = 0;
    for (uint64_t round = 0; round < ShareOf(400); ++round) {
      const Meaning meaning = maker.Make(static_cast<int>(round % 5));
      ASSERT_OK_AND_ASSIGN(const Filter filter, Filter::Parse(meaning.text));
      ASSERT_OK_AND_ASSIGN(const Filter printed, Filter::Parse(filter.ToString()));
      ASSERT_TRUE(printed == filter) << meaning.text;
      ASSERT_OK(table_->Check(filter));
      std::vector<TrajectoryId> expected;
      for (const Known& one : known_) {
        if (meaning.passes(one)) expected.push_back(one.id);
      }
      ASSERT_EQ(Passing(filter), expected) << meaning.text;
      ASSERT_OK_AND_ASSIGN(const uint64_t count, table_->Count(filter));
      ASSERT_EQ(count, expected.size()) << meaning.text;
      divide += count > 0 && count < known_.size() ? 1u : 0u;
    }
    EXPECT_GT(divide, ShareOf(400) / 2);
  }
}

TEST_F(TableScanTest, OptionsNarrowAFilter) {
  Fill(4, false, 50);
  ASSERT_OK_AND_ASSIGN(const Filter all, Filter::Parse("true"));
  ASSERT_OK_AND_ASSIGN(const auto some,
                       table_->Scan(all, {.from_id = 10, .end_id = 30, .limit = 5}));
  ASSERT_EQ(some.size(), 5u);
  EXPECT_GE(some[0].id, 10u);
  ASSERT_OK_AND_ASSIGN(const auto open, table_->Scan(all, {.state = TrajectoryState::kOpen}));
  EXPECT_EQ(open.size(), 3u);
  EXPECT_EQ(Passing(all).size(), table_->Count());
}

TEST_F(TableScanTest, AnEmptyTableHasNothing) {
  OpenEmpty();
  Create(ScanSpec(4, false));
  ASSERT_OK_AND_ASSIGN(const Filter all, Filter::Parse("version >= 0"));
  EXPECT_TRUE(Passing(all).empty());
  ASSERT_OK_AND_ASSIGN(const uint64_t removed, table_->Remove(all));
  EXPECT_EQ(removed, 0u);
  for (const std::string_view column : {"version", "reward", "length"}) {
    ASSERT_OK_AND_ASSIGN(const auto statistics, table_->Statistics(column));
    EXPECT_EQ(statistics.count, 0u);
    EXPECT_TRUE(std::isnan(statistics.mean) && std::isnan(statistics.min));
  }
}

TEST_F(TableScanTest, WrongScansAreRefused) {
  Fill(4, false, 5);
  ASSERT_OK_AND_ASSIGN(const Filter other, Filter::Parse("other == 1"));
  EXPECT_STATUS(kNotFound, table_->Scan(other), "no column 'other'");
  EXPECT_STATUS(kNotFound, table_->Count(other), "no column 'other'");
  EXPECT_STATUS(kNotFound, table_->Remove(other), "no column 'other'");
  EXPECT_STATUS(kNotFound, table_->Check(other), "no column 'other'");
  EXPECT_STATUS(kNotFound, table_->Statistics("reward", other), "no column 'other'");
  EXPECT_STATUS(kNotFound, table_->Statistics("other"), "no column 'other'");
  EXPECT_STATUS(kInvalidArgument, table_->Statistics("reward ="), "a column to scan");
  EXPECT_STATUS(kInvalidArgument, table_->Statistics("reward[0]"), "'reward' has shape []");
  EXPECT_STATUS(kInvalidArgument, table_->Statistics("pair"), "'pair' has shape [2]");
  EXPECT_STATUS(kInvalidArgument, table_->Statistics("state"), "state has words");
  const auto histogram = [&](const HistogramBins& bins) {
    return table_->Histogram("reward", bins);
  };
  EXPECT_STATUS(kInvalidArgument, histogram({}), "of 0 bins");
  EXPECT_STATUS(kInvalidArgument, histogram({.edges = {1}}), "of 0 bins");
  EXPECT_STATUS(kInvalidArgument, histogram({.edges = {1, 1}}), "edge 1 of a histogram is 1, whi");
  EXPECT_STATUS(kInvalidArgument, histogram({.edges = {1, INFINITY}}), "edges are finite");
  EXPECT_STATUS(kInvalidArgument, histogram({.edges = {1, 2}, .count = 3}), "both");
  EXPECT_STATUS(kInvalidArgument, histogram({.count = 3, .low = 2, .high = 1}), "does not rise");
  EXPECT_STATUS(kInvalidArgument, histogram({.count = 3, .low = 0, .high = INFINITY}), "finite");
  EXPECT_STATUS(kInvalidArgument, histogram({.count = kHistogramBinsMax + 1, .high = 1}), "bins");
}

TEST_F(TableScanTest, TimesSampledAreAskedAsTheyAre) {
  TableSpec spec = testing::StepSpec();
  spec.priority_tables = {testing::WindowSpec("p")};
  Create(spec);
  for (int t = 0; t < 40; ++t) AppendClosed(100 * t, 3);
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority("p")->NewSampler({.batch = 30}));
  ASSERT_OK(sampler->Next());
  for (const int bound : {0, 1, 2}) {
    std::vector<TrajectoryId> expected;
    for (const TrajectoryRecord& record : table_->Scan({})) {
      if (record.times_sampled > static_cast<uint64_t>(bound)) expected.push_back(record.id);
    }
    EXPECT_GT(expected.size(), 0u);
    EXPECT_LT(expected.size(), 40u);
    ASSERT_OK_AND_ASSIGN(const Filter filter,
                         Filter::Parse("times_sampled > " + std::to_string(bound)));
    EXPECT_EQ(Passing(filter), expected);
  }
  ASSERT_OK_AND_ASSIGN(const auto statistics, table_->Statistics("times_sampled"));
  EXPECT_EQ(statistics.mean, 30.0 / 40);
}

TEST_F(TableScanTest, AColumnBeyondTheBitsSetsNoOther) {
  TableSpec spec = testing::StepSpec();
  spec.columns.resize(3);
  for (int i = 0; i < 66; ++i) {
    spec.columns.push_back({.name = "c" + std::to_string(i), .kind = ColumnKind::kPerTrajectory});
  }
  Create(spec);
  const TrajectoryId id = AppendClosed(0, 3);
  const float value = 1;
  const ColumnValue values[] = {{"c65", TensorView::Scalar(value)},
                                {"c63", TensorView::Scalar(value)}};
  ASSERT_OK(table_->SetColumns(id, values));
  ASSERT_OK_AND_ASSIGN(const Filter last, Filter::Parse("isset(c63) && c65 == 1"));
  EXPECT_EQ(Passing(last), std::vector<TrajectoryId>{id});
  ASSERT_OK_AND_ASSIGN(const Filter wrapped, Filter::Parse("isset(c1)"));
  EXPECT_TRUE(Passing(wrapped).empty());
}

TEST_F(TableScanTest, RemoveTakesWhatPassesAndStaysSo) {
  Fill(4, true, 400);
  ASSERT_OK_AND_ASSIGN(const Filter filter, Filter::Parse("version < 6 && state != orphaned"));
  std::vector<TrajectoryId> kept;
  uint64_t leaving = 0;
  for (const Known& one : known_) {
    if (one.numbers.at("version") < 6 && one.state != "orphaned") {
      ++leaving;
    } else {
      kept.push_back(one.id);
    }
  }
  ASSERT_GT(leaving, 50u);
  ASSERT_OK_AND_ASSIGN(const uint64_t removed, table_->Remove(filter));
  EXPECT_EQ(removed, leaving);
  EXPECT_EQ(Passing(Filter::All()), kept);
  ASSERT_OK_AND_ASSIGN(const uint64_t again, table_->Remove(filter));
  EXPECT_EQ(again, 0u);
  Reopen();
  OpenAgain("t");
  EXPECT_EQ(Passing(Filter::All()), kept);
}

TEST_F(TableScanTest, MoreThanARecordHoldsLeaveInSeveral) {
  // A record of this log removes some 16,000: single rows are the cheapest to have more of.
  OpenEmpty();
  TableSpec spec{.name = "t", .columns = {{.name = "r"}}, .steps_per_page = 1, .expected_steps = 1};
  constexpr uint32_t kLanes = 2000;
  Create(spec, {.lanes = kLanes});
  const std::vector<float> rows(kLanes);
  const std::vector<End> ends(kLanes, End::kTerminated);
  for (int call = 0; call < 20; ++call) {
    ASSERT_OK(writer_->AppendLanes({{"r", TensorView::Of(std::span<const float>(rows))}},
                                   {.ends = ends}));
  }
  ASSERT_EQ(table_->Count(), 40'000u);
  std::vector<TrajectoryId> all;
  for (const TrajectoryRecord& record : table_->Scan({})) all.push_back(record.id);
  ASSERT_STATUS(kInvalidArgument, table_->Remove(all), "cannot be removed at once");
  ASSERT_OK_AND_ASSIGN(const Filter filter, Filter::Parse("id > 100"));
  ASSERT_OK_AND_ASSIGN(const uint64_t removed, table_->Remove(filter));
  EXPECT_EQ(removed, 39'900u);
  EXPECT_EQ(table_->Count(), 100u);
  Reopen();
  OpenAgain("t");
  EXPECT_EQ(table_->Count(), 100u);
}

TEST(FirstRecordsTest, TheSmallestIdsAreKeptAndNoMore) {
  for (const uint64_t limit : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{100}, UINT64_MAX}) {
    SCOPED_TRACE(limit);
    engine::FirstRecords records(limit);
    for (TrajectoryId i = 0; i < 100; ++i) {
      const TrajectoryId id = i * 37 % 100;  // Each once.
      if (records.Wants(id)) records.Add({.id = id});
    }
    EXPECT_EQ(records.Wants(1000), limit > 100);
    const std::vector<TrajectoryRecord> kept = std::move(records).Finish();
    ASSERT_EQ(kept.size(), std::min<uint64_t>(limit, 100));
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i].id, i);
  }
}

}  // namespace
}  // namespace geardb
