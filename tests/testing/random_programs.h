// How many random programs a test runs, here and when asked from outside.
#pragma once

#include <cstdint>

namespace geardb::testing {

/// The number in the environment variable `name`, or `absent`.
uint64_t FromEnvironment(const char* name, uint64_t absent);

/// How many of a test's `all` programs this build runs: all of them, or the first quarter under a
/// sanitizer, which makes each ten times as slow; they come whole in the release tests.
uint64_t ShareOf(uint64_t all);
/// Likewise, of cases that are counted from 0: whether this one runs. Every fifth does, since many
/// take turns by fours.
bool InShare(uint64_t number);

}  // namespace geardb::testing
