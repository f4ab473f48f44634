#include "wal/publish_queue.h"

#include <algorithm>
#include <thread>

namespace geardb::wal {
namespace {

/// So many records are published before those who wait for one of them are told.
constexpr uint64_t kTellEach = 64;
/// So many by one call, whose own record is among the first, before others are let to go on.
constexpr uint64_t kMostAtOnce = 512;
constexpr int kYields = 16;

}  // namespace

PublishQueue::PublishQueue(Lsn start, PublishObserver* observer)
    : observer_(observer), slots_(new Slot[kSlots]), published_(start) {}

void PublishQueue::Complete(uint64_t ticket, Lsn lsn, Lsn end, PublishCallback* callback) {
  Slot& slot = slots_[ticket % kSlots];
  slot.lsn = lsn;
  slot.end = end;
  slot.callback = callback;
  slot.completed.store(ticket + 1, std::memory_order_seq_cst);
  Advance();
}

void PublishQueue::Advance() {
  for (uint64_t done = 0;;) {
    // Whoever holds the flag looks again after giving it back (both sequentially consistent), so
    // a record completed meanwhile is not forgotten.
    if (publishing_.exchange(true, std::memory_order_seq_cst)) return;
    uint64_t head = head_.load(std::memory_order_relaxed);
    bool may_leave = false;
    while (!may_leave &&
           slots_[head % kSlots].completed.load(std::memory_order_acquire) == head + 1) {
      const Slot& slot = slots_[head % kSlots];
      const Lsn end = slot.end;
      if (slot.callback != nullptr) slot.callback->OnPublished(slot.lsn, end);
      published_.store(end, std::memory_order_seq_cst);
      head_.store(++head, std::memory_order_release);  // The slot may be reused from here.
      observer_->OnAdvance(end);
      ++done;
      // Where others complete records as fast, there is no end to this.
      if (done % kTellEach == 0) Tell();
      may_leave = done % kMostAtOnce == 0;
    }
    publishing_.store(false, std::memory_order_seq_cst);
    Tell();
    if (slots_[head % kSlots].completed.load(std::memory_order_seq_cst) != head + 1) return;
    // One of those others is to go on, whoever it is; where there is none, this thread does.
    for (int i = 0; may_leave && i < kYields && !publishing_.load(); ++i) {
      std::this_thread::yield();
    }
  }
}

void PublishQueue::Tell() {
  // Who waits says for what before it looks at what is published (both sequentially consistent).
  if (wanted_.load(std::memory_order_seq_cst) > published()) return;
  MutexLock lock(&mutex_);
  wanted_.store(kNoLsn, std::memory_order_seq_cst);  // Those who still wait say it again.
  advanced_.NotifyAll();
}

bool PublishQueue::WaitPublished(Lsn end, Deadline deadline) {
  if (published() >= end) return true;
  // Predecessors are other threads' copies, mostly a few microseconds away.
  for (int i = 0; i < 64; ++i) {
    std::this_thread::yield();
    if (published() >= end) return true;
  }
  MutexLock lock(&mutex_);
  for (bool in_time = true; in_time;) {
    wanted_.store(std::min(wanted_.load(std::memory_order_relaxed), end),
                  std::memory_order_seq_cst);
    if (published_.load(std::memory_order_seq_cst) >= end) return true;
    in_time = advanced_.WaitUntil(&mutex_, deadline);
  }
  return published() >= end;
}

}  // namespace geardb::wal
