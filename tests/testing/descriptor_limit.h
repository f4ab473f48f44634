// DescriptorLimit: a process that may open only so many more files.
#pragma once

#include <sys/resource.h>

namespace geardb::testing {

/// From its making to its end, about `more` descriptors can be had.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(int more);
  ~DescriptorLimit();
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

  /// Whether a test may run out of them. The undefined-behaviour sanitizer may not: it needs some
  /// to look at an object's type, and takes the lack of one for a wrong type.
  static bool MayBeReached();

 private:
  rlimit before_ = {};
};

}  // namespace geardb::testing
