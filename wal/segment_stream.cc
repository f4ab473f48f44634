#include "wal/segment_stream.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/large_memory.h"
#include "base/thread.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kReadBytes = uint64_t{1} << 20;
constexpr uint64_t kAheadBytes = uint64_t{8} << 20;
constexpr uint64_t kKeptBytes = uint64_t{1} << 20;  // Behind.

}  // namespace

SegmentStream::SegmentStream(Env* env, std::string log_directory, const SegmentMap* map,
                             uint64_t segment_bytes, bool read_ahead, bool lean)
    : env_(env),
      log_directory_(std::move(log_directory)),
      map_(map),
      segment_bytes_(segment_bytes),
      lean_(lean) {
  if (!read_ahead) return;
  auto thread = StartThread("reads ahead in " + log_directory_, [this] { Run(); });
  // No thread to be had: each call reads what it needs.
  if (thread.ok()) thread_ = std::move(thread).value();
}

SegmentStream::~SegmentStream() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    wanted_.NotifyAll();
  }
  thread_.join();
}

std::string SegmentStream::PlaceOf(Lsn lsn) const {
  const auto it = map_->names.find(AlignDown(lsn, segment_bytes_));
  if (it == map_->names.end()) {
    std::string place = log_directory_ + " (no file holds that segment";
    if (!map_->unreadable.empty()) place += "; the first record is damaged of";
    for (const std::string& name : map_->unreadable) {
      place += (name == map_->unreadable.front() ? " " : ", ") + JoinPath(log_directory_, name);
    }
    return place + ")";
  }
  return JoinPath(log_directory_, it->second) + " at offset " +
         std::to_string(lsn % segment_bytes_);
}

// Opens the file of `base` into `buffer`, to be read from offset `from` on, about; false when there
// is none.
bool SegmentStream::Start(Buffer* buffer, Lsn base, uint64_t from) {
  const auto it = map_->names.find(base);
  if (it == map_->names.end()) return false;
  if (buffer->bytes.empty()) buffer->bytes = AlignedBuffer(segment_bytes_);
  auto file = env_->OpenFile(JoinPath(log_directory_, it->second), {.mode = FileMode::kRead});
  buffer->base = base;
  LeaveBehind(buffer, buffer->filled);
  buffer->filled = buffer->left = AlignDown(from, kReadBytes);
  buffer->status = file.ok() ? Status::Ok() : file.status();
  buffer->file = file.ok() ? std::move(file).value() : nullptr;
  return true;
}

// Reads one block, without the mutex; what the file does not hold is zero.
void SegmentStream::FillSome(Buffer* buffer) {
  const uint64_t at = buffer->filled;
  const std::span<std::byte> into =
      buffer->bytes.span().subspan(at, std::min(kReadBytes, segment_bytes_ - at));
  File* const file = buffer->file.get();
  filling_ = buffer;
  mutex_.Unlock();
  const Status status = ReadSparse(file, at, into);
  mutex_.Lock();
  filling_ = nullptr;
  if (status.ok()) {
    buffer->filled += into.size();
  } else {
    buffer->status = status;
  }
  filled_.NotifyAll();
}

void SegmentStream::LeaveBehind(Buffer* buffer, uint64_t offset) const {
  if (!lean_ || offset <= buffer->left) return;
  LeaveMemory(buffer->bytes.data() + buffer->left, offset - buffer->left);
  buffer->left = offset;
}

// What the second thread should read next: null when it is far enough ahead.
SegmentStream::Buffer* SegmentStream::NextToFill() {
  if (at_ == kNoLsn) return nullptr;
  const Lsn base = AlignDown(at_, segment_bytes_);
  Buffer* const current = &buffers_[base / segment_bytes_ % 2];
  if (current->base != base || !current->status.ok()) return nullptr;
  if (current->filled < segment_bytes_) {
    const uint64_t wanted = std::max(at_ % segment_bytes_ + kAheadBytes, needed_);
    return current->filled < wanted ? current : nullptr;
  }
  const Lsn next_base = base + segment_bytes_;
  if (at_ + kAheadBytes < next_base) return nullptr;
  Buffer* const next = &buffers_[next_base / segment_bytes_ % 2];
  if (next->base != next_base && !Start(next, next_base, 0)) return nullptr;
  if (!next->status.ok() || next->filled == segment_bytes_) return nullptr;
  return next->filled < at_ + kAheadBytes - next_base ? next : nullptr;
}

void SegmentStream::Run() {
  mutex_.Lock();
  while (!stop_) {
    Buffer* const buffer = NextToFill();
    if (buffer == nullptr) {
      wanted_.WaitUntil(&mutex_, Deadline::Infinite());
      continue;
    }
    FillSome(buffer);
  }
  mutex_.Unlock();
}

Result<std::span<const std::byte>> SegmentStream::At(Lsn lsn, uint64_t bytes) {
  const Lsn base = AlignDown(lsn, segment_bytes_);
  const uint64_t offset = lsn - base;
  const uint64_t needed = std::min(offset + bytes, segment_bytes_);
  MutexLock lock(&mutex_);
  Buffer* const buffer = &buffers_[base / segment_bytes_ % 2];
  while (filling_ == buffer && buffer->base != base) {
    filled_.WaitUntil(&mutex_, Deadline::Infinite());
  }
  if (buffer->base != base && !Start(buffer, base, offset)) return std::span<const std::byte>();
  const bool far = at_ == kNoLsn || lsn / kReadBytes != at_ / kReadBytes;
  at_ = lsn;
  needed_ = needed;
  if (far || buffer->filled < needed) wanted_.NotifyOne();
  while (buffer->filled < needed && buffer->status.ok()) {
    if (thread_.joinable()) {
      filled_.WaitUntil(&mutex_, Deadline::Infinite());
    } else {
      FillSome(buffer);
    }
  }
  if (!buffer->status.ok()) return buffer->status;
  GEARDB_CHECK(offset >= buffer->left);
  const uint64_t behind = AlignDown(offset, kReadBytes);
  if (behind > kKeptBytes) LeaveBehind(buffer, behind - kKeptBytes);
  return std::span<const std::byte>(buffer->bytes.data() + offset, buffer->filled - offset);
}

}  // namespace geardb::wal
