#include "engine/internal/table_layout.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/store_fixture.h"

namespace geardb::engine {
namespace {

TEST(TableLayoutTest, ColumnsAreNumberedByKind) {
  const TableLayout layout(testing::StepSpec(true), 7);
  EXPECT_EQ(layout.id(), 7u);
  ASSERT_EQ(layout.step_columns().size(), 3u);
  ASSERT_EQ(layout.trajectory_columns().size(), 2u);
  EXPECT_EQ(layout.step_columns()[0].row_bytes, 8u);
  EXPECT_EQ(layout.trajectory_columns()[1].name, "score");
  EXPECT_EQ(*layout.FindStepColumn("reward"), 2u);
  EXPECT_EQ(*layout.FindTrajectoryColumn("score"), 1u);
  EXPECT_FALSE(layout.FindStepColumn("score"));
  EXPECT_EQ(layout.final_column_count(), 1u);
  EXPECT_STATUS(kNotFound, layout.NoSuchColumn("x"),
                "no column 'x'; it has obs, action, reward, version, score");
}

TEST(TableLayoutTest, StreamsHaveAFlagsColumn) {
  TableSpec spec = testing::StepSpec();
  EXPECT_FALSE(TableLayout(spec, 1).flags_column());
  spec.stream = true;
  const TableLayout layout(spec, 1);
  EXPECT_EQ(*layout.flags_column(), 3u);
  EXPECT_EQ(layout.bytes_per_step(), 8u + 4 + 4 + 1);
}

TEST(TableLayoutTest, GroupsHavePagesOfTheirOwn) {
  TableSpec spec = testing::StepSpec();
  spec.stream = true;
  spec.groups = {{.name = "late", .late = true}, {.name = "scratch", .is_volatile = true}};
  spec.columns[1].group = "scratch";
  spec.columns.push_back({.name = "target", .group = "late", .default_value = -1});
  const TableLayout layout(spec, 1);
  ASSERT_EQ(layout.group_count(), 3u);
  EXPECT_EQ(layout.group(0).columns, (std::vector<size_t>{0, 2}));
  EXPECT_EQ(layout.group(1).columns, (std::vector<size_t>{3}));
  EXPECT_EQ(layout.group(2).columns, (std::vector<size_t>{1}));
  EXPECT_EQ(*layout.flags_column(), 2u);
  EXPECT_EQ(std::vector(layout.appended_groups().begin(), layout.appended_groups().end()),
            (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(std::vector(layout.logged_groups().begin(), layout.logged_groups().end()),
            (std::vector<uint32_t>{0}));
  EXPECT_EQ(layout.bytes_per_step(), (8u + 4 + 1) + 4 + 4);
  EXPECT_EQ(layout.RowOffset(3, 2), 8u);
  EXPECT_EQ(layout.RowOffset(2, 1), 32u + 4);
  EXPECT_EQ(layout.page_bytes(), 3 * 128u);
}

TEST(TableLayoutTest, LeavesArePagesAndOffsets) {
  const TableLayout layout(testing::StepSpec(), 1);
  EXPECT_EQ(layout.steps_per_page(), 4u);
  EXPECT_EQ(layout.PageNumber(11), 2u);
  EXPECT_EQ(layout.OffsetInPage(11), 3u);
  EXPECT_EQ(layout.Leaf(5, 3), 23u);
  EXPECT_EQ(layout.LpnOfLeaf(23), 5u);
  EXPECT_EQ(layout.LpnOfLeaf(layout.Leaf(kNoLpn - 1, 0)), kNoLpn - 1);
}

TEST(TableLayoutTest, FlagsAndEndsAreInverse) {
  for (const End end : {End::kGo, End::kTerminated, End::kTruncated, End::kCut}) {
    EXPECT_EQ(EndOfFlags(FlagOfEnd(end)), end);
    EXPECT_EQ(EndOfFlags(FlagOfEnd(end) | kRowFirst | kRowFinal), end);
  }
}

}  // namespace
}  // namespace geardb::engine
