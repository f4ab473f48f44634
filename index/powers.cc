#include "index/powers.h"

#include "base/fixed_math.h"

namespace geardb::index {
namespace {

#if defined(__x86_64__)

// The same additions, multiplications and divisions, four at a time: avx2 without fma, so that
// nothing is contracted.
template <typename Value>
__attribute__((target("avx2"))) void PowersAvx2(std::span<const Value> values, double y,
                                                std::span<double> powers) {
  PowBatch(values.data(), values.size(), y, powers.data());
}

#endif

template <typename Value>
void PowersOf(std::span<const Value> values, double y, std::span<double> powers) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return PowersAvx2(values, y, powers);
#endif
  PowBatch(values.data(), values.size(), y, powers.data());
}

}  // namespace

void Powers(std::span<const float> values, double y, std::span<double> powers) {
  PowersOf(values, y, powers);
}
void Powers(std::span<const double> values, double y, std::span<double> powers) {
  PowersOf(values, y, powers);
}

}  // namespace geardb::index
