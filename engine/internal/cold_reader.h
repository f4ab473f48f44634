// Reads pages from a cold store, each in the thread that asks for it.
//
// Invariant: when Close has returned, no thread is in RocksDB for a page.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/mutex.h"
#include "engine/internal/cold_salvage.h"
#include "engine/internal/cold_store.h"

namespace geardb::engine {

/// Thread-safe.
class ColdReader {
 public:
  /// Reads from `db`, which outlives it.
  explicit ColdReader(const ColdDb* db);
  ~ColdReader();

  /// Sets the read's status. FailedPrecondition after Close.
  void Read(ColdRead* read);
  /// Waits for the reads that are under way, and lets go of the snapshots.
  void Close();
  ColdSnapshots& snapshots() const { return *snapshots_; }
  /// Adds what was read to the numbers.
  void AddTo(ColdStats* stats) const;

 private:
  bool Enter();
  void Leave();
  Status ReadPage(ColdRead* read);
  Status Decode(std::string_view value, ColdRead* read);
  /// Of a read that has met damage: the page all the same, or what to say.
  Status AfterDamage(const Status& why, ColdRead* read);
  /// The store as it is without its damaged files; null where it cannot be opened so, or where that
  /// would not tell an older version from the one that is asked for.
  const ColdDb* Without();
  /// Whether the page was found there, no older than it is asked for.
  bool ReadFrom(const ColdDb& without, ColdRead* read);
  /// The page from where it was found beside a bad block; false: it was not, or its value is bad.
  bool Salvage(ColdRead* read);
  /// Looks for the page in all files that a read of it passes through. False where not all of them
  /// could be read, or where versions cannot be told apart: the page may be good.
  bool LookBeside(const ColdRead& read);
  /// The damaged files through which a read of this page may pass. Each file is read whole once,
  /// not again for each page that one of them hides.
  std::vector<LostFile> LostFilesOf(const ColdPageKey& key);
  /// Of a page whose value is bad: in words the file and offset; empty where that is not known.
  std::string WhereItIs(const ColdPageKey& key);

  const ColdDb* const db_;
  const std::shared_ptr<ColdSnapshots> snapshots_;
  ColdSalvage salvage_;
  Mutex lost_mutex_;
  std::vector<LostFile> lost_ GEARDB_GUARDED_BY(lost_mutex_);
  std::set<uint64_t> looked_
      GEARDB_GUARDED_BY(lost_mutex_);  // SST files that were read, by number.
  Mutex without_mutex_;
  bool tried_without_ GEARDB_GUARDED_BY(without_mutex_) = false;
  std::unique_ptr<const ColdDb> without_ GEARDB_GUARDED_BY(without_mutex_);
  Mutex mutex_;
  CondVar left_;
  uint64_t reading_ GEARDB_GUARDED_BY(mutex_) = 0;
  bool closed_ GEARDB_GUARDED_BY(mutex_) = false;
  std::optional<bool> opens_all_ GEARDB_GUARDED_BY(mutex_);  // All SST files; unset: not tried.
  Counter pages_;
  Counter missing_;
  Counter failed_;
  Counter salvaged_;
  Counter bytes_;
};

}  // namespace geardb::engine
