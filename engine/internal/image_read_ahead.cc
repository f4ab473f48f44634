#include "engine/internal/image_read_ahead.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/thread.h"

namespace geardb::engine {

ImageReadAhead::ImageReadAhead(std::vector<ImageChunk> chunks, ImageSource source, uint32_t threads)
    : chunks_(std::move(chunks)), source_(std::move(source)), window_(kChunksPerThread * threads) {
  for (uint32_t i = 0; i < threads; ++i) {
    auto thread = StartThread("reads the index image", [this] { Run(); });
    if (!thread.ok()) break;
    threads_.push_back(std::move(*thread));
  }
}

ImageReadAhead::~ImageReadAhead() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    room_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

Result<std::string> ImageReadAhead::Read(const ImageChunk& chunk) {
  {
    MutexLock lock(&mutex_);
    const auto place = std::ranges::lower_bound(chunks_, chunk);
    const auto at = static_cast<size_t>(place - chunks_.begin());
    const bool known = place != chunks_.end() && *place == chunk;
    begin_ = known ? at + 1 : at;
    // Those that are being read are dropped by who reads them.
    for (auto one = ahead_.begin(); one != ahead_.end();) {
      one = one->second && !IsWanted(one->first) ? ahead_.erase(one) : std::next(one);
    }
    // A thread that is woken for each chunk would sleep again behind it.
    if (idle_ > 0 && ahead_.size() <= window_ / 2) room_.NotifyAll();
    const auto found = known ? ahead_.find(at) : ahead_.end();
    if (found != ahead_.end()) {
      while (!found->second) arrived_.WaitUntil(&mutex_, Deadline::Infinite());
      Result<std::string> bytes = *std::move(found->second);
      ahead_.erase(found);
      return bytes;
    }
  }
  return source_(chunk);
}

bool ImageReadAhead::IsWanted(size_t at) const {
  return at + 1 >= begin_ && at < begin_ + window_;  // Somebody may wait for the one before it.
}

size_t ImageReadAhead::NextToRead() const {
  const size_t end = std::min(begin_ + window_, chunks_.size());
  for (size_t at = begin_; at < end; ++at) {
    if (!ahead_.contains(at)) return at;
  }
  return chunks_.size();
}

void ImageReadAhead::Run() {
  for (;;) {
    size_t at = 0;
    {
      MutexLock lock(&mutex_);
      while (!stop_ && (at = NextToRead()) == chunks_.size()) {
        ++idle_;
        room_.WaitUntil(&mutex_, Deadline::Infinite());
        --idle_;
      }
      if (stop_) return;
      ahead_.emplace(at, std::nullopt);
    }
    Result<std::string> bytes = source_(chunks_[at]);
    MutexLock lock(&mutex_);
    if (IsWanted(at)) {
      ahead_[at] = std::move(bytes);
      if (at + 1 == begin_) arrived_.NotifyAll();
    } else {
      ahead_.erase(at);
    }
  }
}

}  // namespace geardb::engine
