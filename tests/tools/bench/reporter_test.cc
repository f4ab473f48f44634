#include "tools/bench/reporter.h"

#include <gtest/gtest.h>

#include <set>

namespace geardb::bench {
namespace {

RowResult ResultOf(const Row* row, double value, double ratio) {
  RowResult result;
  result.row = row;
  result.value.median = value;
  result.ratio.median = ratio;
  return result;
}

TEST(ReporterTest, TargetsAreReachedFromTheirOwnSide) {
  Row row;
  row.target = {Target::Kind::kRatioAtLeast, 0.9};
  EXPECT_EQ(Reached(ResultOf(&row, 1, 0.9)), true);
  EXPECT_EQ(Reached(ResultOf(&row, 1, 0.89)), false);
  row.target = {Target::Kind::kRatioAtMost, 4};
  EXPECT_EQ(Reached(ResultOf(&row, 1, 4.1)), false);
  row.target = {Target::Kind::kValueAtMost, 20};
  EXPECT_EQ(Reached(ResultOf(&row, 19, 100)), true);
  EXPECT_EQ(Reached(ResultOf(&row, 21, 0)), false);
  row.target = {};
  EXPECT_EQ(Reached(ResultOf(&row, 21, 0)), std::nullopt);
}

TEST(ReporterTest, TimesThePeerAreWantedUpToAShareOfTheCeiling) {
  Row row;
  row.peer.name = "reverb";
  row.target = {Target::Kind::kTimesPeerAtLeast, 50, 0.7};
  RowResult result = ResultOf(&row, 500, 0.69);
  EXPECT_EQ(Reached(result), std::nullopt) << "no peer was measured";
  result.peer = 10;
  EXPECT_EQ(Reached(result), true);
  result.peer = 10.1;
  EXPECT_EQ(Reached(result), false);
  result.ratio.median = 0.7;
  EXPECT_EQ(Reached(result), true);
  EXPECT_EQ(TargetText(row), ">= 50.0 x reverb or 70.0 %");
}

TEST(ReporterTest, RowThatFailedReachesNothing) {
  Row row;
  row.target = {Target::Kind::kRatioAtLeast, 0.9};
  RowResult result = ResultOf(&row, 1, 1);
  result.error = "no room";
  EXPECT_EQ(Reached(result), std::nullopt);
}

TEST(ReporterTest, WhatGrowsMoreThanFourfoldIsFlagged) {
  Row small{.name = "selector.a", .size = 10, .logarithmic = true};
  Row large{.name = "selector.a", .size = 1000, .logarithmic = true};
  Row other{.name = "selector.b", .size = 1000, .logarithmic = true};
  Row rate{.name = "selector.a", .size = 1000};
  const std::vector<RowResult> before = {ResultOf(&other, 1, 0), ResultOf(&small, 10, 0),
                                         ResultOf(&large, 20, 0)};
  const auto flagged = [&](const Row* row, double value) {
    RowResult result = ResultOf(row, value, 0);
    result.growth = GrowthOf(before, result);
    return Flagged(result);
  };
  EXPECT_FALSE(flagged(&large, 40));
  EXPECT_TRUE(flagged(&large, 41));
  EXPECT_EQ(GrowthOf(before, ResultOf(&large, 41, 0)), 4.1);
  EXPECT_FALSE(flagged(&rate, 41));
  EXPECT_EQ(GrowthOf({}, ResultOf(&small, 41, 0)), std::nullopt);
  RowResult failed = ResultOf(&large, 41, 0);
  failed.error = "no memory";
  EXPECT_EQ(GrowthOf(before, failed), std::nullopt);
}

TEST(ReporterTest, FiguresCarryTheirUnits) {
  EXPECT_EQ(FigureText(Unit::kBytesPerSecond, 12'340'000'000), "12.3 GB/s");
  EXPECT_EQ(FigureText(Unit::kPerSecond, 5520), "5.52 k/s");
  EXPECT_EQ(FigureText(Unit::kMicroseconds, 19.44), "19.4 us");
  EXPECT_EQ(FigureText(Unit::kNanoseconds, 104.2), "104 ns");
  EXPECT_EQ(FigureText(Unit::kTimes, 2.31), "2.31 x");
}

TEST(ReporterTest, EachRowHasANameAndSizeOfItsOwn) {
  std::set<std::pair<std::string, int64_t>> names;
  for (const Row& row : AllRows({})) {
    EXPECT_TRUE(names.insert({row.name, row.size}).second) << row.name << " " << row.size;
    EXPECT_FALSE(row.what.empty()) << row.name;
    const bool against = row.target.kind == Target::Kind::kRatioAtLeast ||
                         row.target.kind == Target::Kind::kRatioAtMost;
    EXPECT_TRUE(!against || !row.ceiling.empty()) << row.name << " has a ratio to nothing";
  }
}

TEST(ReporterTest, CompilersAreBusyProgramsAndEditorsAreNot) {
  for (const char* name : {"cc1plus", "ld", "ninja", "clang-14", "clang++"}) {
    EXPECT_TRUE(IsBusyProgram(name)) << name;
  }
  for (const char* name : {"bash", "vim", "ldconfig", "geardb_bench"}) {
    EXPECT_FALSE(IsBusyProgram(name)) << name;
  }
}

}  // namespace
}  // namespace geardb::bench
