#include "engine/internal/row_draw.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/testing/frequencies.h"
#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

constexpr int kDraws = 40'000;

CompiledRowDraw Draw(const RowDraw& draw) {
  RowDraw named = draw;
  named.name = "goal";
  const auto compiled = CompileRowDraws({&named, 1}, "a sampler");
  EXPECT_OK(compiled);
  return (*compiled)[0];
}

/// Rows taken by so many keys; those that were not drawn are counted at -1.
std::map<int64_t, int64_t> Take(const CompiledRowDraw& draw, const Episode& episode,
                                int64_t anchor) {
  std::map<int64_t, int64_t> counts;
  for (uint32_t i = 0; i < kDraws; ++i) {
    const DrawnRow taken =
        TakeRow(draw, episode, anchor, PhiloxRandom128(11, 3, i, PhiloxPurpose::kViewRow, 2));
    if (!taken.drawn) {
      EXPECT_EQ(taken.row, anchor);
    }
    ++counts[taken.drawn ? taken.row : -1];
  }
  return counts;
}

Episode Rows(int64_t begin, int64_t end) {
  return {.begin = begin, .steps_end = end, .rows_end = end};
}

TEST(RowDrawTest, FutureIsUniformBehindTheAnchor) {
  for (const int64_t nearest : {0, 1, 5}) {
    std::map<int64_t, double> expected;
    for (int64_t row = 12 + nearest; row < 50; ++row) {
      expected[row] = 1.0 / static_cast<double>(38 - nearest);
    }
    testing::ExpectFrequencies(expected, Take(Draw({.nearest = nearest}), Rows(3, 50), 12));
  }
}

TEST(RowDrawTest, GeometricIsTruncatedAtTheEnd) {
  for (const double gamma : {0.3, 0.9, 0.99, 1 - 1e-12}) {
    std::map<int64_t, double> expected;
    double sum = 0;
    for (int64_t row = 14; row < 50; ++row) {
      sum += expected[row] = std::pow(gamma, static_cast<double>(row - 14));
    }
    for (auto& [row, probability] : expected) probability /= sum;
    testing::ExpectFrequencies(
        expected, Take(Draw({.kind = RowDrawKind::kGeometric, .nearest = 2, .gamma = gamma}),
                       Rows(3, 50), 12));
  }
  const auto nearest = Take(Draw({.kind = RowDrawKind::kGeometric, .gamma = 0}), Rows(3, 50), 12);
  EXPECT_EQ(nearest, (std::map<int64_t, int64_t>{{13, kDraws}}));
}

TEST(RowDrawTest, AnyIsUniformOverTheEpisode) {
  std::map<int64_t, double> expected;
  for (int64_t row = 3; row < 50; ++row) expected[row] = 1.0 / 47;
  testing::ExpectFrequencies(expected, Take(Draw({.kind = RowDrawKind::kAny}), Rows(3, 50), 12));
}

TEST(RowDrawTest, LastIsTheLastRow) {
  const CompiledRowDraw last = Draw({.kind = RowDrawKind::kLast});
  EXPECT_EQ(Take(last, Rows(3, 50), 12), (std::map<int64_t, int64_t>{{49, kDraws}}));
  EXPECT_EQ(Take(last, Rows(3, 50), 49), (std::map<int64_t, int64_t>{{49, kDraws}}));
}

TEST(RowDrawTest, WhatCannotBeDrawnIsTheAnchorsOwnRow) {
  for (const RowDrawKind kind : {RowDrawKind::kFuture, RowDrawKind::kGeometric}) {
    EXPECT_EQ(Take(Draw({.kind = kind}), Rows(3, 50), 49),
              (std::map<int64_t, int64_t>{{-1, kDraws}}));
    EXPECT_EQ(Take(Draw({.kind = kind, .nearest = 0}), Rows(3, 50), 49),
              (std::map<int64_t, int64_t>{{49, kDraws}}));
    EXPECT_EQ(Take(Draw({.kind = kind, .nearest = 1 << 24}), Rows(3, 50), 12),
              (std::map<int64_t, int64_t>{{-1, kDraws}}));
  }
}

