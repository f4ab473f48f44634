#include "engine/internal/cold_check.h"

#include <rocksdb/utilities/debug.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/concatenate.h"
#include "base/crash_point.h"
#include "engine/internal/cold_blobs.h"
#include "engine/internal/cold_chunks.h"
#include "engine/internal/cold_db.h"
#include "engine/internal/cold_page.h"
#include "engine/internal/cold_salvage.h"
#include "engine/internal/image_chunk.h"

namespace geardb::engine {
namespace {

const char* CopyText(size_t copy) { return copy == 0 ? "first copy" : "second copy"; }

/// As cold_tier.cc and image_versions.cc name them.
std::string ChunkText(const ColdChunkKey& key) {
  constexpr uint16_t kPlaces = 0x1FF;
  const auto kind = static_cast<uint16_t>(key.kind & 0xFF);
  const bool of_image = key.kind <= kPlaces &&
                        kind >= static_cast<uint16_t>(ImageKind::kDatabase) &&
                        kind <= static_cast<uint16_t>(ImageKind::kDrawGroups);
  if (of_image) return NameOf(ImageChunk{key.table, static_cast<ImageKind>(kind), key.chunk});
  return ColdKeyText(key) + ", a part of the index image's head,";
}

/// Looks at both copies of all chunks. `bad` is told of those that are not good; `family` of a
/// copy without such, of which not all can be read: old versions, or what lies around the chunks.
Status LookAtCopies(
    const ColdDb& db, uint64_t* chunks,
    const std::function<void(const ColdChunkKey&, size_t copy, const Status& why)>& bad,
    const std::function<void(size_t copy, const Status& why)>& family) {
  bool found[kChunkCopies] = {};
  const Status ended = ForEachChunkKey(db, {}, [&](const ColdChunkKey& key) -> Result<bool> {
    ++*chunks;
    for (size_t copy = 0; copy < kChunkCopies; ++copy) {
      const Status read = ReadChunkCopy(db, key, copy).status();
      if (!read.ok()) bad(key, copy, read);
      found[copy] = found[copy] || (!read.ok() && read.code() != StatusCode::kNotFound);
    }
    return true;
  });
  for (size_t copy = 0; copy < kChunkCopies; ++copy) {
    const Status read = found[copy] ? Status::Ok() : CheckFamily(db, copy);
    if (!read.ok() && read.code() != StatusCode::kNotFound) family(copy, read);
  }
  return ended;
}

}  // namespace

namespace {

/// Of RocksDB's, with keys or values.
bool IsTableFile(const std::string& name) {
  return name.ends_with(".sst") || name.ends_with(".blob");
}

}  // namespace

bool IsColdStore(std::span<const std::string> names) {
  return std::ranges::any_of(
      names, [](const std::string& name) { return name == "CURRENT" || IsTableFile(name); });
}

namespace {

/// A store that is being made has all its column families before anything is put into it.
bool IsOnlyBegun(std::span<const std::string> files, const std::string& directory) {
  std::vector<std::string> families;
  if (std::ranges::any_of(files, IsTableFile) ||
      !rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), directory, &families).ok()) {
    return false;
  }
  const auto lacks = [&](const char* name) { return std::ranges::count(families, name) == 0; };
  return lacks("pages") || std::ranges::all_of(kChunkFamilies, lacks);
}

}  // namespace

Result<bool> HoldsColdStore(Env* env, const std::string& directory) {
  const auto names = env->List(directory);
  if (names.status().code() == StatusCode::kNotFound) return false;
  GEARDB_RETURN_IF_ERROR(names.status());
  return IsColdStore(*names) && !IsOnlyBegun(*names, directory);
}

std::vector<std::string> ColdCheck::damage() const {
  std::vector<std::string> all = manifest;
  all.insert(all.end(), files.begin(), files.end());
  for (const auto& [path, why] : blobs) all.push_back(why);
  for (const auto& [path, why] : tables) all.push_back(why);
  all.insert(all.end(), copies.begin(), copies.end());
  return all;
}

