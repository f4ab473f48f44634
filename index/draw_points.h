// DrawPoints: the random numbers of a draw, many at a time.
#pragma once

#include <cstdint>
#include <span>

#include "index/selector.h"

namespace geardb::index {

/// points[i] = MulHi64(PhiloxRandom64(seed, draw number, request.first_row + i, kItem), total):
/// where the i-th row falls when the weights are laid end to end.
void DrawPoints(const DrawRequest& request, uint64_t total, std::span<uint64_t> points);

namespace internal {
/// The same one by one, as every machine can. For tests.
void DrawPointsPlain(const DrawRequest& request, uint64_t total, std::span<uint64_t> points);
}  // namespace internal

}  // namespace geardb::index
