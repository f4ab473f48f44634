// HandClock: a clock that a test sets.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace geardb::testing {

/// Thread-safe.
class HandClock final : public Clock {
 public:
  int64_t WallTimeUs() const override { return now_us + stepped_us; }
  int64_t SteadyTimeUs() const override { return now_us; }
  std::atomic<int64_t> now_us = 1'000'000'000'000;
  std::atomic<int64_t> stepped_us = 0;  ///< By how much somebody has set the time of day.
};

}  // namespace geardb::testing
