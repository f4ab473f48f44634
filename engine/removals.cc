#include "engine/removals.h"

namespace geardb {

const char* RemovalReasonName(RemovalReason reason) {
  constexpr const char* kNames[kRemovalReasons] = {"by hand",   "capacity", "age",
                                                   "exhausted", "filter",   "damaged"};
  return kNames[static_cast<size_t>(reason)];
}

}  // namespace geardb
