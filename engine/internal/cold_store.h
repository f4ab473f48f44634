// The cold store: pages and index chunks that the log no longer holds, in a RocksDB of the
// database's own (directory `<database>/cold`).
//
// **The LSN.** RocksDB's own log is off: what is written lives in memory until a flush, Flush() or
// one of RocksDB's own, has put it into files. Every batch carries an LSN, "the log must still
// reach back to this", which is stored with it. Flushes are atomic over all that the store holds,
// so an open finds exactly the batches up to some batch, whole, and none behind it; `flushed_lsn()`
// is the LSN of that batch, as stored with it, and never more than what an open would find. The
// caller sees to it that the log is synced up to what a batch was made from, *before* Write:
// RocksDB flushes when it likes.
//
// **Removal.** A range of ids (or a table) is removed by a range tombstone in its batch, which is
// exact, but frees nothing by itself. Files that lie wholly inside the range are dropped later:
//   1. the batch holds the tombstone, its LSN, and (cold_own.h) that the range is to be reclaimed;
//   2. a flush makes that durable;
//   3. only then are whole files dropped, a change of RocksDB's manifest that is durable at once;
//   4. a second tombstone over the range, in one batch with the end of the record.
// A file that is dropped may have held the first tombstone (or a newer version) over an older page
// in a file that is kept, which straddles the range's end: 4 covers it again, and after a death
// between 3 and 4 the record tells the next open to do so before anybody reads. Without 2, an open
// could find pages gone that the batches up to its LSN still have. Ids and table numbers are never
// used again after their removal: 4 would remove what was put into the range between 1 and 4. While
// 3 and 4 run, and in a read-only open after a death between them, a read of a removed page may
// still find some version of it.
//
// **Damage.** What a read finds damaged is said of the pages that were read, by name. A value that
// does not fit its checksum and a bad blob record are the page's own. What a bad block of an SST
// file hides, or a file that is missing or bad as a whole, is looked for in the blob files
// (cold_salvage.h), in the other files that a read passes through, and in the store as it is
// without these files. Where it is in none, it is lost, if all of them could be read but for bad
// blocks, or the store was opened for reading. Else reads fail that pass through the file, also
// those of pages that other files have (ColdRead::of_file): one that is missing may come back.
// Never is it an older version: RocksDB asks the newest file first and stops at an error. Once a
// file was dropped, an older version may come up, which has another LSN than the one that is asked
// for (ColdPageHeader::lsn). Index chunks and the LSN are in two files each (cold_chunks.h), so
// that one bad file costs none. A blob file without its header or footer is read as if it had them
// (cold_blobs.h). A compaction that meets damage is given up and compaction switched off (reads and
// writes go on) until the next open; `damage()` says what was found. Where RocksDB cannot open the
// directory for bad files, but for those of one copy, it is opened for reading; writes are
// FailedPrecondition. `CURRENT` and the manifest, without which nothing says what files are part of
// the store, have a copy (cold_manifest.h). With both bad: Corruption, and nothing is changed. That
// both manifests end too early is found by the LSN alone: pass `log_start`.
//
// **Failures.** A full disk is ResourceExhausted: nothing of the batch was taken; each later Write
// or Flush tries again, and goes through when there is room. But RocksDB cannot take anything, a
// removal neither, before it has flushed what a failed flush has left in memory: what ends in files
// being dropped may use the store's reserve for it (UseReserve, cold_reserve.h). Any other failure
// to write files is IoError, final until the store is opened again; reads go on.
//
// Thread-safe, but for Close: nobody may be inside another call then. Writes are made one after the
// other, and may wait for RocksDB's flushes and compactions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/page_view.h"
#include "base/status.h"
#include "engine/internal/cold_keys.h"
#include "engine/internal/cold_page.h"
#include "engine/internal/cold_snapshot.h"
#include "engine/stats.h"

namespace rocksdb {
class FileSystem;
class SystemClock;
}  // namespace rocksdb

namespace geardb::engine {

struct ColdDb;
struct ColdPosition;
struct ColdRemoval;
class ColdReader;
class ColdSpace;
class ColdStore;

/// What RocksDB works with at least: memtables of half of it, which it flushes by the quarter.
inline constexpr uint64_t kColdMemoryBytesMin = uint64_t{1} << 20;

/// How a store is opened.
struct ColdStoreOptions {
  /// Nothing is written, not even a directory; the store must exist. Nobody may write meanwhile.
  bool read_only = false;
  /// How far the log still reaches back, 0 where nothing of it was recycled. A store whose LSN is
  /// below it has lost what it once said was flushed: Corruption, before anything is changed. (A
  /// bit flipped in a length or type of RocksDB's manifest looks to it like the manifest's end: it
  /// would go on from an earlier state, and delete all newer files.)
  uint64_t log_start = 0;

