#include "tools/bench/ceilings.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <future>

#include "base/env.h"
#include "base/hash.h"
#include "base/philox.h"
#include "base/types.h"
#include "tools/bench/spread.h"

namespace geardb::bench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kHashChunk = uint64_t{128} << 10;
constexpr uint64_t kHugePage = uint64_t{2} << 20;

}  // namespace

Memory::Memory(uint64_t bytes) : size_(AlignUp(bytes, kHugePage)) {
  void* at = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  GEARDB_CHECK(at != MAP_FAILED);
  bytes_ = static_cast<std::byte*>(at);
  ::madvise(bytes_, size_, MADV_HUGEPAGE);
  for (uint64_t offset = 0; offset < size_; offset += 4096) {
    bytes_[offset] = static_cast<std::byte>(offset >> 12);
  }
}

Memory::~Memory() { ::munmap(bytes_, size_); }

CopyLoops::CopyLoops(uint64_t footprint_bytes, uint64_t ring_bytes)
    : frames_(footprint_bytes), ring_(ring_bytes) {}

double CopyLoops::Copy(std::span<const std::byte> source, uint64_t total) {
  const Stopwatch watch;
  for (uint64_t done = 0; done < total; done += source.size()) {
    if (at_ + source.size() > frames_.size()) at_ = 0;
    std::memcpy(frames_.get() + at_, source.data(), source.size());
    at_ += source.size();
  }
  return static_cast<double>(total) / watch.seconds();
}

double CopyLoops::CopyCopyHash(std::span<const std::byte> source, uint64_t total) {
  const Stopwatch watch;
  uint64_t ring_at = 0;
  for (uint64_t done = 0; done < total; done += source.size()) {
    if (at_ + source.size() > frames_.size()) at_ = 0;
    std::byte* const frame = frames_.get() + at_;
    std::memcpy(frame, source.data(), source.size());
    for (uint64_t offset = 0; offset < source.size(); offset += kHashChunk) {
      const uint64_t bytes = std::min(kHashChunk, source.size() - offset);
      if (ring_at + bytes > ring_.size()) ring_at = 0;
      std::memcpy(ring_.get() + ring_at, frame + offset, bytes);
      hash_ ^= Hash64({ring_.get() + ring_at, bytes}, hash_);
      ring_at += bytes;
    }
    at_ += source.size();
  }
  return static_cast<double>(total) / watch.seconds();
}

namespace {

struct FreeAligned {
  void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{4096}); }
};
using Block = std::unique_ptr<std::byte[], FreeAligned>;

Block MakeBlock(uint64_t bytes) {
  Block block(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{4096})));
  std::memset(block.get(), 1, bytes);
  return block;
}

Result<std::unique_ptr<File>> NewDirectFile(const std::string& path, uint64_t bytes,
                                            Env* env = Env::Posix()) {
  GEARDB_ASSIGN_OR_RETURN(auto file,
                          env->OpenFile(path, {.mode = FileMode::kCreate, .direct = true}));
  if (!file->direct()) return Status::IoError(path, " is not direct: ", file->direct_note());
  GEARDB_RETURN_IF_ERROR(file->Allocate(bytes));
  GEARDB_RETURN_IF_ERROR(file->Sync());
  return file;
}

/// Removes a file at the end of a scope.
struct Removal {
  std::string path;
  ~Removal() { Env::Posix()->Remove(path).ok(); }
};

}  // namespace

Result<double> DiskWriteRate(const std::string& directory, uint64_t total) {
  const Removal removal{JoinPath(directory, "bare-writes")};
  GEARDB_ASSIGN_OR_RETURN(auto file, NewDirectFile(removal.path, total));
  const Block block = MakeBlock(kMiB);
  const Stopwatch watch;
  for (uint64_t offset = 0; offset + kMiB <= total; offset += kMiB) {
    GEARDB_RETURN_IF_ERROR(file->Write(offset, {block.get(), kMiB}));
  }
  return static_cast<double>(total) / watch.seconds();
}

Result<std::unique_ptr<RandomReads>> RandomReads::Make(const std::string& directory,
                                                       uint64_t bytes) {
  GEARDB_ASSIGN_OR_RETURN(auto file, NewDirectFile(JoinPath(directory, "bare-reads"), bytes));
  std::unique_ptr<RandomReads> made(new RandomReads(std::move(file)));
  const Block block = MakeBlock(kMiB);
  for (uint64_t offset = 0; offset + kMiB <= bytes; offset += kMiB) {
    for (uint64_t at = 0; at < kMiB; at += sizeof(uint64_t)) {
      const uint64_t random = PhiloxRandom64(22, offset + at, 0, PhiloxPurpose::kItem);
      std::memcpy(block.get() + at, &random, sizeof(random));
    }
    GEARDB_RETURN_IF_ERROR(made->file_->Write(offset, {block.get(), kMiB}));
    made->bytes_ = offset + kMiB;
  }
  GEARDB_RETURN_IF_ERROR(made->file_->Sync());
  return made;
}

RandomReads::~RandomReads() { Env::Posix()->Remove(file_->path()).ok(); }

