#include "wal/segment_file.h"

#include <algorithm>
#include <cstring>

#include "wal/aligned_buffer.h"
#include "wal/manifest.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kZeroBytes = uint64_t{256} << 10;
constexpr uint64_t kRewriteBytes = uint64_t{1} << 20;
/// Files that stay open: of live ones the newest, of free ones those that are taken next. As many
/// as the log of an ordinary store has.
constexpr uint64_t kOpenLive = 64;
constexpr uint64_t kOpenFree = 16;
alignas(4096) constexpr std::byte kZeros[kZeroBytes] = {};

}  // namespace

Result<std::unique_ptr<SegmentFile>> SegmentFile::Open(Env* env, const std::string& path,
                                                       uint64_t bytes, bool direct) {
  const FileOptions options{.mode = FileMode::kReadWrite, .direct = direct};
  GEARDB_ASSIGN_OR_RETURN(auto file, env->OpenFile(path, options));
  return Make(env, std::move(file), bytes, direct);
}

Result<std::unique_ptr<SegmentFile>> SegmentFile::Create(Env* env, const std::string& path,
                                                         uint64_t bytes, bool direct) {
  const FileOptions options{.mode = FileMode::kCreateNew, .direct = direct};
  GEARDB_ASSIGN_OR_RETURN(auto file, env->OpenFile(path, options));
  auto segment = Make(env, std::move(file), bytes, direct);
  // A full disk: give back what was reserved.
  if (!segment.ok()) (void)env->Remove(path).ok();
  return segment;
}

Result<std::unique_ptr<SegmentFile>> SegmentFile::Make(Env* env, std::unique_ptr<File> file,
                                                       uint64_t bytes, bool direct) {
  GEARDB_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size > bytes) {
    return Status::Corruption(file->path(), " has ", size, " bytes, a segment has ", bytes);
  }
  GEARDB_RETURN_IF_ERROR(file->Allocate(bytes));
  if (size < bytes) GEARDB_RETURN_IF_ERROR(file->Sync());
  std::unique_ptr<SegmentFile> segment(new SegmentFile(env, std::move(file), direct));
  segment->was_short_ = size < bytes;
  GEARDB_ASSIGN_OR_RETURN(const auto opened, segment->Opened());
  GEARDB_ASSIGN_OR_RETURN(const FileExtent first, opened->NextWritten(0));
  if (first.begin == 0) segment->written_bytes_ = AlignDown(first.end, kBlockBytes);
  return segment;
}

SegmentFile::SegmentFile(Env* env, std::shared_ptr<File> file, bool direct)
    : env_(env), path_(file->path()), wants_direct_(direct), direct_(direct) {
  MutexLock lock(&mutex_);
  Use(std::move(file));
}

void SegmentFile::Use(std::shared_ptr<File> file) {
  file_ = std::move(file);
  direct_.store(file_->direct(), std::memory_order_release);
  if (!file_->direct_note().empty()) direct_note_ = file_->direct_note();
  open_.store(true, std::memory_order_release);
}

Result<std::shared_ptr<File>> SegmentFile::Opened() {
  MutexLock lock(&mutex_);
  if (file_ == nullptr) {
    const FileOptions options{.mode = FileMode::kReadWrite, .direct = direct()};
    GEARDB_ASSIGN_OR_RETURN(auto file, env_->OpenFile(path_, options));
    Use(std::move(file));
  }
  return file_;
}

void SegmentFile::Rest() {
  std::shared_ptr<File> closed;  // Without the mutex.
  MutexLock lock(&mutex_);
  open_.store(false, std::memory_order_release);
  closed.swap(file_);
}

Status SegmentFile::Sync() {
  std::shared_ptr<File> file;
  {
    MutexLock lock(&mutex_);
    file = file_;
  }
  if (file == nullptr) {
    GEARDB_ASSIGN_OR_RETURN(file, env_->OpenFile(path_, {.mode = FileMode::kReadWrite}));
  }
  return file->Sync();
}

Status SegmentFile::Write(uint64_t offset, std::span<const std::byte> from) {
  GEARDB_ASSIGN_OR_RETURN(const std::shared_ptr<File> file, Opened());
  Status status = file->Write(offset, from);
  if (status.code() == StatusCode::kUnsupported && file->direct()) {
    // Some file systems take direct reads but no direct writes from this memory.
    auto buffered = env_->OpenFile(path_, {.mode = FileMode::kReadWrite});
    if (!buffered.ok()) return status;
    if (!(*buffered)->Write(offset, from).ok()) return status;
    MutexLock lock(&mutex_);
    Use(std::move(buffered).value());
    status = Status::Ok();
  }
  if (status.ok()) written_bytes_ = std::max(written_bytes_, offset + from.size());
  // After the write: a sync that cleared the flag during it may not have covered it.
  dirty.store(true, std::memory_order_release);
  return status;
}

