#include "engine/internal/cold_store.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <utility>

#include "base/crash_point.h"
#include "base/mutex.h"
#include "engine/internal/cold_chunks.h"
#include "engine/internal/cold_db.h"
#include "engine/internal/cold_reader.h"
#include "engine/internal/cold_space.h"

namespace geardb::engine {

// ---- Batches.

struct ColdBatch::Rep {
  /// A batch of many pages does not grow step by step; unused, it is address space.
  static constexpr size_t kReserved = size_t{112} << 10;

  const ColdDb* db;
  rocksdb::WriteBatch changes{kReserved};
  std::vector<ColdRemoval> removals;
  uint64_t removed_bytes = 0;
  std::string newest_page;  ///< The last key of one that was put.
  std::string value;

  void Remove(bool of_chunks, const ColdKeyRange& keys) {
    if (of_chunks) {
      for (rocksdb::ColumnFamilyHandle* copy : db->chunks) {
        Check(changes.DeleteRange(copy, keys.begin, keys.end));
      }
    } else {
      Check(changes.DeleteRange(db->pages, keys.begin, keys.end));
    }
    removals.push_back({of_chunks, keys});
  }
  // A batch in memory without a limit takes everything.
  static void Check(const rocksdb::Status& status) { GEARDB_CHECK(status.ok()); }
};

ColdBatch::ColdBatch(const ColdStore& store) : rep_(std::make_unique<Rep>()) {
  rep_->db = store.db_.get();
}
ColdBatch::~ColdBatch() = default;

Status ColdBatch::PutPage(const ColdPageKey& key, const ColdPageSource& page) {
  ColdPageSource source = page;
  if (rep_->db->format < kColdFormat) source.header.lsn = kNoLsn;
  GEARDB_RETURN_IF_ERROR(EncodeColdPage(key, source, &rep_->value));
  rep_->newest_page = EncodeColdKey(key);
  Rep::Check(rep_->changes.Put(rep_->db->pages, rep_->newest_page, rep_->value));
  return Status::Ok();
}

void ColdBatch::DeletePage(const ColdPageKey& key) {
  Rep::Check(rep_->changes.Delete(rep_->db->pages, EncodeColdKey(key)));
}

Status ColdBatch::DeleteTrajectoryPages(const ColdTrajectoryRange& range) {
  if (range.end < range.first) {
    return Status::InvalidArgument("trajectories from ", range.first, " to ", range.end);
  }
  if (range.end > range.first) rep_->Remove(/*of_chunks=*/false, ColdKeysOf(range));
  return Status::Ok();
}

Status ColdBatch::PutChunk(const ColdChunkKey& key, uint64_t lsn,
                           std::span<const std::byte> bytes) {
  GEARDB_RETURN_IF_ERROR(EncodeColdChunk(key, lsn, bytes, &rep_->value));
  for (rocksdb::ColumnFamilyHandle* copy : rep_->db->chunks) {
    Rep::Check(rep_->changes.Put(copy, EncodeColdKey(key), rep_->value));
  }
  return Status::Ok();
}

void ColdBatch::DeleteChunk(const ColdChunkKey& key) {
  for (rocksdb::ColumnFamilyHandle* copy : rep_->db->chunks) {
    Rep::Check(rep_->changes.Delete(copy, EncodeColdKey(key)));
  }
}

void ColdBatch::DeleteTable(uint32_t table) {
  rep_->Remove(/*of_chunks=*/false, ColdKeysOfTable(table));
  rep_->Remove(/*of_chunks=*/true, ColdKeysOfTable(table));
}

uint64_t ColdBatch::bytes() const { return rep_->changes.GetDataSize(); }

void ColdBatch::Clear() {
  rep_->changes.Clear();
  rep_->removals.clear();
  rep_->newest_page.clear();
  rep_->removed_bytes = 0;
}

void ColdBatch::AddRemovedBytes(uint64_t bytes) { rep_->removed_bytes += bytes; }

void ColdBatch::Mark() { rep_->changes.SetSavePoint(); }
void ColdBatch::ReturnToMark() { Rep::Check(rep_->changes.RollbackToSavePoint()); }

// ---- The store.

ColdStore::ColdStore(std::unique_ptr<ColdDb> db)
    : db_(std::move(db)),
      space_(std::make_unique<ColdSpace>(db_.get())),
      reader_(std::make_unique<ColdReader>(db_.get())) {}

ColdStore::~ColdStore() = default;

Result<std::unique_ptr<ColdStore>> ColdStore::Open(const std::string& directory,
                                                   const ColdStoreOptions& options) {
  GEARDB_ASSIGN_OR_RETURN(auto db, OpenColdDb(directory, options));
  std::unique_ptr<ColdStore> store(new ColdStore(std::move(db)));
  const Status loaded = store->space_->Load();
  // Without its own keys a damaged store still has its pages.
  if (!loaded.ok() && store->db_->degraded.empty()) return loaded;
  return store;
}

namespace {

/// Compactions by hand at once, at most.
constexpr int kCompactions = 3;

}  // namespace

Status ColdStore::Write(ColdBatch* batch, uint64_t lsn) {
  GEARDB_CHECK(batch->rep_->db == db_.get());
  GEARDB_RETURN_IF_ERROR(db_->Writable());
  return db_->Resuming([&] {
    MutexLock lock(&db_->write_mutex);
    if (lsn < db_->written.lsn) {
      return Status::InvalidArgument("a batch with LSN ", lsn, " after one with ",
                                     db_->written.lsn);
    }
    const ColdPosition position = {lsn, db_->written.batch + 1};
    std::vector<ColdRemoval> removals = space_->Joined(batch->rep_->removals);
    GEARDB_RETURN_IF_ERROR(WriteOnce(batch, position, removals));
    db_->written = position;
    space_->Add(std::move(removals), position.batch);
    space_->AddRemoved(batch->rep_->removed_bytes);
    batch->Clear();
    return Status::Ok();
  });
}

Status ColdStore::WriteOnce(ColdBatch* batch, const ColdPosition& position,
                            const std::vector<ColdRemoval>& removals) {
  GEARDB_RETURN_IF_ERROR(WriteWornAgain(db_.get()));
  rocksdb::WriteBatch& changes = batch->rep_->changes;
  changes.SetSavePoint();
  const ColdOwn own = {.position = position, .removals = space_->Unreclaimed(removals)};
  Status written = FromRocks(PutColdOwn(*db_, own, &changes), db_->directory);
  if (written.ok()) written = db_->Write(&changes, batch->rep_->newest_page);
  if (!written.ok()) ColdBatch::Rep::Check(changes.RollbackToSavePoint());
  return written;
}

Status ColdStore::Flush() {
  GEARDB_RETURN_IF_ERROR(db_->Writable());
  uint64_t batch = 0;
  {
    MutexLock lock(&db_->write_mutex);
    batch = db_->written.batch;
  }
  return db_->Resuming([&] {
    {
      MutexLock lock(&db_->write_mutex);
      GEARDB_RETURN_IF_ERROR(WriteWornAgain(db_.get()));
    }
    GEARDB_RETURN_IF_ERROR(db_->FlushUntil(batch));
    return space_->Reclaim();
  });
}

void ColdStore::UseReserve(bool may) { db_->may_use_reserve = may; }
Status ColdStore::KeepReserve() {
  GEARDB_RETURN_IF_ERROR(db_->open_reserve->Keep());
  return db_->reserve->Keep(space_->RewrittenBytes());
}

bool ColdStore::RemovalMakesRoom(uint64_t bytes) const {
  if (db_->closed || read_only()) return false;
  const uint64_t garbage = bytes + space_->GarbageBytes();
  return space_->wants_compaction() || garbage >= db_->reserve->bytes() ||
         space_->IsMuchGarbage(garbage);
}

Status ColdStore::MakeRoom() {
  if (db_->closed) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(Flush());
  GEARDB_RETURN_IF_ERROR(space_->FindGarbage());
  return space_->IsMuchGarbage(space_->KnownGarbage()) ? CompactForSpace() : Status::Ok();
}

uint64_t ColdStore::written_lsn() const {
  MutexLock lock(&db_->write_mutex);
  return db_->written.lsn;
}

uint64_t ColdStore::last_batch() const {
  MutexLock lock(&db_->write_mutex);
  return db_->written.batch;
}

uint64_t ColdStore::flushed_lsn() const { return db_->listener->flushed().lsn; }

Status ColdStore::ReadPages(std::span<ColdRead> reads) {
  Status first;
  for (ColdRead& read : reads) {
    reader_->Read(&read);
    if (first.ok()) first = read.status;
  }
  return first;
}

Result<ColdChunk> ColdStore::ReadChunk(const ColdChunkKey& key) const {
  if (db_->closed) return Status::FailedPrecondition("the cold store is closed");
  return ReadEitherCopy(*db_, key);
}

Status ColdStore::ForEachChunk(
    const ColdChunkKey& first,
    const std::function<Status(const ColdChunkKey&, ColdChunk)>& visit) const {
  if (db_->closed) return Status::FailedPrecondition("the cold store is closed");
  return ForEachChunkKey(*db_, first, [&](const ColdChunkKey& key) -> Result<bool> {
    if (key.table != first.table || key.partition != first.partition || key.kind != first.kind) {
      return false;
    }
    GEARDB_ASSIGN_OR_RETURN(ColdChunk chunk, ReadEitherCopy(*db_, key));
    GEARDB_RETURN_IF_ERROR(visit(key, std::move(chunk)));
    return true;
  });
}

Status ColdStore::ForEachPage(
    const std::function<Status(const ColdPageKey&, const ColdPageHeader&)>& visit) const {
  if (db_->closed) return Status::FailedPrecondition("the cold store is closed");
  std::unique_ptr<rocksdb::Iterator> values(
      db_->db->NewIterator(rocksdb::ReadOptions(), db_->pages));
  for (values->SeekToFirst(); values->Valid(); values->Next()) {
    const auto key = DecodeColdPageKey(ViewOf(values->key()));
    if (!key) return Status::Corruption("a key in ", db_->directory, " is no page's");
    const auto header = ReadColdPageHeader(ViewOf(values->value()));
    if (!header.ok()) return header.status().WithContext(ColdKeyText(*key));
    GEARDB_RETURN_IF_ERROR(visit(*key, *header));
  }
  return FromRocks(values->status(), db_->directory);
}

Status ColdStore::FindGarbage() {
  if (db_->closed || space_->ExceedsBound()) return Status::Ok();
  if (!space_->wants_compaction() && !space_->MayExceedBound()) return Status::Ok();
  CrashPoint("compaction");
  GEARDB_RETURN_IF_ERROR(Flush());
  return space_->FindGarbage();
}

Status ColdStore::CompactForSpace() {
  GEARDB_RETURN_IF_ERROR(Flush());
  // One leaves out the files that a compaction of RocksDB's own makes meanwhile.
  for (int again = 0; again < kCompactions; ++again) {
    GEARDB_RETURN_IF_ERROR(space_->Compact());
    if (!NeedsCompaction()) break;
  }
  return Status::Ok();
}

void ColdStore::EndCompactions() { space_->EndCompactions(); }

bool ColdStore::NeedsCompaction() const {
  if (db_->closed) return false;
  return space_->wants_compaction() || space_->ExceedsBound();
}

ColdStats ColdStore::stats() const {
  ColdStats stats;
  if (db_->closed) return stats;
  space_->AddTo(&stats);
  reader_->AddTo(&stats);
  stats.block_cache_hits = db_->statistics->getTickerCount(rocksdb::BLOCK_CACHE_HIT);
  stats.block_cache_misses = db_->statistics->getTickerCount(rocksdb::BLOCK_CACHE_MISS);
  stats.bytes_written = db_->statistics->getTickerCount(rocksdb::BYTES_WRITTEN);
  stats.flushes = db_->listener->flushes();
  stats.compactions = db_->listener->compactions();
  stats.flush_bytes = db_->statistics->getTickerCount(rocksdb::FLUSH_WRITE_BYTES);
  stats.compaction_bytes = db_->statistics->getTickerCount(rocksdb::COMPACT_WRITE_BYTES);
  stats.memory_bytes = memory_used();
  stats.reserve_bytes = db_->reserve->Size() + db_->open_reserve->Size();
  return stats;
}

uint64_t ColdStore::memory_used() const { return db_->cache->GetUsage(); }

Status ColdStore::status() const { return db_->listener->status(); }

std::vector<std::string> ColdStore::damage() const { return db_->listener->damage(); }

bool ColdStore::pages_name_lsns() const { return db_->format >= kColdFormat; }

std::shared_ptr<const ColdSnapshot> ColdStore::Snapshot() const {
  return db_->read_only ? nullptr : reader_->snapshots().Take();
}

bool ColdStore::read_only() const { return db_->read_only; }

Status ColdStore::Close() {
  if (db_->closed) return Status::Ok();
  Status flushed;
  // The second one for what the first has reclaimed; mostly there is nothing.
  for (int i = 0; i < 2 && flushed.ok() && !db_->read_only; ++i) flushed = Flush();
  reader_->Close();
  const Status closed = db_->Close();
  return flushed.ok() ? closed : flushed;
}

}  // namespace geardb::engine