Result<double> RandomReads::Rate(const Kind& kind) {
  const uint64_t places = bytes_ / kind.read_bytes;
  if (places == 0) return Status::InvalidArgument("a file of ", bytes_, " bytes is too small");
  const uint64_t reads = kind.total / kind.read_bytes / static_cast<uint64_t>(kind.threads) + 1;
  ++rounds_;
  const auto read = [&](int thread) -> Status {
    const Block block = MakeBlock(kind.read_bytes);
    for (uint64_t i = 0; i < reads; ++i) {
      const uint64_t random =
          PhiloxRandom64(23 + rounds_, i, static_cast<uint32_t>(thread), PhiloxPurpose::kItem);
      GEARDB_RETURN_IF_ERROR(
          file_->Read(MulHi64(random, places) * kind.read_bytes, {block.get(), kind.read_bytes})
              .status());
    }
    return Status::Ok();
  };
  std::vector<std::future<Status>> threads;
  const Stopwatch watch;
  for (int i = 0; i < kind.threads; ++i) {
    threads.push_back(std::async(std::launch::async, read, i));
  }
  Status first;
  for (auto& thread : threads) {
    const Status status = thread.get();
    if (first.ok()) first = status;
  }
  GEARDB_RETURN_IF_ERROR(first);
  return static_cast<double>(reads * kind.read_bytes * static_cast<uint64_t>(kind.threads)) /
         watch.seconds();
}

Result<SyncTimes> MeasureSyncs(const std::string& directory, int count, Env* env) {
  const Removal removal{JoinPath(directory, "bare-syncs")};
  const auto bytes = static_cast<uint64_t>(count) * kDirectAlignment;
  GEARDB_ASSIGN_OR_RETURN(auto file, NewDirectFile(removal.path, bytes, env));
  const Block block = MakeBlock(kDirectAlignment);
  const std::span<const std::byte> content(block.get(), kDirectAlignment);
  // Written before, so that the file's own bookkeeping is not part of what is timed.
  for (uint64_t offset = 0; offset < bytes; offset += kDirectAlignment) {
    GEARDB_RETURN_IF_ERROR(file->Write(offset, content));
  }
  GEARDB_RETURN_IF_ERROR(file->Sync());
  std::vector<double> syncs;
  std::vector<double> both;
  for (uint64_t offset = 0; offset < bytes; offset += kDirectAlignment) {
    const Stopwatch from_write;
    GEARDB_RETURN_IF_ERROR(file->Write(offset, content));
    const Stopwatch from_sync;
    GEARDB_RETURN_IF_ERROR(file->Sync());
    syncs.push_back(from_sync.us());
    both.push_back(from_write.us());
  }
  return SyncTimes{Median(std::move(syncs)), Median(std::move(both))};
}

Status DropFromPageCache(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, error)) {
    if (!entry.is_regular_file(error)) continue;
    const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) continue;  // A compaction has removed it.
    if (fd < 0) return Status::IoError("open ", entry.path().string());
    ::fdatasync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
  return Status::Ok();
}

Result<double> RecoveryReadRate(const std::string& directory, uint64_t log_bytes) {
  std::vector<std::string> paths;
  std::error_code error;
  std::string ring;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("segment-", 0) == 0) paths.push_back(entry.path().string());
    if (name == "ring") ring = entry.path().string();
  }
  std::sort(paths.begin(), paths.end());
  constexpr uint64_t kBuffer = 4 * kMiB;
  const std::array<Block, 2> buffers = {MakeBlock(kBuffer), MakeBlock(kBuffer)};
  uint64_t hash = 0;
  const auto read_file = [&](const std::string& path, uint64_t limit,
                             bool hashed) -> Result<uint64_t> {
    GEARDB_ASSIGN_OR_RETURN(auto file, Env::Posix()->OpenFile(path, {.mode = FileMode::kRead}));
    const auto read = [&](uint64_t offset) {
      return file->Read(offset, {buffers[offset / kBuffer % 2].get(), kBuffer});
    };
    uint64_t done = 0;
    std::future<Result<size_t>> next = std::async(std::launch::async, read, done);
    while (done < limit) {
      const Result<size_t> bytes = next.get();
      if (!bytes.ok()) return bytes.status();
      if (*bytes == 0) break;
      const std::byte* const buffer = buffers[done / kBuffer % 2].get();
      next = std::async(std::launch::async, read, done + kBuffer);
      const uint64_t used = std::min<uint64_t>(*bytes, limit - done);
      if (hashed) hash ^= Hash64({buffer, used}, hash);
      done += used;
    }
    if (next.valid()) next.wait();
    return done;
  };
  uint64_t done = 0;
  const Stopwatch watch;
  for (const std::string& path : paths) {
    if (done >= log_bytes) break;
    GEARDB_ASSIGN_OR_RETURN(const uint64_t bytes, read_file(path, log_bytes - done, true));
    done += bytes;
  }
  GEARDB_RETURN_IF_ERROR(read_file(ring, UINT64_MAX, false).status());
  const double seconds = watch.seconds();
  if (hash == 0) return Status::IoError("nothing was read of '", directory, "'");
  return static_cast<double>(done) / seconds;
}

}  // namespace geardb::bench
