// ChangeWatch: told what is about to change in a structure, so that what is there can be copied
// before. One at a time for each structure, whose owner orders both; none costs a branch.
#pragma once

#include <cstdint>

namespace geardb::index {

class ChangeWatch {
 public:
  virtual ~ChangeWatch() = default;
  /// Some of the numbers (slots, LPNs, leaves) [begin, end) may be changed next. Most calls are of
  /// numbers that were told before, and must be quick.
  virtual void BeforeChange(uint64_t begin, uint64_t end) = 0;
};

}  // namespace geardb::index
