#include "engine/internal/filter_expression.h"

#include <gtest/gtest.h>

namespace geardb::engine {
namespace {

TEST(FilterExpressionTest, FieldsAreWords) {
  EXPECT_EQ(FieldOfWord("length"), FilterField::kLength);
  EXPECT_EQ(FieldOfWord("end"), FilterField::kEnd);
  EXPECT_EQ(FieldOfWord("lengths"), FilterField::kColumn);
  EXPECT_EQ(FieldOfWord(""), FilterField::kColumn);
  EXPECT_EQ(WordsOfField(FilterField::kState)[2], "closed");
  EXPECT_EQ(WordsOfField(FilterField::kEnd)[3], "cut");
  EXPECT_TRUE(WordsOfField(FilterField::kLength).empty());
}

TEST(FilterExpressionTest, OnlyWhatNeedsBackticksHasThem) {
  EXPECT_EQ(PrintOperand({.column = "version"}), "version");
  EXPECT_EQ(PrintOperand({.column = "_a.b9"}), "_a.b9");
  EXPECT_EQ(PrintOperand({.column = "9a"}), "`9a`");
  EXPECT_EQ(PrintOperand({.column = ".a"}), "`.a`");
  EXPECT_EQ(PrintOperand({.column = "a/b"}), "`a/b`");
  EXPECT_EQ(PrintOperand({.column = "end", .element = 4}), "`end`[4]");
  EXPECT_EQ(PrintOperand({.column = "true"}), "`true`");
  EXPECT_EQ(PrintOperand({.column = "or"}), "`or`");
  EXPECT_EQ(PrintOperand({.field = FilterField::kCreatedUs}), "created_us");
}

TEST(FilterExpressionTest, ParenthesesStandWhereTheyMeanSomething) {
  using Kind = FilterExpression::Kind;
  const FilterExpression a{.kind = Kind::kTruth, .operand = {.column = "a"}};
  const FilterExpression any{.kind = Kind::kOr, .children = {a, a}};
  const FilterExpression all{.kind = Kind::kAnd, .children = {any, a}};
  EXPECT_EQ(PrintFilter(all), "(a || a) && a");
  EXPECT_EQ(PrintFilter({.kind = Kind::kOr, .children = {all, a}}), "(a || a) && a || a");
  EXPECT_EQ(PrintFilter({.kind = Kind::kNot, .children = {any}}), "!(a || a)");
  EXPECT_EQ(PrintFilter({.kind = Kind::kNot, .children = {a}}), "!a");
  EXPECT_EQ(PrintFilter({.value = false}), "false");
}

}  // namespace
}  // namespace geardb::engine
