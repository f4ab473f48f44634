// LogBytes: single records and bytes of the log by their LSN, from the segment files, for whoever
// knows where they are.
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
#include "wal/aligned_buffer.h"
#include "wal/log_writer.h"
#include "wal/manifest.h"
#include "wal/record_codec.h"

namespace geardb::wal {

/// What a record says, and where its pieces are.
struct RecordIndex {
  struct Piece {
    Lsn record = 0;       ///< Which has it: the one that names it, or an earlier part of its group.
    Lsn at = kNoLsn;      ///< Of its first byte; kNoLsn: the part's head says it.
    uint64_t offset = 0;  ///< In the piece area of `record`.
    uint64_t bytes = 0;
    uint64_t checksum = 0;
  };
  std::vector<Piece> pieces;
  std::span<const std::byte> body() const {
    return std::as_bytes(std::span(words)).first(body_bytes);
  }
  std::vector<uint64_t> words;  ///< Of the body: it begins at a multiple of 8 bytes.
  uint64_t body_bytes = 0;
};

/// Thread-safe. Files are found when their bytes are first asked for; those that were used last
/// stay open.
class LogBytes {
 public:
  /// Of the log in `directory`/log. Segments are those that `manifest` allows; bytes are read past
  /// the page cache with `direct`, where that works.
  LogBytes(std::shared_ptr<Env> env, const std::string& directory, const Manifest& manifest,
           bool direct);

  /// The log was opened: segments are those of this manifest from here on.
  void UseManifest(const Manifest& manifest);

  /// Bytes [at, at + count), which are drained and lie in one segment; they are in `scratch` (which
  /// is replaced where it is too small) until it is used again. What they say is not checked.
  /// Corruption, naming the LSN, where no segment file has them; IoError.
  /// With `in_order`, reads go through the log, and those that are short and near one another share
  /// a read of the disk.
  Result<std::span<const std::byte>> Read(Lsn at, uint64_t count, AlignedBuffer* scratch,
                                          bool in_order = false);

  /// The record at `lsn`, which is drained, without its pieces; parts that have some of them are
  /// not looked at. Corruption where there is no such record.
  Result<RecordIndex> ReadIndex(Lsn lsn, AlignedBuffer* scratch, bool in_order = false);

  /// The bytes of a piece, checked, in `scratch` until it is used again. Corruption, naming the
  /// LSN, where they do not fit its checksum, or no segment file has them or the part that holds
  /// them; IoError.
  Result<std::span<const std::byte>> ReadPiece(const RecordIndex::Piece& piece,
                                               AlignedBuffer* scratch, bool in_order = false);

  /// All below `lsn` is drained: what is read in order may be kept up to there.
  void NoteDrained(Lsn lsn);

  /// Segments that end at or below `lsn` are gone: their files are other segments' now. Reads of
  /// them are Corruption.
  void ForgetBelow(Lsn lsn);

  /// Files that are open.
  uint64_t open_files();
  /// Reads of files so far, without those that look for one.
  uint64_t file_reads() const { return file_reads_.load(std::memory_order_relaxed); }

 private:
  struct OpenFile {
    std::shared_ptr<File> file;
    uint64_t used = 0;  // When: the larger, the later.
  };

  std::shared_ptr<File> FindOpen(Lsn base);
  /// Of the file that has the segment.
  Result<std::string> FindName(Lsn base);
  Result<std::shared_ptr<File>> FindFile(Lsn base);
  Status GoneBelow(Lsn base) const;
  Result<ParsedRecord> ReadHead(Lsn lsn, AlignedBuffer* scratch, bool in_order);
  bool IsForgotten(Lsn base);
  /// Whether the bytes were to be had from the block, and are in `scratch` now.
  Result<bool> ReadInOrder(Lsn at, uint64_t count, AlignedBuffer* scratch);
  bool InBlock(Lsn at, uint64_t count) GEARDB_REQUIRES(block_mutex_);
  Status FillBlock(Lsn at) GEARDB_REQUIRES(block_mutex_);

  const std::shared_ptr<Env> env_;
  const std::string log_directory_;
  const uint64_t segment_bytes_;
  const uint64_t seed_;
  const bool direct_;

  Mutex mutex_;
  Manifest manifest_ GEARDB_GUARDED_BY(mutex_);
  Lsn forgotten_ GEARDB_GUARDED_BY(mutex_) = 0;
  // By base. A name holds until its segment is gone, and to look for one reads all files.
  std::map<Lsn, OpenFile> files_ GEARDB_GUARDED_BY(mutex_);
  std::map<Lsn, std::string> names_ GEARDB_GUARDED_BY(mutex_);
  uint64_t uses_ GEARDB_GUARDED_BY(mutex_) = 0;

  // What was read in order last, [block_begin_, block_end_), all of it drained by then. Held while
  // it is read: those who wait for it want the same bytes.
  Mutex block_mutex_;
  AlignedBuffer block_ GEARDB_GUARDED_BY(block_mutex_);
  Lsn block_begin_ GEARDB_GUARDED_BY(block_mutex_) = 0;
  Lsn block_end_ GEARDB_GUARDED_BY(block_mutex_) = 0;
  Lsn in_order_end_ GEARDB_GUARDED_BY(block_mutex_) = 0;  // Of the last read in order.
  std::atomic<Lsn> drained_{0};
  std::atomic<uint64_t> file_reads_{0};
};

}  // namespace geardb::wal
