// Draw frequencies against the exact distribution, by Pearson's chi-square statistic.
//
// Bound: of a chi-square variable with d degrees of freedom, d ± 6·sqrt(2d) is left with a chance
// below 10^-6. Seeds are fixed, so a test that passes once passes always.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/conformance/plain_table.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"

namespace geardb::conformance {
namespace {

using Item = std::pair<TrajectoryId, int64_t>;

constexpr int kBatches = 400;
constexpr int64_t kBatch = 512;

void ExpectChiSquare(const std::map<Item, double>& distribution,
                     const std::map<Item, int64_t>& counts) {
  double draws = 0;
  for (const auto& [item, count] : counts) {
    ASSERT_TRUE(distribution.contains(item)) << item.first << ":" << item.second << " is no item";
    draws += static_cast<double>(count);
  }
  double statistic = 0;
  double cells = 0;
  for (const auto& [item, probability] : distribution) {
    const auto found = counts.find(item);
    if (probability == 0) {
      ASSERT_TRUE(found == counts.end()) << item.first << ":" << item.second << " cannot be drawn";
      continue;
    }
    const double expected = draws * probability;
    ASSERT_GT(expected, 50) << "too few draws to say anything";
    const double count = found == counts.end() ? 0 : static_cast<double>(found->second);
    statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  }
  const double freedom = cells - 1;
  EXPECT_LT(statistic, freedom + 6 * std::sqrt(2 * freedom));
  EXPECT_GT(statistic, freedom - 6 * std::sqrt(2 * freedom)) << "more even than chance allows";
}

std::map<Item, int64_t> CountDraws(PriorityTable* priority_table) {
  std::map<Item, int64_t> counts;
  SamplerOptions options;
  options.batch = kBatch;
  options.views = {View{.column = "number", .name = {}, .rows = {}}};
  const auto sampler = priority_table->NewSampler(options);
  EXPECT_OK(sampler);
  for (int i = 0; i < kBatches && sampler.ok(); ++i) {
    const auto batch = (*sampler)->Next();
    EXPECT_OK(batch);
    if (!batch.ok()) break;
    for (size_t row = 0; row < batch->anchors().size(); ++row) {
      ++counts[{batch->trajectory_ids()[row], batch->anchors()[row]}];
    }
  }
  return counts;
}

class DrawingTest : public ::testing::TestWithParam<const char*> {
 protected:
  DrawingTest() : plain_(directory_.path()) {
    // Lengths of all kinds, holes where trajectories were removed, and one that is open.
    std::vector<TrajectoryId> removed;
    for (int i = 0; i < 36; ++i) {
      const End end = i % 3 == 0 ? End::kTruncated : End::kTerminated;
      const TrajectoryId id = plain_.AppendTrajectory(1 + (i * 7) % 19, end);
      if (i % 4 == 1) removed.push_back(id);
    }
    for (const TrajectoryId id : removed) plain_.Remove(id);
    for (int i = 0; i < 11; ++i) plain_.AppendRow();
  }

  /// Sets all priorities to what is a function of the item, some to 0, and returns p^α / Σ.
  std::map<Item, double> SetPriorities(PriorityTable* priority_table) {
    const double alpha = priority_table->spec().alpha;
    std::map<Item, double> weights;
    std::vector<RowId> rows;
    std::vector<float> priorities;
    double total = 0;
    for (const RowId& row : priority_table->Items()) {
      const uint64_t mixed = row.id * 31 + static_cast<uint64_t>(row.row) * 17;
      const float priority = mixed % 11 == 0 ? 0.0f : static_cast<float>(mixed % 23 + 1) / 8.0f;
      rows.push_back(row);
      priorities.push_back(priority);
      const double weight = priority == 0 ? 0 : std::pow(static_cast<double>(priority), alpha);
      weights[{row.id, row.row}] = weight;
      total += weight;
    }
    EXPECT_OK(priority_table->Set(rows, priorities));
    for (auto& [item, weight] : weights) weight /= total;
    return weights;
  }

  testing::TempDir directory_;
  PlainTable plain_;
};

TEST_P(DrawingTest, FrequenciesFollowTheDistribution) {
  const auto priority_table = plain_.priority_table(GetParam());
  std::map<Item, double> distribution;
  if (priority_table->spec().selector == SelectorKind::kPrioritized) {
    distribution = SetPriorities(priority_table.get());
  } else {
    const std::vector<RowId> items = priority_table->Items();
    for (const RowId& row : items) {
      distribution[{row.id, row.row}] = 1.0 / static_cast<double>(items.size());
    }
  }
  ASSERT_GT(distribution.size(), 20u);
  ExpectChiSquare(distribution, CountDraws(priority_table.get()));
}

/// Successive rows of a batch, as pairs, over few items.
TEST_P(DrawingTest, RowsOfABatchAreIndependent) {
  const auto priority_table = plain_.priority_table(GetParam());
  const std::vector<RowId> items = priority_table->Items();
  std::map<Item, int> number;  // Items in six classes.
  std::map<Item, double> distribution;
  std::vector<double> share(6);
  for (const RowId& row : items) {
    const int drawn_class = static_cast<int>(number.size() % 6);
    number[{row.id, row.row}] = drawn_class;
    share[static_cast<size_t>(drawn_class)] += 1.0 / static_cast<double>(items.size());
  }
  for (uint64_t a = 0; a < 6; ++a) {
    for (uint64_t b = 0; b < 6; ++b) distribution[{a, b}] = share[a] * share[b];
  }
  SamplerOptions options;
  options.batch = 2;
  options.views = {View{.column = "number", .name = {}, .rows = {}}};
  ASSERT_OK_AND_ASSIGN(const auto sampler, priority_table->NewSampler(options));
  std::map<Item, int64_t> counts;
  for (int i = 0; i < 8000; ++i) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, sampler->Next());
    const auto class_of = [&](size_t row) {
      return number.at({batch.trajectory_ids()[row], batch.anchors()[row]});
    };
    ++counts[{static_cast<TrajectoryId>(class_of(0)), class_of(1)}];
  }
  ExpectChiSquare(distribution, counts);
}

INSTANTIATE_TEST_SUITE_P(PriorityTables, DrawingTest,
                         ::testing::ValuesIn(PlainTable::kPriorityTables), [](const auto& tested) {
                           std::string name = tested.param;
                           name[name.find('.')] = '_';
                           return name;
                         });

}  // namespace
}  // namespace geardb::conformance
