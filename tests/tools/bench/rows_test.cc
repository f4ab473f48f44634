// Every row works at small sizes: it sets itself up, measures, and has both sides of its ratio.
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
#include "tests/testing/temp_dir.h"
#include "tools/bench/machine.h"
#include "tools/bench/row.h"

namespace geardb::bench {
namespace {

/// A family at small sizes, each row once.
void MeasureAll(std::vector<Row> (*family)(const Settings&)) {
  const testing::TempDir directory;
  Bench bench;
  bench.settings = {.directory = directory.path(), .tiny = true};
  for (const Row& row : family(bench.settings)) {
    SCOPED_TRACE(row.name + ":" + std::to_string(row.size));
    if (!row.keeps) bench.keeper.Drop();
    auto scene = row.make(&bench);
    ASSERT_OK(scene);
    const auto figure = (*scene)->Measure();
    if (!figure.ok() && figure.status().message().find("is not direct") != std::string::npos) {
      GTEST_SKIP() << "the temporary directory takes no direct writes: " << figure.status();
    }
    ASSERT_OK(figure);
    EXPECT_GT(figure->value, 0);
    EXPECT_EQ(figure->ceiling > 0, !row.ceiling.empty());
  }
  bench.keeper.Drop();
}

TEST(RowsTest, DrawRowsMeasure) { MeasureAll(DrawRows); }
TEST(RowsTest, SelectorRowsMeasure) { MeasureAll(SelectorRows); }
TEST(RowsTest, SelectorGrowthRowsMeasure) { MeasureAll(SelectorGrowthRows); }
TEST(RowsTest, FirstBatchRowsMeasure) { MeasureAll(FirstBatchRows); }
TEST(RowsTest, AmplificationRowsMeasure) { MeasureAll(AmplificationRows); }
TEST(RowsTest, MemoryRowsMeasure) { MeasureAll(MemoryRows); }
TEST(RowsTest, AppendCleanerRowsMeasure) { MeasureAll(AppendCleanerRows); }
TEST(RowsTest, AppendStallRowsMeasure) { MeasureAll(AppendStallRows); }
TEST(RowsTest, ColdDrawRowsMeasure) { MeasureAll(ColdDrawRows); }
TEST(RowsTest, CleanerRowsMeasure) { MeasureAll(CleanerRows); }
TEST(RowsTest, SyncRowsMeasure) { MeasureAll(AppendSyncRows); }
TEST(RowsTest, RecoveryRowsMeasure) { MeasureAll(RecoveryRows); }
TEST(RowsTest, AgainstReverbRowsMeasure) { MeasureAll(AgainstReverbRows); }
TEST(RowsTest, TagRowsMeasure) { MeasureAll(TagRows); }

TEST(RowsTest, BytesOfALongTrajectoryAreNearItsTrueBytes) {
  const testing::TempDir directory;
  Bench bench;
  bench.settings = {.directory = directory.path(), .tiny = true};
  const std::vector<Row> rows = BytesRows(bench.settings);
  for (const Row& row : rows) {
    auto scene = row.make(&bench);
    ASSERT_OK(scene);
    const auto figure = (*scene)->Measure();
    ASSERT_OK(figure);
    EXPECT_EQ(figure->ceiling, static_cast<double>(row.size)) << row.name;
    EXPECT_GE(figure->value, figure->ceiling) << row.name;
    EXPECT_LT(figure->value, 1.5 * figure->ceiling) << row.name;
  }
}

}  // namespace
}  // namespace geardb::bench
