// Snapshots of the cold store: what was drawn stays readable while newer versions are written.
#pragma once

#include <memory>
#include <set>

#include "base/mutex.h"

namespace rocksdb {
class DB;
class Snapshot;
}  // namespace rocksdb

namespace geardb::engine {

class ColdSnapshots;

/// The store as it was when this was taken, for as long as it is held and the store is open. What
/// was removed since is there until its files are dropped (cold_store.h, *Removal*).
class ColdSnapshot {
 public:
  ColdSnapshot(std::shared_ptr<ColdSnapshots> all, const rocksdb::Snapshot* rocks)
      : all_(std::move(all)), rocks_(rocks) {}
  ~ColdSnapshot();
  ColdSnapshot(const ColdSnapshot&) = delete;
  ColdSnapshot& operator=(const ColdSnapshot&) = delete;

  const rocksdb::Snapshot* rocks() const { return rocks_; }

 private:
  const std::shared_ptr<ColdSnapshots> all_;
  const rocksdb::Snapshot* const rocks_;
};

/// Those of a store: RocksDB cannot close while it has any. Thread-safe.
class ColdSnapshots : public std::enable_shared_from_this<ColdSnapshots> {
 public:
  /// Of `db`, which is open until Close.
  explicit ColdSnapshots(rocksdb::DB* db) : db_(db) {}

  /// Null after Close.
  std::shared_ptr<const ColdSnapshot> Take();
  /// Lets go of all that are held still: nobody reads by them any more.
  void Close();

 private:
  friend class ColdSnapshot;
  void Release(const rocksdb::Snapshot* rocks);

  Mutex mutex_;
  rocksdb::DB* db_ GEARDB_GUARDED_BY(mutex_);
  std::set<const rocksdb::Snapshot*> held_ GEARDB_GUARDED_BY(mutex_);
};

}  // namespace geardb::engine
