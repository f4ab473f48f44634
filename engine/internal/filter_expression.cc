#include "engine/internal/filter_expression.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace geardb::engine {
namespace {

using Kind = FilterExpression::Kind;

struct FieldWord {
  std::string_view word;
  FilterField field;
};
constexpr std::array<FieldWord, 7> kFields = {{{"id", FilterField::kId},
                                               {"length", FilterField::kLength},
                                               {"first_row", FilterField::kFirstRow},
                                               {"created_us", FilterField::kCreatedUs},
                                               {"times_sampled", FilterField::kTimesSampled},
                                               {"state", FilterField::kState},
                                               {"end", FilterField::kEnd}}};
/// Words that are no column without backticks either.
constexpr std::array<std::string_view, 10> kKeywords = {"in",  "isset", "isnan", "true", "false",
                                                        "inf", "nan",   "and",   "or",   "not"};

std::string_view ComparisonText(index::Comparison comparison) {
  constexpr std::array<std::string_view, 6> kTexts = {"==", "!=", "<", "<=", ">", ">="};
  return kTexts[static_cast<size_t>(comparison)];
}

bool ReadsAsColumn(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto follows = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), follows) &&
         FieldOfWord(name) == FilterField::kColumn && !IsFilterKeyword(name);
}

std::string PrintConstant(const FilterConstant& constant, FilterField field) {
  if (constant.number.is_nan()) return "nan";  // Of either sign.
  if (constant.kind == FilterConstant::Kind::kNumber) {
    return std::visit(
        [](auto value) {
          std::array<char, 64> text;
          const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
          return std::string(text.data(), end);
        },
        constant.number.value());
  }
  const uint64_t number = std::get<uint64_t>(constant.number.value());
  if (constant.kind == FilterConstant::Kind::kBool) return number != 0 ? "true" : "false";
  return std::string(WordsOfField(field)[number]);
}

std::string PrintChildren(const FilterExpression& expression) {
  const bool all = expression.kind == FilterExpression::Kind::kAnd;
  std::string text;
  for (const FilterExpression& child : expression.children) {
    if (!text.empty()) text += all ? " && " : " || ";
    const bool bracket = all && child.kind == FilterExpression::Kind::kOr;
    text += bracket ? "(" + PrintFilter(child) + ")" : PrintFilter(child);
  }
  return text;
}

}  // namespace

bool IsFilterKeyword(std::string_view word) {
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

FilterField FieldOfWord(std::string_view word) {
  for (const FieldWord& field : kFields) {
    if (field.word == word) return field.field;
  }
  return FilterField::kColumn;
}

std::vector<std::string_view> WordsOfField(FilterField field) {
  if (field == FilterField::kState) return {"", "open", "closed", "orphaned"};
  if (field == FilterField::kEnd) return {"go", "terminated", "truncated", "cut"};
  return {};
}

std::string PrintOperand(const FilterOperand& operand) {
  for (const FieldWord& field : kFields) {
    if (field.field == operand.field) return std::string(field.word);
  }
  std::string text = ReadsAsColumn(operand.column) ? operand.column : "`" + operand.column + "`";
  if (operand.element) text += "[" + std::to_string(*operand.element) + "]";
  return text;
}

std::string PrintFilter(const FilterExpression& expression) {
  const std::string operand = PrintOperand(expression.operand);
  switch (expression.kind) {
    case Kind::kConstant:
      return expression.value ? "true" : "false";
    case Kind::kAnd:
    case Kind::kOr:
      return PrintChildren(expression);
    case Kind::kNot: {
      const FilterExpression& child = expression.children[0];
      const bool alone = child.kind == Kind::kTruth || child.kind == Kind::kIsSet ||
                         child.kind == Kind::kIsNaN || child.kind == Kind::kConstant;
      return alone ? "!" + PrintFilter(child) : "!(" + PrintFilter(child) + ")";
    }
    case Kind::kTruth:
      return operand;
    case Kind::kIsSet:
      return "isset(" + operand + ")";
    case Kind::kIsNaN:
      return "isnan(" + operand + ")";
    case Kind::kCompare:
      return operand + " " + std::string(ComparisonText(expression.comparison)) + " " +
             PrintConstant(expression.constants[0], expression.operand.field);
    case Kind::kIn: {
      std::string list;
      for (const FilterConstant& constant : expression.constants) {
        list += (list.empty() ? "" : ", ") + PrintConstant(constant, expression.operand.field);
      }
      return operand + " in {" + list + "}";
    }
  }
  return "";
}

}  // namespace geardb::engine
