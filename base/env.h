// Env: the one seam for files. Every file operation of GearDB goes through it, so that a test can
// run the whole store on an in-memory file system that loses, tears and refuses what it likes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace geardb {

/// Offsets, lengths and memory of reads and writes on a direct file are multiples of this.
inline constexpr uint64_t kDirectAlignment = 4096;

/// How a file is opened.
enum class FileMode : uint8_t {
  kRead,       ///< Must exist; writes are refused.
  kReadWrite,  ///< Must exist.
  kCreate,     ///< Read-write, made empty when it is not there.
  kCreateNew,  ///< Read-write, made empty; AlreadyExists when it is there.
};

/// See Env::OpenFile.
struct FileOptions {
  FileMode mode = FileMode::kRead;
  /// Try I/O past the page cache. Where the file system refuses it the file is buffered instead,
  /// and File::direct_note() says why.
  bool direct = false;
};

/// A whole file in memory, shared with every other process that maps it. What is stored here
/// survives the death of the process without a system call. Unmapped by the destructor.
class Mapping {
 public:
  virtual ~Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  /// The file's bytes, mapped twice in a row: data()[i] and data()[size() + i] are one byte, so a
  /// ring has no seam. 4 KiB aligned.
  std::byte* data() const { return data_; }
  /// Bytes of the file (half of what may be addressed).
  uint64_t size() const { return size_; }

 protected:
  Mapping(std::byte* data, uint64_t size) : data_(data), size_(size) {}

 private:
  std::byte* data_;
  uint64_t size_;
};

/// Bytes [begin, end) of a file.
struct FileExtent {
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// An open file with positional reads and writes. Thread-safe: calls on disjoint bytes may run in
/// parallel. Closed by the destructor, which makes nothing durable. A full disk, or no descriptor
/// left, is ResourceExhausted, any other refusal IoError, with path, offset and errno's words.
class File {
 public:
  virtual ~File() = default;
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// Reads until `into` is full or the file ends; returns the number of bytes read. Where a sector
  /// cannot be read, its bytes are others (base/bad_sectors.h).
  virtual Result<size_t> Read(uint64_t offset, std::span<std::byte> into) = 0;
  /// Writes all of `from`. After an error any part of it may have been written. Unsupported: a file
  /// that was opened as direct takes no direct writes, or none from there.
  virtual Status Write(uint64_t offset, std::span<const std::byte> from) = 0;
  /// fdatasync: every earlier write of this file, and its size, survive power loss on return.
  virtual Status Sync() = 0;
  virtual Result<uint64_t> Size() = 0;
  /// Makes the file at least `bytes` long and reserves its space, that of holes too (a copy may
  /// have some); new bytes read as zero. ResourceExhausted on a full disk, with nothing changed
  /// of what the file reads. OK for holes where the file system cannot reserve space.
  virtual Status Allocate(uint64_t bytes) = 0;
  /// The first extent at or after `offset` that may hold something other than zeros; begin = end =
  /// Size() when there is none. A file system that cannot tell returns the rest of the file.
  virtual Result<FileExtent> NextWritten(uint64_t offset) = 0;
  /// A hint: these bytes will be read soon. Does not wait for them.
  virtual void Prefetch(const FileExtent& extent) { (void)extent; }
  /// Maps the whole file for reading and writing; its size must be a multiple of 4 KiB. The mapping
  /// may outlive the File. Unsupported where shared maps do not work.
  virtual Result<std::unique_ptr<Mapping>> Map() = 0;

  /// True when reads and writes bypass the page cache.
  virtual bool direct() const = 0;
  /// Why a file that was asked to be direct is not; empty otherwise.
  virtual std::string_view direct_note() const = 0;
  virtual const std::string& path() const = 0;
};

/// Held by one owner; released by the destructor or the death of the process.
class FileLock {
 public:
  virtual ~FileLock() = default;
  FileLock() = default;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
};

/// Who else may hold a lock.
enum class LockMode : uint8_t {
  kExclusive,  ///< Nobody. Makes the file if needed and writes the owner's pid into it.
  kShared,     ///< Other shared owners. Writes nothing; the file must exist.
};

/// A file system. Thread-safe. Paths are as the operating system takes them; one with a NUL in it
/// is InvalidArgument.
class Env {
 public:
  virtual ~Env() = default;

  /// Corruption when a directory, FIFO or the like is in the place of a file that may be there.
  /// Does not wait.
  virtual Result<std::unique_ptr<File>> OpenFile(const std::string& path, FileOptions options) = 0;
  /// The names in a directory, sorted, without "." and "..". NotFound when there is no directory.
  virtual Result<std::vector<std::string>> List(const std::string& directory) = 0;
  virtual Result<bool> Exists(const std::string& path) = 0;
  /// How many bytes its disk has room for. NotFound when there is no directory; Unsupported where
  /// nothing is known of it.
  virtual Result<uint64_t> FreeBytes(const std::string& directory) {
    return Status::Unsupported("what is free for '", directory, "'");
  }
  virtual Status Remove(const std::string& path) = 0;
  /// Replaces `to` atomically.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  /// OK when it is there already. The parent must exist.
  virtual Status CreateDirectory(const std::string& path) = 0;
  /// Makes the creations, renames and removals in a directory survive power loss.
  virtual Status SyncDirectory(const std::string& path) = 0;
  /// This file system, in which the path `directory`, and those that go on from it, lead to what it
  /// is now: also when it, or one above it, is moved or replaced, or the working directory changes.
  /// Once it is removed they are NotFound. Costs a descriptor. May outlive an Env that is a held
  /// directory itself; none may outlive the file system, which returns itself where its directories
  /// stay where they are.
  virtual Result<std::shared_ptr<Env>> HoldDirectory(const std::string& directory) {
    (void)directory;
    return std::shared_ptr<Env>(std::shared_ptr<Env>(), this);
  }
  /// Takes a lock without waiting. FailedPrecondition, naming the owner's pid, when another process
  /// or another caller in this one holds it in a way that excludes `mode`.
  virtual Result<std::unique_ptr<FileLock>> Lock(const std::string& path, LockMode mode) = 0;

  /// The operating system's files. Never null, never deleted.
  static Env* Posix();
};

/// All bytes of a file, at most `bytes_max` (Corruption when it is longer).
Result<std::vector<std::byte>> ReadWholeFile(Env* env, const std::string& path, uint64_t bytes_max);

/// Fills `into` with the bytes from `offset` on; holes and what lies beyond the end are zeros, and
/// are not read: reading a hole would bring pages of zeros into memory.
Status ReadSparse(File* file, uint64_t offset, std::span<std::byte> into);

/// Writes `<path>.new`, syncs it, renames it to `path` and syncs the directory. After an error or a
/// crash `path` is the old file or the new one, never a mixture.
Status ReplaceFile(Env* env, const std::string& path, std::span<const std::byte> bytes);

/// The directory that a path is in: "a" for "a/b" and "a/b/", "." for "b".
std::string ParentOf(std::string_view path);

/// "a/b" for "a" and "b".
std::string JoinPath(std::string_view directory, std::string_view name);

}  // namespace geardb
