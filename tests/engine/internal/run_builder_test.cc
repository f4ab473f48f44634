#include "engine/internal/run_builder.h"

#include <gtest/gtest.h>

namespace geardb::engine {
namespace {

FrameRef At(uint64_t offset) { return FrameRef::Make(kHostArena, offset); }

TEST(RunBuilderTest, RowsThatFollowOneAnotherOnBothSidesAreOneRun) {
  RunBuilder runs;
  runs.BeginOutput({});
  runs.Copy(At(1000), 8, 0, 8);
  runs.Copy(At(1008), 16, 8, 16);
  runs.Copy(At(2000), 8, 24, 8);  // Elsewhere.
  runs.Copy(At(2008), 8, 40, 8);  // A gap.
  const GatherPlan plan = runs.Plan();
  ASSERT_EQ(plan.sources.size(), 3u);
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[0].bytes, 24u);
  EXPECT_EQ(plan.groups[1].bytes, 8u);
  EXPECT_EQ(plan.groups[1].count, 2u);
  EXPECT_EQ(plan.groups[1].stride, 16u);
  EXPECT_EQ(plan.outputs[0].group_count, 2u);
}

TEST(RunBuilderTest, RunsOfOneSizeAtEqualDistancesAreOneGroup) {
  RunBuilder runs;
  runs.BeginOutput({});
  for (uint64_t i = 0; i < 10; ++i) runs.Copy(At(5000 - 100 * i), 8, 16 * i, 8);
  runs.Copy(At(9000), 8, 160 + 8, 8);   // Another distance.
  runs.Copy(At(9100), 12, 200, 12);     // Another size.
  runs.Copy(At(9200), 12, 100000, 12);  // Any distance: the group's second run.
  runs.Copy(At(9300), 12, 500, 12);     // Before the group's first but one.
  const GatherPlan plan = runs.Plan();
  ASSERT_EQ(plan.groups.size(), 4u);
  EXPECT_EQ(plan.groups[0].count, 10u);
  EXPECT_EQ(plan.groups[0].stride, 16u);
  EXPECT_EQ(plan.groups[1].count, 1u);
  EXPECT_EQ(plan.groups[1].destination_offset, 168u);
  EXPECT_EQ(plan.groups[2].count, 2u);
  EXPECT_EQ(plan.groups[2].stride, 100000u - 200u);
  EXPECT_EQ(plan.groups[3].first_source, 13u);
  ASSERT_EQ(plan.sources.size(), 14u);
  EXPECT_EQ(plan.sources[9], At(4100));
}

TEST(RunBuilderTest, ConvertedRunsGrowByWhatTheyDeliver) {
  RunBuilder runs;
  runs.BeginOutput({});
  runs.Copy(At(0), 3, 0, 12);
  runs.Copy(At(3), 3, 12, 12);
  const GatherPlan plan = runs.Plan();
  ASSERT_EQ(plan.sources.size(), 1u);
  EXPECT_EQ(plan.groups[0].bytes, 6u);
}

TEST(RunBuilderTest, OutputsDoNotShareRuns) {
  RunBuilder runs;
  runs.BeginOutput({});
  runs.Copy(At(0), 8, 0, 8);
  runs.Fill(8, 8);
  runs.BeginOutput({});
  runs.Copy(At(8), 8, 8, 8);
  runs.Fill(16, 8);
  const GatherPlan plan = runs.Plan();
  ASSERT_EQ(plan.outputs.size(), 2u);
  EXPECT_EQ(plan.outputs[1].first_group, 1u);
  EXPECT_EQ(plan.outputs[1].group_count, 1u);
  EXPECT_EQ(plan.outputs[1].first_fill, 1u);
  EXPECT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.sources.size(), 2u);
  EXPECT_EQ(plan.fills.size(), 2u);
}

TEST(RunBuilderTest, FillsJoin) {
  RunBuilder runs;
  runs.BeginOutput({});
  runs.Fill(0, 8);
  runs.Fill(8, 8);
  runs.Fill(16, 0);
  runs.Fill(32, 8);
  ASSERT_EQ(runs.Plan().fills.size(), 2u);
  EXPECT_EQ(runs.Plan().fills[0].bytes, 16u);
}

TEST(RunBuilderTest, ClearForgets) {
  RunBuilder runs;
  runs.BeginOutput({});
  runs.Fill(0, 8);
  runs.Copy(At(0), 8, 8, 8);
  runs.Clear();
  EXPECT_EQ(runs.output_count(), 0u);
  EXPECT_TRUE(runs.Plan().fills.empty());
  EXPECT_TRUE(runs.Plan().sources.empty());
}

}  // namespace
}  // namespace geardb::engine
