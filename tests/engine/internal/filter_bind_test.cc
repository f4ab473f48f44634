// A filter meets a table: what does not fit is refused by name, and every element type is compared.

#include "engine/internal/filter_bind.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

TableSpec AllTypesSpec() {
  TableSpec spec{.name = "t"};
  spec.columns = {
      {.name = "reward"},
      {.name = "version", .dtype = DType::kU32, .kind = ColumnKind::kPerTrajectory},
      {.name = "score", .dtype = DType::kF32, .kind = ColumnKind::kPerTrajectory},
      {.name = "solved", .dtype = DType::kBool, .kind = ColumnKind::kPerTrajectory},
      {.name = "triple", .dtype = DType::kI16, .shape = {3}, .kind = ColumnKind::kPerTrajectory},
      {.name = "square", .dtype = DType::kU8, .shape = {2, 2}, .kind = ColumnKind::kPerTrajectory},
      {.name = "state", .dtype = DType::kF64, .kind = ColumnKind::kPerTrajectory}};
  return spec;
}

Status Check(std::string_view text) {
  const auto filter = Filter::Parse(text);
  if (!filter.ok()) return filter.status();
  return CheckFilter(*filter, TableLayout(AllTypesSpec(), 1));
}

TEST(FilterBindTest, WhatFitsIsTaken) {
  for (const std::string_view text :
       {"true", "version > 3", "version > 3.5", "score != nan", "isnan(score)", "solved",
        "!solved || solved == false", "solved in {true}", "triple[2] in {-1, 7}", "`state` > 0",
        "state == open", "isset(triple) && isset(square)", "length > 3 && id < 100",
        "created_us > 0 && times_sampled == 0 && first_row >= 0 && end != cut"}) {
    EXPECT_OK(Check(text)) << text;
  }
}

TEST(FilterBindTest, WhatDoesNotFitIsNamed) {
  EXPECT_STATUS(kNotFound, Check("versions > 3"),
                "table 't' has no column 'versions'; it has reward, version");
  EXPECT_STATUS(kNotFound, Check("version > 3 && (isset(other) || true)"), "no column 'other'");
  EXPECT_STATUS(kInvalidArgument, Check("reward > 3"), "column 'reward' is per step");
  EXPECT_STATUS(kInvalidArgument, Check("isset(reward)"), "column 'reward' is per step");
  EXPECT_STATUS(kInvalidArgument, Check("version"), "version is u32; a filter expected a compar");
  EXPECT_STATUS(kInvalidArgument, Check("solved == 1"), "solved is bool; a filter expected number");
  EXPECT_STATUS(kInvalidArgument, Check("version == true"),
                "version is u32; a filter expected a b");
  EXPECT_STATUS(kInvalidArgument, Check("isnan(version)"), "version is u32; a filter expected f16");
  EXPECT_STATUS(kInvalidArgument, Check("triple == 3"), "'triple' has shape [3]; triple is no sca");
  EXPECT_STATUS(kInvalidArgument, Check("triple[3] == 3"), "triple[3] is no element of a vector");
  EXPECT_STATUS(kInvalidArgument, Check("version[0] == 3"), "version[0] is no element");
  EXPECT_STATUS(kInvalidArgument, Check("square[0] == 3"), "'square' has shape [2, 2]");
}

TEST(FilterBindTest, OnlyBitsThatAreKeptAreAsked) {
  TableSpec spec{.name = "wide", .columns = {{.name = "reward"}}};
  for (int i = 0; i < 66; ++i) {
    spec.columns.push_back({.name = "c" + std::to_string(i), .kind = ColumnKind::kPerTrajectory});
  }
  const TableLayout layout(spec, 1);
  ASSERT_OK_AND_ASSIGN(const Filter last, Filter::Parse("isset(c63)"));
  EXPECT_OK(CheckFilter(last, layout));
  ASSERT_OK_AND_ASSIGN(const Filter beyond, Filter::Parse("isset(c64)"));
  EXPECT_STATUS(kUnsupported, CheckFilter(beyond, layout), "isset(c64): only the first 64");
}

TEST(FilterBindTest, TheDeepestFilterHasRoom) {
  std::string text = "version == 1";
  for (int i = 0; i < kFilterDepthMax; ++i) text = "solved || solved && (" + text + ")";
  EXPECT_OK(Check(text));
}

}  // namespace
}  // namespace geardb::engine
