#include "engine/internal/filler.h"

#include <algorithm>
#include <utility>

#include "base/thread.h"
#include "engine/internal/core.h"

namespace geardb::engine {
namespace {

/// Handing over may cost the wake-up of a thread, some 5 us; so does a copy with its checksum of
/// about this much.
constexpr uint64_t kWorthwhileBytes = uint64_t{128} << 10;

}  // namespace

// Earlier where the ring is so small that no record is large.
Filler::Filler(wal::LogWriter* log)
    : log_(log), worthwhile_bytes_(std::min(kWorthwhileBytes, log->record_bytes_max() / 16)) {}

Filler::~Filler() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    added_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void Filler::Add(FillJob job) {
  {
    MutexLock lock(&mutex_);
    if (!started_) {
      auto thread = StartThread("fills records", [this] { Run(); });
      // No thread to be had: this call does the work, and the next one tries again.
      started_ = thread.ok();
      if (started_) thread_ = std::move(thread).value();
    }
    if (started_) {
      jobs_.push_back(std::move(job));
      added_.NotifyOne();
      return;
    }
  }
  Fill(job);
}

void Filler::FillBelow(Lsn end) {
  while (true) {
    FillJob job;
    {
      MutexLock lock(&mutex_);
      if (jobs_.empty() || jobs_.front().reservation.lsn >= end) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    Fill(job);
  }
}

void Filler::Run() {
  while (true) {
    FillJob job;
    {
      MutexLock lock(&mutex_);
      while (jobs_.empty() && !stop_) added_.WaitUntil(&mutex_, Deadline::Infinite());
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    Fill(job);
  }
}

void Filler::Fill(const FillJob& job) {
  log_->Fill(job.reservation, {.body = job.change->body_bytes(), .pieces = job.pieces});
  log_->Publish(job.reservation, job.change);
}

}  // namespace geardb::engine
