// The text of a filter, word by word, into an expression: recursive descent.

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "engine/internal/filter_expression.h"

namespace geardb::engine {
namespace {

using index::Comparison;
using index::ExactNumber;
using Kind = FilterExpression::Kind;

enum class TokenKind : uint8_t { kEnd, kWord, kQuoted, kNumber, kSymbol };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t begin = 0;            // In the text.
  std::string_view text = {};  // Of a quoted column: what is between the backticks.
  ExactNumber number = {};
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool BeginsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool InWord(char c) { return BeginsWord(c) || IsDigit(c) || c == '.'; }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// The words of a text, one after the other.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  /// InvalidArgument for what begins no word.
  Result<Token> Next() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
    Token token{.begin = at_};
    if (at_ == text_.size()) return token;
    const char c = text_[at_];
    if (BeginsWord(c)) {
      size_t end = at_;
      while (end < text_.size() && InWord(text_[end])) ++end;
      return Take(TokenKind::kWord, end, token);
    }
    if (c == '`') return TakeQuoted(token);
    const bool number = IsDigit(c) || c == '-' || c == '.';
    return number ? TakeNumber(token) : TakeSymbol(token);
  }

  /// `expected` is not what stands at `token`.
  Status Wrong(const Token& token, std::string_view expected) const {
    if (token.begin >= text_.size()) {
      return Status::InvalidArgument("filter '", Shown(token.begin), "' ends where ", expected,
                                     " is expected");
    }
    size_t end = token.begin + 1;
    if (InWord(text_[token.begin])) {
      while (end < text_.size() && InWord(text_[end])) ++end;
    }
    return Status::InvalidArgument(
        "filter '", Shown(token.begin), "', character ", token.begin + 1, " ('",
        text_.substr(token.begin, std::min<size_t>(end - token.begin, 64)), "'): expected ",
        expected);
  }

 private:
  Token Take(TokenKind kind, size_t end, Token token) {
    token.kind = kind;
    token.text = text_.substr(at_, end - at_);
    at_ = end;
    return token;
  }

  Result<Token> TakeQuoted(Token token) {
    const size_t end = text_.find('`', at_ + 1);
    if (end == std::string_view::npos) return Wrong(token, "a second backtick behind this one");
    token.kind = TokenKind::kQuoted;
    token.text = text_.substr(at_ + 1, end - at_ - 1);
    if (token.text.empty()) return Wrong(token, "a column's name between the backticks");
    at_ = end + 1;
    return token;
  }

  Result<Token> TakeSymbol(const Token& token) {
    for (const std::string_view two : {"&&", "||", "==", "!=", "<=", ">="}) {
      if (text_.substr(at_).starts_with(two)) return Take(TokenKind::kSymbol, at_ + 2, token);
    }
    const char c = text_[at_];
    if (std::string_view("()[]{},!<>").find(c) != std::string_view::npos) {
      return Take(TokenKind::kSymbol, at_ + 1, token);
    }
    if (c == '=') return Wrong(token, "'==' for equal");
    if (c == '&') return Wrong(token, "'&&' for and");
    if (c == '|') return Wrong(token, "'||' for or");
    return Wrong(token,
                 "a column, a number or an operator; a name with other characters than "
                 "letters, digits, '_' and '.' stands in backticks");
  }

  Result<Token> TakeNumber(Token token) {
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
    return Take(TokenKind::kNumber, end, token);
  }

