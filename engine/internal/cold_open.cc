// Opening the RocksDB of a cold store: its options, and what is done where files are missing.
#include <rocksdb/convenience.h>
#include <rocksdb/file_system.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <cstdarg>
#include <set>

#include "base/concatenate.h"
#include "engine/internal/cold_chunks.h"
#include "engine/internal/cold_db.h"
#include "engine/internal/cold_sizes.h"

namespace geardb::engine {
namespace {

// Of the memory, what may hold batches that are not flushed.
constexpr uint64_t kMemtableShare = 2;
// RocksDB's own 4 MiB may be the last of a small disk, and what has to follow a manifest finds
// none.
constexpr size_t kManifestBytesAhead = size_t{64} << 10;
constexpr size_t kBlockBytes = 1024;  // What one bad byte costs at most, beside blob files.
constexpr uint64_t kMemtableBytesMin = uint64_t{256} << 10;
// Nor is it more than such a part of the store's disk: the reserve holds more than twice as much.
constexpr uint64_t kUnflushedRoomShare = 16;

/// RocksDB's own log of what it does would be a file that aborts the process (an assertion in
/// Debian's build) when it is written on after the disk was full. What matters is in a Status.
class NoLog : public rocksdb::Logger {
 public:
  NoLog() : Logger(rocksdb::FATAL_LEVEL) {}
  using Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

/// Chooses what the store holds in memory, and its reserve, by what its disk has room for.
void ChooseSizes(const ColdStoreOptions& options, ColdDb* store) {
  rocksdb::FileSystem* const files = store->threads->GetFileSystem().get();
  const uint64_t asked =
      std::min(options.unflushed_bytes_max, options.memory_bytes / kMemtableShare);
  const uint64_t room = DiskRoom(files, store->directory,
                                 std::max(asked * kUnflushedRoomShare, ColdReserve::kRoomMost));
  store->unflushed_bytes =
      std::max(2 * kMemtableBytesMin, std::min(asked, room / kUnflushedRoomShare));
  store->reserve = std::make_unique<ColdReserve>(
      files, store->directory, ColdReserve::BytesFor(store->unflushed_bytes, room));
  store->open_reserve = std::make_unique<ColdReserve>(files, store->directory,
                                                      kColdOpenReserveBytes, kColdOpenReserveName);
}

rocksdb::ColumnFamilyOptions FamilyOptions(const ColdDb& store) {
  const ColdStoreOptions& given = store.options;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = store.cache;
  table.cache_index_and_filter_blocks = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.format_version = 5;
  table.block_size = kBlockBytes;

  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  // Values come compressed. Said for each level, it keeps RocksDB from moving files out of level 0
  // without a look at the compactions under way: where these write the same range, which an
  // assertion of Debian's build notices, it ends the process.
  options.compression = rocksdb::kNoCompression;
  options.compression_per_level = {rocksdb::kNoCompression, rocksdb::kNoCompression};
  options.write_buffer_size = store.unflushed_bytes / 2;
  options.arena_block_size = BufferBytes(store.unflushed_bytes);
  options.max_write_buffer_number = 3;
  // Writes are stopped or go on, at once (ColdDb::Write); RocksDB slows none down before, as it
  // would sleep, and then wait for compactions that a full disk refuses.
  options.level0_slowdown_writes_trigger = options.level0_stop_writes_trigger;
  options.soft_pending_compaction_bytes_limit = 0;
  options.hard_pending_compaction_bytes_limit = 0;
  options.target_file_size_base = SstFileBytes(given);
  options.max_bytes_for_level_base = 4 * given.sst_file_bytes;
  options.level_compaction_dynamic_level_bytes = true;
  options.enable_blob_files = true;
  options.min_blob_size = given.blob_bytes_min;
  // The reserve has room for what is copied out of one.
  options.blob_file_size = std::min(given.blob_file_bytes, store.unflushed_bytes);
  // Values are never moved by the compactions that RocksDB makes by itself: they would move those
  // of the oldest quarter of the blob files, which a fifo table is about to drop, once for each
  // that is put. (Nor are compactions forced for them: what RocksDB looks for then, an SST file
  // that refers to the oldest blob file, is not always there once files were dropped, and Debian's
  // build aborts the process: an assertion in ComputeFilesMarkedForForcedBlobGC.) ColdSpace sees to
  // the space.
  options.enable_blob_garbage_collection = false;
  // What is removed at random is found by compactions of files with many tombstones.
  options.table_properties_collector_factories.push_back(
      rocksdb::NewCompactOnDeletionCollectorFactory(/*sliding_window_size=*/128,
                                                    /*deletion_trigger=*/64,
                                                    /*deletion_ratio=*/0.5));
  return options;
}

rocksdb::DBOptions DatabaseOptions(const ColdDb& store, bool degraded) {
  const ColdStoreOptions& given = store.options;
  rocksdb::DBOptions options;
  options.env = store.threads.get();
  options.create_if_missing = !given.read_only;
  options.create_missing_column_families = !given.read_only;
  options.paranoid_checks = !degraded;
  options.atomic_flush = true;
  options.avoid_flush_during_shutdown = true;  // Close does it, and sees whether it worked.
  options.statistics = store.statistics;
  options.listeners = {store.listener};
  options.write_buffer_manager = store.memtables;
  options.writable_file_max_buffer_size = BufferBytes(store.unflushed_bytes);
  options.max_open_files = static_cast<int>(given.open_files_max);
  options.max_file_opening_threads = 4;
  options.skip_stats_update_on_db_open = true;
  options.max_background_flushes = 1;  // As ColdDb::Resume wants it.
  options.max_background_compactions = static_cast<int>(given.background_threads);
  options.max_bgerror_resume_count = 0;  // As OnErrorRecoveryBegin.
  options.manifest_preallocation_size = kManifestBytesAhead;
  options.max_manifest_file_size = uint64_t{16} << 20;
  options.write_dbid_to_manifest = true;
  // A tail that was made again may not say which file it is of. What is read says so by itself.
  options.verify_sst_unique_id_in_manifest = false;
  options.bytes_per_sync = uint64_t{1} << 20;
  // No thread that only prints numbers.
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.info_log = std::make_shared<NoLog>();
  return options;
}

/// Notes the SST files that the manifest names, but that are not there or have another size; where
/// that keeps the store from being opened, also those of which nothing can be read. The names of
/// their column families.
std::set<std::string> NoteMissingTables(const ColdDb& store) {
  std::set<std::string> missing_in;
  rocksdb::FileSystem* files = store.threads->GetFileSystem().get();
  const rocksdb::IOOptions plain;
  std::vector<rocksdb::LiveFileMetaData> tables;
  store.db->GetLiveFilesMetaData(&tables);
  for (const rocksdb::LiveFileMetaData& table : tables) {
    uint64_t size = 0;
    const std::string path = Concatenate(store.directory, "/", table.relative_filename);
    if (const BrokenTable* const shown = store.tables->Shown(path, table.size)) {
      store.listener->AddDamage(shown->why);
      if (shown->lost_deletions) store.listener->worn.NoteFamily(table.column_family_name);
    }
    if (!files->GetFileSize(path, plain, &size, nullptr).ok()) {
      store.listener->AddDamage(Concatenate(path, " is missing, with ", RangeText(table)));
      missing_in.insert(table.column_family_name);
    } else if (size != table.size || !store.degraded.empty()) {
      const std::string why = WhyLost(store, table, LostPages::kUnreadable);
      if (why.empty()) continue;
      store.listener->AddDamage(Concatenate(why, ", with ", RangeText(table)));
      missing_in.insert(table.column_family_name);
    }
  }
  return missing_in;
}

/// As above, and the blob files, without which a store is opened.
std::set<std::string> NoteMissingFiles(const ColdDb& store) {
  std::set<std::string> missing_in = NoteMissingTables(store);
  for (const BlobFile& blob : LiveBlobFiles(store)) {
    if (store.blobs->FileExists(blob.path, rocksdb::IOOptions(), nullptr).ok()) continue;
    store.listener->AddDamage(Concatenate(blob.path, " is missing, with the values of ",
                                          blob.records_left, " ", blob.family_name));
    missing_in.insert(blob.family_name);
  }
  for (const std::string& name : missing_in) store.listener->worn.NoteFamily(name);
  return missing_in;
}

/// Which of the index chunks' families are to be opened: for writing all. Reading does without one
/// that is not there yet, or was dropped.
std::vector<size_t> CopiesToOpen(const ColdDb& store) {
  std::vector<size_t> copies;
  std::vector<std::string> names;
  const bool listed = rocksdb::DB::ListColumnFamilies(DatabaseOptions(store, /*degraded=*/false),
                                                      store.directory, &names)
                          .ok();
  for (size_t copy = 0; copy < kChunkCopies; ++copy) {
    const bool there = std::ranges::count(names, kChunkFamilies[copy]) > 0;
    if (there || !listed || !store.read_only) copies.push_back(copy);
  }
  // RocksDB says what is wrong where neither is there.
  return copies.empty() ? std::vector<size_t>{0} : copies;
}

rocksdb::Status OpenRocks(ColdDb* store, bool degraded) {
  const rocksdb::DBOptions options = DatabaseOptions(*store, degraded);
  rocksdb::ColumnFamilyOptions family = FamilyOptions(*store);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  const std::vector<size_t> copies = CopiesToOpen(*store);
  for (const char* name : {"default", "pages"}) families.emplace_back(name, family);
  for (const size_t copy : copies) families.emplace_back(kChunkFamilies[copy], family);
  families[0].options.enable_blob_files = false;
  // What is opened for writing in spite of damage is to lose a family, and nothing else.
  for (auto& each : families) each.options.disable_auto_compactions = degraded;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      store->read_only
          ? rocksdb::DB::OpenForReadOnly(options, store->directory, families, &handles, &db)
          : rocksdb::DB::Open(options, store->directory, families, &handles, &db);
  if (!opened.ok()) return opened;
  store->db.reset(db);
  store->empty = handles[0];
  store->pages = handles[1];
  for (size_t i = 0; i < copies.size(); ++i) store->chunks[copies[i]] = handles[2 + i];
  store->listener->Watch(store->chunks);
  return opened;
}

/// What the store says of itself. A new one says nothing.
Result<ColdOwn> ReadOwnKeys(ColdDb* store) {
  auto own = ReadColdOwn(*store);
  if (own.status().code() == StatusCode::kNotFound) {
    if (store->Property(store->pages, rocksdb::DB::Properties::kLiveSstFilesSize) != 0) {
      return Status::Corruption(store->directory, " has pages, but does not say up to what LSN");
    }
    store->format = store->options.format_of_new;
    return ColdOwn{};
  }
  if (!own.ok()) return own.status().WithContext(store->directory);
  store->format = own->format;
  GEARDB_RETURN_IF_ERROR(
      store->listener->ReadFlushed(store->db.get()).WithContext(store->directory));
  return own;
}

// Any write makes RocksDB tell apart from now on what is only in memory; nobody reads yet.
Status WriteOwnKeys(ColdDb* store, const ColdOwn& own) {
  rocksdb::WriteBatch batch;
  GEARDB_RETURN_IF_ERROR(FromRocks(PutColdOwn(*store, own, &batch), store->directory));
  return store->Write(&batch);
}

Status OpenWhole(ColdDb* store) {
  const Status opened = FromRocks(OpenRocks(store, /*degraded=*/false), store->directory);
  if (opened.code() == StatusCode::kCorruption && !store->manifests->doubt().empty()) {
    return Status::Corruption(opened.message(), "; ", store->manifests->doubt());
  }
  GEARDB_RETURN_IF_ERROR(opened);
  GEARDB_ASSIGN_OR_RETURN(const ColdOwn own, ReadOwnKeys(store));
  return store->read_only ? Status::Ok() : WriteOwnKeys(store, own);
}

Status CompareWithLog(const ColdDb& store) {
  const uint64_t found = store.listener->flushed().lsn;
  if (found >= store.options.log_start) return Status::Ok();
  return Status::Corruption(store.directory, " holds what was written up to LSN ", found,
                            ", but the log begins at ", store.options.log_start);
}

Status OpenDamaged(ColdDb* store, const Status& why) {
  store->read_only = true;
  store->degraded = std::string(why.message());
  const Status opened = FromRocks(OpenRocks(store, /*degraded=*/true), store->directory);
  if (!opened.ok()) return why;
  store->listener->AddDamage(store->degraded);
  const Status own = ReadOwnKeys(store).status();
  if (own.code() == StatusCode::kUnsupported) return own;
  // Files that are missing may have been replaced since the manifest seems to end.
  if (own.ok()) return CompareWithLog(*store);
  // Nor is it known then whether the pages that it still leads to are the newest.
  if (!store->manifests->doubt().empty()) {
    return Status::Corruption(own.message(), "; ", store->manifests->doubt());
  }
  store->listener->AddDamage(std::string(own.message()));
  return Status::Ok();
}

/// What is the same for all RocksDBs that an open makes, one after the other.
struct Opening {
  /// Looks at the SST files.
  Opening(std::string where, const ColdStoreOptions& how)
      : directory(std::move(where)),
        options(how),
        tables(std::make_shared<TableFiles>(
            how.files != nullptr ? how.files : rocksdb::FileSystem::Default())) {
    tables->LookAt(directory);
  }
  Opening ForReading() const {
    Opening reading = *this;
    reading.options.read_only = true;
    return reading;
  }

