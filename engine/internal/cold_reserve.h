// ColdReserve: room on the disk that a cold store keeps for the day on which there is none.
//
// What frees space has to be written first: what a failed flush has left in memory, the removal
// itself, and the image of an index without what has left. The file `RESERVE` takes as much from
// the disk. It is deleted when a full disk meets a write that ends in space coming free; nothing
// else is written to the store before it could be made again, or the next removal had nothing. On a
// disk that has no room for all of it a smaller one does for what writes less.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "base/status.h"

namespace geardb::engine {

inline constexpr const char* kColdReserveName = "RESERVE";
/// What of a reserve is for more than what is in memory: the last batch, and what files have beside
/// their keys and values.
inline constexpr uint64_t kColdReserveMore = uint64_t{4} << 20;

/// Thread-safe.
class ColdReserve {
 public:
  /// `files` outlives it; `directory` need not exist yet.
  ColdReserve(rocksdb::FileSystem* files, const std::string& directory, uint64_t bytes);

  /// Makes the file where it is not there, or is too short; where the disk is too full for the
  /// whole of it, one of `enough` bytes, if that is less: what comes next is known to need no more.
  /// ResourceExhausted: the disk is too full for that, too. OK also in a file system that cannot
  /// allocate without writing, where there is none.
  Status Keep(uint64_t enough = UINT64_MAX);
  /// Deletes it. Whether that made room.
  bool GiveUp();
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t Size() const;
  rocksdb::IOStatus Allocate(uint64_t bytes) GEARDB_REQUIRES(mutex_);

  rocksdb::FileSystem* const files_;
  const std::string path_;
  const uint64_t bytes_;
  Mutex mutex_;
  uint64_t held_ GEARDB_GUARDED_BY(mutex_) = 0;  // Of the file, as it was found or made.
};

}  // namespace geardb::engine
