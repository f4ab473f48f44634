// SyncPacing: how many syncs run at once, and how long the next one waits for company.
//
// Where a sync takes no longer than waking those who wait for it, several at once hide that. Where
// it takes longer, most disks serve one after the other (Linux puts what comes during a flush into
// one more), so that several at once would only split those who wait. There one runs at a time, and
// the next one begins when all are back who were there when the last one ended; or half of them,
// where the last tries found fewer; or half a sync later, whoever is back.
#pragma once

#include <chrono>
#include <cstdint>

namespace geardb::wal {

/// What Drain decides by; it has no clock and no lock of its own. Not thread-safe.
class SyncPacing {
 public:
  using Duration = std::chrono::steady_clock::duration;
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Of syncs at once, where they are short.
  static constexpr uint64_t kSyncsMax = 4;
  /// From here on they are long: what some ten threads take to be woken and to come back.
  static constexpr Duration kLong = std::chrono::microseconds(100);
  /// So many tries in a row without all who were wanted make the next 31 ask for half of them.
  static constexpr uint64_t kMissesMax = 6;

  /// Who is there when a sync ends.
  struct Waiters {
    uint64_t served = 0;   ///< By this sync, with the one who led it.
    uint64_t waiting = 0;  ///< For the next one.
  };

  /// A sync took this long: its fdatasync, and its write if that was small.
  void NoteDuration(Duration took);
  /// A sync has ended, and none is under way.
  void NoteEnd(const Waiters& waiters, TimePoint now);
  /// The next sync begins, while so many wait for it, its leader among them.
  void NoteBegin(uint64_t waiting);

  /// How many syncs may run at once.
  uint64_t syncs_max() const { return is_long() ? 1 : kSyncsMax; }
  /// Whether the next sync need not wait for more than `waiting`.
  bool Complete(uint64_t waiting, TimePoint now) const {
    return waiting >= wanted_ || now >= until_;
  }
  /// When it need not, whoever waits.
  TimePoint until() const { return until_; }
  /// When a sync that begins then is done, with some time to spare.
  TimePoint done_by() const { return until_ + 2 * typical_; }

 private:
  bool is_long() const { return typical_ >= kLong; }

  // Follows the median: a sync moves it by a quarter at most, and the first one says no more than
  // that it was long.
  Duration typical_{0};
  uint64_t wanted_ = 0;     // How many the next sync waits for.
  TimePoint until_{};       // And until when.
  bool trying_ = false;     // It waits for all.
  uint64_t misses_ = 0;     // Tries in a row that did not get all.
  uint64_t until_try_ = 0;  // Syncs that ask for half before the next try.
};

}  // namespace geardb::wal
