// The RocksDB under a cold store: how it is opened, what its background threads report, and its
// errors as Status. Seen by engine/internal/cold_*.cc alone.
//
// Column families: "pages" has the pages, "chunks" and "copies" the index chunks (cold_chunks.h)
// and what the store says of itself (cold_own.h), both the same. The default one, which RocksDB has
// to have, is empty.
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/statistics.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "base/mutex.h"
#include "engine/internal/cold_blobs.h"
#include "engine/internal/cold_chunks.h"
#include "engine/internal/cold_manifest.h"
#include "engine/internal/cold_own.h"
#include "engine/internal/cold_reserve.h"
#include "engine/internal/cold_store.h"
#include "engine/internal/cold_tables.h"
#include "engine/internal/cold_threads.h"

namespace geardb::engine {

inline rocksdb::Slice SliceOf(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ViewOf(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

/// RocksDB's status, with `context` before its words. A file that is gone is Corruption, a full
/// disk ResourceExhausted.
Status FromRocks(const rocksdb::Status& status, std::string_view context);

/// Follows RocksDB's background threads. Thread-safe.
class ColdListener : public rocksdb::EventListener {
 public:
  ColdListener(std::string directory, std::shared_ptr<ManifestFiles> files)
      : directory_(std::move(directory)), files_(std::move(files)) {}

  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& flush) override;
  void OnCompactionCompleted(rocksdb::DB* db,
                             const rocksdb::CompactionJobInfo& compaction) override;
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override;
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason reason, rocksdb::Status error,
                            bool* recover) override;

  /// The families that have the position, from here on; waits for who reads them. Null: none.
  void Watch(const std::array<rocksdb::ColumnFamilyHandle*, kChunkCopies>& copies);
  /// Reads what the files hold now, and keeps it. Called after each flush.
  Status ReadFlushed(rocksdb::DB* db);
  /// Waits a moment for a finished flush to cover the batch; whether one does. The error that stops
  /// writing, if any.
  Result<bool> WaitForFlush(rocksdb::DB* db, uint64_t batch);
  /// Waits a moment for a compaction. False: the last one that was tried had no room on the disk.
  bool WaitForCompaction();
  /// The next one may have some.
  void RoomWasMade();
  ColdPosition flushed() const;
  uint64_t flushes() const { return flushes_.value(); }
  uint64_t compactions() const { return compactions_.value(); }

  /// The error that stops writing, if any; `Resumed` forgets it.
  Status status() const;
  void Resumed();
  /// It could not go on.
  void NotResumed(const Status& why);
  void AddDamage(std::string what);
  std::vector<std::string> damage() const;
  /// Whether a compaction was given up since the last call.
  bool TakeCompactionFailed() { return compaction_failed_.exchange(false); }
  WornCopies worn;  ///< Of index chunks.

 private:
  /// The error that stops writing, and what follows from it.
  void SetStatus(const Status& status) GEARDB_REQUIRES(mutex_);

  const std::string directory_;
  const std::shared_ptr<ManifestFiles> files_;
  Mutex watched_mutex_;  // Before `mutex_`.
  std::array<rocksdb::ColumnFamilyHandle*, kChunkCopies> watched_
      GEARDB_GUARDED_BY(watched_mutex_) = {};
  mutable Mutex mutex_;
  CondVar changed_;
  ColdPosition flushed_ GEARDB_GUARDED_BY(mutex_);
  Status status_ GEARDB_GUARDED_BY(mutex_);
  bool lacks_room_ GEARDB_GUARDED_BY(mutex_) = false;  // Compactions do.
  std::vector<std::string> damage_ GEARDB_GUARDED_BY(mutex_);
  std::atomic<bool> compaction_failed_{false};
  Counter flushes_;
  Counter compactions_;
};

/// Many may be inside, or one alone, who keeps others from entering. Nobody enters twice.
/// Thread-safe.
class ColdGate {
 public:
  void Enter();
  void Leave();
  /// Waits until nobody is inside.
  void Close();
  void Open();

