// ColdFaultFiles: the system's files for a cold store, with a disk that fills and reads that fail.
//
// Fault model: only SST, blob and manifest files fail, and the reserve. A full disk refuses appends
// and allocations, whole; what was written before stays. A failing read gives no bytes; a failing
// sync leaves what was written.
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/system_clock.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/internal/cold_reserve.h"

namespace geardb::testing {

/// Thread-safe.
class ColdFaultFiles : public rocksdb::FileSystemWrapper {
 public:
  ColdFaultFiles() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  static const char* kClassName() { return "ColdFaultFiles"; }
  const char* Name() const override { return kClassName(); }

  /// Appends go through until so many bytes were written.
  void SetSpace(int64_t bytes) { space_ = least_space_ = bytes; }
  int64_t space() const { return space_; }
  /// Since it was set.
  int64_t least_space() const { return least_space_; }
  /// What is deleted makes space, as on a disk that nobody else writes to; otherwise the reserve
  /// alone does.
  void DeletesMakeSpace() { deletes_make_space_ = true; }
  void WithoutAllocate() { allocates_ = false; }
  /// So does what is deleted from a directory that nobody deletes from but in the thread that
  /// writes here: a log that gives up files for the cold store.
  void MakeSpaceOf(const std::string& directory) {
    beside_ = directory;
    beside_bytes_ = BytesBeside();
  }
  /// No room for what compactions write; nor for a flush once writes are stopped, which RocksDB
  /// does not tell apart.
  void RefuseCompactions(bool refuse) { refuse_compactions_ = refuse; }
  void FailReads(bool fail) { fail_reads_ = fail; }
  void FailSyncs(bool fail) { fail_syncs_ = fail; }
  /// Syncs wait until none is held.
  void HoldSyncs(bool hold) { hold_syncs_ = hold; }
  /// Appends refused, reads failed, syncs failed.
  uint64_t failures() const { return failures_; }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewWritableFile(path, options, file, debug);
    if (status.ok() && (Stored(path) || IsReserve(path))) {
      *file = std::make_unique<Writable>(this, IsReserve(path), std::move(*file));
    }
    return status;
  }
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = FileSystemWrapper::ReopenWritableFile(path, options, file, debug);
    if (status.ok() && IsReserve(path)) {
      *file = std::make_unique<Writable>(this, /*reserve=*/true, std::move(*file));
    }
    return status;
  }
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    uint64_t bytes = 0;
    const bool counts = (IsReserve(path) || (deletes_make_space_ && Stored(path))) &&
                        FileSystemWrapper::GetFileSize(path, options, &bytes, debug).ok();
    rocksdb::IOStatus status = FileSystemWrapper::DeleteFile(path, options, debug);
    if (status.ok() && counts) space_ += static_cast<int64_t>(bytes);
    return status;
  }
  rocksdb::IOStatus GetFreeSpace(const std::string& /*path*/, const rocksdb::IOOptions& /*how*/,
                                 uint64_t* bytes, rocksdb::IODebugContext* /*debug*/) override {
    *bytes = static_cast<uint64_t>(std::max<int64_t>(space_, 0));
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewRandomAccessFile(path, options, file, debug);
    if (status.ok() && Stored(path)) *file = std::make_unique<Readable>(this, std::move(*file));
    return status;
  }

 private:
  class Writable : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    Writable(ColdFaultFiles* files, bool reserve, std::unique_ptr<rocksdb::FSWritableFile>&& file)
        : FSWritableFileOwnerWrapper(std::move(file)), files_(files), reserve_(reserve) {}
    using FSWritableFileOwnerWrapper::Append;
    void SetIOPriority(rocksdb::Env::IOPriority priority) override {
      compaction_ = priority != rocksdb::Env::IO_HIGH;
      FSWritableFileOwnerWrapper::SetIOPriority(priority);
    }
    rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      if (compaction_ && files_->refuse_compactions_) return files_->Full();
      rocksdb::IOStatus taken = files_->Take(bytes.size());
      return taken.ok() ? FSWritableFileOwnerWrapper::Append(bytes, options, debug) : taken;
    }
    rocksdb::IOStatus Allocate(uint64_t offset, uint64_t size, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
      // Of RocksDB's own files it is an attempt; what counts is appended.
      if (!reserve_) return rocksdb::IOStatus::OK();
      if (!files_->allocates_) return rocksdb::IOStatus::NotSupported("no fallocate");
      rocksdb::IOStatus taken = files_->Take(size);
      return taken.ok() ? FSWritableFileOwnerWrapper::Allocate(offset, size, options, debug)
                        : taken;
    }
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
      while (files_->hold_syncs_) std::this_thread::yield();
      return files_->fail_syncs_ ? files_->Failure("sync")
                                 : FSWritableFileOwnerWrapper::Sync(options, debug);
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* debug) override {
      return files_->fail_syncs_ ? files_->Failure("fsync")
                                 : FSWritableFileOwnerWrapper::Fsync(options, debug);
    }

   private:
    ColdFaultFiles* const files_;
    const bool reserve_;
    bool compaction_ = false;
  };
  class Readable : public rocksdb::FSRandomAccessFileOwnerWrapper {
   public:
    Readable(ColdFaultFiles* files, std::unique_ptr<rocksdb::FSRandomAccessFile>&& file)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), files_(files) {}
    rocksdb::IOStatus Read(uint64_t offset, size_t size, const rocksdb::IOOptions& options,
                           rocksdb::Slice* result, char* scratch,
                           rocksdb::IODebugContext* debug) const override {
      if (files_->fail_reads_) return files_->Failure("read");
      return FSRandomAccessFileOwnerWrapper::Read(offset, size, options, result, scratch, debug);
    }
    rocksdb::IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count,
                                const rocksdb::IOOptions& options,
                                rocksdb::IODebugContext* debug) override {
      if (files_->fail_reads_) return files_->Failure("read");
      return FSRandomAccessFileOwnerWrapper::MultiRead(requests, count, options, debug);
    }

   private:
    ColdFaultFiles* const files_;
  };

  int64_t BytesBeside() const {
    int64_t bytes = 0;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(beside_, gone)) {
      bytes += static_cast<int64_t>(entry.file_size(gone));
    }
    return bytes;
  }
  void CountBeside() {
    if (beside_.empty()) return;
    const int64_t now = BytesBeside();
    space_ += beside_bytes_.exchange(now) - now;
  }
  rocksdb::IOStatus Take(uint64_t bytes) {
    CountBeside();
    const auto size = static_cast<int64_t>(bytes);
    const int64_t before = space_.fetch_sub(size);
    if (before >= size) {
      int64_t least = least_space_;
      while (least > before - size && !least_space_.compare_exchange_weak(least, before - size)) {
      }
      return rocksdb::IOStatus::OK();
    }
    space_ += size;
    return Full();
  }
  rocksdb::IOStatus Full() {
    ++failures_;
    rocksdb::IOStatus full = rocksdb::IOStatus::NoSpace("the test's disk is full");
    full.SetRetryable(true);  // As RocksDB's own files say it.
    return full;
  }
  rocksdb::IOStatus Failure(const char* what) {
    ++failures_;
    return rocksdb::IOStatus::IOError("the test's disk fails a", what);
  }
  static bool Stored(const std::string& path) {
    return path.ends_with(".sst") || path.ends_with(".blob") ||
           path.find("/MANIFEST") != std::string::npos;
  }

  static bool IsReserve(const std::string& path) {
    return path.ends_with(engine::kColdReserveName);
  }

  std::atomic<int64_t> space_{int64_t{1} << 60};
  std::atomic<int64_t> least_space_{int64_t{1} << 60};
  std::atomic<bool> deletes_make_space_{false};
  std::atomic<bool> allocates_{true};
  std::atomic<bool> refuse_compactions_{false};
  std::atomic<bool> fail_reads_{false};
  std::atomic<bool> fail_syncs_{false};
  std::atomic<bool> hold_syncs_{false};
  std::atomic<uint64_t> failures_{0};
  std::string beside_;
  std::atomic<int64_t> beside_bytes_{0};
};

/// A clock for a store whose disk fails: RocksDB waits a second after each error.
class ColdHastyClock : public rocksdb::SystemClockWrapper {
 public:
  ColdHastyClock() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}
  const char* Name() const override { return "ColdHastyClock"; }
  void SleepForMicroseconds(int micros) override {
    SystemClockWrapper::SleepForMicroseconds(std::min(micros, 1000));
  }
};

}  // namespace geardb::testing
