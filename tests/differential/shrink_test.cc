#include "tests/differential/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/differential/kinds.h"

namespace geardb::differential {
namespace {

/// The simplest table that is bounded in bytes.
constexpr uint64_t kBoundedInBytes = 165'888;

/// Differs where a crash comes somewhere behind a cut of a lane above 5.
std::optional<Difference> CutThenCrash(const Program& program) {
  bool cut = false;
  for (size_t i = 0; i < program.size(); ++i) {
    cut |= program[i].op == Op::cut && program[i].numbers[1] > 5;
    if (cut && program[i].op == Op::crash) return Difference{i, "crash: rows", ""};
    if (program[i].op == Op::look) return Difference{i, "look: other", ""};
  }
  return std::nullopt;
}

TEST(DifferentialShrinkTest, StepsLeaveAndNumbersFall) {
  for (uint64_t seed = 1; seed < 20; ++seed) {
    Program program = RandomProgram(seed, 300);
    std::erase_if(program, [](const Step& step) { return step.op == Op::look; });
    program.push_back({Op::cut, {3, 9'999, 77, 4}});
    program.push_back({Op::crash, {5, 5, 5, 5}});
    const Shrunk shrunk = Shrink(program, CutThenCrash);
    ASSERT_EQ(shrunk.program.size(), 2u) << ToText(shrunk.program);
    EXPECT_EQ(shrunk.program[0].op, Op::cut);
    EXPECT_EQ(shrunk.program[0].numbers[0], 0u);
    EXPECT_LT(shrunk.program[0].numbers[1], 12u);
    EXPECT_EQ(shrunk.program[1], (Step{Op::crash, {}}));
    EXPECT_EQ(shrunk.difference.kind, "crash: rows");
    EXPECT_LT(shrunk.runs, 600u);
  }
}

TEST(DifferentialShrinkTest, ADifferenceOfAnotherKindIsNotFollowed) {
  const Program program = {{Op::cut, {0, 6}}, {Op::crash, {}}, {Op::look, {}}};
  const Shrunk shrunk = Shrink(program, CutThenCrash);
  EXPECT_EQ(shrunk.program, (Program{{Op::cut, {0, 6}}, {Op::crash, {}}}));
}

TEST(DifferentialShrinkTest, TheKindOfATableIsWhatItIsCalled) {
  EXPECT_GT(TableKind("t", kBoundedInBytes).bytes_max, 0u);
}

TEST(DifferentialShrinkTest, ItEndsAfterSoManyRuns) {
  const Program program = RandomProgram(5, 400);
  size_t runs = 0;
  const Shrunk shrunk = Shrink(
      program,
      [&](const Program& tried) -> std::optional<Difference> {
        ++runs;
        if (tried.empty()) return std::nullopt;
        return Difference{tried.size() - 1, "always", ""};
      },
      10);
  EXPECT_EQ(runs, 10u);
  EXPECT_EQ(shrunk.runs, 10u);
  const Shrunk nothing =
      Shrink(program, [](const Program&) { return std::optional<Difference>(); });
  EXPECT_TRUE(nothing.program.empty());
  EXPECT_EQ(nothing.runs, 1u);
}

struct Planted {
  PlantedBug bug;
  size_t steps_max = 0;
  uint64_t table = 0;  ///< Its kind.
};

class DifferentialPlantedBugTest : public ::testing::TestWithParam<Planted> {};

/// The first long program that shows the mistake.
Program FindProgram(const Planted& planted) {
  for (uint64_t seed = 1; seed < 20; ++seed) {
    Program program = RandomProgram(seed, 250);
    // Rows that are wide take long, and are not what is looked for.
    for (Step& step : program) {
      if (step.op == Op::create_table) step.numbers[0] = planted.table;
    }
    if (RunProgram(program, planted.bug).difference) return program;
  }
  return {};
}

/// A mistake in the model is found by a long program, and shrunk to a handful of steps.
TEST_P(DifferentialPlantedBugTest, ShrinksToAHandfulOfSteps) {
  const auto shows = [](const Program& program) {
    return RunProgram(program, GetParam().bug).difference;
  };
  const Program found = FindProgram(GetParam());
  ASSERT_FALSE(found.empty());
  const Shrunk shrunk = Shrink(found, shows);
  EXPECT_LE(shrunk.program.size(), GetParam().steps_max) << ToText(shrunk.program);
  EXPECT_TRUE(shows(shrunk.program)) << ToText(shrunk.program);
  EXPECT_FALSE(RunProgram(shrunk.program).difference) << "without the mistake there is none";
}

INSTANTIATE_TEST_SUITE_P(Bugs, DifferentialPlantedBugTest,
                         ::testing::Values(Planted{PlantedBug::kTruncatesNothing, 3},
                                           Planted{PlantedBug::kForgetsDeleted, 8},
                                           Planted{PlantedBug::kLosesOrphans, 3}));

TEST(DifferentialShrinkTest, MistakesOfEveryKindAreFound) {
  for (const Planted& planted : {Planted{PlantedBug::kStacksTheEdge},
                                 {PlantedBug::kSumsOneMore},
                                 {PlantedBug::kHoldsAPageMore, 0, kBoundedInBytes},
                                 {PlantedBug::kLosesTheLast}}) {
    EXPECT_FALSE(FindProgram(planted).empty()) << static_cast<int>(planted.bug);
  }
}

}  // namespace
}  // namespace geardb::differential
