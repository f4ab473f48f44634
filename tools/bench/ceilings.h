// Bare loops that no store can beat: what figures stand beside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/env.h"
#include "base/status.h"

namespace geardb::bench {

/// Touched memory, in huge pages where the system gives them.
class Memory {
 public:
  explicit Memory(uint64_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* get() const { return bytes_; }
  uint64_t size() const { return size_; }
  std::span<std::byte> span() const { return {bytes_, size_}; }

 private:
  std::byte* bytes_ = nullptr;
  uint64_t size_ = 0;
};

/// What the copying loops go through: chunks of a source are copied to places that follow one
/// another in a memory larger than the caches.
class CopyLoops {
 public:
  /// Copies go to `footprint_bytes`, as frames do, and to a ring of `ring_bytes`.
  CopyLoops(uint64_t footprint_bytes, uint64_t ring_bytes);

  /// Bytes per second of copying `total` bytes by memcpy in chunks of the source's size.
  double Copy(std::span<const std::byte> source, uint64_t total);
  /// The same with what a logged append cannot do without: a copy to the frame, a copy from there
  /// to the ring, and the checksum of it.
  double CopyCopyHash(std::span<const std::byte> source, uint64_t total);

 private:
  Memory frames_;
  Memory ring_;
  uint64_t at_ = 0;
  uint64_t hash_ = 0;
};

/// Bytes per second of direct writes of 1 MiB, one after the other, to a new file whose space has
/// been reserved; the file is removed again. IoError where the file system takes no direct writes.
Result<double> DiskWriteRate(const std::string& directory, uint64_t total);

/// A file that is read directly at random places.
class RandomReads {
 public:
  /// Makes a file of random bytes, removed again by the destructor. IoError where the file system
  /// takes no direct I/O.
  static Result<std::unique_ptr<RandomReads>> Make(const std::string& directory, uint64_t bytes);
  ~RandomReads();
  RandomReads(const RandomReads&) = delete;
  RandomReads& operator=(const RandomReads&) = delete;

  struct Kind {
    uint64_t read_bytes = 0;  ///< Of a read; a multiple of 4096. Reads lie at multiples of it.
    uint64_t total = 0;       ///< Of all reads.
    int threads = 1;
  };
  /// Bytes per second.
  Result<double> Rate(const Kind& kind);

 private:
  explicit RandomReads(std::unique_ptr<File> file) : file_(std::move(file)) {}
  std::unique_ptr<File> file_;
  uint64_t bytes_ = 0;
  uint64_t rounds_ = 0;
};

/// Medians over rounds of a direct write of 4 KiB and fdatasync.
struct SyncTimes {
  double fdatasync_us = 0;
  double write_and_fdatasync_us = 0;
};
/// `count` such rounds, in a file that was written before.
Result<SyncTimes> MeasureSyncs(const std::string& directory, int count, Env* env = Env::Posix());

/// Drops a directory's files from the page cache (what is not dirty of them).
Status DropFromPageCache(const std::string& directory);

/// What an open of `directory` cannot do without: bytes of the log per second of reading the first
/// `log_bytes` of its segment files and hashing them, and of reading its ring, every position of
/// which may hold a record (wal/FORMAT.md). Reads are one buffer ahead, on a second thread.
Result<double> RecoveryReadRate(const std::string& directory, uint64_t log_bytes);

}  // namespace geardb::bench