  // ---- Tuning.

  /// Blocks read, indexes of files, and what is not flushed yet, all together. Soft: a batch or a
  /// read that is larger exceeds it for its time. At least kColdMemoryBytesMin.
  uint64_t memory_bytes = uint64_t{64} << 20;
  /// Of that, what is not flushed yet: half of it, or less, and a sixteenth of the disk's room. The
  /// reserve on the disk is of twice as much, and some.
  uint64_t unflushed_bytes_max = UINT64_MAX;
  /// Threads each for flushes and compactions; one flush is made at a time.
  uint32_t background_threads = 2;
  /// What is on disk over what of it is live, as far as RocksDB's compactions have found out: above
  /// this NeedsCompaction() says so. More than 1.
  double space_amplification_max = 1.5;
  /// Values of at least this size go to blob files, which compactions do not rewrite.
  uint64_t blob_bytes_min = 256;
  /// At most what is not flushed, so that the reserve has room for a compaction of one.
  uint64_t blob_file_bytes = uint64_t{256} << 20;
  uint64_t sst_file_bytes = uint64_t{16} << 20;
  /// Files held open.
  uint32_t open_files_max = 512;
  /// For tests: which format a store that is made has (cold_own.h).
  uint32_t format_of_new = 4;
  /// For tests: where the files are, and how RocksDB waits. Null: the system's.
  std::shared_ptr<rocksdb::FileSystem> files = nullptr;
  std::shared_ptr<rocksdb::SystemClock> clock = nullptr;
};

/// Changes that are made together. Not thread-safe; for one store, which outlives it.
class ColdBatch {
 public:
  explicit ColdBatch(const ColdStore& store);
  ~ColdBatch();
  ColdBatch(const ColdBatch&) = delete;
  ColdBatch& operator=(const ColdBatch&) = delete;

  /// Compresses and adds a page; the newest under a key counts. InvalidArgument adds nothing.
  Status PutPage(const ColdPageKey& key, const ColdPageSource& page);
  void DeletePage(const ColdPageKey& key);
  /// All pages of the trajectories, and their space (see *Removal*); no page of them is ever put
  /// again. InvalidArgument where `end` is below `first`.
  Status DeleteTrajectoryPages(const ColdTrajectoryRange& range);
  /// `lsn` is the chunk's own: the log since then is to be applied to it. At most about 4 GiB.
  Status PutChunk(const ColdChunkKey& key, uint64_t lsn, std::span<const std::byte> bytes);
  void DeleteChunk(const ColdChunkKey& key);
  /// All pages and chunks of a table, whose number is never used again.
  void DeleteTable(uint32_t table);

  /// What it deletes was of so many bytes, about, in values that are large enough for blob files.
  void AddRemovedBytes(uint64_t bytes);

  /// Bytes that the batch holds.
  uint64_t bytes() const;
  void Clear();
  /// ReturnToMark takes back what was put and deleted since; nothing goes by ranges in between.
  void Mark();
  void ReturnToMark();

 private:
  friend class ColdStore;
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

/// One page to be read. `key`, `layout` and `frame` (layout->frame_bytes() or more) are given.
struct ColdRead {
  ColdPageKey key;
  const PageLayout* layout = nullptr;
  std::span<std::byte> frame;
  /// Where bad blocks hide the page: no older version is taken for it. kNoLsn: none is.
  Lsn lsn = kNoLsn;
  /// Read as of then; null: as of now.
  std::shared_ptr<const ColdSnapshot> as_of = nullptr;
  /// Valid where `status` is OK.
  ColdPageHeader header = {};
  /// NotFound, Corruption (the frame's rows mean nothing then) and IoError name the page.
  Status status = {};
  /// Of Corruption: a file through which the read passes is missing or cut, and may have the page,
  /// another version, or a deletion of another; the page itself may be good.
  bool of_file = false;
};

/// One index chunk.
struct ColdChunk {
  uint64_t lsn = 0;
  std::string bytes;
};

using geardb::ColdStats;

class ColdStore {
 public:
  /// Opens the store in `directory`, made if it is absent (its parent exists). Corruption names
  /// what is wrong; Unsupported: a newer GearDB has written it; IoError.
  static Result<std::unique_ptr<ColdStore>> Open(const std::string& directory,
                                                 const ColdStoreOptions& options);
  /// Closes without a flush, if Close was not called: what is not flushed is gone, as in a crash.
  ~ColdStore();
  ColdStore(const ColdStore&) = delete;
  ColdStore& operator=(const ColdStore&) = delete;

