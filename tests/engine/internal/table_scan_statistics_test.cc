// Statistics and histograms of columns by filters, against a plain list of what was appended.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/column_scan.h"
#include "tests/engine/internal/scan_fixture.h"
#include "tests/testing/random_programs.h"

namespace geardb {
namespace {

using testing::Known;
using testing::Meaning;
using testing::MeaningMaker;
using testing::Real;
using testing::ScanSpec;
using testing::ShareOf;

class TableScanStatisticsTest : public testing::ScanTest {};

/// What `statistics` should be, up to the rounding of f64 sums.
void ExpectStatistics(const ColumnStatistics& statistics, const std::vector<Real>& values) {
  Real sum = 0, size = 0, squares = 0;
  std::vector<Real> numbers;
  for (const Real value : values) {
    if (std::isnan(value)) continue;
    numbers.push_back(value);
    sum += value;
    size += std::abs(value);
  }
  ASSERT_EQ(statistics.count, numbers.size());
  ASSERT_EQ(statistics.nans, values.size() - numbers.size());
  if (numbers.empty()) return;
  const auto count = static_cast<Real>(numbers.size());
  const Real mean = sum / count;
  for (const Real value : numbers) squares += (value - mean) * (value - mean);
  const Real bound = 1e-12L * (1 + size / count);
  ASSERT_LE(std::abs(statistics.mean - mean), bound);
  ASSERT_LE(std::abs(statistics.std - std::sqrt(squares / count)), bound);
  const auto [min, max] = std::minmax_element(numbers.begin(), numbers.end());
  ASSERT_EQ(statistics.min, static_cast<double>(*min));
  ASSERT_EQ(statistics.max, static_cast<double>(*max));
}

TEST_F(TableScanStatisticsTest, StatisticsAreOfWhatPasses) {
  for (const bool final_row : {false, true}) {
    Fill(4, final_row, 1200);
    MeaningMaker maker(&known_, 4);
    for (uint64_t round = 0; round < ShareOf(60); ++round) {
      const Meaning meaning = maker.Make(static_cast<int>(round % 3));
      ASSERT_OK_AND_ASSIGN(const Filter filter, Filter::Parse(meaning.text));
      for (const std::string column :
           {"version", "score", "half", "triple[1]", "length", "`obs/x`", "first_row"}) {
        std::vector<Real> values;
        for (const Known& one : known_) {
          if (meaning.passes(one)) values.push_back(one.numbers.at(column));
        }
        ASSERT_OK_AND_ASSIGN(const auto statistics, table_->Statistics(column, filter));
        ExpectStatistics(statistics, values);
      }
      std::vector<Real> rewards, squares;
      for (const Known& one : known_) {
        if (!meaning.passes(one)) continue;
        rewards.insert(rewards.end(), one.rewards.begin(), one.rewards.end());
        for (size_t i = 0; i < one.rewards.size(); ++i) {
          const Real row = one.numbers.at("first_row") + static_cast<Real>(i);
          squares.push_back(row * row);
        }
      }
      ASSERT_OK_AND_ASSIGN(const auto reward, table_->Statistics("reward", filter));
      ExpectStatistics(reward, rewards);
      ASSERT_OK_AND_ASSIGN(const auto pair, table_->Statistics("pair[1]", filter));
      ExpectStatistics(pair, squares);
    }
  }
}

TEST_F(TableScanStatisticsTest, PagesDoNotShowInSums) {
  std::vector<ColumnStatistics> all;
  for (const uint32_t steps_per_page : {1u, 4u, 64u}) {
    Fill(steps_per_page, false, 600);
    ASSERT_OK_AND_ASSIGN(const auto statistics, table_->Statistics("reward"));
    all.push_back(statistics);
  }
  for (const ColumnStatistics& one : all) {
    EXPECT_EQ(std::bit_cast<uint64_t>(one.mean), std::bit_cast<uint64_t>(all[0].mean));
    EXPECT_EQ(std::bit_cast<uint64_t>(one.std), std::bit_cast<uint64_t>(all[0].std));
  }
}

TEST_F(TableScanStatisticsTest, FinalRowsOfAStreamAreNoSteps) {
  OpenEmpty();
  TableSpec spec = ScanSpec(4, true);
  spec.stream = true;
  Create(spec);
  Real expected = 0;
  uint64_t steps = 0;
  for (int episode = 0; episode < 7; ++episode) {
    for (int row = 0; row <= episode; ++row) {
      const float reward = static_cast<float>(10 * episode + row);
      const float last = 1e9f;
      const std::vector<int32_t> pair(2);
      const ColumnValue final[] = {{"reward", TensorView::Scalar(last)}};
      const bool end = row == episode;
      ASSERT_OK(writer_->Append({{"reward", TensorView::Scalar(reward)},
                                 {"pair", TensorView::Of(std::span<const int32_t>(pair))}},
                                {.end = end ? End::kTerminated : End::kGo,
                                 .final = end ? ColumnValues(final) : ColumnValues()}));
      expected += reward;
      ++steps;
    }
  }
  ASSERT_OK_AND_ASSIGN(const auto statistics, table_->Statistics("reward"));
  EXPECT_EQ(statistics.count, steps);
  EXPECT_LT(statistics.max, 100);
  EXPECT_LE(std::abs(statistics.mean - expected / static_cast<Real>(steps)), 1e-12L);
}

TEST_F(TableScanStatisticsTest, HistogramsCountWhatPasses) {
  Fill(4, false, 600);
  MeaningMaker maker(&known_, 5);
  for (uint64_t round = 0; round < ShareOf(40); ++round) {
    const Meaning meaning = maker.Make(1);
    ASSERT_OK_AND_ASSIGN(const Filter filter, Filter::Parse(meaning.text));
    HistogramBins bins{.count = 1 + round, .low = -20, .high = 60.5};
    if (round % 2 == 0) bins = {.edges = {-30, 0, 0.5, 10, 77}};
    ASSERT_OK_AND_ASSIGN(const auto histogram, table_->Histogram("reward", bins, filter));
    const std::vector<double>& edges = histogram.edges;
    ASSERT_EQ(edges.size(), histogram.counts.size() + 1);
    ASSERT_EQ(edges.front(), round % 2 == 0 ? -30 : -20);
    ASSERT_EQ(edges.back(), round % 2 == 0 ? 77 : 60.5);
    ColumnHistogram expected{.counts = std::vector<uint64_t>(histogram.counts.size())};
    for (const Known& one : known_) {
      if (!meaning.passes(one)) continue;
      for (const double value : one.rewards) {
        expected.nans += std::isnan(value) ? 1u : 0u;
        expected.below += value < edges.front() ? 1u : 0u;
        expected.above += value > edges.back() ? 1u : 0u;
        for (size_t i = 0; i + 1 < edges.size(); ++i) {
          expected.counts[i] += value >= edges[i] && value < edges[i + 1] ? 1u : 0u;
        }
        expected.counts.back() += value == edges.back() ? 1u : 0u;
      }
    }
    ASSERT_EQ(histogram.counts, expected.counts);
    ASSERT_EQ(histogram.below, expected.below);
    ASSERT_EQ(histogram.above, expected.above);
    ASSERT_EQ(histogram.nans, expected.nans);
  }
}

}  // namespace
}  // namespace geardb
