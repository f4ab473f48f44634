// StartThread: a thread, or the Status that says why there is none.
#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/errno_status.h"
#include "base/malloc_limits.h"

namespace geardb {

/// A new thread that runs `function`; `purpose` says what it does. Where the system has no more
/// threads, or no memory for its stack, ResourceExhausted: "starting the thread that <purpose>: …".
template <typename Function>
Result<std::thread> StartThread(std::string_view purpose, Function function) {
  try {
    return std::thread([function = std::move(function)]() mutable {
      KeepNoThreadCache();
      function();
    });
  } catch (const std::system_error& error) {
    return ErrnoStatus(error.code().value(), "starting the thread that ", purpose);
  }
}

/// Calls `work`, where it is `wanted`, in a thread of its own while this exists; at once where the
/// system has none.
class BesideThread {
 public:
  template <typename Work>
  BesideThread(std::string_view purpose, const Work& work, bool wanted) {
    if (!wanted) return;
    auto thread = StartThread(purpose, work);
    if (thread.ok()) {
      thread_ = std::move(*thread);
    } else {
      work();
    }
  }
  ~BesideThread() {
    if (thread_.joinable()) thread_.join();
  }
  BesideThread(const BesideThread&) = delete;
  BesideThread& operator=(const BesideThread&) = delete;

 private:
  std::thread thread_;
};

}  // namespace geardb