namespace {

/// Of blob files of pages that lack bytes: up to where they can be read.
std::map<uint64_t, uint64_t> ShortBlobFiles(const ColdDb& db) {
  std::map<uint64_t, uint64_t> ends;
  for (const BlobFile& file : LiveBlobFiles(db)) {
    if (file.family != db.pages->GetID()) continue;
    uint64_t bytes = 0;
    (void)db.manifests->GetFileSize(file.path, rocksdb::IOOptions(), &bytes, nullptr);
    if (bytes < file.expected_bytes) ends[file.number] = bytes - std::min(bytes, kBlobFooterBytes);
  }
  return ends;
}

/// Deletes the pages whose values lie beyond these ends of blob files.
Status DeletePagesBeyond(const std::map<uint64_t, uint64_t>& ends, ColdDb* db) {
  constexpr size_t kAtOnce = 10000;
  constexpr int kBlobIndex = 0x11;
  const std::string last(64, '\xff');  // Behind every key.
  std::string from;
  for (;;) {
    std::vector<rocksdb::KeyVersion> versions;
    GEARDB_RETURN_IF_ERROR(FromRocks(
        rocksdb::GetAllKeyVersions(db->db.get(), db->pages, from, last, kAtOnce, &versions),
        db->directory));
    if (versions.empty()) return Status::Ok();
    rocksdb::WriteBatch batch;
    rocksdb::Status status;
    for (size_t i = 0; i < versions.size(); ++i) {
      // The newest comes first.
      const bool newest = i == 0 || versions[i].user_key != versions[i - 1].user_key;
      if (!newest || versions[i].type != kBlobIndex) continue;
      const auto place = DecodeBlobPlace(db->directory, versions[i].value);
      const auto end = place ? ends.find(place->number) : ends.end();
      if (end == ends.end() || place->offset + place->bytes <= end->second) continue;
      if (status.ok()) status = batch.Delete(db->pages, versions[i].user_key);
    }
    GEARDB_RETURN_IF_ERROR(FromRocks(status, db->directory));
    GEARDB_RETURN_IF_ERROR(db->Resuming([&] { return db->Write(&batch); }));
    from = versions.back().user_key + '\0';
  }
}

/// Puts pages into the store again, many at once.
class PagesAgain {
 public:
  explicit PagesAgain(ColdDb* db) : db_(db) {}

  Status Put(const std::string& key, std::string_view value) {
    constexpr size_t kAtOnce = size_t{4} << 20;
    GEARDB_RETURN_IF_ERROR(FromRocks(batch_.Put(db_->pages, key, SliceOf(value)), db_->directory));
    return batch_.GetDataSize() < kAtOnce ? Status::Ok() : Write();
  }
  Status Finish() {
    GEARDB_RETURN_IF_ERROR(Write());
    return db_->FlushWhole();
  }

 private:
  Status Write() {
    const Status written = db_->Resuming([this] { return db_->Write(&batch_); });
    batch_.Clear();
    return written;
  }