 private:
  Mutex mutex_;
  CondVar changed_;
  uint64_t inside_ GEARDB_GUARDED_BY(mutex_) = 0;
  bool closed_ GEARDB_GUARDED_BY(mutex_) = false;
};

/// An open RocksDB with what it needs around it; destroyed in the reverse order.
struct ColdDb {
  ColdDb(std::string where, const ColdStoreOptions& how)
      : directory(std::move(where)), options(how) {}
  ~ColdDb();

  /// OK where something may be written.
  Status Writable() const;
  /// Runs `attempt`, after a full disk once RocksDB goes on. Flushes that began while it was full
  /// may each fail since one has looked last, so both are tried several times; the last error where
  /// the disk is still full. With `may_use_reserve` that is given up before. The caller holds no
  /// mutex that an attempt takes.
  Status Resuming(const std::function<Status()>& attempt);
  /// Runs what changes files, or begins a compaction, outside of an attempt: not while somebody
  /// resumes.
  template <typename Change>
  auto NotResuming(const Change& change) {
    gate_.Enter();
    const auto status = change();
    gate_.Leave();
    return status;
  }
  /// Writes the batch, without RocksDB's log, and to all column families that are used at once:
  /// what it does not touch gets a deletion of a key that is not there. So either all of them have
  /// something to flush or none, as CompactRange needs: it chooses what it flushes before it may
  /// have to wait for room, and a flush of others that was begun meanwhile aborts the process in
  /// Debian's build (an assertion in AtomicFlushMemTablesToOutputFiles that all have one reason).
  /// `newest_page`: the last key of a page that the batch puts, if any.
  Status Write(rocksdb::WriteBatch* batch, std::string_view newest_page = {});
  /// Has RocksDB flush all families, also where it would rather wait for compactions first. Without
  /// `wait` it is only asked to.
  Status FlushAll(bool wait = true);
  /// Flushes all that was written: an attempt by itself (Resuming), for who writes alone.
  Status FlushWhole();
  /// Flushes all that was written up to this batch.
  Status FlushUntil(uint64_t batch);
  /// Closes RocksDB without a flush. The first error.
  Status Close();
  /// Where what is written may use the reserve, which is there. Whether that made room.
  bool GiveUpReserve();
  /// 0 of a family that cannot be read, which is null.
  uint64_t Property(rocksdb::ColumnFamilyHandle* family, const std::string& name) const;
  /// All that there are: of a store open for reading, one of the copies may be missing.
  std::vector<rocksdb::ColumnFamilyHandle*> families() const;

  const std::string directory;
  const ColdStoreOptions options;
  std::shared_ptr<TableFiles> tables;
  std::shared_ptr<ManifestFiles> manifests;  ///< Over these.
  std::shared_ptr<BlobFiles> blobs;          ///< Over these: what RocksDB sees.
  std::set<std::string> missing_in;          ///< Column families that the open misses files of.
  Status found;  ///< NotFound: there is no store yet; Corruption: nothing says what it has.
  std::unique_ptr<ColdThreads> threads;
  uint64_t unflushed_bytes = 0;  ///< Of batches, about, at most.
  std::unique_ptr<ColdReserve> reserve;
  std::unique_ptr<ColdReserve> open_reserve;
  std::atomic<bool> may_use_reserve{false};
  std::shared_ptr<rocksdb::Cache> cache;
  std::shared_ptr<rocksdb::WriteBufferManager> memtables;  ///< Charged to the cache.
  std::shared_ptr<rocksdb::Statistics> statistics;
  std::shared_ptr<ColdListener> listener;
  std::unique_ptr<rocksdb::DB> db;
  rocksdb::ColumnFamilyHandle* empty = nullptr;  ///< The default one.
  rocksdb::ColumnFamilyHandle* pages = nullptr;
  std::array<rocksdb::ColumnFamilyHandle*, kChunkCopies> chunks = {};  ///< By copy.
  uint32_t format = kColdFormatWithoutLsns;  ///< Until it is known which it says that it has.
  bool read_only = false;
  /// Why it is read-only though that was not asked for; empty otherwise.
  std::string degraded;