TEST(RowDrawTest, ProbabilityIsThatOfEachRow) {
  for (const RowDrawKind kind : {RowDrawKind::kFuture, RowDrawKind::kLast, RowDrawKind::kAny}) {
    auto counts = Take(Draw({.kind = kind, .probability = 0.8}), Rows(3, 50), 12);
    // Independent of which row it is: those drawn are as often as without.
    std::map<bool, int64_t> drawn{{false, counts[-1]}, {true, kDraws - counts[-1]}};
    testing::ExpectFrequencies({{false, 0.2}, {true, 0.8}}, drawn);
  }
  EXPECT_EQ(Take(Draw({.probability = 0}), Rows(3, 50), 12),
            (std::map<int64_t, int64_t>{{-1, kDraws}}));
}

TEST(RowDrawTest, RowsMayBeBeyond32Bits) {
  const int64_t begin = (int64_t{1} << 33) - 5;
  std::map<int64_t, double> expected;
  for (int64_t row = begin + 3; row < begin + 12; ++row) expected[row] = 1.0 / 9;
  testing::ExpectFrequencies(expected, Take(Draw({}), Rows(begin, begin + 12), begin + 2));
  // So many that a bias of 32 bits would show: one half each.
  std::map<bool, int64_t> halves;
  for (const auto& [row, count] : Take(Draw({}), Rows(0, (int64_t{3} << 40) + 1), 0)) {
    halves[row > (int64_t{3} << 39)] += count;
  }
  testing::ExpectFrequencies({{false, 0.5}, {true, 0.5}}, halves);
}

TEST(RowDrawTest, RandomNumbersAreFrozen) {
  const PhiloxBlock block = PhiloxRandom128(7, 9, 4, PhiloxPurpose::kViewRow, 3);
  const PhiloxBlock expected = Philox4x32(7, PhiloxBlock{{9, 0, 4, 1 | (3 << 8)}});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(block.v[i], expected.v[i]);
  // Row floor(bits · 37 / 2^64) of 13…49.
  const auto bits = static_cast<unsigned __int128>(block.v[0] | (uint64_t{block.v[1]} << 32));
  EXPECT_EQ(TakeRow(Draw({}), Rows(3, 50), 12, block),
            (DrawnRow{13 + static_cast<int64_t>((bits * 37) >> 64), true}));
}

TEST(RowDrawTest, BadDrawsAreNamed) {
  const auto refused = [](std::vector<RowDraw> draws, const char* text) {
    EXPECT_STATUS(kInvalidArgument, CompileRowDraws(draws, "priority table 'per'").status(), text);
  };
  refused({{}}, "row draw '' of priority table 'per' has no name");
  refused({{.name = "nstep"}}, "'nstep' of priority table 'per' has a name that belongs to n_step");
  refused({{.name = "a", .kind = static_cast<RowDrawKind>(4)}}, "row draw 'a' of priority table");
  refused({{.name = "a", .probability = 1.5}}, "has probability 1.5; expected 0 to 1");
  refused({{.name = "a", .probability = NAN}}, "has probability nan");
  refused({{.name = "a", .nearest = -1}}, "has nearest -1; expected 0 to");
  refused({{.name = "a", .gamma = 1}}, "has gamma 1; expected at least 0 and less than 1");
  refused({{.name = "a", .count = 0}}, "has count 0; expected 1 to 65536");
  refused({{.name = "a"}, {.name = "a"}}, "two row draws are named 'a'");
  refused({{.name = "a", .count = 60'000}, {.name = "b", .count = 6'000}},
          "draws 66000 rows for each item, with 'b'; expected at most 65536 together");
  const std::vector<RowDraw> good = {{.name = "a", .count = 3}, {.name = "b", .count = 2}};
  const auto compiled = CompileRowDraws(good, "it");
  ASSERT_OK(compiled);
  EXPECT_EQ((*compiled)[0].first, 0);
  EXPECT_EQ((*compiled)[1].first, 3);
}

}  // namespace
}  // namespace geardb::engine
