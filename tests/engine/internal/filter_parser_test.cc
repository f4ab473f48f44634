// What texts are filters, what they mean, and where those that are none go wrong.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "engine/internal/filter_expression.h"
#include "tests/testing/matchers.h"
#include "tests/testing/random_programs.h"

namespace geardb::engine {
namespace {

using testing::ShareOf;

/// The one form of a text, or the error.
std::string Form(std::string_view text) {
  const auto parsed = ParseFilter(text);
  return parsed.ok() ? PrintFilter(*parsed) : parsed.status().ToString();
}

TEST(FilterParserTest, OneMeaningHasOneForm) {
  const std::pair<std::string_view, std::string_view> kForms[] = {
      {"version>=12&&(length>100||source==3)&&!(end==terminated)",
       "version >= 12 && (length > 100 || source == 3) && !(end == terminated)"},
      {"a==1 && (b==2 && (c==3 && d==4)) && e==5",
       "a == 1 && b == 2 && c == 3 && d == 4 && e == 5"},
      {"a==1 || (b==2 || c==3)", "a == 1 || b == 2 || c == 3"},
      {"(a==1 && b==2) || c==3", "a == 1 && b == 2 || c == 3"},
      {"a==1 && (b==2 || c==3)", "a == 1 && (b == 2 || c == 3)"},
      {"((((a == 1))))", "a == 1"},
      {"!(!(a == 1))", "a == 1"},
      {"!!!solved", "!solved"},
      {"!(solved)", "!solved"},
      {"12 <= version", "version >= 12"},
      {"12 > version", "version < 12"},
      {"-1 != version", "version != -1"},
      {"true == solved", "solved == true"},
      {"x in {3, 1.0, 2, 1, 0x10, -5, 2.5, 1e30}", "x in {-5, 1, 2, 2.5, 3, 16, 1e+30}"},
      {"end in {truncated, terminated, truncated}", "end in {terminated, truncated}"},
      {"state!=open", "state != open"},
      {"score[2] < 0.50", "score[2] < 0.5"},
      {"`obs/version` == 1", "`obs/version` == 1"},
      {"`plain` == 1", "plain == 1"},
      {"`state` == 1", "`state` == 1"},
      {"`in` == 1 && `nan` == 2", "`in` == 1 && `nan` == 2"},
      {"`3d`[1] == 1", "`3d`[1] == 1"},
      {"obs.x > 1", "obs.x > 1"},
      {"isset(a) && !isset( `b-c` )", "isset(a) && !isset(`b-c`)"},
      {"isnan(score[1])", "isnan(score[1])"},
      {"x == nan || x == -nan", "x == nan || x == nan"},
      {"x < inf && x > -inf", "x < inf && x > -inf"},
      {"x == -0.0", "x == 0"},
      {"x == 9007199254740993", "x == 9007199254740993"},
      {"x == 9007199254740993.0", "x == 9007199254740992"},
      {"x == 18446744073709551615", "x == 18446744073709551615"},
      {"x == 18446744073709551616", "x == 18446744073709551616"},
      {"x == 18446744073709551617", "x == 18446744073709551616"},
      {"x == 100000000000000000000", "x == 1e+20"},
      {"x == -9223372036854775808", "x == -9223372036854775808"},
      {"x == -9223372036854775809", "x == -9223372036854775808"},
      {"x == 0xFFFFFFFFFFFFFFFF", "x == 18446744073709551615"},
      {"x == 1e400 || x == -1e400", "x == inf || x == -inf"},
      {"x == 1e-400", "x == 0"},
      {"x == 1.5e+2", "x == 150"},
      {"x<-3", "x < -3"},
      {" \t\n true ", "true"},
      {"!true", "!true"},
  };
  for (const auto& [text, form] : kForms) {
    EXPECT_EQ(Form(text), form) << text;
    EXPECT_EQ(Form(form), form) << text;
  }
}

TEST(FilterParserTest, ErrorsSayWhereAndWhat) {
  const std::pair<std::string_view, std::string_view> kErrors[] = {
      {"", "ends where a column is expected"},
      {"a ==", "ends where"},
      {"a = 1", "character 3 ('='): expected '==' for equal"},
      {"a == 1 & b == 2", "character 8 ('&'): expected '&&'"},
      {"a == 1 | b == 2", "character 8 ('|'): expected '||'"},
      {"a == 1 and b == 2", "character 8 ('and'): expected '&&' for and"},
      {"a == 1 or b == 2", "character 8 ('or'): expected '||' for or"},
      {"not solved", "character 1 ('not'): expected '!' for not"},
      {"a == 1 b", "character 8 ('b'): expected '&&', '||' or the end"},
      {"(a == 1", "ends where ')' is expected"},
      {"a == 1)", "character 7 (')'): expected '&&', '||' or the end"},
      {"a == b", "character 6 ('b'): expected a constant: two columns cannot be compared"},
      {"1 == 2", "character 6 ('2'): expected a column: two constants"},
      {"1 < a < 3", "character 7 ('<'): expected '&&', '||' or the end: comparisons do not follow"},
      {"!a == 1", "character 2 ('a'): expected parentheses"},
      {"a == 12abc", "character 6 ('12abc'): expected a number"},
      {"a == 1..2", "expected a number"},
      {"a == --1", "expected a number"},
      {"a == -", "expected a number"},
      {"a == 0x", "expected a number"},
      {"a == 0x1.5", "expected a number"},
      {"a == $", "character 6 ('$'): expected a column, a number or an operator"},
      {"obs/x == 1", "character 4 ('/')"},
      {"`obs == 1", "character 1 ('`'): expected a second backtick"},
      {"`` == 1", "expected a column's name between"},
      {"a in 3", "character 6 ('3'): expected '{'"},
      {"a in {}", "character 7 ('}'): expected a column"},
      {"a in {1, }", "character 10 ('}')"},
      {"a in {1 2}", "character 9 ('2'): expected ',' or '}'"},
      {"a in {b}", "character 7 ('b'): expected a constant"},
      {"a in {nan}", "no value equals NaN"},
      {"a in {1, true}", "character 10 ('true'): expected a constant of the kind"},
      {"1 in {1}", "expected a column before 'in'"},
      {"state == 2", "character 10 ('2'): expected one of open, closed, orphaned"},
      {"state == ready", "character 10 ('ready'): expected one of open, closed, orphaned"},
      {"end in {go, open}", "character 13 ('open'): expected one of go, terminated"},
      {"state < closed", "character 7 ('<'): expected '==' or '!='"},
      {"solved <= true", "expected '==' or '!='"},
      {"length == true", "character 11 ('true'): expected a number"},
      {"length", "ends where a comparison is expected"},
      {"3", "ends where a comparison"},
      {"a[", "ends where the number of an element"},
      {"a[-1] == 2", "character 3 ('-'): expected the number of an element"},
      {"a[0.5] == 2", "expected the number of an element"},
      {"a[4294967296] == 2", "expected the number of an element"},
      {"length[0] == 2", "this field has no elements"},
      {"isset(length)", "character 7 ('length'): expected a column"},
      {"isset(a[1])", "it is set as a whole"},
      {"isset a", "character 7 ('a'): expected '('"},
      {"isnan(3)", "expected a column"},
      {"a == 1 && ", "ends where a column is expected"},
      {"&& a == 1", "character 1 ('&'): expected a column"},
  };
  for (const auto& [text, error] : kErrors) {
    EXPECT_STATUS(kInvalidArgument, ParseFilter(text), error) << text;
  }
}

TEST(FilterParserTest, LongTextsAreShownAroundTheMistake) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "column_" + std::to_string(i) + " == 1 && ";
  text += "wrong = 1";
  const Status status = ParseFilter(text).status();
  EXPECT_STATUS(kInvalidArgument, status, "&& wrong = 1'");
  EXPECT_LT(status.message().size(), 300u);
}

TEST(FilterParserTest, DepthAndSizeAreBounded) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '(') + "a == 1" +
           std::string(static_cast<size_t>(depth), ')');
  };
  EXPECT_OK(ParseFilter(nested(kFilterDepthMax)));
  EXPECT_STATUS(kInvalidArgument, ParseFilter(nested(kFilterDepthMax + 1)), "nested at most 64");
  EXPECT_STATUS(kInvalidArgument, ParseFilter(nested(1'000'000)), "nested at most 64");
  EXPECT_STATUS(kInvalidArgument, ParseFilter(std::string(1'000'000, '!') + "a"), "nested at most");
  std::string wide = "a in {0";
  for (size_t i = 1; i < kFilterTermsMax - 1; ++i) wide += "," + std::to_string(i);
  EXPECT_OK(ParseFilter(wide + "}"));
  EXPECT_STATUS(kInvalidArgument, ParseFilter(wide + ",9999}"), "at most 4096");
}

