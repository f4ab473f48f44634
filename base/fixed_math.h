// log2, exp2 and pow from IEEE additions, multiplications and divisions alone, for host and device:
// the same bits everywhere, which libm and CUDA do not promise (their powf differ in 5.6 % of
// inputs). What is computed here decides which items are drawn: frozen. Build with contraction off
// (-ffp-contract=off, --fmad=false).
//
// Log2: x = 2^e·m, m in [√½, √2), s = (m − 1)/(m + 1), log2(m) = 2/ln2·(s + s³/3 + s⁵/5 + …), the
// series of atanh; |s| < 0.1716, so what is left out after s²¹/21 is below 2^-59 of the sum.
// Exp2: t = n + f, |f| <= ½, 2^f = Σ (f·ln2)^k / k! for k <= 13; the rest is below 2^-57.
// With the roundings, Log2 is within 2^-51·max(1, |log2 x|), Exp2 within a factor 1 ± 2^-51, and
// Pow within 1 ± 2^-50·max(1, |y·log2 x|): less than 2^-40 wherever the result is finite, so that
// it is within 0.501 ulp when rounded to f32. tests/base/fixed_math_test.cc holds it to these
// bounds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/philox.h"  // GEARDB_HOST_DEVICE

namespace geardb {

/// log2 of a normal, positive, finite x.
GEARDB_HOST_DEVICE constexpr double Log2(double x) {
  constexpr uint64_t kSqrtHalf = 0x3FE6A09E667F3BCD;
  const uint64_t bits = __builtin_bit_cast(uint64_t, x) + (0x3FF0000000000000 - kSqrtHalf);
  const double exponent =
      __builtin_bit_cast(double, 0x4330000000000000 | (bits >> 52)) - (4503599627370496.0 + 1023.0);
  const double m = __builtin_bit_cast(double, (bits & 0x000FFFFFFFFFFFFF) + kSqrtHalf);
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double sum = 1.0 / 21.0;
  sum = sum * z + 1.0 / 19.0;
  sum = sum * z + 1.0 / 17.0;
  sum = sum * z + 1.0 / 15.0;
  sum = sum * z + 1.0 / 13.0;
  sum = sum * z + 1.0 / 11.0;
  sum = sum * z + 1.0 / 9.0;
  sum = sum * z + 1.0 / 7.0;
  sum = sum * z + 1.0 / 5.0;
  sum = sum * z + 1.0 / 3.0;
  // 2/ln2 times (s + s·z·sum): the small part is added last.
  constexpr double kTwoOverLn2 = 2.8853900817779268147;
  return exponent + kTwoOverLn2 * (s + s * (z * sum));
}

namespace fixed_math_internal {

/// 2^t for -1022 <= t <= 1024; infinity for 1024, 0 below -1021.5.
GEARDB_HOST_DEVICE constexpr double Exp2InRange(double t) {
  constexpr double kRound = 6755399441055744.0;  // 1.5·2^52: adding it rounds to an integer.
  const double shifted = t + kRound;
  const double f = t - (shifted - kRound);
  const double z = f * 0.69314718055994530942;
  double sum = 1.0 / 6227020800.0;
  sum = sum * z + 1.0 / 479001600.0;
  sum = sum * z + 1.0 / 39916800.0;
  sum = sum * z + 1.0 / 3628800.0;
  sum = sum * z + 1.0 / 362880.0;
  sum = sum * z + 1.0 / 40320.0;
  sum = sum * z + 1.0 / 5040.0;
  sum = sum * z + 1.0 / 720.0;
  sum = sum * z + 1.0 / 120.0;
  sum = sum * z + 1.0 / 24.0;
  sum = sum * z + 1.0 / 6.0;
  sum = sum * z + 0.5;
  sum = sum * z + 1.0;
  sum = sum * z + 1.0;
  // 2^(n - 1) and a doubling: n may be 1024. The scale of n = -1022 has the bits of 0.
  const uint64_t scale = (__builtin_bit_cast(uint64_t, shifted) + 1022) << 52;
  return sum * __builtin_bit_cast(double, scale) * 2.0;
}
GEARDB_HOST_DEVICE constexpr double AtLeast(double t, double low) { return t < low ? low : t; }
GEARDB_HOST_DEVICE constexpr double AtMost(double t, double high) { return t > high ? high : t; }

}  // namespace fixed_math_internal

/// 2^t for a finite t: 0 from 2^-1021.5 downwards, infinity from 2^1024 on.
GEARDB_HOST_DEVICE constexpr double Exp2(double t) {
  using namespace fixed_math_internal;
  return Exp2InRange(AtMost(AtLeast(t, -1022.0), 1024.0));
}

/// x^y for x = 0 or a normal, positive, finite x, and a finite y. 0^y is 0 for every y: an item of
/// priority 0 has weight 0 also where the exponent is 0.
GEARDB_HOST_DEVICE constexpr double Pow(double x, double y) {
  return x > 0.0 ? Exp2(y * Log2(x)) : 0.0;
}

/// out[i] = Pow(x[i], y), several at a time; the same bits. `Value` is float or double. Inlined by
/// force: its caller says how wide the vectors are.
template <typename Value>
__attribute__((always_inline)) inline void PowBatch(const Value* x, size_t count, double y,
                                                    double* out) {
  // Constant trip counts over local arrays, and at most one comparison in a loop: g++ vectorises
  // such loops at -O2, and no others.
  constexpr size_t kBlock = 32;
  double base[kBlock];
  double power[kBlock];
  for (size_t start = 0; start < count; start += kBlock) {
    const size_t here = count - start < kBlock ? count - start : kBlock;
    for (size_t i = 0; i < here; ++i) base[i] = static_cast<double>(x[start + i]);
    for (size_t i = here; i < kBlock; ++i) base[i] = 1.0;
    for (size_t i = 0; i < kBlock; ++i) power[i] = y * Log2(base[i]);
    for (size_t i = 0; i < kBlock; ++i) power[i] = fixed_math_internal::AtLeast(power[i], -1022.0);
    for (size_t i = 0; i < kBlock; ++i) power[i] = fixed_math_internal::AtMost(power[i], 1024.0);
    for (size_t i = 0; i < kBlock; ++i) power[i] = fixed_math_internal::Exp2InRange(power[i]);
    for (size_t i = 0; i < kBlock; ++i) power[i] = base[i] > 0.0 ? power[i] : 0.0;
    for (size_t i = 0; i < here; ++i) out[start + i] = power[i];
  }
}

/// The fixed-point weight round(weight·2^shift), halves up: at least 1 for weight > 0, at most
/// 2^32 - 1, 0 for weight 0. `weight` is not negative and not NaN; -900 <= shift <= 900.
GEARDB_HOST_DEVICE constexpr uint32_t QuantizeWeight(double weight, int shift) {
  const double scaled =
      weight * __builtin_bit_cast(double, static_cast<uint64_t>(shift + 1023) << 52);
  if (!(scaled < 4294967295.0)) return 4294967295u;
  const uint32_t rounded = static_cast<uint32_t>(static_cast<uint64_t>(scaled + 0.5));
  return rounded == 0 && weight > 0.0 ? 1u : rounded;
}

}  // namespace geardb
