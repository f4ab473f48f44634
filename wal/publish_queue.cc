#include "wal/publish_queue.h"

#include <thread>

namespace geardb::wal {

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
  while (true) {
    // Whoever holds the flag looks again after giving it back (both sequentially consistent), so
    // a record completed meanwhile is not forgotten.
    if (publishing_.exchange(true, std::memory_order_seq_cst)) return;
    uint64_t head = head_.load(std::memory_order_relaxed);
    bool advanced = false;
    while (slots_[head % kSlots].completed.load(std::memory_order_acquire) == head + 1) {
      const Slot& slot = slots_[head % kSlots];
      const Lsn end = slot.end;
      if (slot.callback != nullptr) slot.callback->OnPublished(slot.lsn, end);
      published_.store(end, std::memory_order_seq_cst);
      head_.store(++head, std::memory_order_release);  // The slot may be reused from here.
      observer_->OnAdvance(end);
      advanced = true;
    }
    publishing_.store(false, std::memory_order_seq_cst);
    if (advanced && waiters_.load(std::memory_order_seq_cst) > 0) {
      MutexLock lock(&mutex_);
      advanced_.NotifyAll();
    }
    if (slots_[head % kSlots].completed.load(std::memory_order_seq_cst) != head + 1) return;
  }
}

bool PublishQueue::WaitPublished(Lsn end, Deadline deadline) {
  if (published() >= end) return true;
  // Predecessors are other threads' copies, mostly a few microseconds away.
  for (int i = 0; i < 64; ++i) {
    std::this_thread::yield();
    if (published() >= end) return true;
  }
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  bool done = true;
  {
    MutexLock lock(&mutex_);
    while (published_.load(std::memory_order_seq_cst) < end) {
      if (!advanced_.WaitUntil(&mutex_, deadline)) {
        done = published() >= end;
        break;
      }
    }
  }
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
  return done;
}

}  // namespace geardb::wal
