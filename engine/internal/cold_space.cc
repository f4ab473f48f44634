#include "engine/internal/cold_space.h"

#include <rocksdb/convenience.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/crash_point.h"

namespace geardb::engine {
namespace {

constexpr size_t kGroupPrefixBytes = 8;  // Table, partition, group.
/// In so many steps values are rewritten, the oldest first, and in more where the disk has little
/// room: until a step has ended, what it has written is on disk twice. But each rewrites all keys,
/// so with room there is one step where these are more than a part of all.
constexpr uint64_t kSteps = 8;
constexpr uint64_t kKeysPartMost = 16;
/// A job of RocksDB's rewrites no more at once, about (max_compaction_bytes).
constexpr uint64_t kRewrittenMost = uint64_t{512} << 20;
constexpr uint64_t kRewrittenStep = uint64_t{256} << 10;
/// On a full disk a compaction is made for a part of all at least.
constexpr uint64_t kGarbagePartLeast = 32;

bool IsTable(const ColdRemoval& removal) { return removal.keys.begin.size() < kGroupPrefixBytes; }

/// Ranges that overlap or touch become one.
std::vector<ColdKeyRange> Merged(std::vector<ColdKeyRange> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<ColdKeyRange> merged;
  for (ColdKeyRange& range : ranges) {
    if (!merged.empty() && range.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, range.end);
    } else {
      merged.push_back(std::move(range));
    }
  }
  return merged;
}

std::vector<rocksdb::ColumnFamilyHandle*> FamiliesOf(const ColdDb& db, bool of_chunks) {
  if (!of_chunks) return {db.pages};
  return {db.chunks.begin(), db.chunks.end()};
}

}  // namespace

Status ColdSpace::Load() {
  auto own = ReadColdOwn(*db_);
  if (own.status().code() == StatusCode::kNotFound) return Status::Ok();
  if (!own.ok()) return own.status().WithContext(db_->directory);
  std::vector<Pending> found;
  for (ColdRemoval& removal : own->removals) {
    const bool compacts = IsTable(removal);
    found.push_back({.removal = std::move(removal), .batch = 0, .compacts = compacts});
  }
  if (found.empty() || db_->read_only) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(Cover(found, nullptr));
  MutexLock lock(&mutex_);
  pending_ = std::move(found);
  const auto compacts = [](const Pending& pending) { return pending.compacts; };
  if (std::ranges::any_of(pending_, compacts)) wants_compaction_ = true;
  return Status::Ok();
}

std::vector<ColdRemoval> ColdSpace::Unreclaimed(std::vector<ColdRemoval> more) const {
  std::vector<ColdRemoval> all = std::move(more);
  {
    MutexLock lock(&mutex_);
    for (const Pending& pending : pending_) all.push_back(pending.removal);
  }
  std::vector<ColdRemoval> merged;
  for (const bool of_chunks : {false, true}) {
    std::vector<ColdKeyRange> ranges;
    for (const ColdRemoval& removal : all) {
      if (removal.of_chunks == of_chunks) ranges.push_back(removal.keys);
    }
    for (ColdKeyRange& range : Merged(std::move(ranges))) {
      merged.push_back({of_chunks, std::move(range)});
    }
  }
  return merged;
}

std::vector<ColdRemoval> ColdSpace::Joined(std::vector<ColdRemoval> removals) const {
  MutexLock lock(&mutex_);
  for (ColdRemoval& removal : removals) {
    if (removal.of_chunks || removal.keys.begin.size() < kGroupPrefixBytes) continue;
    const auto before = newest_.find(removal.keys.begin.substr(0, kGroupPrefixBytes));
    if (before != newest_.end() && before->second.end == removal.keys.begin) {
      removal.keys.begin = before->second.begin;
    }
  }
  return removals;
}

void ColdSpace::Add(std::vector<ColdRemoval> removals, uint64_t batch) {
  MutexLock lock(&mutex_);
  for (ColdRemoval& removal : removals) {
    if (!removal.of_chunks && removal.keys.begin.size() >= kGroupPrefixBytes) {
      newest_[removal.keys.begin.substr(0, kGroupPrefixBytes)] = removal.keys;
    }
    pending_.push_back({.removal = std::move(removal), .batch = batch});
  }
}

