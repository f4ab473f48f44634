// Filter: a condition on trajectories, written as text.
//
//   version >= 12 && (length > 100 || source == 3) && !(end == terminated)
//
// An operand is a per-trajectory column, an element of one that is a vector (`score[2]`), or a
// field that every trajectory has:
//
//   id, first_row, times_sampled   as in TrajectoryRecord
//   created_us                     microseconds since 1970-01-01 UTC
//   length                         steps still there: steps_end less first_row
//   state                          open, closed or orphaned
//   end                            go (it has not ended), terminated, truncated or cut
//
// These words always mean the field; a column of such a name, or with characters other than
// letters, digits, `_` and `.`, stands in backticks: `obs/version`. There is no age: what a filter
// says follows from the log alone, and a clock is none of it. Removal by age is the table's.
//
// Conditions, from the loosest to the tightest, with parentheses:
//
//   a || b      a && b      !(a)
//   x == 3      also != < <= > >=; a constant may stand on the left. `state`, `end` and bool
//               columns know == and != alone
//   x in {1, 2.5, 3}
//   solved      a bool column by itself, `!solved`; also true and false
//   isset(x)    the column was given with an append or by SetColumns
//   isnan(x)    of a floating column
//
// Numbers are integers (also 0x10) or decimal (1e-3, inf, nan), and are compared by value without
// rounding: an i64 or u64 beyond 2^53 with an f64 too. So an f32 column is not equal to 0.1, which
// no f32 is. Integers beyond u64 and i64 are the nearest f64. A NaN equals nothing, itself
// included, and is neither less nor greater. What was never set has the column's default.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace geardb {

/// A value: copies share what was parsed. Immutable, so it may be used from many threads. It names
/// columns, and knows no table: which there are is seen when a table is asked, by Table::Check or
/// any call that takes a filter.
class Filter {
 public:
  /// All trajectories: `true`.
  static Filter All();
  /// InvalidArgument names the character (from 1) that is wrong, and what was expected there. A
  /// text of any length; one that a priority table stores (PriorityTableSpec::filter) has 4,096
  /// characters at most.
  static Result<Filter> Parse(std::string_view text);

  /// In one form: filters that are equal read the same, and Parse of it gives an equal filter.
  std::string ToString() const;

  /// Equal texts, apart from spaces, parentheses that change nothing, the side on which a constant
  /// stands, how a number is written, and the order of numbers in braces.
  friend bool operator==(const Filter& a, const Filter& b);

  class Impl;  ///< Defined in engine/internal.
  const Impl& impl() const { return *impl_; }

 private:
  explicit Filter(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace geardb
