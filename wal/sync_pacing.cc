#include "wal/sync_pacing.h"

#include <algorithm>

namespace geardb::wal {

void SyncPacing::NoteDuration(Duration took) {
  const Duration step = typical_ / 4 + std::chrono::microseconds(1);
  typical_ = typical_ == Duration(0) ? std::min(took, kLong)
                                     : std::clamp(took, typical_ - step, typical_ + step);
}

void SyncPacing::NoteEnd(const Waiters& waiters, TimePoint now) {
  const uint64_t there = waiters.served + waiters.waiting;
  wanted_ = 0;
  trying_ = false;
  if (!is_long() || there < 2) return;
  trying_ = until_try_ == 0;
  if (!trying_) --until_try_;
  wanted_ = trying_ ? there : there / 2;
  until_ = now + typical_ / 2;
}

void SyncPacing::NoteBegin(uint64_t waiting) {
  if (trying_) {
    misses_ = waiting >= wanted_ ? 0 : std::min(misses_ + 1, kMissesMax);
    if (misses_ > 0) until_try_ = (uint64_t{1} << (misses_ - 1)) - 1;
  }
  wanted_ = 0;
  trying_ = false;
}

}  // namespace geardb::wal
