// Rules of windows at random.
#pragma once

#include <cstdint>

#include "base/window.h"

namespace geardb::testing {

/// `roll(n)` gives a number below n.
template <typename Roll>
WindowRule RandomWindow(bool stream, Roll roll) {
  WindowRule window;
  window.extent = {.before = static_cast<int64_t>(roll(3)),
                   .length = static_cast<int64_t>(1 + roll(4)),
                   .after = static_cast<int64_t>(roll(2))};
  window.stride = static_cast<int64_t>(1 + roll(2));
  window.stride_from_end = roll(4) == 0;
  window.left = static_cast<EdgeRule>(roll(5));
  window.right = static_cast<EdgeRule>(roll(5));
  window.cross_ends = stream && roll(2) == 0;
  return window;
}

}  // namespace geardb::testing