  ColdDb* const db_;
  rocksdb::WriteBatch batch_;
};

/// Whether a store has a version of the page that is as new as this one.
bool HasAsNew(const ColdDb& db, const std::string& key, std::string_view value) {
  const auto wanted = ReadColdPageHeader(value);
  rocksdb::PinnableSlice found;
  if (!GetValue(db, db.pages, key, nullptr, &found).ok()) return false;
  const auto has = ReadColdPageHeader(ViewOf(found));
  return wanted.ok() && has.ok() && has->lsn >= wanted->lsn;
}

/// Writes what can be read of these files again, and what else can be found of their pages that
/// `without` them, the store has not.
Status WritePagesAgain(const std::vector<LostFile>& files, const ColdDb& without, ColdDb* db) {
  PagesAgain again(db);
  const auto read = [db](const std::string& key, rocksdb::PinnableSlice* value) {
    return FromRocks(db->db->Get(rocksdb::ReadOptions(), db->pages, key, value), db->directory);
  };
  for (const LostFile& lost : files) {
    for (const std::string& key : GoodKeysOf(*db, lost)) {
      rocksdb::PinnableSlice value;
      // What has left since is not found; what a newer file has is as good as before.
      if (!read(key, &value).ok()) continue;
      GEARDB_RETURN_IF_ERROR(again.Put(key, ViewOf(value)));
    }
  }
  ColdSalvage salvage(db);
  salvage.LookFor(files);
  for (const ColdPageKey& page : salvage.keys()) {
    const std::string key = EncodeColdKey(page);
    rocksdb::PinnableSlice value;
    if (read(key, &value).code() != StatusCode::kCorruption) continue;
    const auto found = salvage.FindNewest(page);
    if (found && !HasAsNew(without, key, *found)) {
      GEARDB_RETURN_IF_ERROR(again.Put(key, *found));
    }
  }
  return again.Finish();
}

}  // namespace

Status MendColdPages(const std::string& directory, uint64_t log_start,
                     std::shared_ptr<rocksdb::FileSystem> files) {
  const ColdStoreOptions options = {.log_start = log_start, .files = std::move(files)};
  {
    GEARDB_ASSIGN_OR_RETURN(const auto db, OpenInSpiteOfDamage(directory, options));
    const std::vector<LostFile> damaged = FindLostPages(*db, LostPages::kDamaged);
    if (!damaged.empty()) {
      GEARDB_ASSIGN_OR_RETURN(const auto without, OpenWithoutLostPages(directory, options));
      GEARDB_RETURN_IF_ERROR(WritePagesAgain(damaged, *without, db.get()));
    }
    GEARDB_RETURN_IF_ERROR(db->Close());
  }
  GEARDB_RETURN_IF_ERROR(DropLostPages(directory, options));
  GEARDB_ASSIGN_OR_RETURN(const auto db, OpenColdDb(directory, options));
  GEARDB_RETURN_IF_ERROR(db->Writable());
  const std::map<uint64_t, uint64_t> ends = ShortBlobFiles(*db);
  if (ends.empty()) return db->Close();
  GEARDB_RETURN_IF_ERROR(DeletePagesBeyond(ends, db.get()));
  GEARDB_RETURN_IF_ERROR(db->FlushWhole());
  const bool missing = std::ranges::any_of(ends, [](const auto& end) { return end.second == 0; });
  if (!missing) return db->Close();
  // Once no key refers to a file, it leaves. Values are not read for that.
  rocksdb::CompactRangeOptions keys;
  keys.allow_write_stall = true;
  keys.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  keys.blob_garbage_collection_policy = rocksdb::BlobGarbageCollectionPolicy::kDisable;
  GEARDB_RETURN_IF_ERROR(
      FromRocks(db->db->CompactRange(keys, db->pages, nullptr, nullptr), directory));
  return db->Close();
}

namespace {

/// Those that the store consists of.
std::vector<BrokenTable> BrokenTables(const ColdDb& db) {
  std::vector<rocksdb::LiveFileMetaData> tables;
  db.db->GetLiveFilesMetaData(&tables);
  std::vector<BrokenTable> broken;
  for (const rocksdb::LiveFileMetaData& table : tables) {
    const BrokenTable* const shown =
        db.tables->Shown(Concatenate(db.directory, "/", table.relative_filename), table.size);
    if (shown != nullptr) broken.push_back(*shown);
  }
  return broken;
}

}  // namespace

Status MendColdFiles(const std::string& directory, uint64_t log_start) {
  GEARDB_ASSIGN_OR_RETURN(const auto db,
                          OpenColdDb(directory, {.read_only = true, .log_start = log_start}));
  for (const BrokenBlob& blob : FindBrokenBlobs(*db)) {
    CrashPoint("repair_blob");
    GEARDB_RETURN_IF_ERROR(db->blobs->Mend(blob));
  }
  for (const BrokenTable& table : BrokenTables(*db)) {
    CrashPoint("repair_table");
    GEARDB_RETURN_IF_ERROR(db->tables->Mend(table));
  }
  return Status::Ok();
}

