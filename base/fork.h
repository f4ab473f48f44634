// ForkMark tells the process that made an object from the children that forks have made of it;
// UnsharedDescriptor is one that they do not have.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"

namespace geardb {

/// A child of a fork has copies of all objects, but not the threads that they rely on, and shares
/// the files and memory that they map: none of them may be used or destroyed there.
class ForkMark {
 public:
  /// Marks the calling process. A child made by clone or vfork directly is not told apart.
  ForkMark();
  bool forked() const { return count_ != Forks(); }
  /// Of the process that made the mark.
  int pid() const { return pid_; }

 private:
  /// How many forks lie between the first mark's process and this one.
  static uint64_t Forks();

  uint64_t count_;
  int pid_;
};

/// Deletes in the process that made it, and leaves the object alone in its forks.
template <typename T>
class DeleteUnlessForked {
 public:
  void operator()(T* object) const {
    if (!mark_.forked()) delete object;
  }

 private:
  ForkMark mark_;
};

/// An open descriptor, closed by the destructor; a child of a fork has it closed by the time that
/// fork returns there (one made by clone or vfork directly shares it).
class UnsharedDescriptor {
 public:
  /// `open` returns the descriptor. Forks wait until it has: no child has one from in between.
  static Result<std::unique_ptr<UnsharedDescriptor>> Open(const std::function<Result<int>()>& open);
  ~UnsharedDescriptor();
  UnsharedDescriptor(const UnsharedDescriptor&) = delete;
  UnsharedDescriptor& operator=(const UnsharedDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  explicit UnsharedDescriptor(int fd) : fd_(fd) {}

  const int fd_;
  const ForkMark process_;
};

}  // namespace geardb