  static bool ReadNumber(std::string_view text, ExactNumber* number) {
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

  /// The f64 nearest to a number beyond their range. Its exponent's sign says on which side.
  static double OutOfRange(std::string_view bare, bool negative) {
    const size_t exponent = bare.find_first_of("eE");
    const bool tiny = exponent != std::string_view::npos
                          ? bare.substr(exponent + 1).starts_with('-')
                          : bare[0] == '0' || bare[0] == '.';
    const double value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    return negative ? -value : value;
  }

  /// The text, or what of a long one is around a place.
  std::string Shown(size_t place) const {
    constexpr size_t kAround = 60;
    if (text_.size() <= 2 * kAround) return std::string(text_);
    const size_t begin = place > kAround ? place - kAround : 0;
    const size_t end = std::min(text_.size(), begin + 2 * kAround);
    return (begin > 0 ? "…" : "") + std::string(text_.substr(begin, end - begin)) +
           (end < text_.size() ? "…" : "");
  }

  const std::string_view text_;
  size_t at_ = 0;
};

/// What one side of a comparison may be.
struct Side {
  std::optional<FilterOperand> operand = {};
  std::optional<FilterConstant> constant = {};
  Token token = {};
};

FilterConstant Number(const ExactNumber& number) {
  return {.kind = FilterConstant::Kind::kNumber, .number = number};
}

Comparison Mirrored(Comparison comparison) {
  switch (comparison) {
    case Comparison::kLess:
      return Comparison::kGreater;
    case Comparison::kLessEqual:
      return Comparison::kGreaterEqual;
    case Comparison::kGreater:
      return Comparison::kLess;
    case Comparison::kGreaterEqual:
      return Comparison::kLessEqual;
    default:
      return comparison;
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Result<FilterExpression> ParseAll() {
    GEARDB_RETURN_IF_ERROR(Advance());
    GEARDB_ASSIGN_OR_RETURN(FilterExpression expression, ParseOr());
    if (token_.kind != TokenKind::kEnd) return lexer_.Wrong(token_, "'&&', '||' or the end");
    return expression;
  }

  Result<FilterOperand> ParseOperandAlone() {
    GEARDB_RETURN_IF_ERROR(Advance());
    GEARDB_ASSIGN_OR_RETURN(FilterOperand operand, ParseOperand());
    if (token_.kind != TokenKind::kEnd) return lexer_.Wrong(token_, "the end");
    return operand;
  }

 private:
  Status Advance() {
    GEARDB_ASSIGN_OR_RETURN(token_, lexer_.Next());
    return Status::Ok();
  }
  bool IsSymbol(std::string_view symbol) const {
    return token_.kind == TokenKind::kSymbol && token_.text == symbol;
  }
  bool IsWord(std::string_view word) const {
    return token_.kind == TokenKind::kWord && token_.text == word;
  }
  Status Expect(std::string_view symbol) {
    if (!IsSymbol(symbol)) return lexer_.Wrong(token_, "'" + std::string(symbol) + "'");
    return Advance();
  }
  Status CountTerm() {
    if (++terms_ <= kFilterTermsMax) return Status::Ok();
    return lexer_.Wrong(token_, "no more: a filter has at most " + std::to_string(kFilterTermsMax) +
                                    " conditions and constants");
  }

  Result<FilterExpression> ParseOr() { return ParseChain(Kind::kOr); }

  /// What is joined by one operator; one within another of the same kind is the same chain.
  Result<FilterExpression> ParseChain(Kind kind) {
    const std::string_view symbol = kind == Kind::kOr ? "||" : "&&";
    FilterExpression chain{.kind = kind};
    for (;;) {
      GEARDB_ASSIGN_OR_RETURN(FilterExpression one,
                              kind == Kind::kOr ? ParseChain(Kind::kAnd) : ParseUnary());
      if (one.kind == kind) {
        std::move(one.children.begin(), one.children.end(), std::back_inserter(chain.children));
      } else {
        chain.children.push_back(std::move(one));
      }
      if (IsWord("and")) return lexer_.Wrong(token_, "'&&' for and");
      if (IsWord("or")) return lexer_.Wrong(token_, "'||' for or");
      if (!IsSymbol(symbol)) break;
      GEARDB_RETURN_IF_ERROR(Advance());
    }
    if (chain.children.size() > 1) return chain;
    FilterExpression only = std::move(chain.children[0]);
    return only;
  }

  Result<FilterExpression> ParseUnary() {
    if (IsWord("not")) return lexer_.Wrong(token_, "'!' for not");
    const bool negated = IsSymbol("!");
    if (!negated && !IsSymbol("(")) return ParseCondition();
    if (++depth_ > kFilterDepthMax) {
      return lexer_.Wrong(token_, "no more: parentheses and '!' are nested at most " +
                                      std::to_string(kFilterDepthMax) + " deep");
    }
    GEARDB_RETURN_IF_ERROR(Advance());
    FilterExpression result;
    if (negated) {
      const Token negand = token_;
      GEARDB_ASSIGN_OR_RETURN(FilterExpression child, ParseUnary());
      const bool bare = negand.kind != TokenKind::kSymbol;
      if (bare && (child.kind == Kind::kCompare || child.kind == Kind::kIn)) {
        return lexer_.Wrong(negand, "parentheses around the comparison that '!' turns around");
      }
      if (child.kind == Kind::kNot) {
        result = std::move(child.children[0]);
      } else {
        result.kind = Kind::kNot;
        result.children.push_back(std::move(child));
      }
    } else {
      GEARDB_ASSIGN_OR_RETURN(result, ParseOr());
      GEARDB_RETURN_IF_ERROR(Expect(")"));
    }
    --depth_;
    return result;
  }

  Result<FilterExpression> ParseCondition() {
    GEARDB_RETURN_IF_ERROR(CountTerm());
    for (const Kind kind : {Kind::kIsSet, Kind::kIsNaN}) {
      if (!IsWord(kind == Kind::kIsSet ? "isset" : "isnan")) continue;
      FilterExpression result{.kind = kind};
      GEARDB_RETURN_IF_ERROR(Advance());
      GEARDB_RETURN_IF_ERROR(Expect("("));
      const Token place = token_;
      GEARDB_ASSIGN_OR_RETURN(result.operand, ParseOperand());
      if (result.operand.field != FilterField::kColumn) {
        return lexer_.Wrong(place, "a column");
      }
      if (kind == Kind::kIsSet && result.operand.element) {
        return lexer_.Wrong(place, "a column without an element: it is set as a whole");
      }
      GEARDB_RETURN_IF_ERROR(Expect(")"));
      return result;
    }
    GEARDB_ASSIGN_OR_RETURN(const Side left, ParseSide(nullptr));
    if (IsWord("in")) return ParseIn(left);
    if (const auto comparison = ComparisonHere()) return ParseComparison(left, *comparison);
    if (left.constant && left.constant->kind == FilterConstant::Kind::kBool) {
      return FilterExpression{.kind = Kind::kConstant,
                              .value = !(left.constant->number == ExactNumber())};
    }
    if (left.constant || left.operand->field != FilterField::kColumn) {
      return lexer_.Wrong(token_, "a comparison");
    }
    return FilterExpression{.kind = Kind::kTruth, .operand = *left.operand};
  }

  std::optional<Comparison> ComparisonHere() const {
    constexpr std::string_view kSymbols[] = {"==", "!=", "<", "<=", ">", ">="};
    for (size_t i = 0; i < std::size(kSymbols); ++i) {
      if (IsSymbol(kSymbols[i])) return static_cast<Comparison>(i);
    }
    return std::nullopt;
  }

  Result<FilterExpression> ParseComparison(const Side& left, Comparison comparison) {
    const Token symbol = token_;
    GEARDB_RETURN_IF_ERROR(Advance());
    GEARDB_ASSIGN_OR_RETURN(const Side right, ParseSide(left.operand ? &*left.operand : nullptr));
    if (ComparisonHere() || IsWord("in")) {
      return lexer_.Wrong(token_, "'&&', '||' or the end: comparisons do not follow one another");
    }
    if (left.operand.has_value() == right.operand.has_value()) {
      return lexer_.Wrong(right.token, left.operand ? "a constant: two columns cannot be compared"
                                                    : "a column: two constants need no comparison");
    }
    const bool mirrored = right.operand.has_value();
    FilterExpression result{.kind = Kind::kCompare,
                            .operand = mirrored ? *right.operand : *left.operand,
                            .comparison = mirrored ? Mirrored(comparison) : comparison,
                            .constants = {mirrored ? *left.constant : *right.constant}};
    GEARDB_RETURN_IF_ERROR(
        CheckConstant(mirrored ? left.token : right.token, result.operand, result.constants[0]));
    const bool ordered = comparison != Comparison::kEqual && comparison != Comparison::kNotEqual;
    if (ordered && result.constants[0].kind != FilterConstant::Kind::kNumber) {
      return lexer_.Wrong(symbol, "'==' or '!=': words and bools have no order");
    }
    return result;
  }

  Result<FilterExpression> ParseIn(const Side& left) {
    if (!left.operand) return lexer_.Wrong(left.token, "a column before 'in'");
    FilterExpression result{.kind = Kind::kIn, .operand = *left.operand};
    GEARDB_RETURN_IF_ERROR(Advance());
    GEARDB_RETURN_IF_ERROR(Expect("{"));
    for (;;) {
      GEARDB_ASSIGN_OR_RETURN(const Side one, ParseSide(&result.operand));
      if (!one.constant || one.constant->number.is_nan()) {
        return lexer_.Wrong(one.token,
                            one.constant ? "another constant: no value equals NaN" : "a constant");
      }
      GEARDB_RETURN_IF_ERROR(CheckConstant(one.token, result.operand, *one.constant));
      if (one.constant->kind != result.constants.emplace_back(*one.constant).kind ||
          one.constant->kind != result.constants[0].kind) {
        return lexer_.Wrong(one.token, "a constant of the kind of the others");
      }
      GEARDB_RETURN_IF_ERROR(CountTerm());
      if (!IsSymbol(",")) break;
      GEARDB_RETURN_IF_ERROR(Advance());
    }
    if (!IsSymbol("}")) return lexer_.Wrong(token_, "',' or '}'");
    GEARDB_RETURN_IF_ERROR(Advance());
    auto& all = result.constants;
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.number < b.number; });
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return result;
  }

