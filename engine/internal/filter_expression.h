// What a filter's text says, as a tree in one form: no conjunction directly within a conjunction,
// no double negation, constants on the right, sets in order and without repetition.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/filter.h"
#include "index/filter_ranges.h"

namespace geardb::engine {

/// What a filter may ask of a trajectory.
enum class FilterField : uint8_t {
  kColumn,
  kId,
  kLength,
  kFirstRow,
  kCreatedUs,
  kTimesSampled,
  kState,
  kEnd,
};

/// A column, an element of it, or a field.
struct FilterOperand {
  FilterField field = FilterField::kColumn;
  std::string column = {};
  std::optional<uint32_t> element = {};

  friend bool operator==(const FilterOperand&, const FilterOperand&) = default;
};

/// A constant: a number, or a word (of a bool: 0 or 1) by its number.
struct FilterConstant {
  enum class Kind : uint8_t { kNumber, kBool, kWord };
  Kind kind = Kind::kNumber;
  index::ExactNumber number = {};

  friend bool operator==(const FilterConstant&, const FilterConstant&) = default;
};

struct FilterExpression {
  enum class Kind : uint8_t {
    kConstant,  ///< `value`.
    kAnd,       ///< All of `children`, two or more.
    kOr,        ///< Any of them.
    kNot,       ///< Not its only child.
    kCompare,   ///< operand comparison constants[0].
    kIn,        ///< operand is one of the constants.
    kTruth,     ///< The operand, a bool.
    kIsSet,
    kIsNaN,
  };
  Kind kind = Kind::kConstant;
  bool value = true;
  std::vector<FilterExpression> children = {};
  FilterOperand operand = {};
  index::Comparison comparison = index::Comparison::kEqual;
  std::vector<FilterConstant> constants = {};

  friend bool operator==(const FilterExpression&, const FilterExpression&) = default;
};

/// Expressions within one another, at most; what runs them needs a little memory for each.
inline constexpr int kFilterDepthMax = 64;
/// Conditions and constants of a filter, at most.
inline constexpr size_t kFilterTermsMax = 4096;

/// The field that a word means, or kColumn.
FilterField FieldOfWord(std::string_view word);
/// A word of the language itself: `in`, `true` and so on.
bool IsFilterKeyword(std::string_view word);
/// The words that a field's values are called, by number from 0 ("" where there is none); none for
/// a field of numbers.
std::vector<std::string_view> WordsOfField(FilterField field);

/// `text` is the text of a filter; see Filter::Parse.
Result<FilterExpression> ParseFilter(std::string_view text);
/// `text` is an operand alone: a column, an element, or a field.
Result<FilterOperand> ParseOperand(std::string_view text);

std::string PrintFilter(const FilterExpression& expression);
std::string PrintOperand(const FilterOperand& operand);

}  // namespace geardb::engine

namespace geardb {

class Filter::Impl {
 public:
  engine::FilterExpression expression;
};

}  // namespace geardb
