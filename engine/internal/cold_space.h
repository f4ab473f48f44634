// Gives the space of what was removed back: whole files first, then compactions.
//
// The order in which a removed range is reclaimed, and why, is in cold_store.h (*Removal*).
//
// Invariants: `pending_` is what the store says of itself is still to be reclaimed, in files or in
// memory, in the order of the batches; files are dropped only for ranges whose batch a finished
// flush covers.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/internal/cold_db.h"

namespace geardb::engine {

/// Thread-safe.
class ColdSpace {
 public:
  explicit ColdSpace(ColdDb* db) : db_(db) {}

  /// Takes up what the store says is still to be reclaimed, and covers it again. Before anything is
  /// read or written.
  Status Load();

  /// The removals of a batch about to be written, as they are to be recorded: one that goes on
  /// where the range before it in the same group ended becomes one with it, so that a file which
  /// straddles both can go.
  std::vector<ColdRemoval> Joined(std::vector<ColdRemoval> removals) const;
  /// What a batch with these removals is to say of what is still to be reclaimed.
  std::vector<ColdRemoval> Unreclaimed(std::vector<ColdRemoval> more) const;
  /// The batch with these removals was written.
  void Add(std::vector<ColdRemoval> removals, uint64_t batch);

  /// Reclaims what finished flushes cover; while Compact runs, nothing: files that are being
  /// rewritten cannot be dropped, and Compact reclaims at its end.
  Status Reclaim();
  /// Rewrites everything, one at a time. Nothing is left to be reclaimed where a flush came before.
  /// Cancelled once EndCompactions was called.
  Status Compact();
  /// Rewrites the keys alone, so that RocksDB knows which of the values in blob files are garbage.
  /// After a flush; Cancelled likewise.
  Status FindGarbage();
  /// Values of about so many bytes were removed in the batch that was written last.
  void AddRemoved(uint64_t bytes) { removed_bytes_ += bytes; }
  /// Whether the bound on what is on disk would be exceeded, were all that was removed since the
  /// last compaction known to be garbage.
  bool MayExceedBound() const;
  /// Whether it is, as far as known.
  bool ExceedsBound() const;
  /// Bytes that nobody can read, about: known to be garbage, or removed since the last look.
  uint64_t GarbageBytes() const { return KnownGarbage() + removed_bytes_; }
  /// Of these, what is known to be garbage: values in blob files.
  uint64_t KnownGarbage() const;
  /// Whether so many bytes of garbage are worth a compaction of a full disk.
  bool IsMuchGarbage(uint64_t bytes) const;
  /// What a removal may have to be written anew for before anything comes free, but for values in
  /// blob files: the index's image, and the keys, as many of them as one job of a compaction takes.
  uint64_t RewrittenBytes() const;
  /// For good: those that run end as soon as they can.
  void EndCompactions() { ending_ = true; }
  /// Whether a table was removed since the last compaction: until then all of it is on disk.
  bool wants_compaction() const { return wants_compaction_.load(); }
  /// Bytes of all files, and of what in them is not known to be garbage.
  void AddTo(ColdStats* stats) const;

 private:
  struct Pending {
    ColdRemoval removal;
    uint64_t batch = 0;
    bool compacts = false;  ///< A table, whose compaction is wanted: pending until that has ended.
  };

  /// Whether the blob files of the files of keys that lie in these ranges go with them. RocksDB
  /// drops those that are older than all that is referred to, and takes the others for live until
  /// the keys are compacted, which files that are dropped never are.
  bool ValuesGoWith(const std::vector<ColdKeyRange>& ranges) const;
  Status CompactAll();
  /// Rewrites the values in the blob files that are there now, in steps.
  Status CompactPages();
  /// The values in the oldest blob files are rewritten, too: of `share` of all these files.
  Status CompactRange(rocksdb::ColumnFamilyHandle* family, double share);
  /// Of the disk; all where its file system does not say.
  uint64_t FreeBytes() const;
  /// Bytes of all files.
  uint64_t DiskBytes(rocksdb::ColumnFamilyHandle* family) const;
  /// Second tombstones over the ranges, in one batch with what the store says then, unless null.
  Status Cover(const std::vector<Pending>& ranges, const ColdOwn* own);
  /// The files of these ranges were dropped, or rewritten.
  Status Finish(const std::vector<Pending>& due);
  /// The tables whose compaction is wanted. The next one is for those that come from here on.
  std::vector<Pending> TakeWanted(bool* wanted);

  ColdDb* const db_;
  std::atomic<bool> wants_compaction_{false};
  std::atomic<bool> ending_{false};
  /// In removals, but for files that went with them, since the last compaction.
  std::atomic<uint64_t> removed_bytes_{0};
  Mutex one_compaction_;  // Held by the one who compacts; before `reclaiming_`.
  Mutex reclaiming_;  // Held by the one who reclaims; before the store's `write_mutex`, `mutex_`.
  bool compacting_ GEARDB_GUARDED_BY(reclaiming_) = false;
  mutable Mutex mutex_;
  std::vector<Pending> pending_ GEARDB_GUARDED_BY(mutex_);
  // The newest range of trajectories removed from each group, by the first bytes of its keys.
  std::map<std::string, ColdKeyRange> newest_ GEARDB_GUARDED_BY(mutex_);
};

}  // namespace geardb::engine
