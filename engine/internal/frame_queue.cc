#include "engine/internal/frame_queue.h"

#include "base/check.h"
#include "engine/internal/core.h"

namespace geardb::engine {

void FrameQueue::Notify() {
  if (queued_.load() == 0) return;
  MutexLock lock(&mutex_);
  ++ended_;
  changed_.NotifyAll();
}

void FrameQueue::Hold::BeginBehind(Deadline deadline) {
  if (queue_->queued_.load() > 0) {
    MutexLock lock(&queue_->mutex_);
    while (queue_->MustWait() && queue_->changed_.WaitUntil(&queue_->mutex_, deadline)) {
    }
  }
  Begin();
}

void FrameQueue::Hold::Begin() {
  GEARDB_CHECK(!holds_);
  holds_ = true;
  queue_->holds_.fetch_add(1);
}

void FrameQueue::Hold::End() {
  if (!holds_) return;
  holds_ = false;
  if (queue_->queued_.load() == 0) {
    queue_->holds_.fetch_sub(1);
    // Who has come since may have seen it.
    queue_->Notify();
    return;
  }
  // Who waits sees that it has ended when it sees that nobody holds anything.
  MutexLock lock(&queue_->mutex_);
  queue_->holds_.fetch_sub(1);
  ++queue_->ended_;
  queue_->changed_.NotifyAll();
}

FrameQueue::Pause::Pause(Hold* hold) : hold_(hold) {
  if (hold_ == nullptr) return;
  hold_->queue_->paused_.fetch_add(1);
  hold_->queue_->Notify();
}

FrameQueue::Pause::~Pause() {
  if (hold_ != nullptr) hold_->queue_->paused_.fetch_sub(1);
}

FrameQueue::Place::Place(FrameQueue* queue) : queue_(queue) {
  MutexLock lock(&queue_->mutex_);
  ticket_ = queue_->tickets_++;
  queue_->places_.insert(ticket_);
  queue_->queued_.fetch_add(1);
}

FrameQueue::Place::~Place() {
  MutexLock lock(&queue_->mutex_);
  queue_->places_.erase(ticket_);
  queue_->queued_.fetch_sub(1);
  queue_->changed_.NotifyAll();
}

bool FrameQueue::Place::AwaitTurn(Deadline deadline) const {
  MutexLock lock(&queue_->mutex_);
  while (*queue_->places_.begin() != ticket_) {
    if (!queue_->changed_.WaitUntil(&queue_->mutex_, deadline)) return false;
  }
  return true;
}

uint64_t FrameQueue::ended() const {
  MutexLock lock(&mutex_);
  return ended_;
}

bool FrameQueue::AwaitEnd(uint64_t ended, Deadline deadline) {
  MutexLock lock(&mutex_);
  for (;;) {
    if (ended_ != ended) return true;
    if (holds_.load() == 0) return false;
    if (!changed_.WaitUntil(&mutex_, deadline)) return true;
  }
}

namespace {

bool NoFrame(const Status& status) { return status.code() == StatusCode::kResourceExhausted; }

/// Until some frames may have come free that were none when `ended` and `seen` were read.
bool AwaitFrames(DatabaseCore* database, uint64_t ended, Lsn seen, Deadline deadline) {
  if (database->frame_queue.AwaitEnd(ended, deadline)) return true;
  // What leaves for calls that have returned gives its frames back when it is published.
  const Lsn end = database->log->end();
  return seen < end && database->Acknowledge(end, Ack::kLog, deadline).ok();
}

}  // namespace

Status TakeInTurn(DatabaseCore* database, FrameQueue::Hold* hold, Deadline deadline,
                  const FrameTaking& taking) {
  hold->BeginBehind(deadline);
  Status status = taking.take();
  if (!NoFrame(status)) return status;
  taking.give_back();
  hold->End();
  if (deadline.passed()) return status;

  FrameQueue& queue = database->frame_queue;
  const WaitTimer timer(&database->waits.frames);
  const FrameQueue::Place place(&queue);
  if (!place.AwaitTurn(deadline)) return status;
  do {
    const uint64_t ended = queue.ended();
    const Lsn seen = database->log->published();
    hold->Begin();
    status = taking.take();
    if (!NoFrame(status)) return status;
    taking.give_back();
    hold->End();
    if (!AwaitFrames(database, ended + 1, seen, deadline)) return status;
  } while (!deadline.passed());
  return status;
}

}  // namespace geardb::engine