Status ColdSpace::Reclaim() {
  MutexLock one_at_a_time(&reclaiming_);
  if (compacting_) return Status::Ok();
  const uint64_t flushed = db_->listener->flushed().batch;
  std::vector<Pending> due;
  {
    MutexLock lock(&mutex_);
    for (Pending& pending : pending_) {
      if (pending.batch > flushed || pending.compacts) continue;
      // A table's files stay for the compaction that it wants: when they go by themselves, RocksDB
      // does not know that their values in blob files are garbage.
      pending.compacts = IsTable(pending.removal);
      if (pending.compacts) {
        wants_compaction_ = true;
      } else {
        due.push_back(pending);
      }
    }
  }
  if (due.empty()) return Status::Ok();
  CrashPoint("cold_flushed");
  const uint64_t before = DiskBytes(db_->pages);
  for (const bool of_chunks : {false, true}) {
    std::vector<ColdKeyRange> ranges;
    for (const Pending& pending : due) {
      if (pending.removal.of_chunks == of_chunks) ranges.push_back(pending.removal.keys);
    }
    ranges = Merged(std::move(ranges));
    if (ranges.empty() || (!of_chunks && !ValuesGoWith(ranges))) continue;
    std::vector<rocksdb::Slice> ends;
    for (const ColdKeyRange& range : ranges) {
      ends.emplace_back(range.begin);
      ends.emplace_back(range.end);
    }
    std::vector<rocksdb::RangePtr> between;
    for (size_t i = 0; i < ends.size(); i += 2) between.emplace_back(&ends[i], &ends[i + 1]);
    for (rocksdb::ColumnFamilyHandle* family : FamiliesOf(*db_, of_chunks)) {
      GEARDB_RETURN_IF_ERROR(
          FromRocks(rocksdb::DeleteFilesInRanges(db_->db.get(), family, between.data(),
                                                 between.size(), /*include_end=*/false),
                    db_->directory));
    }
  }
  CrashPoint("cold_files_dropped");
  const uint64_t dropped = before - std::min(before, DiskBytes(db_->pages));
  removed_bytes_ -= std::min(removed_bytes_.load(), dropped);
  GEARDB_RETURN_IF_ERROR(Finish(due));
  CrashPoint("cold_covered");
  return Status::Ok();
}

std::vector<ColdSpace::Pending> ColdSpace::TakeWanted(bool* wanted) {
  // In this order: what is wanted in between is wanted still.
  *wanted = wants_compaction_.exchange(false);
  MutexLock lock(&mutex_);
  std::vector<Pending> tables;
  for (const Pending& pending : pending_) {
    if (pending.compacts) tables.push_back(pending);
  }
  return tables;
}

Status ColdSpace::Finish(const std::vector<Pending>& due) {
  if (due.empty()) return Status::Ok();
  // A batch that is written meanwhile would say again what it found still to be reclaimed.
  MutexLock writing(&db_->write_mutex);
  {
    MutexLock lock(&mutex_);
    // What was flushed when these were looked for comes before all others of its kind.
    size_t left = due.size();
    std::erase_if(pending_, [&](const Pending& pending) {
      if (left == 0 || pending.compacts != due[0].compacts) return false;
      --left;
      return true;
    });
  }
  const ColdOwn own = {.position = db_->written, .removals = Unreclaimed({})};
  const Status covered = Cover(due, &own);
  if (covered.ok()) return covered;
  MutexLock lock(&mutex_);
  pending_.insert(pending_.begin(), due.begin(), due.end());
  return covered;
}

bool ColdSpace::ValuesGoWith(const std::vector<ColdKeyRange>& ranges) const {
  rocksdb::ColumnFamilyMetaData meta;
  db_->db->GetColumnFamilyMetaData(db_->pages, &meta);
  uint64_t going = 0;
  uint64_t staying = 0;  // 0: no file that stays refers to any.
  for (const rocksdb::LevelMetaData& level : meta.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      const uint64_t oldest = file.oldest_blob_file_number;
      if (oldest == 0) continue;
      const bool goes = std::ranges::any_of(ranges, [&](const ColdKeyRange& range) {
        return range.begin <= file.smallestkey && file.largestkey < range.end;
      });
      if (goes) {
        going = std::max(going, oldest);
      } else {
        staying = staying == 0 ? oldest : std::min(staying, oldest);
      }
    }
  }
  return going <= staying;
}

