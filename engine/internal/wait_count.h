// WaitCounter: how often calls waited for something, and how long, for WaitStats.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "engine/stats.h"

namespace geardb::engine {

/// Thread-safe.
class WaitCounter {
 public:
  void Add(uint64_t us) {
    waits_.fetch_add(1, std::memory_order_relaxed);
    us_.fetch_add(us, std::memory_order_relaxed);
  }
  WaitCount count() const {
    return {.waits = waits_.load(std::memory_order_relaxed),
            .us = us_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<uint64_t> waits_{0};
  std::atomic<uint64_t> us_{0};
};

/// Counts one wait: that of the scope it lives in.
class WaitTimer {
 public:
  explicit WaitTimer(WaitCounter* counter)
      : counter_(counter), begin_(std::chrono::steady_clock::now()) {}
  ~WaitTimer() {
    const auto waited = std::chrono::steady_clock::now() - begin_;
    counter_->Add(static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(waited).count()));
  }
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;

 private:
  WaitCounter* const counter_;
  const std::chrono::steady_clock::time_point begin_;
};

}  // namespace geardb::engine
