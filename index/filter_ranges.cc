#include "index/filter_ranges.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/check.h"

namespace geardb::index {
namespace {

__extension__ using Wide = __int128;  // Holds every i64 and u64, and one more on either side.

constexpr double kTwo63 = 9223372036854775808.0;
constexpr double kTwo64 = 18446744073709551616.0;
/// Beyond what any integer type holds; stands for all that is.
constexpr Wide kBeyond = Wide{1} << 100;

Wide WideOf(double integral) {
  if (integral >= 1e30) return kBeyond;
  if (integral <= -1e30) return -kBeyond;
  return static_cast<Wide>(integral);
}

/// The largest integer that is not above a number, and the least that is not below it.
Wide FloorOf(const ExactNumber& number) {
  if (const auto* negative = std::get_if<int64_t>(&number.value())) return *negative;
  if (const auto* integer = std::get_if<uint64_t>(&number.value())) return *integer;
  return WideOf(std::floor(std::get<double>(number.value())));
}
Wide CeilOf(const ExactNumber& number) {
  if (const auto* real = std::get_if<double>(&number.value())) return WideOf(std::ceil(*real));
  return FloorOf(number);
}

// ---- The neighbours of a number among the values of a type.

/// Integers.
template <typename T>
struct Order {
  using Ordered = T;
  static constexpr T Lowest() { return std::numeric_limits<T>::lowest(); }
  static constexpr T Highest() { return std::numeric_limits<T>::max(); }
};

/// The largest f64 that is not above a number.
double FloorToF64(const ExactNumber& number) {
  if (const auto* real = std::get_if<double>(&number.value())) return *real;
  const Wide wide = FloorOf(number);
  const auto nearest = static_cast<double>(wide);
  return WideOf(nearest) > wide ? std::nextafter(nearest, -HUGE_VAL) : nearest;
}

template <>
struct Order<double> {
  using Ordered = double;
  static constexpr double Lowest() { return -HUGE_VAL; }
  static constexpr double Highest() { return HUGE_VAL; }
  static double Floor(const ExactNumber& number) { return FloorToF64(number); }
  static double Below(double value) { return std::nextafter(value, -HUGE_VAL); }
  static double Above(double value) { return std::nextafter(value, HUGE_VAL); }
  static double Value(double value) { return value; }
};

template <>
struct Order<float> {
  using Ordered = float;
  static constexpr float Lowest() { return -HUGE_VALF; }
  static constexpr float Highest() { return HUGE_VALF; }
  static float Floor(const ExactNumber& number) {
    constexpr float kMost = std::numeric_limits<float>::max();
    const double value = FloorToF64(number);
    if (value == HUGE_VAL) return HUGE_VALF;
    if (value > double{kMost}) return kMost;
    if (value < -double{kMost}) return -HUGE_VALF;
    const auto nearest = static_cast<float>(value);
    return double{nearest} > value ? Below(nearest) : nearest;
  }
  static float Below(float value) { return std::nextafterf(value, -HUGE_VALF); }
  static float Above(float value) { return std::nextafterf(value, HUGE_VALF); }
  static double Value(float value) { return double{value}; }
};

/// f16 and bf16, in OrderedHalf's integers.
template <int kMantissaBits>
struct HalfOrder {
  using Ordered = int16_t;
  static constexpr int kExponentBits = 15 - kMantissaBits;
  static constexpr int16_t Highest() {
    return static_cast<int16_t>(((1 << kExponentBits) - 1) << kMantissaBits);
  }
  static constexpr int16_t Lowest() { return static_cast<int16_t>(-Highest()); }
  static double Value(int16_t ordered) {
    const int magnitude = std::abs(int{ordered});
    const int exponent = magnitude >> kMantissaBits;
    const int mantissa = magnitude & ((1 << kMantissaBits) - 1);
    constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
    double value = HUGE_VAL;
    if (exponent == 0) {
      value = std::ldexp(mantissa, 1 - kBias - kMantissaBits);
    } else if (magnitude < Highest()) {
      value = std::ldexp(mantissa + (1 << kMantissaBits), exponent - kBias - kMantissaBits);
    }
    return ordered < 0 ? -value : value;
  }
  static int16_t Floor(const ExactNumber& number) {
    const double wanted = FloorToF64(number);
    int low = Lowest();  // The largest that is not above lies in [low, high].
    int high = Highest();
    while (low < high) {
      const int middle = (low + high + 1) >> 1;
      if (Value(static_cast<int16_t>(middle)) <= wanted) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return static_cast<int16_t>(low);
  }
  static int16_t Below(int16_t ordered) { return static_cast<int16_t>(ordered - 1); }
  static int16_t Above(int16_t ordered) { return static_cast<int16_t>(ordered + 1); }
};
template <>
struct Order<Float16> : HalfOrder<10> {};
template <>
struct Order<BFloat16> : HalfOrder<7> {};

template <typename T>
constexpr bool kIsInteger = std::is_integral_v<T>;

/// Whether one of a floating type's values is this number.
template <typename T>
bool IsExactly(typename Order<T>::Ordered value, const ExactNumber& number) {
  return ExactNumber(Order<T>::Value(value)) == number;
}

// ---- Ranges.

template <typename Ordered>
uint64_t BitsOf(Ordered value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

template <typename Ordered>
struct Bounds {
  Ordered low;
  Ordered high;
};
template <typename T>
using BoundsOf = std::optional<Bounds<typename Order<T>::Ordered>>;

template <typename T>
BoundsOf<T> IntegerBounds(Comparison comparison, const ExactNumber& number) {
  Wide low = Order<T>::Lowest();
  Wide high = Order<T>::Highest();
  if (comparison == Comparison::kLess) high = std::min(high, CeilOf(number) - 1);
  if (comparison == Comparison::kLessEqual) high = std::min(high, FloorOf(number));
  if (comparison == Comparison::kGreater) low = std::max(low, FloorOf(number) + 1);
  if (comparison == Comparison::kGreaterEqual) low = std::max(low, CeilOf(number));
  if (comparison == Comparison::kEqual) {
    low = std::max(low, CeilOf(number));
    high = std::min(high, FloorOf(number));
  }
  if (low > high) return std::nullopt;
  return Bounds<T>{static_cast<T>(low), static_cast<T>(high)};
}

template <typename T>
BoundsOf<T> RealBounds(Comparison comparison, const ExactNumber& number) {
  using O = Order<T>;
  using B = Bounds<typename O::Ordered>;
  const auto floor = O::Floor(number);
  const bool exact = IsExactly<T>(floor, number);
  switch (comparison) {
    case Comparison::kLessEqual:
      return B{O::Lowest(), floor};
    case Comparison::kLess:
      if (!exact) return B{O::Lowest(), floor};
      if (floor == O::Lowest()) return std::nullopt;
      return B{O::Lowest(), O::Below(floor)};
    case Comparison::kGreaterEqual:
      if (exact) return B{floor, O::Highest()};
      [[fallthrough]];
    case Comparison::kGreater:
      if (floor == O::Highest()) return std::nullopt;
      return B{O::Above(floor), O::Highest()};
    default:
      if (!exact) return std::nullopt;
      return B{floor, floor};
  }
}

template <typename T>
BoundsOf<T> BoundsIn(Comparison comparison, const ExactNumber& number) {
  if (number.is_nan()) return std::nullopt;
  if constexpr (kIsInteger<T>) {
    return IntegerBounds<T>(comparison, number);
  } else {
    return RealBounds<T>(comparison, number);
  }
}

/// Calls `visit` with a value of the element type. A bool is its byte, 0 or 1.
template <typename Visit>
auto ForType(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kI8:
      return visit(int8_t{});
    case DType::kU16:
      return visit(uint16_t{});
    case DType::kI16:
      return visit(int16_t{});
    case DType::kU32:
      return visit(uint32_t{});
    case DType::kI32:
      return visit(int32_t{});
    case DType::kU64:
      return visit(uint64_t{});
    case DType::kI64:
      return visit(int64_t{});
    case DType::kF16:
      return visit(Float16{});
    case DType::kBf16:
      return visit(BFloat16{});
    case DType::kF32:
      return visit(float{});
    case DType::kF64:
      return visit(double{});
    default:
      return visit(uint8_t{});
  }
}

}  // namespace

ExactNumber::ExactNumber(int64_t value) {
  if (value < 0) {
    value_ = value;
  } else {
    value_ = static_cast<uint64_t>(value);
  }
}

ExactNumber::ExactNumber(double value) : value_(value) {
  if (value != std::floor(value)) return;  // A NaN, too.
  if (value >= 0 && value < kTwo64) value_ = static_cast<uint64_t>(value);
  if (value < 0 && value >= -kTwo63) value_ = static_cast<int64_t>(value);
}

bool ExactNumber::is_nan() const {
  const auto* real = std::get_if<double>(&value_);
  return real != nullptr && std::isnan(*real);
}

bool operator==(const ExactNumber& a, const ExactNumber& b) {
  return a.value_ == b.value_ || (a.is_nan() && b.is_nan());
}

bool operator<(const ExactNumber& a, const ExactNumber& b) {
  if (a.is_nan() || b.is_nan()) return !a.is_nan() && b.is_nan();
  if (FloorOf(a) != FloorOf(b)) return FloorOf(a) < FloorOf(b);
  const auto* x = std::get_if<double>(&a.value_);
  const auto* y = std::get_if<double>(&b.value_);
  if (x != nullptr && y != nullptr) return *x < *y;
  return y != nullptr;  // An integer is below what has the same integer part and more.
}

ValueRanges CompareRanges(DType dtype, Comparison comparison, const ExactNumber& number) {
  ValueRanges result{.dtype = dtype, .negated = comparison == Comparison::kNotEqual};
  const Comparison asked = result.negated ? Comparison::kEqual : comparison;
  ForType(dtype, [&]<typename T>(T) {
    if (const auto bounds = BoundsIn<T>(asked, number)) {
      result.ranges.push_back({BitsOf(bounds->low), BitsOf(bounds->high)});
    }
  });
  return result;
}

ValueRanges AnyOfRanges(DType dtype, std::span<const ExactNumber> numbers) {
  ValueRanges result{.dtype = dtype};
  ForType(dtype, [&]<typename T>(T) {
    using Ordered = typename Order<T>::Ordered;
    std::vector<Ordered> values;
    for (const ExactNumber& number : numbers) {
      if (const auto bounds = BoundsIn<T>(Comparison::kEqual, number)) {
        values.push_back(bounds->low);
      }
    }
    std::sort(values.begin(), values.end());
    for (size_t i = 0; i < values.size();) {
      size_t end = i + 1;
      if constexpr (std::is_integral_v<Ordered>) {
        while (end < values.size() && Wide{values[end]} - values[end - 1] <= 1) ++end;
      }
      result.ranges.push_back({BitsOf(values[i]), BitsOf(values[end - 1])});
      i = end;
    }
  });
  return result;
}

ValueRanges NumberRanges(DType dtype) {
  ValueRanges result{.dtype = dtype};
  ForType(dtype, [&]<typename T>(T) {
    result.ranges.push_back({BitsOf(Order<T>::Lowest()), BitsOf(Order<T>::Highest())});
  });
  return result;
}

}  // namespace geardb::index
