#include "engine/internal/table_stats.h"

#include "tests/engine/frames_fixture.h"

namespace geardb {
namespace {

class TableStatsTest : public FramesTest {};

TEST_F(TableStatsTest, WhatIsCountedOfATableIsWhatItsOwnCallsSay) {
  for (int i = 0; i < 30; ++i) Add(9, 4);
  Add(3, 3, End::kGo);
  ASSERT_OK_AND_ASSIGN(const auto sampler, table_->priority_table("all")->NewSampler({.batch = 4}));
  ASSERT_OK(sampler->Next());
  const auto tables = testing::CoreOf(*database_)->TablesNow();
  ASSERT_EQ(tables.size(), 1u);
  const TableActivity& seen = tables[0];
  const TableStats stats = table_->Stats();
  EXPECT_EQ(seen.name, "frames");
  EXPECT_EQ(seen.id, table_->id());
  EXPECT_EQ(seen.trajectories, 31u);
  EXPECT_EQ(seen.open_trajectories, 1u);
  EXPECT_EQ(seen.steps, stats.steps);
  EXPECT_EQ(seen.pages, stats.pages);
  EXPECT_EQ(seen.frame_bytes, stats.frame_bytes);
  EXPECT_EQ(seen.row_bytes, stats.row_bytes);
  EXPECT_EQ(seen.places, table_->Places());
  ASSERT_EQ(seen.priority_tables.size(), 1u);
  EXPECT_EQ(seen.priority_tables[0].name, "all");
  EXPECT_EQ(seen.priority_tables[0].items, table_->priority_table("all")->Stats().items);
  EXPECT_GT(seen.priority_tables[0].items, 0u);
  EXPECT_EQ(seen.priority_tables[0].blocked.samples.reason, "");
}

TEST_F(TableStatsTest, GroupsThatWereDroppedHaveNoPlaces) {
  for (int i = 0; i < 30; ++i) Add(9, 4);
  const size_t before = table_->Places().size();
  const Column column[] = {{.name = "more"}};
  ASSERT_OK(table_->AddColumns(column));
  EXPECT_EQ(table_->Places().size(), before + 1);
  const std::string_view name[] = {"more"};
  ASSERT_OK(table_->DropColumns(name));
  EXPECT_EQ(table_->Places().size(), before);
}

}  // namespace
}  // namespace geardb
