#include "base/break.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace geardb {
namespace {

struct Row {
  std::string_view name;
  std::string_view tests;
  std::string_view what;
  bool on;
};
#define GEARDB_BREAK_ROW(name, tests, what) Row{#name, tests, what, kBreak.name},
const std::vector<Row> kRows = {GEARDB_BREAK_TABLE(GEARDB_BREAK_ROW)};
#undef GEARDB_BREAK_ROW

TEST(BreakTest, OnlyTheNamedBugIsOn) {
  for (const Row& row : kRows) EXPECT_EQ(row.on, row.name == kBreakName) << row.name;
  if (!kBreakName.empty()) {
    EXPECT_TRUE(std::any_of(kRows.begin(), kRows.end(), [](const Row& row) { return row.on; }));
  }
}

TEST(BreakTest, EveryBugIsDescribedOnceAndNamesItsTests) {
  std::set<std::string_view> names;
  for (const Row& row : kRows) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " is there twice";
    EXPECT_FALSE(row.what.empty()) << row.name;
    EXPECT_FALSE(row.tests.empty()) << row.name;
    EXPECT_NO_THROW(std::regex(std::string(row.tests))) << row.tests;
  }
}

}  // namespace
}  // namespace geardb
