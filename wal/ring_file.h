// RingFile: the file in which records are staged, mapped so that they survive the process.
//
// The byte of LSN l is at l modulo the ring's size. Addresses run on past the end of the ring: a
// record that wraps is one run of memory.
//
// Where shared maps do not work the ring is private memory, and Commit writes it to the file.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/status.h"
#include "base/types.h"

namespace geardb::wal {

/// See RingFile::Open.
enum class RingAccess : uint8_t {
  kReadOnly,  ///< A private copy of the file; nothing is ever written.
  kMapped,    ///< Mapped shared; falls back to kWritten where that does not work.
  kWritten,   ///< Private memory, written by Commit.
};

/// Thread-safe for calls on disjoint bytes.
class RingFile {
 public:
  /// Opens the ring at `path`, which must have `bytes` bytes (Corruption otherwise).
  static Result<std::unique_ptr<RingFile>> Open(Env* env, const std::string& path, uint64_t bytes,
                                                RingAccess access);
  /// Makes the file with its space reserved, so that storing into the map cannot fail later.
  static Status Create(Env* env, const std::string& path, uint64_t bytes);

  ~RingFile();
  RingFile(const RingFile&) = delete;
  RingFile& operator=(const RingFile&) = delete;

  /// Where the byte of `lsn` is; bytes() bytes may be addressed from there.
  std::byte* At(Lsn lsn) const { return memory_ + (lsn & (bytes_ - 1)); }
  uint64_t bytes() const { return bytes_; }

  /// Makes what was stored at [lsn, lsn + bytes) survive the process. Free when mapped.
  Status Commit(Lsn lsn, uint64_t bytes) {
    return mapping_ ? Status::Ok() : WriteThrough(lsn, bytes);
  }

  /// Parts of the ring that may hold records.
  Result<std::vector<FileExtent>> WrittenExtents();

  /// "mapped" or "written (why)".
  const std::string& path_name() const { return path_name_; }

 private:
  struct Freer {
    void operator()(std::byte* memory) const;
  };

  RingFile(std::unique_ptr<File> file, uint64_t bytes) : file_(std::move(file)), bytes_(bytes) {}
  Status Load();
  Status WriteThrough(Lsn lsn, uint64_t bytes);

  std::unique_ptr<File> file_;
  const uint64_t bytes_;
  std::unique_ptr<Mapping> mapping_;
  std::unique_ptr<std::byte[], Freer> private_memory_;  // Twice the ring when it is not mapped.
  std::byte* memory_ = nullptr;
  std::string path_name_ = "mapped";
};

}  // namespace geardb::wal
