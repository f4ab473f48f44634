// Powers of many values at once, as wide as the machine goes: the same bits on all of them.
#pragma once

#include <span>

namespace geardb::index {

/// powers[i] = Pow(values[i], y) of base/fixed_math.h; both spans have the same length. `values`
/// may be `powers` itself.
void Powers(std::span<const float> values, double y, std::span<double> powers);
void Powers(std::span<const double> values, double y, std::span<double> powers);

}  // namespace geardb::index
