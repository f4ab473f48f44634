// GEARDB_CHECK: a condition that only a bug of GearDB's own can make false.
//
// It is on in every build. Bytes from disk or wire and arguments of callers are never checked with
// it: they give a Status.
#pragma once

namespace geardb {

/// Prints the failed condition and its place to stderr and aborts the process.
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace geardb

#define GEARDB_CHECK(condition)                              \
  do {                                                       \
    if (!(condition)) [[unlikely]] {                         \
      ::geardb::CheckFailed(#condition, __FILE__, __LINE__); \
    }                                                        \
  } while (false)
