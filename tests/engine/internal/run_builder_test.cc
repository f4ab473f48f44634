#include "engine/internal/run_builder.h"

#include <gtest/gtest.h>

namespace geardb::engine {
namespace {

FrameRef At(uint64_t offset) { return FrameRef::Make(kHostArena, offset); }

TEST(RunBuilderTest, RowsThatFollowOneAnotherOnBothSidesAreOneRun) {
  RunBuilder runs;
  runs.BeginOutput({});
  runs.Copy({.source = At(1000), .destination_offset = 0, .bytes = 8}, 8);
  runs.Copy({.source = At(1008), .destination_offset = 8, .bytes = 16}, 16);
  runs.Copy({.source = At(2000), .destination_offset = 24, .bytes = 8}, 8);  // Elsewhere.
  runs.Copy({.source = At(2008), .destination_offset = 40, .bytes = 8}, 8);  // A gap.
  const GatherPlan plan = runs.Plan();
  ASSERT_EQ(plan.runs.size(), 3u);
  EXPECT_EQ(plan.runs[0].bytes, 24u);
  EXPECT_EQ(plan.runs[1].bytes, 8u);
  EXPECT_EQ(plan.outputs[0].run_count, 3u);
}

TEST(RunBuilderTest, ConvertedRunsGrowByWhatTheyDeliver) {
  RunBuilder runs;
  runs.BeginOutput({});
  runs.Copy({.source = At(0), .destination_offset = 0, .bytes = 3}, 12);
  runs.Copy({.source = At(3), .destination_offset = 12, .bytes = 3}, 12);
  ASSERT_EQ(runs.Plan().runs.size(), 1u);
  EXPECT_EQ(runs.Plan().runs[0].bytes, 6u);
}

TEST(RunBuilderTest, OutputsDoNotShareRuns) {
  RunBuilder runs;
  runs.BeginOutput({});
  runs.Copy({.source = At(0), .destination_offset = 0, .bytes = 8}, 8);
  runs.Fill(8, 8);
  runs.BeginOutput({});
  runs.Copy({.source = At(8), .destination_offset = 8, .bytes = 8}, 8);
  runs.Fill(16, 8);
  const GatherPlan plan = runs.Plan();
  ASSERT_EQ(plan.outputs.size(), 2u);
  EXPECT_EQ(plan.outputs[1].first_run, 1u);
  EXPECT_EQ(plan.outputs[1].first_fill, 1u);
  EXPECT_EQ(plan.runs.size(), 2u);
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
  runs.Clear();
  EXPECT_EQ(runs.output_count(), 0u);
  EXPECT_TRUE(runs.Plan().fills.empty());
}

}  // namespace
}  // namespace geardb::engine
