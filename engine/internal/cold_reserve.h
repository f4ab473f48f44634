// ColdReserve: room on the disk that a cold store keeps for the day on which there is none.
//
// What frees space has to be written first: what a failed flush has left in memory, the removal
// itself, the image of an index without what has left, and a compaction. The file `RESERVE` takes
// as much from the disk. It is deleted when a full disk meets a write that ends in space coming
// free; no page is put into the store before it could be made again, all of it, or the next removal
// had nothing.
//
// A second, small one, `OPEN_RESERVE`, is for opening alone, which has to write a new manifest
// before it deletes the old one: a store that has used up all of its disk, and was killed, could
// not be opened to remove anything. What it takes comes back when the open ends.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "base/status.h"

namespace geardb::engine {

inline constexpr const char* kColdReserveName = "RESERVE";
inline constexpr const char* kColdOpenReserveName = "OPEN_RESERVE";
/// Four times what an open has to write: not all of it comes back at once.
inline constexpr uint64_t kColdOpenReserveBytes = uint64_t{256} << 10;

/// Bytes of a store's disk that are free, or its own; all where its file system does not say. Its
/// own, of which there may be many files, count only where less than `enough` is free.
uint64_t DiskRoom(rocksdb::FileSystem* files, const std::string& directory, uint64_t enough);

/// Thread-safe.
class ColdReserve {
 public:
  /// `files` outlives it; `directory` need not exist yet.
  ColdReserve(rocksdb::FileSystem* files, const std::string& directory, uint64_t bytes,
              const char* name = kColdReserveName);

  /// Of a store with so much in memory at most, on a disk with so much room: for that, for the
  /// values that a compaction copies out of a blob file, which are as much, and for the last batch,
  /// the keys that a compaction rewrites, and what files have beside keys and values.
  static uint64_t BytesFor(uint64_t unflushed_bytes, uint64_t room);
  /// With more room, BytesFor is the same.
  static constexpr uint64_t kRoomMost = uint64_t{32} << 20;

  /// Makes the file where it is not there, or is shorter than its bytes and `more`.
  /// ResourceExhausted: the disk is too full for it, and what was there stays. OK also in a file
  /// system that cannot allocate without writing, where there is none.
  Status Keep(uint64_t more = 0);
  /// Likewise, of as many sixteenths of its bytes as there is room for, two at least.
  Status KeepPart();
  /// Deletes it. Whether that made room.
  bool GiveUp();
  uint64_t bytes() const { return bytes_; }
  /// Of the file, as it is; 0 where there is none.
  uint64_t Size() const;

 private:
  Status KeepBytes(uint64_t wanted);
  /// In place: a reserve that is there is never gone meanwhile, whatever ends the process. Not OK:
  /// it has what it had.
  rocksdb::IOStatus Grow(uint64_t bytes) GEARDB_REQUIRES(mutex_);
  rocksdb::IOStatus Allocate(uint64_t from, uint64_t to) GEARDB_REQUIRES(mutex_);

  rocksdb::FileSystem* const files_;
  const std::string path_;
  const uint64_t bytes_;
  Mutex mutex_;
  uint64_t held_ GEARDB_GUARDED_BY(mutex_) = 0;  // Of the file, as it was found or made.
};

}  // namespace geardb::engine
