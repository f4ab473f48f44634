// Children of a test that die: what they share with it, and where they are killed.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <functional>
#include <new>
#include <type_traits>

#include "base/check.h"
#include "base/status.h"

namespace geardb::testing {

/// A T in memory that a process shares with the children it forks. What is in it must do without
/// pointers; atomics order what they see of each other.
template <typename T>
class SharedWithChildren {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  SharedWithChildren() {
    void* memory =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    GEARDB_CHECK(memory != MAP_FAILED);
    value_ = new (memory) T();
  }
  ~SharedWithChildren() { ::munmap(value_, sizeof(T)); }
  SharedWithChildren(const SharedWithChildren&) = delete;
  SharedWithChildren& operator=(const SharedWithChildren&) = delete;

  T* operator->() { return value_; }
  const T* operator->() const { return value_; }
  /// A new T in its place. While no child runs.
  void Reset() { new (value_) T(); }

 private:
  T* value_;
};

/// Where a child is killed.
struct Death {
  const char* point = nullptr;  ///< A CrashPoint; null: none.
  int64_t hits = 1;             ///< At which pass of it, over all threads, from 1.
};

enum class ChildEnd {
  kReturned,  ///< From its work.
  kAtPoint,   ///< Killed where it was to die.
  kKilled,    ///< By the test.
};

/// Runs `work` in a child and waits for its end; kills it once `due` (asked again and again; empty:
/// never) says so. A child whose work fails, or that ends in any other way, is a GoogleTest
/// failure.
ChildEnd RunChild(const Death& death, const std::function<Status()>& work,
                  const std::function<bool()>& due = {});

}  // namespace geardb::testing