Result<ColdCheck> CheckColdChunks(const std::string& directory) {
  GEARDB_ASSIGN_OR_RETURN(const auto db, OpenColdDb(directory, {.read_only = true}));
  ColdCheck found{.files = db->listener->damage(),
                  .manifest = db->manifests->damage(),
                  .notes = db->manifests->notes()};
  for (const BrokenTable& table : BrokenTables(*db)) found.tables[table.path] = table.why;
  std::erase_if(found.files, [&](const std::string& text) {
    return std::ranges::count(found.manifest, text) > 0 ||
           std::ranges::any_of(found.tables,
                               [&](const auto& table) { return table.second == text; });
  });
  found.pages = db->missing_in.contains(db->pages->GetName());
  found.pages_name_lsns = db->format >= kColdFormat;
  for (const LostFile& lost : FindLostPages(*db, LostPages::kDamaged)) {
    found.pages = true;
    ++found.files_of_pages;
    if (std::ranges::count(found.files, lost.why) == 0) found.files.push_back(lost.why);
  }
  for (const BrokenBlob& blob : FindBrokenBlobs(*db)) {
    found.blobs[blob.path] = blob.why;
    found.blobs_cut = found.blobs_cut || blob.cut;
    // What the copies have is looked at as it is once the files are mended.
    db->blobs->Show(blob);
  }
  found.mendable = db->listener->worn.Take().any() || !found.manifest.empty();
  const Status marks[kChunkCopies] = {FindMark(*db, 0), FindMark(*db, 1)};
  const Status read = LookAtCopies(
      *db, &found.chunks,
      [&](const ColdChunkKey& key, size_t copy, const Status& why) {
        // A family that is being made anew need not have it.
        const bool absent = why.code() == StatusCode::kNotFound;
        if (absent && marks[copy].code() == StatusCode::kNotFound) return;
        found.copies.push_back(
            Concatenate("the ", CopyText(copy), " of ", ChunkText(key),
                        absent ? " is missing: " : " is damaged: ", why.message()));
      },
      [&](size_t copy, const Status& why) {
        found.copies.push_back(Concatenate(
            "the ", CopyText(copy), " of index chunks cannot be read to its end: ", why.message()));
      });
  if (read.code() == StatusCode::kCorruption) {
    found.both_bad = true;
    found.copies.push_back(
        Concatenate("neither copy of the index chunks can be read to its end: ", read.message()));
  } else {
    GEARDB_RETURN_IF_ERROR(read);
  }
  found.mendable = found.mendable || !found.copies.empty();
  return found;
}

Status MendColdChunks(const std::string& directory, uint64_t log_start) {
  GEARDB_RETURN_IF_ERROR(MendColdFiles(directory, log_start));
  GEARDB_ASSIGN_OR_RETURN(const auto db, OpenColdDb(directory, {.log_start = log_start}));
  GEARDB_RETURN_IF_ERROR(db->Writable());
  uint64_t chunks = 0;
  WornCopies* const worn = &db->listener->worn;
  const Status read = LookAtCopies(
      *db, &chunks,
      [&](const ColdChunkKey& key, size_t copy, const Status&) {
        worn->Note(copy, EncodeColdKey(key));
      },
      [&](size_t copy, const Status&) { worn->NoteFamily(kChunkFamilies[copy]); });
  if (read.code() != StatusCode::kCorruption) GEARDB_RETURN_IF_ERROR(read);
  GEARDB_RETURN_IF_ERROR(KeepTwice(db.get()));
  GEARDB_RETURN_IF_ERROR(db->FlushWhole());
  return db->Close();
}

}  // namespace geardb::engine