  /// Words go with their field, and with nothing else.
  Status CheckConstant(const Token& token, const FilterOperand& operand,
                       const FilterConstant& constant) const {
    const bool has_words = !WordsOfField(operand.field).empty();
    if (has_words && constant.kind != FilterConstant::Kind::kWord) {
      return lexer_.Wrong(token, WordList(operand.field));
    }
    if (!has_words && operand.field != FilterField::kColumn &&
        constant.kind != FilterConstant::Kind::kNumber) {
      return lexer_.Wrong(token, "a number");
    }
    return Status::Ok();
  }

  static std::string WordList(FilterField field) {
    std::string list;
    for (const std::string_view word : WordsOfField(field)) {
      if (!word.empty()) list += (list.empty() ? "" : ", ") + std::string(word);
    }
    return "one of " + list;
  }

  /// A constant or an operand; `of` is what a constant would be compared with, where it is known.
  Result<Side> ParseSide(const FilterOperand* of) {
    Side side{.token = token_};
    if (token_.kind == TokenKind::kNumber) {
      side.constant = Number(token_.number);
    } else if (token_.kind == TokenKind::kWord) {
      side.constant = ConstantOfWord(token_.text, of);
    } else if (IsSymbol("(") && of != nullptr) {
      return lexer_.Wrong(token_, "a constant");
    }
    if (side.constant) {
      GEARDB_RETURN_IF_ERROR(Advance());
      return side;
    }
    if (of != nullptr && !WordsOfField(of->field).empty()) {
      return lexer_.Wrong(token_, WordList(of->field));
    }
    GEARDB_ASSIGN_OR_RETURN(side.operand, ParseOperand());
    return side;
  }

