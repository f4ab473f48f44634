// What a comparison with a constant is in an element type: ranges of its values. `x < 12.5` over u8
// is 0…12; so no test converts an element, and each is exact, also where an integer has no f64.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "base/dtype.h"

namespace geardb::index {

/// A number as it was written, exactly: a negative integer, a non-negative one, or an f64 that is
/// neither (1e30, 0.1, infinite, NaN). One value has one form, so equal forms are equal numbers.
class ExactNumber {
 public:
  ExactNumber() = default;
  explicit ExactNumber(int64_t value);
  explicit ExactNumber(uint64_t value) : value_(value) {}
  /// An integer where `value` is one that i64 or u64 holds.
  explicit ExactNumber(double value);

  bool is_nan() const;
  const std::variant<int64_t, uint64_t, double>& value() const { return value_; }
  /// By value; a NaN equals itself alone here, and comes last.
  friend bool operator==(const ExactNumber& a, const ExactNumber& b);
  friend bool operator<(const ExactNumber& a, const ExactNumber& b);

 private:
  std::variant<int64_t, uint64_t, double> value_ = uint64_t{0};
};

enum class Comparison : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

/// Elements from `low` to `high`, both included, as the bits of the type that they are compared in
/// (OrderedOf): the element type itself, int16 for f16 and bf16, whose bits are brought in order.
struct ValueRange {
  uint64_t low = 0;
  uint64_t high = 0;
};

/// The elements that pass: those in any of the ranges, or, negated, those in none. A NaN is in
/// none.
struct ValueRanges {
  DType dtype = DType::kU8;
  std::vector<ValueRange> ranges = {};
  bool negated = false;
};

/// Elements x of `dtype` with `x comparison number`, both by value; IEEE's rules where one is NaN.
ValueRanges CompareRanges(DType dtype, Comparison comparison, const ExactNumber& number);
/// Elements that equal any of the numbers. Neighbours become one range.
ValueRanges AnyOfRanges(DType dtype, std::span<const ExactNumber> numbers);
/// Elements that are no NaN: all of an integer type.
ValueRanges NumberRanges(DType dtype);

/// f16 and bf16 as integers in the order of their values; +0 and -0 are both 0. Infinity is the
/// largest that is no NaN.
constexpr int16_t OrderedHalf(uint16_t bits) {
  const auto magnitude = static_cast<int16_t>(bits & 0x7FFF);
  return (bits & 0x8000) != 0 ? static_cast<int16_t>(-magnitude) : magnitude;
}

}  // namespace geardb::index
