// What stores for tests are made with: calls that succeed, or the program ends.
#pragma once

#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace geardb::testing {

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) CheckFailed(result.status().ToString().c_str(), __FILE__, __LINE__);
  return std::move(result).value();
}
inline void Must(const Status& status) {
  if (!status.ok()) CheckFailed(status.ToString().c_str(), __FILE__, __LINE__);
}

}  // namespace geardb::testing
