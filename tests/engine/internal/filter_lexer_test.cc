#include "engine/internal/filter_lexer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/testing/matchers.h"

namespace geardb::engine {
namespace {

using Kind = FilterToken::Kind;

/// The words of a text as "kind:begin:text", up to its end or an error.
std::string WordsOf(std::string_view text) {
  FilterLexer lexer(text);
  std::string words;
  for (;;) {
    const auto token = lexer.Next();
    if (!token.ok()) return words + "error";
    words += std::string(1, "ewqns"[static_cast<size_t>(token->kind)]) + ":" +
             std::to_string(token->begin) + ":" + std::string(token->text) + " ";
    if (token->kind == Kind::kEnd) return words;
  }
}

TEST(FilterLexerTest, TextsFallIntoWords) {
  EXPECT_EQ(WordsOf(""), "e:0: ");
  EXPECT_EQ(WordsOf(" a.b  "), "w:1:a.b e:6: ");
  EXPECT_EQ(WordsOf("`a-b`[2]"), "q:0:a-b s:5:[ n:6:2 s:7:] e:8: ");
  EXPECT_EQ(WordsOf("a>=-1e-3&&!b"), "w:0:a s:1:>= n:3:-1e-3 s:8:&& s:10:! w:11:b e:12: ");
  EXPECT_EQ(WordsOf("<<=!=="), "s:0:< s:1:<= s:3:!= error");
  EXPECT_EQ(WordsOf("{1,0x1F,.5,5.}"),
            "s:0:{ n:1:1 s:2:, n:3:0x1F s:7:, n:8:.5 s:10:, n:11:5. s:13:} e:14: ");
}

TEST(FilterLexerTest, NumbersAreExact) {
  const auto number = [](std::string_view text) { return FilterLexer(text).Next()->number; };
  EXPECT_EQ(number("18446744073709551615"), index::ExactNumber(UINT64_MAX));
  EXPECT_EQ(number("-9223372036854775808"), index::ExactNumber(INT64_MIN));
  EXPECT_EQ(number("0xffFFffFFffFFffFF"), index::ExactNumber(UINT64_MAX));
  EXPECT_EQ(number("-0x10"), index::ExactNumber(int64_t{-16}));
  EXPECT_EQ(number("2.50"), index::ExactNumber(2.5));
  EXPECT_EQ(number("-inf"), index::ExactNumber(-HUGE_VAL));
  EXPECT_EQ(number("1e999"), index::ExactNumber(HUGE_VAL));
  EXPECT_EQ(number("-1e-999"), index::ExactNumber(uint64_t{0}));
  for (const std::string_view wrong :
       {"-", ".", "1x", "0x", "0x10000000000000000", "1e", "--1", "-0x9000000000000000", "1.2.3"}) {
    EXPECT_EQ(WordsOf(wrong), "error") << wrong;
  }
}

TEST(FilterLexerTest, NumbersBeyondTheRangeAreTheNearestHoweverTheyAreWritten) {
  const auto number = [](const std::string& text) { return FilterLexer(text).Next()->number; };
  const std::string zeros(400, '0');
  const std::string nines(400, '9');
  const index::ExactNumber most(HUGE_VAL), least(uint64_t{0});
  EXPECT_EQ(number("1" + zeros), most);
  EXPECT_EQ(number("1" + zeros + "e-1"), most);
  EXPECT_EQ(number("1" + zeros + ".5e-10"), most);
  EXPECT_EQ(number(zeros + nines), most);
  EXPECT_EQ(number("-" + zeros + nines + "e-1"), index::ExactNumber(-HUGE_VAL));
  EXPECT_EQ(number("0." + zeros + "1"), least);
  EXPECT_EQ(number("0." + zeros + "1e5"), least);
  EXPECT_EQ(number("." + zeros + "1e+5"), least);
  EXPECT_EQ(number("0." + zeros + "1e999"), most);
  EXPECT_EQ(number("1" + zeros + "e-999"), least);
  EXPECT_EQ(number("1e" + nines), most);
  EXPECT_EQ(number("1e-" + nines), least);
  EXPECT_EQ(number("1" + zeros + "e-400"), index::ExactNumber(1.0));
}

TEST(FilterLexerTest, ErrorsNameTheCharacter) {
  FilterLexer lexer("ab == cd");
  const FilterToken token{.kind = Kind::kWord, .begin = 6, .text = "cd"};
  EXPECT_STATUS(kInvalidArgument, lexer.Wrong(token, "a number"),
                "filter 'ab == cd', character 7 ('cd'): expected a number");
  EXPECT_STATUS(kInvalidArgument, lexer.Wrong({.begin = 8}, "more"),
                "filter 'ab == cd' ends where more is expected");
}

}  // namespace
}  // namespace geardb::engine
