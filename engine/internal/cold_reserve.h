// ColdReserve: room on the disk that a cold store keeps for the day on which there is none.
//
// What frees space has to be written first: what a failed flush has left in memory, the removal
// itself, and the image of an index without what has left. The file `RESERVE` takes as much from
// the disk. It is deleted when a full disk meets a write that ends in space coming free; nothing
// else is written to the store before it could be made again, or the next removal had nothing.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "base/status.h"

namespace geardb::engine {

inline constexpr const char* kColdReserveName = "RESERVE";

/// Thread-safe.
class ColdReserve {
 public:
  /// `files` outlives it; `directory` need not exist yet.
  ColdReserve(rocksdb::FileSystem* files, const std::string& directory, uint64_t bytes);

  /// Makes the file where it is not there, or is too short. ResourceExhausted: the disk is too
  /// full. OK also in a file system that cannot allocate without writing, where there is none.
  Status Keep();
  /// Deletes it. Whether that made room.
  bool GiveUp();
  uint64_t bytes() const { return bytes_; }

 private:
  bool IsWhole() GEARDB_REQUIRES(mutex_);
  rocksdb::IOStatus Allocate() GEARDB_REQUIRES(mutex_);

  rocksdb::FileSystem* const files_;
  const std::string path_;
  const uint64_t bytes_;
  Mutex mutex_;
  bool held_ GEARDB_GUARDED_BY(mutex_) = false;  // It was found, or made.
};

}  // namespace geardb::engine