Status ColdSpace::Cover(const std::vector<Pending>& ranges, const ColdOwn* own) {
  rocksdb::WriteBatch batch;
  rocksdb::Status status;
  for (const bool of_chunks : {false, true}) {
    std::vector<ColdKeyRange> keys;
    for (const Pending& pending : ranges) {
      if (pending.removal.of_chunks == of_chunks) keys.push_back(pending.removal.keys);
    }
    for (const ColdKeyRange& range : Merged(std::move(keys))) {
      for (rocksdb::ColumnFamilyHandle* family : FamiliesOf(*db_, of_chunks)) {
        if (status.ok()) status = batch.DeleteRange(family, range.begin, range.end);
      }
    }
  }
  if (own != nullptr && status.ok()) status = PutColdOwn(*db_, *own, &batch);
  GEARDB_RETURN_IF_ERROR(FromRocks(status, db_->directory));
  return db_->Write(&batch);
}

Status ColdSpace::Compact() {
  MutexLock one_at_a_time(&one_compaction_);
  {
    MutexLock lock(&reclaiming_);
    compacting_ = true;
  }
  // What is dropped or removed from here on wants another.
  bool wanted = false;
  const std::vector<Pending> tables = TakeWanted(&wanted);
  const uint64_t removed = removed_bytes_.exchange(0);
  Status status = CompactAll();
  if (status.ok()) status = db_->NotResuming([&] { return Finish(tables); });
  if (!status.ok() && wanted) wants_compaction_ = true;
  if (!status.ok()) removed_bytes_ += removed;
  {
    MutexLock lock(&reclaiming_);
    compacting_ = false;
  }
  GEARDB_RETURN_IF_ERROR(status);
  return db_->NotResuming([this] { return Reclaim(); });
}

Status ColdSpace::CompactAll() {
  // Their values are read: of a file that is whole but for its footer, all go into others.
  for (const BrokenBlob& blob : FindBrokenBlobs(*db_)) db_->blobs->Show(blob);
  for (rocksdb::ColumnFamilyHandle* family : db_->chunks) {
    GEARDB_RETURN_IF_ERROR(CompactRange(family, 1.0));
  }
  return CompactPages();
}

Status ColdSpace::CompactPages() {
  rocksdb::ColumnFamilyMetaData meta;
  db_->db->GetColumnFamilyMetaData(db_->pages, &meta);
  const uint64_t most = (meta.blob_files.size() + kSteps - 1) / kSteps;
  const uint64_t end = meta.blob_files.empty() ? 0 : meta.blob_files.back().blob_file_number + 1;
  if (end == 0) return CompactRange(db_->pages, 0);
  // What a step writes is newer.
  for (size_t before = SIZE_MAX;;) {
    const auto is_old = [&](const auto& blob) { return blob.blob_file_number < end; };
    const auto old = static_cast<size_t>(std::ranges::count_if(meta.blob_files, is_old));
    if (old == 0 || old >= before) return Status::Ok();
    before = old;
    const uint64_t keys = meta.size;
    const uint64_t step = keys <= meta.blob_file_size / kKeysPartMost ? most : old;
    uint64_t room = FreeBytes() / 2;
    room -= std::min(room, keys);
    size_t files = 0;
    for (uint64_t live = 0; files < std::min(step, old); ++files) {
      const rocksdb::BlobMetaData& blob = meta.blob_files[files];
      live += blob.total_blob_bytes - std::min(blob.total_blob_bytes, blob.garbage_blob_bytes);
      if (files > 0 && live > room) break;
    }
    const double share =
        (static_cast<double>(files) + 0.5) / static_cast<double>(meta.blob_files.size());
    GEARDB_RETURN_IF_ERROR(CompactRange(db_->pages, std::min(share, 1.0)));
    db_->db->GetColumnFamilyMetaData(db_->pages, &meta);
  }
}

