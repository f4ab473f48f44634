#include "engine/internal/filter_lexer.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace geardb::engine {
namespace {

using index::ExactNumber;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool BeginsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool InWord(char c) { return BeginsWord(c) || IsDigit(c) || c == '.'; }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// The power of ten of the exponent that begins with `e`, if any; no text is as long as its bounds.
int64_t ExponentOf(std::string_view exponent) {
  constexpr int64_t kMost = int64_t{1} << 62;
  if (exponent.empty()) return 0;
  exponent.remove_prefix(1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  int64_t power = 0;
  const char* end = exponent.data() + exponent.size();
  if (std::from_chars(exponent.data(), end, power).ec == std::errc::result_out_of_range) {
    return exponent.starts_with('-') ? -kMost : kMost;
  }
  return std::clamp(power, -kMost, kMost);
}

/// The f64 nearest to a number beyond their range: its first digit that counts says on which side.
double OutOfRange(std::string_view bare, bool negative) {
  const std::string_view digits = bare.substr(0, bare.find_first_of("eE"));
  const size_t point = std::min(digits.find('.'), digits.size());
  const size_t first = std::min(digits.find_first_not_of("0."), digits.size());
  const int64_t power = static_cast<int64_t>(point) - static_cast<int64_t>(first) +
                        ExponentOf(bare.substr(digits.size()));
  const double value = power < 0 ? 0.0 : std::numeric_limits<double>::infinity();
  return negative ? -value : value;
}

bool ReadNumber(std::string_view text, ExactNumber* number) {
  const bool negative = text[0] == '-';
  const std::string_view bare = text.substr(negative ? 1 : 0);
  const bool hex = bare.starts_with("0x") || bare.starts_with("0X");
  const std::string_view digits = bare.substr(hex ? 2 : 0);
  uint64_t magnitude = 0;
  const char* end = digits.data() + digits.size();
  const auto integer = std::from_chars(digits.data(), end, magnitude, hex ? 16 : 10);
  constexpr uint64_t kMost = uint64_t{1} << 63;
  if (integer.ec == std::errc() && integer.ptr == end && (!negative || magnitude <= kMost)) {
    *number = negative ? ExactNumber(static_cast<int64_t>(uint64_t{0} - magnitude))
                       : ExactNumber(magnitude);
    return true;
  }
  if (hex || bare.empty()) return false;
  double value = 0;
  const auto real = std::from_chars(text.data(), end, value);
  if (real.ptr != end || bare.starts_with('-')) return false;
  // What no f64 is as large as, or as small as, is the nearest all the same.
  if (real.ec == std::errc::result_out_of_range) value = OutOfRange(bare, negative);
  *number = ExactNumber(value);
  return true;
}

}  // namespace

Result<FilterToken> FilterLexer::Next() {
  while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  FilterToken token{.begin = at_};
  if (at_ == text_.size()) return token;
  const char c = text_[at_];
  if (BeginsWord(c)) {
    size_t end = at_;
    while (end < text_.size() && InWord(text_[end])) ++end;
    return Take(FilterToken::Kind::kWord, end, token);
  }
  if (c == '`') return TakeQuoted(token);
  const bool number = IsDigit(c) || c == '-' || c == '.';
  return number ? TakeNumber(token) : TakeSymbol(token);
}

Status FilterLexer::Wrong(const FilterToken& token, std::string_view expected) const {
  if (token.begin >= text_.size()) {
    return Status::InvalidArgument("filter '", Shown(token.begin), "' ends where ", expected,
                                   " is expected");
  }
  size_t end = token.begin + 1;
  if (InWord(text_[token.begin])) {
    while (end < text_.size() && InWord(text_[end])) ++end;
  }
  return Status::InvalidArgument("filter '", Shown(token.begin), "', character ", token.begin + 1,
                                 " ('",
                                 text_.substr(token.begin, std::min<size_t>(end - token.begin, 64)),
                                 "'): expected ", expected);
}

FilterToken FilterLexer::Take(FilterToken::Kind kind, size_t end, FilterToken token) {
  token.kind = kind;
  token.text = text_.substr(at_, end - at_);
  at_ = end;
  return token;
}

Result<FilterToken> FilterLexer::TakeQuoted(FilterToken token) {
  const size_t end = text_.find('`', at_ + 1);
  if (end == std::string_view::npos) return Wrong(token, "a second backtick behind this one");
  token.kind = FilterToken::Kind::kQuoted;
  token.text = text_.substr(at_ + 1, end - at_ - 1);
  if (token.text.empty()) return Wrong(token, "a column's name between the backticks");
  at_ = end + 1;
  return token;
}

Result<FilterToken> FilterLexer::TakeSymbol(const FilterToken& token) {
  for (const std::string_view two : {"&&", "||", "==", "!=", "<=", ">="}) {
    if (text_.substr(at_).starts_with(two)) return Take(FilterToken::Kind::kSymbol, at_ + 2, token);
  }
  const char c = text_[at_];
  if (std::string_view("()[]{},!<>").find(c) != std::string_view::npos) {
    return Take(FilterToken::Kind::kSymbol, at_ + 1, token);
  }
  if (c == '=') return Wrong(token, "'==' for equal");
  if (c == '&') return Wrong(token, "'&&' for and");
  if (c == '|') return Wrong(token, "'||' for or");
  return Wrong(token,
               "a column, a number or an operator; a name with other characters than "
               "letters, digits, '_' and '.' stands in backticks");
}

Result<FilterToken> FilterLexer::TakeNumber(FilterToken token) {
  const bool negative = text_[at_] == '-';
  size_t end = at_ + (negative ? 1 : 0);
  // As far as it could go: digits, letters, and the sign of an exponent.
  const bool hex = text_.substr(end).starts_with("0x") || text_.substr(end).starts_with("0X");
  while (end < text_.size() &&
         (InWord(text_[end]) || (!hex && (text_[end] == '+' || text_[end] == '-') &&
                                 (text_[end - 1] == 'e' || text_[end - 1] == 'E')))) {
    ++end;
  }
  if (!ReadNumber(text_.substr(at_, end - at_), &token.number)) {
    return Wrong(token, "a number, as 12, -3, 0x1F, 0.5, 1e-3, inf or nan");
  }
  return Take(FilterToken::Kind::kNumber, end, token);
}

std::string FilterLexer::Shown(size_t place) const {
  constexpr size_t kAround = 60;
  if (text_.size() <= 2 * kAround) return std::string(text_);
  const size_t begin = place > kAround ? place - kAround : 0;
  const size_t end = std::min(text_.size(), begin + 2 * kAround);
  return (begin > 0 ? "…" : "") + std::string(text_.substr(begin, end - begin)) +
         (end < text_.size() ? "…" : "");
}

}  // namespace geardb::engine