Status SegmentFile::WriteZeros(uint64_t offset, uint64_t bytes) {
  while (bytes > 0) {
    const uint64_t n = std::min(bytes, kZeroBytes);
    GEARDB_RETURN_IF_ERROR(Write(offset, {kZeros, n}));
    offset += n;
    bytes -= n;
  }
  return Status::Ok();
}

Status SegmentFile::Rewrite(uint64_t offset, uint64_t bytes) {
  // As recovery has read it: a direct read would go past the page cache to the old bytes.
  GEARDB_ASSIGN_OR_RETURN(const auto cached, env_->OpenFile(path(), {.mode = FileMode::kRead}));
  const AlignedBuffer buffer(std::min(bytes, kRewriteBytes));
  while (bytes > 0) {
    const std::span<std::byte> part = buffer.span().first(std::min(bytes, buffer.span().size()));
    GEARDB_ASSIGN_OR_RETURN(const size_t read, cached->Read(offset, part));
    if (read < part.size()) return Status::IoError(path(), " ends at ", offset + read);
    GEARDB_RETURN_IF_ERROR(Write(offset, part));
    offset += part.size();
    bytes -= part.size();
  }
  return Status::Ok();
}

std::string SegmentFile::write_path() const {
  if (direct()) return "direct";
  if (!wants_direct_) return "buffered (by choice)";
  MutexLock lock(&mutex_);
  return "buffered (" + (direct_note_.empty() ? "direct writes were refused" : direct_note_) + ")";
}

Status SegmentPool::AddFree(const std::string& name) {
  {
    MutexLock lock(&mutex_);
    NoteName(name);
  }
  GEARDB_ASSIGN_OR_RETURN(auto file, SegmentFile::Open(env_.get(), JoinPath(directory_, name),
                                                       segment_bytes_, direct_));
  // A segment that lost its end may still have its first record, and claim its base again now that
  // it has its length back.
  if (file->was_short()) {
    GEARDB_RETURN_IF_ERROR(file->WriteZeros(0, kBlockBytes));
    GEARDB_RETURN_IF_ERROR(file->Sync());
  }
  MutexLock lock(&mutex_);
  if (free_.size() < kOpenFree) {
    free_.push_back(std::move(file));
  } else {
    file->Rest();
    free_.insert(free_.begin(), std::move(file));
  }
  NoteCounts();
  return Status::Ok();
}

Status SegmentPool::AddLive(const std::string& name, Lsn base) {
  GEARDB_ASSIGN_OR_RETURN(auto file, SegmentFile::Open(env_.get(), JoinPath(directory_, name),
                                                       segment_bytes_, direct_));
  MutexLock lock(&mutex_);
  NoteName(name);
  if (live_.size() >= kOpenLive) file->Rest();
  live_[base] = std::move(file);
  NoteCounts();
  return Status::Ok();
}

void SegmentPool::NoteCounts() {
  const auto closed =
      std::find_if(free_.rbegin(), free_.rend(), [](const auto& file) { return !file->is_open(); });
  ready_count_.store(static_cast<uint64_t>(closed - free_.rbegin()), std::memory_order_release);
  free_count_.store(free_.size(), std::memory_order_release);
  live_count_.store(live_.size(), std::memory_order_release);
}

void SegmentPool::NoteName(const std::string& name) {
  uint64_t number = 0;
  if (ParseSegmentName(name, &number)) next_number_ = std::max(next_number_, number + 1);
}

void SegmentPool::Bind(Lsn base) {
  MutexLock lock(&mutex_);
  GEARDB_CHECK(!free_.empty() && live_.count(base) == 0);
  live_[base] = std::move(free_.back());
  free_.pop_back();
  NoteCounts();
}

SegmentFile* SegmentPool::Find(Lsn lsn) {
  MutexLock lock(&mutex_);
  const auto it = live_.find(AlignDown(lsn, segment_bytes_));
  return it == live_.end() ? nullptr : it->second.get();
}

SegmentFile* SegmentPool::NextFree() {
  MutexLock lock(&mutex_);
  return free_.empty() || !free_.back()->is_open() ? nullptr : free_.back().get();
}

