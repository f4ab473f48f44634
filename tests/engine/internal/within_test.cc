#include "engine/internal/within.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/engine/internal/live_core.h"
#include "tests/testing/frequencies.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class WithinTest : public testing::StoreTest {};

/// A priority table over windows says which rows are anchors; of closed trajectories all of them.
TEST_F(WithinTest, AnchorsAreTheItemsOfAPriorityTableOverWindows) {
  std::mt19937_64 random(5);
  const auto between = [&](int64_t first, int64_t last) {
    return std::uniform_int_distribution<int64_t>(first, last)(random);
  };
  uint64_t anchors = 0, none = 0;
  for (uint64_t program = 0; program < testing::ShareOf(160); ++program) {
    SCOPED_TRACE(program);
    if (program % 20 == 0) OpenEmpty();
    TableSpec spec = testing::StepSpec(between(0, 1) == 1);
    spec.name = "t" + std::to_string(program);
    spec.stream = between(0, 1) == 1;
    PriorityTableSpec per = testing::WindowSpec("per");
    WindowRule& rule = per.window;
    rule.extent = {between(0, 3), between(1, 4), between(0, 3)};
    rule.stride = between(0, 2) == 0 ? between(1, 5) : 1;
    rule.stride_from_end = between(0, 3) == 0;
    rule.left = static_cast<EdgeRule>(between(0, 4));
    rule.right = static_cast<EdgeRule>(between(0, 4));
    rule.cross_ends = spec.stream && between(0, 1) == 1;
    spec.priority_tables = {per};
    Create(spec);
    std::vector<TrajectoryId> ids;
    for (int64_t i = between(2, 9); i > 0; --i) {
      const bool truncated = between(0, 1) == 1;
      if (!spec.stream) {
        ids.push_back(
            AppendClosed(0, between(1, 14), truncated ? End::kTruncated : End::kTerminated));
        continue;
      }
      for (int64_t episodes = between(1, 5); episodes > 0; --episodes) {
        const int64_t kind = between(0, 2);
        Append(0, between(1, 9),
               kind == 0   ? End::kGo
               : kind == 1 ? End::kTruncated
                           : End::kTerminated);
      }
      const TrajectoryId id = writer_->open_trajectory();
      ASSERT_OK(writer_->Cut());
      if (table_->Find(id).ok()) ids.push_back(id);
    }
    for (const TrajectoryId id : ids) {
      const auto found = table_->Find(id);
      if (between(0, 2) > 0 || !found.ok() || found->steps_end < 3) continue;
      ASSERT_OK(table_->Truncate(id, between(1, found->steps_end - 1)));
    }
    std::map<TrajectoryId, std::vector<int64_t>> expected;
    for (const RowId& row : priority("per")->Items()) expected[row.id].push_back(row.row);
    const auto core = testing::CoreOf(*database_)->FindTable(spec.name);
    MutexLock lock(&core->state->mutex);
    const TableState& state = *core->state;
    for (const TrajectoryId id : ids) {
      const auto slot = state.trajectories().FindById(id);
      ASSERT_NE(slot, kNoSlot);
      const AnchorRows found(state, rule, slot);
      std::vector<int64_t> rows;
      for (int64_t i = 0; i < found.count(); ++i) rows.push_back(found.row(i));
      ASSERT_EQ(rows, expected[id]) << "trajectory " << id;
      anchors += rows.size();
      none += rows.empty() ? 1u : 0u;
    }
  }
  // The programs have met both.
  EXPECT_GT(anchors, testing::ShareOf(2000));
  EXPECT_GT(none, testing::ShareOf(60));
}

TEST(DrawAnchorTest, IsUniform) {
  std::map<int64_t, double> expected;
  for (int64_t at = 0; at < 37; ++at) expected[at] = 1.0 / 37;
  std::map<int64_t, int64_t> counts;
  for (uint32_t row = 0; row < 40'000; ++row) ++counts[DrawAnchor({3, 1, row}, 37, 0, 2, false)];
  testing::ExpectFrequencies(expected, counts);
}

TEST(DrawAnchorTest, StrataAreOfEqualSize) {
  // Of m anchors in k strata, anchor a covers [a / m, (a + 1) / m) of the whole, stratum j
  // [j / k, (j + 1) / k).
  for (const auto& [m, k] :
       {std::pair<int64_t, int64_t>{10, 3}, {12, 4}, {3, 7}, {1, 5}, {50, 2}}) {
    std::map<int64_t, int64_t> all;
    std::map<int64_t, double> all_expected;
    for (int64_t j = 0; j < k; ++j) {
      std::map<int64_t, double> expected;
      for (int64_t a = 0; a < m; ++a) {
        const int64_t shared = std::min((a + 1) * k, (j + 1) * m) - std::max(a * k, j * m);
        if (shared > 0) expected[a] = static_cast<double>(shared) / static_cast<double>(m);
        all_expected[a] = 1.0 / static_cast<double>(m);
      }
      std::map<int64_t, int64_t> counts;
      for (uint32_t row = 0; row < 20'000; ++row) {
        ++counts[DrawAnchor({9, static_cast<uint64_t>(j), row}, m, j, k, true)];
      }
      testing::ExpectFrequencies(expected, counts);
      for (const auto& [a, count] : counts) all[a] += count;
    }
    // More even than independent draws, so only bounded from above.
    if (m < 20) testing::ExpectFrequencies(all_expected, all);
  }
}

TEST(DrawAnchorTest, AnchorsMayBeManyAndStrataToo) {
  const int64_t m = (int64_t{1} << 38) + 3;
  const int64_t k = int64_t{1} << 24;
  for (const int64_t j : {int64_t{0}, k / 2, k - 1}) {
    const int64_t at = DrawAnchor({1, 2, static_cast<uint32_t>(j)}, m, j, k, true);
    EXPECT_GE(at, static_cast<int64_t>(static_cast<__int128>(j) * m / k));
    EXPECT_LE(at, static_cast<int64_t>(static_cast<__int128>(j + 1) * m / k));
    EXPECT_LT(at, m);
  }
}

}  // namespace
}  // namespace geardb::engine
