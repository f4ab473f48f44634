// SegmentStream: the bytes of a log's segments in order, read ahead by a second thread where
// the system has one.
//
// Two buffers as long as a segment each: while records of one segment are looked at, the rest of it
// and the front of the next one are read, at most 8 MiB ahead. Of what was looked at, the memory
// leaves the process where it is to be `lean`.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "base/env.h"
#include "base/mutex.h"
#include "base/status.h"
#include "wal/aligned_buffer.h"
#include "wal/segment_map.h"

namespace geardb::wal {

/// Used by one thread.
class SegmentStream {
 public:
  /// `map` must outlive the stream.
  SegmentStream(Env* env, std::string log_directory, const SegmentMap* map, uint64_t segment_bytes,
                bool read_ahead, bool lean = false);
  ~SegmentStream();
  SegmentStream(const SegmentStream&) = delete;
  SegmentStream& operator=(const SegmentStream&) = delete;

  /// The bytes from `lsn` on: at least `bytes` of them, or all up to the segment's end. Empty when
  /// no file holds the segment. 64-byte aligned when `lsn` is. Valid until the next call. `lsn` may
  /// not go back by more than a MiB, nor to an earlier segment.
  Result<std::span<const std::byte>> At(Lsn lsn, uint64_t bytes);

  /// "path at offset", for error texts.
  std::string PlaceOf(Lsn lsn) const;

 private:
  struct Buffer {
    Lsn base = kNoLsn;
    uint64_t filled = 0;
    uint64_t left = 0;  // So many bytes at its front have no memory any more.
    Status status;
    std::unique_ptr<File> file;
    AlignedBuffer bytes;  // A segment long.
  };

  bool Start(Buffer* buffer, Lsn base, uint64_t from) GEARDB_REQUIRES(mutex_);
  void FillSome(Buffer* buffer) GEARDB_REQUIRES(mutex_);
  /// The memory of what lies before `offset`.
  void LeaveBehind(Buffer* buffer, uint64_t offset) const;
  Buffer* NextToFill() GEARDB_REQUIRES(mutex_);
  void Run();

  Env* const env_;
  const std::string log_directory_;
  const SegmentMap* const map_;
  const uint64_t segment_bytes_;
  const bool lean_;

  Mutex mutex_;
  CondVar filled_, wanted_;
  // Of base b: number b / segment_bytes_ % 2. The memory beyond `filled` of the buffer that is
  // filling_ is written without the mutex.
  std::array<Buffer, 2> buffers_ GEARDB_GUARDED_BY(mutex_);
  const Buffer* filling_ GEARDB_GUARDED_BY(mutex_) = nullptr;
  Lsn at_ GEARDB_GUARDED_BY(mutex_) = kNoLsn;  // What the reader of the stream is at.
  uint64_t needed_ GEARDB_GUARDED_BY(mutex_) = 0;
  bool stop_ GEARDB_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace geardb::wal