  /// Makes the changes, which are then read; the batch is empty afterwards. `lsn` is not below any
  /// before. On an error nothing has changed, and the batch is as it was.
  Status Write(ColdBatch* batch, uint64_t lsn);
  /// Waits until all that was written is in files, then reclaims what removals have left (which a
  /// CompactForSpace that runs does at its end).
  Status Flush();
  /// Whether what is written on a full disk from here on may use the reserve.
  void UseReserve(bool may);
  /// Makes the reserve again, where it was used: before any page is put. ResourceExhausted: the
  /// disk is too full for it.
  Status KeepReserve();
  /// Whether room comes of what is garbage when `bytes` more of values are removed: one part in 32
  /// of what is on disk, or a reserve. Less is not worth what it takes to be found.
  bool RemovalMakesRoom(uint64_t bytes) const;
  /// On a full disk: rewrites files as CompactForSpace, where known garbage is worth it though the
  /// bound on space is kept. Cancelled likewise.
  Status MakeRoom();
  /// The LSN of the last batch written, or found by the open.
  uint64_t written_lsn() const;
  /// Its number; each has the next one.
  uint64_t last_batch() const;
  /// The LSN of the last batch that a finished flush covers: what an open would find. It grows
  /// without a call, too. 0 in a new store.
  uint64_t flushed_lsn() const;

  /// Reads pages in this thread; each has its own status. The first one that is not OK, in the
  /// order of the reads.
  Status ReadPages(std::span<ColdRead> reads);
  /// For later reads of what is there now. Null where that stays: of a read-only store, and after
  /// Close.
  std::shared_ptr<const ColdSnapshot> Snapshot() const;
  /// NotFound and Corruption name the chunk.
  Result<ColdChunk> ReadChunk(const ColdChunkKey& key) const;
  /// Calls `visit` for each chunk of one kind in order, until it fails.
  Status ForEachChunk(const ColdChunkKey& first,
                      const std::function<Status(const ColdChunkKey&, ColdChunk)>& visit) const;
  /// Calls `visit` for every page in order, until it fails. Slow: it reads every value.
  Status ForEachPage(
      const std::function<Status(const ColdPageKey&, const ColdPageHeader&)>& visit) const;

  /// Rewrites all files, waiting: what remains is what is live. A flush is part of it. Cancelled
  /// after EndCompactions.
  Status CompactForSpace();
  /// Ends the CompactForSpace that runs as soon as it can, and those to come.
  void EndCompactions();
  /// Lets NeedsCompaction know what of that was removed, where it could make a difference:
  /// deletions by themselves tell RocksDB nothing. Rewrites keys, but no value in a blob file.
  Status FindGarbage();
  /// Whether what is on disk exceeds `space_amplification_max` times what is live, as far as known,
  /// or a table was dropped since the last CompactForSpace, which is then to be called: nothing
  /// else keeps to that bound.
  bool NeedsCompaction() const;

  ColdStats stats() const;
  /// Blocks, indexes and unflushed batches; part of the stats, but cheap.
  uint64_t memory_used() const;
  /// OK, or why writing has failed (see *Failures*).
  Status status() const;
  /// What was found damaged or missing, by the open and by compactions; none where all is well.
  std::vector<std::string> damage() const;
  /// Whether pages name the LSNs of their versions: of a store of format 3 they do not.
  bool pages_name_lsns() const;
  /// Whether nothing can be written: opened so, or because of damage.
  bool read_only() const;

  /// Flushes (but for a read-only store), waits for the reads, and ends all threads. Later calls
  /// are FailedPrecondition. The store is closed also where the flush has failed.
  Status Close();

 private:
  friend class ColdBatch;
  explicit ColdStore(std::unique_ptr<ColdDb> db);

  /// Leaves the batch as it was, where it fails.
  Status WriteOnce(ColdBatch* batch, const ColdPosition& position,
                   const std::vector<ColdRemoval>& removals);

  std::unique_ptr<ColdDb> db_;
  std::unique_ptr<ColdSpace> space_;
  std::unique_ptr<ColdReader> reader_;
};

}  // namespace geardb::engine
