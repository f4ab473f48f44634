// PublishQueue: makes records visible in LSN order, whatever order they are completed in.
//
// A ring of slots, one for each record in flight. Whoever completes a record tries to become the
// publisher; the publisher walks the finished slots at the head. A record completed while somebody
// else publishes is found by the check that the publisher makes after it has stepped down.
//
// Invariants:
//   Slot `ticket % kSlots` belongs to `ticket` from its reservation to its publication.
//   published() only grows, and is the end of a record whose predecessors are all published.
//   Callbacks run in ticket order, one at a time.
#pragma once

#include <atomic>
#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/types.h"
#include "wal/log_writer.h"

namespace geardb::wal {

/// Is told of progress, by the publisher.
class PublishObserver {
 public:
  /// After each record; one call at a time, in order.
  virtual void OnAdvance(Lsn published) = 0;

 protected:
  ~PublishObserver() = default;
};

/// Complete and the accessors: any thread.
class PublishQueue {
 public:
  static constexpr uint64_t kSlots = 4096;

  PublishQueue(Lsn start, PublishObserver* observer);

  /// May a record with `ticket` be reserved: is its slot free?
  bool SlotFree(uint64_t ticket) const {
    return ticket - head_.load(std::memory_order_acquire) < kSlots;
  }

  /// The record is complete in the ring.
  void Complete(uint64_t ticket, Lsn lsn, Lsn end, PublishCallback* callback);

  Lsn published() const { return published_.load(std::memory_order_acquire); }

  /// Waits until published() >= end; false when the deadline passed first.
  bool WaitPublished(Lsn end, Deadline deadline);

 private:
  struct alignas(64) Slot {
    std::atomic<uint64_t> completed{0};  // ticket + 1 when complete.
    Lsn lsn = 0;
    Lsn end = 0;
    PublishCallback* callback = nullptr;
  };

  void Advance();
  /// Those who wait for what is published by now.
  void Tell();

  PublishObserver* const observer_;
  const std::unique_ptr<Slot[]> slots_;
  alignas(64) std::atomic<bool> publishing_{false};
  std::atomic<uint64_t> head_{0};
  std::atomic<Lsn> published_;
  // The first end that somebody waits for, or less; kNoLsn: none. Set with the mutex.
  alignas(64) std::atomic<Lsn> wanted_{kNoLsn};
  Mutex mutex_;
  CondVar advanced_;
};

}  // namespace geardb::wal
