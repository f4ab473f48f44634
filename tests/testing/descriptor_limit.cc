#include "tests/testing/descriptor_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace geardb::testing {

DescriptorLimit::DescriptorLimit(int more) {
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
  const int next = ::dup(STDERR_FILENO);
  ::close(next);
  const rlimit low{.rlim_cur = static_cast<rlim_t>(next + more), .rlim_max = before_.rlim_max};
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
}

DescriptorLimit::~DescriptorLimit() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

bool DescriptorLimit::MayBeReached() {
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
  return false;
#endif
#endif
  return true;
}

}  // namespace geardb::testing