  mutable Mutex write_mutex;
  ColdPosition written GEARDB_GUARDED_BY(write_mutex);
  std::atomic<bool> closed{false};

 private:
  /// Whether memory waits for flushes, which end, and free it or fail.
  bool HasToFlush() const;
  /// Or some hold what no flush has begun with.
  bool HasMemtables() const;
  /// Waits, while they have more memory than they should, for flushes that are under way.
  void AwaitMemtables() const;
  /// Compactions that cannot succeed are not begun again.
  Status StopFailingCompactions();
  /// Forgets the error of a full disk and lets RocksDB try again. The error that is left.
  ///
  /// RocksDB resumes with flushes, one after the other. When anything else fails beside one, or one
  /// before it has, it leaves out what that one has written; but the memtables stay marked as being
  /// flushed, and whoever flushes next waits for them for ever. So no compaction runs meanwhile,
  /// and once a flush has failed no other succeeds before this is called again (RefuseTables).
  Status Resume();
  void ResumeAlone();

  ColdGate gate_;  // Closed while somebody resumes; attempts and compactions by hand are inside.
  Mutex newest_mutex_;
  /// The file of a deletion behind it still lies within what a removal of its trajectory covers.
  std::string newest_page_ GEARDB_GUARDED_BY(newest_mutex_);
};

/// SST files of pages of which nothing can be read, or, of those with bad blocks, not all.
enum class LostPages : uint8_t { kUnreadable, kDamaged };
/// An SST file of pages that is lost.
struct LostFile {
  rocksdb::LiveFileMetaData file;
  std::string why;
};
/// The keys of an SST file of any family, in words.
std::string RangeText(const rocksdb::LiveFileMetaData& file);
/// What keeps RocksDB from reading anything of an SST file, or all of it; empty: nothing.
std::string WhyLost(const ColdDb& store, const rocksdb::LiveFileMetaData& table, LostPages which);
/// The SST files of pages; with `key` only those through which a read of this page may pass.
std::vector<rocksdb::LiveFileMetaData> FilesOfPages(const ColdDb& store,
                                                    const ColdPageKey* key = nullptr);
/// Reads all keys of pages that lie in files, those of FilesOfPages. Files in `looked` (by number)
/// are passed over, and those that were read are added. Not by RocksDB's iterators: one through a
/// file that cannot be opened ends the process in 7.8 (GetAllKeyVersions frees it twice).
std::vector<LostFile> FindLostPages(const ColdDb& store, LostPages which,
                                    const ColdPageKey* key = nullptr,
                                    std::set<uint64_t>* looked = nullptr);
/// Drops damaged SST files of pages from the store. Older versions of what was in them may come up,
/// as of MendColdPages (cold_check.h). Corruption where `log_start` is ahead of the store.
Status DropLostPages(const std::string& directory, const ColdStoreOptions& options);
/// Opens the store for reading as if DropLostPages had been called. Errors as there.
Result<std::unique_ptr<ColdDb>> OpenWithoutLostPages(const std::string& directory,
                                                     const ColdStoreOptions& options);
/// Opens the store for writing though files are damaged. Nothing is compacted. Errors as there.
Result<std::unique_ptr<ColdDb>> OpenInSpiteOfDamage(const std::string& directory,
                                                    const ColdStoreOptions& options);

/// Opens the directory as cold_store.h says.
Result<std::unique_ptr<ColdDb>> OpenColdDb(const std::string& directory,
                                           const ColdStoreOptions& options);

}  // namespace geardb::engine
