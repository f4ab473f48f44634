#include "engine/internal/page_loader.h"

#include <algorithm>
#include <iterator>

#include "base/thread.h"
#include "engine/internal/table_frames.h"

namespace geardb::engine {
namespace {

/// Of a thread that reads pages, between two of them.
constexpr uint64_t kScratchBytesKept = uint64_t{1} << 20;

}  // namespace

PageLoader::~PageLoader() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    queued_.NotifyAll();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void PageLoader::StartThreads() {
  while (threads_.size() < threads_max_) {
    auto thread = StartThread("reads pages", [this] { Run(); });
    if (!thread.ok()) return;  // Whoever waits reads.
    threads_.push_back(std::move(thread).value());
  }
}

void PageLoader::Begin(std::shared_ptr<PageLoad> load) {
  {
    MutexLock lock(&mutex_);
    if (threads_.size() < threads_max_) StartThreads();
    if (!threads_.empty()) {
      queue_.push_back(std::move(load));
      queued_.NotifyOne();
      return;
    }
  }
  Wait(load.get());
}

bool PageLoader::Take(PageLoad* load) {
  if (load->state != PageLoad::State::kQueued) return false;
  load->state = PageLoad::State::kReading;
  ++reading_;
  return true;
}

void PageLoader::Done(const TableFrames* owner) {
  MutexLock lock(&mutex_);
  if (--working_[owner] == 0) working_.erase(owner);
  ended_.fetch_add(1);
  ready_.NotifyAll();
}

void PageLoader::AwaitIdle(const TableFrames* owner) {
  MutexLock lock(&mutex_);
  while (working_.contains(owner)) ready_.WaitUntil(&mutex_, Deadline::Infinite());
}

bool PageLoader::AwaitOne(Deadline deadline) {
  MutexLock lock(&mutex_);
  if (queue_.empty() && reading_ == 0 && working_.empty()) return false;
  ready_.WaitUntil(&mutex_, deadline);
  return true;
}

void PageLoader::Read(PageLoad* load, wal::AlignedBuffer* scratch) {
  bool of_file = false;
  Status status = source_->Read(load->place, scratch, load->into, &of_file);
  MutexLock lock(&mutex_);
  load->of_file = of_file;
  load->status = std::move(status);
  load->state = PageLoad::State::kReady;
  --reading_;
  ready_.NotifyAll();
}

bool PageLoader::IsReady(const PageLoad& load) {
  MutexLock lock(&mutex_);
  return load.state == PageLoad::State::kReady;
}

void PageLoader::Wait(PageLoad* load) {
  if (IsReady(*load)) return;
  const WaitTimer timer(&waits_);
  bool taken = false;
  {
    MutexLock lock(&mutex_);
    taken = Take(load);
    // Threads may not come to it for long, and its memory would stay. It is near the end: who waits
    // for many begins with the last.
    const auto is_it = [load](const auto& one) { return one.get() == load; };
    const auto queued = taken ? std::find_if(queue_.rbegin(), queue_.rend(), is_it) : queue_.rend();
    if (queued != queue_.rend()) queue_.erase(std::next(queued).base());
  }
  if (taken) {
    wal::AlignedBuffer scratch;
    Read(load, &scratch);
    return;
  }
  MutexLock lock(&mutex_);
  while (load->state != PageLoad::State::kReady) ready_.WaitUntil(&mutex_, Deadline::Infinite());
}

bool PageLoader::MayFinish() const { return !read_.empty() && !finishing_; }

void PageLoader::Run() {
  wal::AlignedBuffer scratch;
  for (;;) {
    std::shared_ptr<PageLoad> load;
    bool is_read = false;
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !MayFinish() && !stop_) {
        queued_.WaitUntil(&mutex_, Deadline::Infinite());
      }
      is_read = MayFinish();
      if (!is_read && queue_.empty()) return;
      auto& from = is_read ? read_ : queue_;
      load = std::move(from.front());
      from.pop_front();
      if (is_read) {
        finishing_ = true;
      } else {
        GEARDB_CHECK(Take(load.get()));  // Whoever waits takes it out of the queue, too.
        ++working_[load->owner];
      }
    }
    if (is_read) {
      FinishOne(load.get());
    } else {
      ReadOne(std::move(load), &scratch);
    }
  }
}

void PageLoader::ReadOne(std::shared_ptr<PageLoad> load, wal::AlignedBuffer* scratch) {
  const uint64_t kept_before = scratch->span().size();
  Read(load.get(), scratch);
  // It is in no budget, and there are many threads.
  if (scratch->span().size() > kScratchBytesKept) *scratch = wal::AlignedBuffer();
  kept_bytes_.fetch_add(scratch->span().size() - kept_before, std::memory_order_relaxed);
  if (load->owner == nullptr) return Done(nullptr);
  MutexLock lock(&mutex_);
  read_.push_back(std::move(load));
  queued_.NotifyOne();
}

void PageLoader::FinishOne(PageLoad* load) {
  // Whoever waited may have finished it by now: the owner stays until this thread is done.
  load->owner->Finish(load);
  {
    MutexLock lock(&mutex_);
    finishing_ = false;
    if (!read_.empty()) queued_.NotifyOne();
  }
  Done(load->owner);
}

std::optional<FrameRef> PageWaits::FindAside(const TableFrames* frames, uint32_t group,
                                             Lpn lpn) const {
  const auto found = aside_numbers_.find({frames, group, lpn});
  if (found == aside_numbers_.end()) return std::nullopt;
  return MakeAside(found->second);
}

FrameRef PageWaits::AddAside(const TableFrames* frames, const PagePlace& place) {
  const uint64_t number = aside_.size();
  aside_.push_back({frames, place});
  aside_numbers_[{frames, place.group, place.lpn}] = number;
  return MakeAside(number);
}

Status PageWaits::Wait() {
  WaitForAll();
  for (const auto& load : loads_) {
    if (load->owner != nullptr) load->owner->Finish(load.get());
  }
  return StatusOfAll();
}

Status PageWaits::WaitHeld() {
  WaitForAll();
  for (const auto& load : loads_) {
    if (load->owner != nullptr) load->owner->FinishHeld(load.get());
  }
  return StatusOfAll();
}

void PageWaits::WaitForAll() {
  // From the last: the threads begin with the first.
  for (auto load = loads_.rbegin(); load != loads_.rend(); ++load) loader_->Wait(load->get());
}

Status PageWaits::StatusOfAll() const {
  const PageLoad* bad = failed();
  return bad == nullptr ? Status::Ok() : bad->status;
}

const PageLoad* PageWaits::failed() const {
  const std::vector<const PageLoad*> all = all_failed();
  return all.empty() ? nullptr : all[0];
}

std::vector<const PageLoad*> PageWaits::all_failed() const {
  std::vector<const PageLoad*> failed;
  for (const auto& load : loads_) {
    if (loader_->IsReady(*load) && !load->status.ok()) failed.push_back(load.get());
  }
  if (failed_aside_ != nullptr) failed.push_back(failed_aside_.get());
  return failed;
}

}  // namespace geardb::engine
