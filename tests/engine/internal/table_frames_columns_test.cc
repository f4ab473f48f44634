// The frames of groups that come and leave: each pool's, counted.
#include "tests/engine/internal/live_core.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

class TableFramesColumnsTest : public testing::StoreTest {
 protected:
  TableState& State() { return *testing::CoreOf(*database_)->AllTables()[0]->state; }
  uint64_t Slabs(size_t group) {
    return testing::CoreOf(*database_)->arena->SlabsOwned(State().pool(group));
  }
  float DefaultOf(size_t group) {
    MutexLock lock(&State().mutex);
    float value = 0;
    std::memcpy(&value, State().arena().Resolve(State().default_frame(group)), sizeof(value));
    return value;
  }
  void Change(const std::vector<Column>& added, const std::vector<std::string_view>& dropped) {
    if (!added.empty()) {
      EXPECT_OK(table_->AddColumns(added));
    }
    if (!dropped.empty()) {
      EXPECT_OK(table_->DropColumns(dropped));
    }
  }
};

TEST_F(TableFramesColumnsTest, ADroppedGroupKeepsItsDefaultsAndNoFrame) {
  Create(testing::StepSpec());
  AppendClosed(0, 20);
  Change({{.name = "x", .default_value = 3}}, {});
  EXPECT_EQ(Slabs(1), 1u) << "the frame of defaults";
  EXPECT_EQ(DefaultOf(1), 3);
  ASSERT_OK_AND_ASSIGN(writer_, table_->NewWriter({}));
  std::vector<float> x(8, 5);
  const testing::Rows rows(0, 8);
  std::vector<ColumnValue> values = rows.many();
  values.push_back({"x", TensorView::Of(std::span<const float>(x))});
  ASSERT_OK(writer_->AppendSteps(values, {.end = End::kTerminated}));
  EXPECT_EQ(table_->Stats().frames.resident_bytes, (5u + 2u + 2u) * 128u);
  Change({}, {"x"});
  EXPECT_EQ(table_->Stats().frames.resident_bytes, (5u + 2u) * 128u);
  EXPECT_EQ(DefaultOf(1), 3);
  // Readers have left: what was retired is free once it is asked for.
  Change({{.name = "y", .default_value = 4}}, {"y"});
  EXPECT_EQ(Slabs(1), 0u);
  Reopen();
  OpenAgain("steps");
  EXPECT_EQ(Slabs(1), 0u);
  EXPECT_EQ(DefaultOf(1), 3);
  EXPECT_EQ(DefaultOf(2), 4);
}

TEST_F(TableFramesColumnsTest, PagesOfEveryStateShowThem) {
  TableSpec spec = testing::StepSpec();
  spec.columns.push_back({.name = "late", .group = "late", .default_value = 7});
  spec.groups = {{.name = "late", .late = true}};
  Create(spec, {.lanes = 2});
  const TrajectoryId closed = AppendClosed(0, 6);
  const TrajectoryId open = Append(0, 6).id;
  const float values[] = {1, 2, 3, 4, 5};
  const ColumnValue late[] = {{"late", TensorView::Of(std::span<const float>(values))}};
  for (const TrajectoryId id : {closed, open}) {
    const RowSpan span[] = {{id, 0, 5}};
    ASSERT_OK(table_->Patch(span, late));
  }
  Change({}, {"late"});
  MutexLock lock(&State().mutex);
  const auto shows = [&](TrajectoryId id) {
    const auto& record = State().trajectories().record(State().trajectories().FindById(id));
    std::vector<bool> pages;
    for (Lpn lpn = record.head_lpn; lpn != kNoLpn; lpn = State().pages().page(lpn).next) {
      pages.push_back(State().frames().ShowsDefaults(1, lpn));
    }
    return pages;
  };
  EXPECT_EQ(shows(closed), (std::vector<bool>{true, true}));
  EXPECT_EQ(shows(open), (std::vector<bool>{true, false})) << "of its last page one stays";
}

// Every open had another pass made for it.
TEST_F(TableFramesColumnsTest, ADroppedGroupLeavesTheColdStoreOnce) {
  options_.background = false;
  options_.ring_bytes = options_.segment_bytes = 64 << 10;
  OpenEmpty();
  TableSpec spec = testing::StepSpec();
  spec.groups = {{.name = "late", .late = true}};
  spec.columns.push_back({.name = "late", .group = "late"});
  Create(spec);
  const auto fill = [&] {
    for (int i = 0; i < 99; ++i) AppendClosed(0, 100);
    return AppendClosed(0, 6);
  };
  const TrajectoryId id = fill();
  const std::vector<float> values(6, 1);
  const ColumnValue late[] = {{"late", TensorView::Of(std::span<const float>(values))}};
  const RowSpan span[] = {{id, 0, 6}};
  ASSERT_OK(table_->Patch(span, late));
  const auto clean = [&] { return testing::CoreOf(*database_)->cleaner->CleanNow(/*all=*/true); };
  const auto leaves = [&] {
    MutexLock lock(&State().mutex);
    return State().frames().has_dropped_groups();
  };
  fill();
  ASSERT_OK(clean());
  Change({}, {"late"});
  EXPECT_TRUE(leaves());
  Reopen();
  EXPECT_GT(database_->recovery().image, 0u);
  EXPECT_TRUE(leaves()) << "the image is older than the change";
  OpenAgain("steps");
  fill();
  ASSERT_OK(clean());
  EXPECT_FALSE(leaves());
  Reopen();
  EXPECT_GT(database_->recovery().image, 0u);
  EXPECT_FALSE(leaves());
}

}  // namespace
}  // namespace geardb::engine