TEST(FilterParserTest, OperandsStandAlone) {
  const auto print = [](std::string_view text) {
    const auto operand = ParseOperand(text);
    return operand.ok() ? PrintOperand(*operand) : std::string(operand.status().message());
  };
  EXPECT_EQ(print(" score[3] "), "score[3]");
  EXPECT_EQ(print("length"), "length");
  EXPECT_EQ(print("`length`"), "`length`");
  EXPECT_EQ(print("`a-b`"), "`a-b`");
  EXPECT_STATUS(kInvalidArgument, ParseOperand("a b"), "expected the end");
  EXPECT_STATUS(kInvalidArgument, ParseOperand("3"), "expected a column");
  EXPECT_STATUS(kInvalidArgument, ParseOperand(""), "ends where a column");
}

/// A random filter's text, with spaces and parentheses that mean nothing.
class TextMaker {
 public:
  explicit TextMaker(uint64_t seed) : random_(seed) {}

  std::string Expression(int depth) {
    if (depth == 0 || Below(4) == 0) return Condition();
    switch (Below(4)) {
      case 0:
        return "!(" + Expression(depth - 1) + ")";
      case 1:
        return "(" + Space() + Expression(depth - 1) + Space() + ")";
      case 2:
        return "(" + Expression(depth - 1) + ")" + Space() + "&&" + Space() + "(" +
               Expression(depth - 1) + ")";
      default:
        return Expression(depth - 1) + "||" + Space() + Expression(depth - 1);
    }
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  std::string Space() { return std::string(Below(3), ' '); }
  std::string Number() {
    switch (Below(4)) {
      case 0:
        return std::to_string(static_cast<int64_t>(random_()));
      case 1:
        return std::to_string(Below(100)) + ".0";
      case 2:
        return std::to_string(random_());
      default: {
        double value = 0;
        const uint64_t bits = random_();
        std::memcpy(&value, &bits, sizeof(value));
        std::array<char, 64> text;
        std::snprintf(text.data(), text.size(), "%.17g", std::isnan(value) ? 1.5 : value);
        return text.data();
      }
    }
  }
  std::string Operand() {
    constexpr std::string_view kOperands[] = {"a",  "score[2]", "`x-y`",         "length",
                                              "id", "`length`", "times_sampled", "`in`"};
    return std::string(kOperands[Below(std::size(kOperands))]);
  }
  std::string Condition() {
    constexpr std::string_view kComparisons[] = {"==", "!=", "<", "<=", ">", ">="};
    const std::string comparison = Space() + std::string(kComparisons[Below(6)]) + Space();
    switch (Below(6)) {
      case 0:
        return Operand() + " in {" + Number() + "," + Number() + ", " + Number() + "}";
      case 1:
        return "isset( a )";
      case 2:
        return Number() + comparison + Operand();
      case 3:
        return "end != truncated";
      case 4:
        return "solved";
      default:
        return Operand() + comparison + Number();
    }
  }

  std::mt19937_64 random_;
};

TEST(FilterParserTest, WhatIsPrintedReadsTheSame) {
  TextMaker maker(21);
  for (uint64_t round = 0; round < ShareOf(4000); ++round) {
    const std::string text = maker.Expression(static_cast<int>(round % 6));
    const auto parsed = ParseFilter(text);
    ASSERT_OK(parsed) << text;
    const std::string printed = PrintFilter(*parsed);
    const auto again = ParseFilter(printed);
    ASSERT_OK(again) << printed;
    ASSERT_TRUE(*parsed == *again) << text << " is printed " << printed;
    ASSERT_EQ(PrintFilter(*again), printed);
  }
}

TEST(FilterParserTest, AnyBytesAreAFilterOrAnError) {
  TextMaker maker(22);
  std::mt19937_64 random(23);
  uint64_t good = 0;
  for (uint64_t round = 0; round < ShareOf(20000); ++round) {
    std::string text = maker.Expression(2);
    for (uint64_t i = random() % 3; i > 0; --i) {
      const size_t place = random() % text.size();
      if (random() % 2 == 0) {
        text[place] = static_cast<char>(random());
      } else {
        text.erase(place, random() % 5);
        if (text.empty()) text = "a";
      }
    }
    const auto parsed = ParseFilter(text);
    if (!parsed.ok()) {
      ASSERT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
      continue;
    }
    ++good;
    const auto again = ParseFilter(PrintFilter(*parsed));
    ASSERT_TRUE(again.ok() && *again == *parsed) << text;
  }
  EXPECT_GT(good, ShareOf(20000) / 10);
}

}  // namespace
}  // namespace geardb::engine
