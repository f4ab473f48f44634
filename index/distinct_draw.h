// DrawDistinct: the rows of a draw without replacement, as sequential draws: row i takes
// MulHi64(PhiloxRandom64(seed, draw, i, kItem), what remains) among what the rows before it left.
// Exact, in O(log n) for each row: no row is drawn twice and thrown away.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/philox.h"
#include "base/tree_view.h"
#include "index/selector.h"
#include "index/taken_weights.h"

namespace geardb::index {

/// Draws up to `rows` rows out of weights of sum `total`. `find(point)` is the TreeHit of a point
/// of the whole, `write(i, hit)` takes row request.first_row + i. Returns how many rows were
/// written: fewer than asked when nothing of the weights remains. Rows before first_row are drawn,
/// too, and left out.
template <typename Find, typename Write>
uint64_t DrawDistinct(const DrawRequest& request, uint64_t total, uint64_t rows, Find find,
                      Write write) {
  const uint64_t end = request.first_row + rows;
  uint64_t remaining = total;
  uint64_t written = 0;
  TakenWeights taken;
  taken.Reserve(std::min(end, total));
  for (uint64_t row = 0; row < end && remaining > 0; ++row) {
    const uint64_t random = PhiloxRandom64(request.seed, request.draw_number,
                                           static_cast<uint32_t>(row), PhiloxPurpose::kItem);
    const uint64_t place = taken.Place(MulHi64(random, remaining));
    const TreeHit hit = find(place);
    if (row >= request.first_row) write(written++, hit);
    taken.Take(place - hit.remainder, hit.weight);
    remaining -= hit.weight;
  }
  return written;
}

}  // namespace geardb::index
