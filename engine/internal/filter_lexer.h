// The words of a filter's text, one after the other, and the errors that name their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "index/filter_ranges.h"

namespace geardb::engine {

struct FilterToken {
  enum class Kind : uint8_t {
    kEnd,
    kWord,    ///< A letter or `_`, then letters, digits, `_` and `.`.
    kQuoted,  ///< Between backticks; `text` is without them.
    kNumber,
    kSymbol,  ///< && || == != <= >= ( ) [ ] { } , ! < >
  };
  Kind kind = Kind::kEnd;
  size_t begin = 0;  ///< In the text.
  std::string_view text = {};
  index::ExactNumber number = {};  ///< Of kNumber.
};

/// Does not own the text.
class FilterLexer {
 public:
  explicit FilterLexer(std::string_view text) : text_(text) {}

  /// The next word, or kEnd again and again. InvalidArgument for what begins none.
  Result<FilterToken> Next();

  /// InvalidArgument: `expected` is not what stands at `token`. Names the character, from 1.
  Status Wrong(const FilterToken& token, std::string_view expected) const;

 private:
  FilterToken Take(FilterToken::Kind kind, size_t end, FilterToken token);
  Result<FilterToken> TakeQuoted(FilterToken token);
  Result<FilterToken> TakeSymbol(const FilterToken& token);
  Result<FilterToken> TakeNumber(FilterToken token);
  /// The text, or what of a long one is around a place.
  std::string Shown(size_t place) const;

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace geardb::engine
