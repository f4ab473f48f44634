// The text of a filter, word by word, into an expression: recursive descent.

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/internal/filter_expression.h"
#include "engine/internal/filter_lexer.h"

namespace geardb::engine {
namespace {

using index::Comparison;
using index::ExactNumber;
using Kind = FilterExpression::Kind;

/// What one side of a comparison may be.
struct Side {
  std::optional<FilterOperand> operand = {};
  std::optional<FilterConstant> constant = {};
  FilterToken token = {};
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
    if (token_.kind != FilterToken::Kind::kEnd)
      return lexer_.Wrong(token_, "'&&', '||' or the end");
    return expression;
  }

  Result<FilterOperand> ParseOperandAlone() {
    GEARDB_RETURN_IF_ERROR(Advance());
    GEARDB_ASSIGN_OR_RETURN(FilterOperand operand, ParseOperand());
    if (token_.kind != FilterToken::Kind::kEnd) return lexer_.Wrong(token_, "the end");
    return operand;
  }

 private:
  Status Advance() {
    GEARDB_ASSIGN_OR_RETURN(token_, lexer_.Next());
    return Status::Ok();
  }
  bool IsSymbol(std::string_view symbol) const {
    return token_.kind == FilterToken::Kind::kSymbol && token_.text == symbol;
  }
  bool IsWord(std::string_view word) const {
    return token_.kind == FilterToken::Kind::kWord && token_.text == word;
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
      const FilterToken negand = token_;
      GEARDB_ASSIGN_OR_RETURN(FilterExpression child, ParseUnary());
      const bool bare = negand.kind != FilterToken::Kind::kSymbol;
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
      const FilterToken place = token_;
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
    const FilterToken symbol = token_;
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
  Status CheckConstant(const FilterToken& token, const FilterOperand& operand,
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
    if (token_.kind == FilterToken::Kind::kNumber) {
      side.constant = Number(token_.number);
    } else if (token_.kind == FilterToken::Kind::kWord) {
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
    const bool quoted = token_.kind == FilterToken::Kind::kQuoted;
    if (!quoted && (token_.kind != FilterToken::Kind::kWord || IsFilterKeyword(token_.text))) {
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
    if (token_.kind != FilterToken::Kind::kNumber || number == nullptr || *number > UINT32_MAX) {
      return lexer_.Wrong(token_, "the number of an element, from 0");
    }
    operand.element = static_cast<uint32_t>(*number);
    GEARDB_RETURN_IF_ERROR(Advance());
    GEARDB_RETURN_IF_ERROR(Expect("]"));
    return operand;
  }

  FilterLexer lexer_;
  FilterToken token_;
  int depth_ = 0;
  size_t terms_ = 0;
};

}  // namespace

Result<FilterExpression> ParseFilter(std::string_view text) { return Parser(text).ParseAll(); }

Result<FilterOperand> ParseOperand(std::string_view text) {
  return Parser(text).ParseOperandAlone();
}

}  // namespace geardb::engine
