// Clock: the one seam for time, and Deadline, which every wait takes.
#pragma once

#include <chrono>
#include <cstdint>

namespace geardb {

/// A point on the monotonic clock until which a call may wait. Trivially copyable.
class Deadline {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Waits as long as it takes.
  static constexpr Deadline Infinite() { return Deadline(TimePoint::max()); }
  /// Does not wait at all.
  static constexpr Deadline Now() { return Deadline(TimePoint::min()); }
  /// That many milliseconds from now. More than the clock can count is never, less is `Now()`.
  static Deadline AfterMs(int64_t ms) {
    using std::chrono::milliseconds;
    const TimePoint now = std::chrono::steady_clock::now();
    const auto left = std::chrono::duration_cast<milliseconds>(TimePoint::max() - now);
    if (ms >= left.count()) return Infinite();
    const auto passed = std::chrono::duration_cast<milliseconds>(now.time_since_epoch());
    if (ms <= -passed.count()) return Now();
    return Deadline(now + milliseconds(ms));
  }
  constexpr explicit Deadline(TimePoint at) : at_(at) {}

  constexpr TimePoint at() const { return at_; }
  constexpr bool infinite() const { return at_ == TimePoint::max(); }
  bool passed() const { return !infinite() && std::chrono::steady_clock::now() >= at_; }

 private:
  TimePoint at_;
};

/// Time of day for stored times, and a steady one; a test supplies its own. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Microseconds since 1970-01-01 UTC.
  virtual int64_t WallTimeUs() const = 0;
  /// Microseconds since some time, for times that no other process sees: a step of the time of day
  /// leaves it alone. Of a clock that does not tell them apart, the same.
  virtual int64_t SteadyTimeUs() const { return WallTimeUs(); }
  /// The clock of the machine. Never null, never deleted.
  static const Clock* System();
};

}  // namespace geardb