void SegmentPool::ReleaseBelow(Lsn lsn) {
  MutexLock lock(&mutex_);
  while (!live_.empty() && live_.begin()->first + segment_bytes_ <= lsn) {
    if (free_.size() >= kOpenFree) live_.begin()->second->Rest();
    free_.insert(free_.begin(), std::move(live_.begin()->second));
    live_.erase(live_.begin());
  }
  NoteCounts();
}

void SegmentPool::RestBelow(Lsn lsn) {
  MutexLock lock(&mutex_);
  if (live_.size() <= kOpenLive) return;
  const Lsn kept_from = live_.rbegin()->first - (kOpenLive - 1) * segment_bytes_;
  const Lsn end = std::min(AlignDown(lsn, segment_bytes_), kept_from);
  for (auto at = live_.lower_bound(rested_below_); at != live_.end() && at->first < end; ++at) {
    if (at->second->dirty.load(std::memory_order_acquire)) return;
    at->second->Rest();
    rested_below_ = at->first + segment_bytes_;
  }
}

std::string SegmentPool::NextPath() {
  MutexLock lock(&mutex_);
  return JoinPath(directory_, SegmentName(next_number_++));
}

Status SegmentPool::CreateSpare() {
  constexpr std::string_view kContext = "spare segment file";
  std::string path;
  const auto create = [&] {
    path = NextPath();
    return SegmentFile::Create(env_.get(), path, segment_bytes_, direct_);
  };
  auto file = create();
  while (file.status().code() == StatusCode::kAlreadyExists) file = create();
  if (file.status().code() == StatusCode::kNotFound) {
    return Status::FailedPrecondition("'", directory_, "' was removed while it was in use");
  }
  if (!file.ok()) return file.status().WithContext(kContext);
  if (const Status synced = env_->SyncDirectory(directory_); !synced.ok()) {
    (void)env_->Remove(path).ok();  // The name is simply not used again.
    return synced.WithContext(kContext);
  }
  MutexLock lock(&mutex_);
  if (free_.size() >= kOpenFree) (*file)->Rest();
  free_.insert(free_.begin(), std::move(file).value());
  NoteCounts();
  return Status::Ok();
}

Status SegmentPool::WakeSpare() {
  SegmentFile* file = nullptr;
  {
    MutexLock lock(&mutex_);
    const auto closed =
        std::find_if(free_.rbegin(), free_.rend(), [](const auto& one) { return !one->is_open(); });
    if (closed == free_.rend()) return Status::Ok();
    file = closed->get();
  }
  const Status woken = file->Wake();
  MutexLock lock(&mutex_);
  if (woken.code() == StatusCode::kNotFound) {
    std::erase_if(free_, [file](const auto& one) { return one.get() == file; });
  } else {
    GEARDB_RETURN_IF_ERROR(woken.WithContext("spare segment file"));
  }
  NoteCounts();
  return Status::Ok();
}

void SegmentPool::RemoveSpares(uint64_t left) {
  std::vector<std::unique_ptr<SegmentFile>> removed;
  {
    MutexLock lock(&mutex_);
    while (free_.size() > left) {
      removed.push_back(std::move(free_.front()));  // The newest.
      free_.erase(free_.begin());
    }
    NoteCounts();
  }
  // One that cannot be removed, or comes back after a power loss, is a spare file again.
  for (const auto& file : removed) (void)env_->Remove(file->path()).ok();
}

std::vector<SegmentFile*> SegmentPool::TakeDirty() {
  std::vector<SegmentFile*> dirty;
  MutexLock lock(&mutex_);
  for (auto& [base, file] : live_) {
    if (file->dirty.exchange(false, std::memory_order_acq_rel)) dirty.push_back(file.get());
  }
  return dirty;
}

std::vector<SegmentFile*> SegmentPool::LiveFrom(Lsn lsn) {
  std::vector<SegmentFile*> files;
  MutexLock lock(&mutex_);
  for (auto& [base, file] : live_) {
    if (base + segment_bytes_ > lsn) files.push_back(file.get());
  }
  return files;
}

Lsn SegmentPool::oldest_base() const {
  MutexLock lock(&mutex_);
  return live_.empty() ? kNoLsn : live_.begin()->first;
}

std::string SegmentPool::write_path() const {
  MutexLock lock(&mutex_);
  if (!live_.empty()) return live_.rbegin()->second->write_path();
  return free_.empty() ? "unknown (no segment file)" : free_.back()->write_path();
}

}  // namespace geardb::wal