  std::string directory;
  ColdStoreOptions options;
  std::shared_ptr<TableFiles> tables;
};

/// Everything but the RocksDB itself, new: an open that failed leaves none of it behind.
Result<std::unique_ptr<ColdDb>> MakeColdDb(const Opening& opening) {
  const auto& [directory, options, tables] = opening;
  auto store = std::make_unique<ColdDb>(directory, options);
  store->tables = tables;
  store->manifests = std::make_shared<ManifestFiles>(store->tables, directory);
  store->found = store->manifests->Look();
  store->blobs = std::make_shared<BlobFiles>(store->manifests);
  GEARDB_ASSIGN_OR_RETURN(store->threads, ColdThreads::Start({store->blobs, options.clock},
                                                             options.background_threads));
  ChooseSizes(options, store.get());
  store->cache = rocksdb::NewLRUCache(options.memory_bytes, CacheShardBits(options.memory_bytes));
  store->memtables =
      std::make_shared<rocksdb::WriteBufferManager>(store->unflushed_bytes, store->cache);
  store->statistics = rocksdb::CreateDBStatistics();
  store->statistics->set_stats_level(rocksdb::StatsLevel::kExceptTimers);
  store->listener = std::make_shared<ColdListener>(directory, store->manifests);
  for (const std::string& text : store->manifests->damage()) store->listener->AddDamage(text);
  store->read_only = options.read_only;
  return store;
}

/// Corruption where the store has lost what the log relied upon. Reads only; what it cannot open,
/// the open proper will judge.
Status CheckReachesLog(const Opening& opening) {
  GEARDB_ASSIGN_OR_RETURN(const auto store, MakeColdDb(opening.ForReading()));
  const rocksdb::Status opened = OpenRocks(store.get(), /*degraded=*/false);
  // Column families are missing: nothing was ever flushed, it seems.
  if (opened.IsInvalidArgument()) return FromRocks(opened, opening.directory);
  if (!opened.ok()) return Status::Ok();
  const bool says_nothing = ReadColdOwn(*store).status().code() == StatusCode::kNotFound;
  if (!says_nothing && !ReadOwnKeys(store.get()).ok()) return Status::Ok();
  return CompareWithLog(*store);
}

/// An error only where a family is missing now: the next open makes it.
Status MakeCopies(ColdDb* store) {
  const Status made = KeepTwice(store);
  if (made.ok()) return made;
  if (store->chunks[0] == nullptr || store->chunks[1] == nullptr) return made;
  store->listener->AddDamage(
      Concatenate("the second copies of index chunks could not be written: ", made.message()));
  return Status::Ok();
}

/// Where all that keeps a store from being opened is one of the copies of the index chunks, and the
/// other one is whole: drops that one's family, which an open for writing makes anew. The damage;
/// empty where nothing was done.
Result<std::vector<std::string>> DropDamagedCopy(const Opening& opening) {
  const std::vector<std::string> nothing;
  const std::string& directory = opening.directory;
  GEARDB_ASSIGN_OR_RETURN(auto store, MakeColdDb(opening.ForReading()));
  if (!OpenRocks(store.get(), /*degraded=*/true).ok()) return nothing;
  // Opening for writing deletes the files that the manifest does not name. One that says less than
  // the log relies upon may have ended early, and its missing files have been replaced since.
  const bool reaches = ReadOwnKeys(store.get()).ok() && CompareWithLog(*store).ok();
  const size_t copy = reaches ? DamagedCopy(*store) : kChunkCopies;
  if (copy == kChunkCopies) return nothing;
  std::set<std::string> missing_in = NoteMissingTables(*store);
  missing_in.erase(kChunkFamilies[copy]);
  if (!missing_in.empty()) return nothing;
  std::vector<std::string> damage = store->listener->damage();
  GEARDB_ASSIGN_OR_RETURN(store, MakeColdDb(opening));
  GEARDB_RETURN_IF_ERROR(FromRocks(OpenRocks(store.get(), /*degraded=*/true), directory));
  GEARDB_RETURN_IF_ERROR(FromRocks(store->db->DropColumnFamily(store->chunks[copy]), directory));
  GEARDB_RETURN_IF_ERROR(store->Close());
  damage.push_back(Concatenate(directory, ": ", copy == 0 ? "the first" : "the second",
                               " copies of the index chunks are damaged, and made anew from the ",
                               "others"));
  return damage;
}

Status CheckOptions(const ColdStoreOptions& options) {
  if (options.space_amplification_max <= 1.0 || options.background_threads == 0 ||
      options.memory_bytes < kColdMemoryBytesMin || options.open_files_max < 16) {
    return Status::InvalidArgument("a cold store needs a space amplification above 1, threads, ",
                                   kColdMemoryBytesMin, " bytes of memory and 16 open files");
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<ColdDb>> OpenColdDb(const std::string& directory,
                                           const ColdStoreOptions& options) {
  GEARDB_RETURN_IF_ERROR(CheckOptions(options));
  const Opening opening(directory, options);
  GEARDB_ASSIGN_OR_RETURN(auto store, MakeColdDb(opening));
  const bool absent = store->found.code() == StatusCode::kNotFound;
  if (!store->found.ok() && (options.read_only || !absent)) return store->found;
  if (options.log_start != 0) {
    if (absent) {
      return Status::Corruption(directory, " holds no cold store, but the log begins at ",
                                options.log_start);
    }
    GEARDB_RETURN_IF_ERROR(CheckReachesLog(opening));
  }
  Status opened = OpenWhole(store.get());
  for (const auto reserve : {&ColdDb::open_reserve, &ColdDb::reserve}) {
    const bool full = opened.code() == StatusCode::kResourceExhausted;
    if (!full || options.read_only || !(store.get()->*reserve)->GiveUp()) continue;
    // It needs little, and without it nothing could be removed.
    GEARDB_ASSIGN_OR_RETURN(store, MakeColdDb(opening));
    opened = OpenWhole(store.get());
  }
  std::vector<std::string> damage = store->listener->damage();
  if (opened.code() == StatusCode::kCorruption && !options.read_only) {
    store.reset();
    GEARDB_ASSIGN_OR_RETURN(const auto dropped, DropDamagedCopy(opening));
    GEARDB_ASSIGN_OR_RETURN(store, MakeColdDb(opening));
    if (!dropped.empty()) opened = OpenWhole(store.get());
    damage.insert(damage.end(), dropped.begin(), dropped.end());
  }
  if (opened.code() == StatusCode::kCorruption) {
    GEARDB_ASSIGN_OR_RETURN(store, MakeColdDb(opening));
    opened = OpenDamaged(store.get(), opened);
  }
  GEARDB_RETURN_IF_ERROR(opened);
  // An open that failed may have mended the manifest already.
  for (const std::string& text : damage) store->listener->AddDamage(text);
  // Compactions run already: what they replace stays until it was looked for.
  const bool held = !store->read_only && store->db->DisableFileDeletions().ok();
  store->missing_in = NoteMissingFiles(*store);
  if (held) GEARDB_RETURN_IF_ERROR(FromRocks(store->db->EnableFileDeletions(false), directory));
  if (!store->read_only) GEARDB_RETURN_IF_ERROR(MakeCopies(store.get()));
  if (!store->read_only) {
    (void)store->manifests->DeleteStrays();
    (void)store->open_reserve->KeepPart();
    (void)store->reserve->Keep();
  }
  MutexLock lock(&store->write_mutex);
  store->written = store->listener->flushed();
  return store;
}

namespace {

/// OK where nothing that the log relies upon is missing, as in DropDamagedCopy.
Status CheckOwn(ColdDb* store) {
  GEARDB_RETURN_IF_ERROR(ReadOwnKeys(store).status());
  return CompareWithLog(*store);
}

/// Looks for damaged files of pages in the store, which is opened for reading for it.
Result<std::vector<ManifestFile>> FindFilesToDrop(const Opening& opening) {
  GEARDB_ASSIGN_OR_RETURN(auto store, MakeColdDb(opening.ForReading()));
  GEARDB_RETURN_IF_ERROR(store->found);
  GEARDB_RETURN_IF_ERROR(FromRocks(OpenRocks(store.get(), /*degraded=*/true), opening.directory));
  GEARDB_RETURN_IF_ERROR(CheckOwn(store.get()));
  std::vector<ManifestFile> lost;
  for (const LostFile& found : FindLostPages(*store, LostPages::kDamaged)) {
    lost.push_back({.family = store->pages->GetID(),
                    .level = static_cast<uint32_t>(found.file.level),
                    .number = found.file.file_number});
  }
  return lost;
}

/// With a manifest of its own, without these files.
Result<std::unique_ptr<ColdDb>> OpenWithout(const Opening& opening,
                                            const std::vector<ManifestFile>& files) {
  GEARDB_ASSIGN_OR_RETURN(auto store, MakeColdDb(opening));
  store->manifests->LeaveOut(files);
  GEARDB_RETURN_IF_ERROR(FromRocks(OpenRocks(store.get(), /*degraded=*/true), opening.directory));
  GEARDB_RETURN_IF_ERROR(CheckOwn(store.get()));
  return store;
}

}  // namespace

Result<std::unique_ptr<ColdDb>> OpenWithoutLostPages(const std::string& directory,
                                                     const ColdStoreOptions& options) {
  const Opening opening = Opening(directory, options).ForReading();
  GEARDB_ASSIGN_OR_RETURN(const auto lost, FindFilesToDrop(opening));
  return OpenWithout(opening, lost);
}

Status DropLostPages(const std::string& directory, const ColdStoreOptions& options) {
  const Opening opening(directory, options);
  GEARDB_ASSIGN_OR_RETURN(const auto lost, FindFilesToDrop(opening));
  if (lost.empty()) return Status::Ok();
  GEARDB_ASSIGN_OR_RETURN(const auto store, OpenWithout(opening, lost));
  return store->Close();
}

Result<std::unique_ptr<ColdDb>> OpenInSpiteOfDamage(const std::string& directory,
                                                    const ColdStoreOptions& options) {
  const Opening opening(directory, options);
  // An open for writing deletes what the manifest does not name: as in DropDamagedCopy.
  GEARDB_RETURN_IF_ERROR(OpenWithout(opening.ForReading(), {}).status());
  return OpenWithout(opening, {});
}

}  // namespace geardb::engine