Status ColdSpace::FindGarbage() {
  MutexLock one_at_a_time(&one_compaction_);
  bool wanted = false;
  const std::vector<Pending> tables = TakeWanted(&wanted);
  const uint64_t removed = removed_bytes_.exchange(0);
  Status status = CompactRange(db_->pages, 0);
  for (rocksdb::ColumnFamilyHandle* family : db_->chunks) {
    if (status.ok() && wanted) status = CompactRange(family, 0);
  }
  if (status.ok()) status = db_->NotResuming([&] { return Finish(tables); });
  if (!status.ok() && wanted) wants_compaction_ = true;
  if (!status.ok()) removed_bytes_ += removed;
  return status;
}

Status ColdSpace::CompactRange(rocksdb::ColumnFamilyHandle* family, double share) {
  rocksdb::CompactRangeOptions options;
  options.canceled = &ending_;
  options.allow_write_stall = true;  // Or it waits, for compactions that a full disk refuses.
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  options.blob_garbage_collection_policy = share > 0
                                               ? rocksdb::BlobGarbageCollectionPolicy::kForce
                                               : rocksdb::BlobGarbageCollectionPolicy::kDisable;
  options.blob_garbage_collection_age_cutoff = share;
  const auto compact = [&] {
    return db_->NotResuming(
        [&] { return db_->db->CompactRange(options, family, nullptr, nullptr); });
  };
  rocksdb::Status compacted = compact();
  if (compacted.IsNoSpace() && db_->GiveUpReserve()) compacted = compact();
  if (ending_) return Status::Cancelled("the cold store is being closed");
  return FromRocks(compacted, db_->directory);
}

uint64_t ColdSpace::DiskBytes(rocksdb::ColumnFamilyHandle* family) const {
  return db_->Property(family, rocksdb::DB::Properties::kTotalSstFilesSize) +
         db_->Property(family, rocksdb::DB::Properties::kTotalBlobFileSize);
}

bool ColdSpace::MayExceedBound() const {
  ColdStats now;
  AddTo(&now);
  const uint64_t live = now.live_bytes - std::min(now.live_bytes, removed_bytes_.load());
  return static_cast<double>(now.disk_bytes) >
         db_->options.space_amplification_max * static_cast<double>(live);
}

bool ColdSpace::ExceedsBound() const {
  ColdStats now;
  AddTo(&now);
  return static_cast<double>(now.disk_bytes) >
         db_->options.space_amplification_max * static_cast<double>(now.live_bytes);
}

uint64_t ColdSpace::KnownGarbage() const {
  uint64_t bytes = 0;
  for (rocksdb::ColumnFamilyHandle* family : db_->families()) {
    bytes += db_->Property(family, rocksdb::DB::Properties::kLiveBlobFileGarbageSize);
  }
  return bytes;
}

uint64_t ColdSpace::RewrittenBytes() const {
  uint64_t bytes = db_->Property(db_->pages, rocksdb::DB::Properties::kTotalSstFilesSize);
  for (rocksdb::ColumnFamilyHandle* family : db_->chunks) bytes += DiskBytes(family);
  // Not for every page anew.
  return std::min((bytes / kRewrittenStep + 1) * kRewrittenStep, kRewrittenMost);
}

bool ColdSpace::IsMuchGarbage(uint64_t bytes) const {
  uint64_t all = 0;
  for (rocksdb::ColumnFamilyHandle* family : db_->families()) all += DiskBytes(family);
  return bytes > 0 && bytes >= all / kGarbagePartLeast;
}

uint64_t ColdSpace::FreeBytes() const {
  uint64_t bytes = 0;
  const auto& files = db_->threads->GetFileSystem();
  const bool told = files->GetFreeSpace(db_->directory, rocksdb::IOOptions(), &bytes, nullptr).ok();
  return told ? bytes : UINT64_MAX;
}

void ColdSpace::AddTo(ColdStats* stats) const {
  using Properties = rocksdb::DB::Properties;
  for (rocksdb::ColumnFamilyHandle* family : db_->families()) {
    stats->disk_bytes += DiskBytes(family);
    // Blobs that are not known to be garbage are part of the estimate.
    stats->live_bytes += db_->Property(family, Properties::kEstimateLiveDataSize);
    stats->pending_compaction_bytes +=
        db_->Property(family, Properties::kEstimatePendingCompactionBytes);
    // In this order: what is pending runs next.
    stats->compacting |= db_->Property(family, Properties::kCompactionPending) > 0 ||
                         db_->Property(family, Properties::kNumRunningCompactions) > 0;
  }
}

}  // namespace geardb::engine
