// ItemsMayCome against a priority table of the same rule that requires nothing: what it has and the
// other has not may come.
#include <map>
#include <random>
#include <set>
#include <vector>

#include "engine/internal/anchors.h"
#include "tests/engine/internal/live_core.h"
#include "tests/engine/internal/random_window.h"
#include "tests/testing/random_programs.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class ItemsToComeTest : public testing::StoreTest {
 protected:
  uint64_t Roll(uint64_t below) { return random_() % below; }

  void CreateTwins() {
    TableSpec spec = testing::StepSpec(/*final_row=*/Roll(2) == 0);
    spec.stream = Roll(3) == 0;
    spec.groups = {{.name = "late", .late = true}};
    spec.columns.push_back({.name = "target", .group = "late"});
    PriorityTableSpec all = testing::WindowSpec("all");
    if (!spec.stream && Roll(4) == 0) {
      all.item = ItemKind::kTrajectory;
    } else {
      all.window =
          testing::RandomWindow(spec.stream, [this](uint64_t below) { return Roll(below); });
    }
    PriorityTableSpec ready = all;
    ready.name = "ready";
    ready.required = {"late"};
    if (Roll(4) == 0) ready.required.push_back("version");
    spec.priority_tables = {all, ready};
    final_row_ = spec.final_row;
    Create(spec);
  }

  void AppendSome() {
    constexpr End kEnds[] = {End::kGo, End::kGo, End::kTerminated, End::kTruncated, End::kCut};
    const testing::Rows rows(0, static_cast<int64_t>(1 + Roll(9)));
    AppendOptions options{.end = kEnds[Roll(5)]};
    const bool final = options.end == End::kTerminated || options.end == End::kTruncated;
    if (final_row_ && final) options.final = rows.final_row();
    const ColumnValue version{"version", TensorView::Scalar(kVersion)};
    if (Roll(2) == 0) options.trajectory = {&version, 1};
    ASSERT_OK(writer_->AppendSteps(rows.many(), options));
  }

  void ChangeSome() {
    const auto records = table_->Scan({});
    if (records.empty()) return;
    const geardb::TrajectoryRecord& record = records[Roll(records.size())];
    if (Roll(4) == 0) {
      const ColumnValue version{"version", TensorView::Scalar(kVersion)};
      ASSERT_OK(table_->SetColumns(record.id, {&version, 1}));
      return;
    }
    if (Roll(6) == 0 && record.steps_end - record.first_row > 1) {
      ASSERT_OK(table_->Truncate(record.id, record.first_row + 1));
      return;
    }
    ASSERT_OK_AND_ASSIGN(const int64_t filled, table_->Filled(record.id, "late"));
    const int64_t rows =
        std::min<int64_t>(record.rows_end - filled, static_cast<int64_t>(1 + Roll(8)));
    if (rows <= 0) return;
    const std::vector<float> values(static_cast<size_t>(rows), 1);
    const ColumnValue value{"target", TensorView::Of(std::span<const float>(values))};
    const RowSpan span{record.id, filled, rows};
    ASSERT_OK(table_->Patch({&span, 1}, {&value, 1}));
  }

  /// Whether each closed trajectory waits for what is required, by what the two have.
  void Compare() {
    std::map<TrajectoryId, std::set<int64_t>> missing;
    for (const RowId& item : priority("all")->Items()) missing[item.id].insert(item.row);
    for (const RowId& item : priority("ready")->Items()) {
      EXPECT_EQ(missing[item.id].erase(item.row), 1u);
    }
    const auto core = testing::CoreOf(*database_);
    const auto table = core->FindTable("steps");
    MutexLock lock(&table->state->mutex);
    const TableState& state = *table->state;
    state.trajectories().ForEach([&](Slot slot, const index::TrajectoryRecord& record) {
      if (record.state != index::TrajectoryState::kClosed) return;
      const bool come = ItemsMayCome(state, state.priority(1), slot);
      EXPECT_EQ(come, !missing[record.id].empty()) << "trajectory " << record.id;
      (come ? come_ : settled_) += 1;
    });
  }

  static constexpr uint32_t kVersion = 1;
  std::mt19937_64 random_;
  bool final_row_ = false;
  int come_ = 0;
  int settled_ = 0;
};

TEST_F(ItemsToComeTest, AreThoseThatATableWithoutRequirementsHas) {
  const uint64_t programs = testing::ShareOf(60);
  for (uint64_t seed = 1; seed <= programs && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed);
    OpenEmpty();
    CreateTwins();
    for (int step = 0; step < 60 && !HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      Roll(3) == 0 ? AppendSome() : ChangeSome();
      Compare();
    }
  }
  EXPECT_GT(come_, 100);
  EXPECT_GT(settled_, 100);
}

}  // namespace
}  // namespace geardb::engine