  static std::optional<FilterConstant> ConstantOfWord(std::string_view word,
                                                      const FilterOperand* of) {
    if (word == "inf") return Number(ExactNumber(std::numeric_limits<double>::infinity()));
    if (word == "nan") return Number(ExactNumber(std::numeric_limits<double>::quiet_NaN()));
    if (word == "true" || word == "false") {
      return FilterConstant{.kind = FilterConstant::Kind::kBool,
                            .number = ExactNumber(uint64_t{word == "true" ? 1u : 0u})};
    }
    if (of == nullptr) return std::nullopt;
    const auto words = WordsOfField(of->field);
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end()) return std::nullopt;
    return FilterConstant{.kind = FilterConstant::Kind::kWord,
                          .number = ExactNumber(static_cast<uint64_t>(found - words.begin()))};
  }

  Result<FilterOperand> ParseOperand() {
    const bool quoted = token_.kind == TokenKind::kQuoted;
    if (!quoted && (token_.kind != TokenKind::kWord || IsFilterKeyword(token_.text))) {
      return lexer_.Wrong(token_, "a column");
    }
    FilterOperand operand;
    if (!quoted) operand.field = FieldOfWord(token_.text);
    if (operand.field == FilterField::kColumn) operand.column = std::string(token_.text);
    GEARDB_RETURN_IF_ERROR(Advance());
    if (!IsSymbol("[")) return operand;
    if (operand.field != FilterField::kColumn) {
      return lexer_.Wrong(token_, "a comparison: this field has no elements");
    }
    GEARDB_RETURN_IF_ERROR(Advance());
    const auto* number = std::get_if<uint64_t>(&token_.number.value());
    if (token_.kind != TokenKind::kNumber || number == nullptr || *number > UINT32_MAX) {
      return lexer_.Wrong(token_, "the number of an element, from 0");
    }
    operand.element = static_cast<uint32_t>(*number);
    GEARDB_RETURN_IF_ERROR(Advance());
    GEARDB_RETURN_IF_ERROR(Expect("]"));
    return operand;
  }

  Lexer lexer_;
  Token token_;
  int depth_ = 0;
  size_t terms_ = 0;
};

}  // namespace

Result<FilterExpression> ParseFilter(std::string_view text) { return Parser(text).ParseAll(); }

Result<FilterOperand> ParseOperand(std::string_view text) {
  return Parser(text).ParseOperandAlone();
}

}  // namespace geardb::engine
