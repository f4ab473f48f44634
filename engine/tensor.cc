#include "engine/tensor.h"

namespace geardb {

std::string Shape::ToString() const {
  std::string text = "[";
  for (const int64_t dim : dims()) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dim);
  }
  return text + "]";
}

}  // namespace geardb
