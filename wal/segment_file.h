// SegmentFile and SegmentPool: the log's files, which of them hold which bytes, and which are free.
//
// A file's identity is its first record alone; its name is only a number. A free file is bound to a
// base when the LSN of the segment record is taken, without touching the file.
//
// Invariants:
//   A file is free or holds one base; live bases are contiguous multiples of the segment size.
//   A file is in the pool only after its directory entry and its space are durable.
//   Of the live files the newest few are open, and of the free ones those that are taken next: a
//   log may have more segments than a process may have descriptors.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/types.h"

namespace geardb::wal {

/// One file of a segment's size, for writing. Writes come from one thread at a time; a sync, or
/// closing the file, may go on beside them.
class SegmentFile {
 public:
  /// Opens a file that is there. One that is too short gets its length, and every one its space.
  /// ResourceExhausted: the disk is full, or no descriptor is left.
  static Result<std::unique_ptr<SegmentFile>> Open(Env* env, const std::string& path,
                                                   uint64_t bytes, bool direct);
  /// Makes a file with its space reserved, durable on return apart from its directory entry; after
  /// an error there is none. AlreadyExists when there was one; ResourceExhausted as for Open.
  static Result<std::unique_ptr<SegmentFile>> Create(Env* env, const std::string& path,
                                                     uint64_t bytes, bool direct);

  /// `offset`, size and memory of `from` are multiples of 4 KiB.
  Status Write(uint64_t offset, std::span<const std::byte> from);
  /// Writes zeros at [offset, offset + bytes), so that a later fdatasync need not pay for
  /// allocation.
  Status WriteZeros(uint64_t offset, uint64_t bytes);
  /// Writes [offset, offset + bytes), multiples of 4 KiB, as the page cache shows it. A failed sync
  /// leaves pages there that differ from the disk and count as written; so they are to be written.
  Status Rewrite(uint64_t offset, uint64_t bytes);
  Status Sync();
  /// Do writes go around the page cache?
  bool direct() const { return direct_.load(std::memory_order_acquire); }

  /// Gives the descriptor back until Wake, or a write. What was written is to be synced before:
  /// another descriptor may not be told that it was lost.
  void Rest();
  /// ResourceExhausted where no descriptor is left.
  Status Wake() { return Opened().status(); }
  bool is_open() const { return open_.load(std::memory_order_acquire); }

  const std::string& path() const { return path_; }
  /// "direct" or "buffered (why)".
  std::string write_path() const;
  /// Bytes from the file's front that are known to be allocated and written.
  uint64_t written_bytes() const { return written_bytes_; }

  /// The file did not have its full length when it was opened.
  bool was_short() const { return was_short_; }

  /// Unsynced writes? Set after a write, cleared before the fdatasync that covers it.
  std::atomic<bool> dirty{false};

 private:
  SegmentFile(Env* env, std::shared_ptr<File> file, bool direct);

  static Result<std::unique_ptr<SegmentFile>> Make(Env* env, std::unique_ptr<File> file,
                                                   uint64_t bytes, bool direct);
  /// The file, which is opened where it is not.
  Result<std::shared_ptr<File>> Opened();
  void Use(std::shared_ptr<File> file) GEARDB_REQUIRES(mutex_);

  Env* const env_;
  const std::string path_;
  const bool wants_direct_;
  std::atomic<bool> direct_;
  std::atomic<bool> open_{false};
  mutable Mutex mutex_;
  std::shared_ptr<File> file_ GEARDB_GUARDED_BY(mutex_);
  std::string direct_note_ GEARDB_GUARDED_BY(mutex_);
  uint64_t written_bytes_ = 0;
  bool was_short_ = false;
};

/// Thread-safe.
class SegmentPool {
 public:
  /// `env` holds the directory, which may be moved or replaced while the pool makes files in it.
  SegmentPool(std::shared_ptr<Env> env, std::string directory, uint64_t segment_bytes, bool direct)
      : env_(std::move(env)),
        directory_(std::move(directory)),
        segment_bytes_(segment_bytes),
        direct_(direct) {}

  /// For the open: takes over a file that is there already. AddFree: one that is too short is made
  /// whole; ResourceExhausted, and the file is not in the pool, when the disk is full.
  Status AddFree(const std::string& name);
  /// The newest come first: those that are added first stay open.
  Status AddLive(const std::string& name, Lsn base);

  /// Gives a free file to `base`. The caller has seen that free_count() > 0, and that
  /// ready_count() > 0 where its writes may not find that no descriptor is left.
  void Bind(Lsn base);
  /// The file of the segment that holds `lsn`; null when there is none.
  SegmentFile* Find(Lsn lsn);
  /// The free file that Bind gives next, and null when there is none, or it is not open.
  SegmentFile* NextFree();
  /// Frees the segments that end at or below `lsn`.
  void ReleaseBelow(Lsn lsn);
  /// All below `lsn` is written and synced: closes files of it, but for the newest of the log.
  void RestBelow(Lsn lsn);

  /// Makes one more free file: creates it, reserves its space, syncs it and its directory. One
  /// thread at a time. A name that somebody else has taken is left to them. FailedPrecondition
  /// where the directory was removed.
  Status CreateSpare();
  /// Opens the next free file that is not open; one that somebody has removed leaves the pool. One
  /// thread at a time, and not while RemoveSpares runs. ResourceExhausted where no descriptor is
  /// left.
  Status WakeSpare();
  /// Removes the newest free files, until no more than `left` are left.
  void RemoveSpares(uint64_t left);

  /// Files with unsynced writes whose `dirty` was set; clears it.
  std::vector<SegmentFile*> TakeDirty();
  /// All live files that hold bytes at or beyond `lsn`.
  std::vector<SegmentFile*> LiveFrom(Lsn lsn);

  uint64_t free_count() const { return free_count_.load(std::memory_order_acquire); }
  /// How many of the free files that are taken next are open.
  uint64_t ready_count() const { return ready_count_.load(std::memory_order_acquire); }
  uint64_t live_count() const { return live_count_.load(std::memory_order_acquire); }
  /// Base of the oldest live segment; kNoLsn when there is none.
  Lsn oldest_base() const;
  uint64_t segment_bytes() const { return segment_bytes_; }
  std::string write_path() const;

 private:
  void NoteName(const std::string& name) GEARDB_REQUIRES(mutex_);
  std::string NextPath();
  void NoteCounts() GEARDB_REQUIRES(mutex_);

  const std::shared_ptr<Env> env_;
  const std::string directory_;
  const uint64_t segment_bytes_;
  const bool direct_;

  mutable Mutex mutex_;
  std::map<Lsn, std::unique_ptr<SegmentFile>> live_ GEARDB_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<SegmentFile>> free_
      GEARDB_GUARDED_BY(mutex_);                    // Taken from the back.
  Lsn rested_below_ GEARDB_GUARDED_BY(mutex_) = 0;  // What lives below it was closed.
  uint64_t next_number_ GEARDB_GUARDED_BY(mutex_) = 1;
  std::atomic<uint64_t> free_count_{0};
  std::atomic<uint64_t> ready_count_{0};
  std::atomic<uint64_t> live_count_{0};
};

}  // namespace geardb::wal
