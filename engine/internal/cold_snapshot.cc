#include "engine/internal/cold_snapshot.h"

#include <rocksdb/db.h>
#include <rocksdb/snapshot.h>

namespace geardb::engine {

ColdSnapshot::~ColdSnapshot() { all_->Release(rocks_); }

std::shared_ptr<const ColdSnapshot> ColdSnapshots::Take() {
  MutexLock lock(&mutex_);
  if (db_ == nullptr) return nullptr;
  const rocksdb::Snapshot* rocks = db_->GetSnapshot();
  held_.insert(rocks);
  return std::make_shared<const ColdSnapshot>(shared_from_this(), rocks);
}

void ColdSnapshots::Close() {
  MutexLock lock(&mutex_);
  for (const rocksdb::Snapshot* rocks : held_) db_->ReleaseSnapshot(rocks);
  held_.clear();
  db_ = nullptr;
}

void ColdSnapshots::Release(const rocksdb::Snapshot* rocks) {
  MutexLock lock(&mutex_);
  if (held_.erase(rocks) > 0) db_->ReleaseSnapshot(rocks);
}

}  // namespace geardb::engine
