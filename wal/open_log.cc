#include "wal/open_log.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "base/break.h"
#include "base/crash_point.h"
#include "wal/aligned_buffer.h"
#include "wal/log_scan.h"
#include "wal/ring_file.h"
#include "wal/segment_check.h"
#include "wal/segment_file.h"
#include "wal/segment_map.h"
#include "wal/writer_core.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kWriteBytesMax = uint64_t{1} << 20;
constexpr uint64_t kSegmentBytesMin = uint64_t{64} << 10;
constexpr uint64_t kRingBytesMin = uint64_t{32} << 10;

using SteadyClock = std::chrono::steady_clock;

double Seconds(SteadyClock::time_point from, SteadyClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

Status CheckSize(const char* name, uint64_t bytes, uint64_t bytes_min) {
  if (bytes >= bytes_min && bytes <= (uint64_t{1} << 31) && (bytes & (bytes - 1)) == 0) {
    return Status::Ok();
  }
  return Status::InvalidArgument(name, " = ", bytes, ": must be a power of two from ", bytes_min,
                                 " to ", uint64_t{1} << 31);
}

Uuid NewUuid() {
  Uuid uuid;
  std::random_device entropy;
  for (std::byte& b : uuid) b = static_cast<std::byte>(entropy() & 0xff);
  // Version 4, variant 1 of RFC 4122.
  uuid[6] = (uuid[6] & std::byte{0x0f}) | std::byte{0x40};
  uuid[8] = (uuid[8] & std::byte{0x3f}) | std::byte{0x80};
  return uuid;
}

Status ThereIsOne(const std::string& manifest_path) {
  return Status::AlreadyExists(manifest_path, ": there is a database already");
}

/// The files that a creation without a manifest has left in the log's directory. Refuses what
/// anything else has put there: it would be removed.
Result<std::vector<std::string>> Leftovers(Env* env, const std::string& log_directory) {
  GEARDB_ASSIGN_OR_RETURN(const bool exists, env->Exists(log_directory));
  if (!exists) return std::vector<std::string>();
  GEARDB_ASSIGN_OR_RETURN(const auto names, env->List(log_directory));
  for (const std::string& name : names) {
    uint64_t number = 0;
    if (name != kRingName && !ParseSegmentName(name, &number)) {
      return Status::FailedPrecondition("'", log_directory, "' holds '", name,
                                        "', which is no file of a database: none is created here");
    }
    const auto nothing = HoldsOnlyZeros(env, JoinPath(log_directory, name));
    // Who creates now has removed it: the look within the lock decides.
    if (nothing.status().code() == StatusCode::kNotFound) continue;
    GEARDB_RETURN_IF_ERROR(nothing.status());
    if (!*nothing) {
      const std::string manifest_path = JoinPath(ParentOf(log_directory), kManifestName);
      GEARDB_ASSIGN_OR_RETURN(const bool created_meanwhile, env->Exists(manifest_path));
      if (created_meanwhile) return ThereIsOne(manifest_path);
      return Status::Corruption("'", log_directory, "' holds '", name,
                                "' with content, but there is no ", kManifestName,
                                " beside it: a database has lost it, and none is created here");
    }
  }
  return names;
}

}  // namespace

Result<CreatedLog> CreateLog(Env* env, const std::string& directory, const LogOptions& options) {
  GEARDB_RETURN_IF_ERROR(CheckSize("ring_bytes", options.ring_bytes, kRingBytesMin));
  GEARDB_RETURN_IF_ERROR(CheckSize("segment_bytes", options.segment_bytes, kSegmentBytesMin));
  if (options.log_bytes_max < options.segment_bytes) {
    return Status::InvalidArgument(
        "log_bytes_max is ", options.log_bytes_max,
        "; expected at least one segment, segment_bytes = ", options.segment_bytes);
  }
  const std::string log_directory = JoinPath(directory, kLogDirectoryName);
  GEARDB_RETURN_IF_ERROR(Leftovers(env, log_directory).status());  // Before anything is written.
  // An open would be refused: so is the creation.
  if (options.background) GEARDB_RETURN_IF_ERROR(WriterThread::Start(log_directory).status());
  GEARDB_RETURN_IF_ERROR(env->CreateDirectory(directory));
  GEARDB_RETURN_IF_ERROR(env->SyncDirectory(ParentOf(directory)));
  GEARDB_ASSIGN_OR_RETURN(auto held, env->HoldDirectory(directory));
  GEARDB_ASSIGN_OR_RETURN(auto lock,
                          held->Lock(JoinPath(directory, kLockName), LockMode::kExclusive));
  const std::string manifest_path = JoinPath(directory, kManifestName);
  GEARDB_ASSIGN_OR_RETURN(const bool exists, held->Exists(manifest_path));
  if (exists) return ThereIsOne(manifest_path);

  GEARDB_RETURN_IF_ERROR(held->CreateDirectory(log_directory));
  // They may have other sizes.
  GEARDB_ASSIGN_OR_RETURN(const auto leftovers, Leftovers(held.get(), log_directory));
  for (const std::string& name : leftovers) {
    GEARDB_RETURN_IF_ERROR(held->Remove(JoinPath(log_directory, name)));
  }
  GEARDB_RETURN_IF_ERROR(
      RingFile::Create(held.get(), JoinPath(log_directory, kRingName), options.ring_bytes));
  SegmentPool pool(held, log_directory, options.segment_bytes, options.direct_io);
  GEARDB_RETURN_IF_ERROR(pool.CreateSpare());  // Syncs the log's directory, the ring's entry too.
  GEARDB_RETURN_IF_ERROR(held->SyncDirectory(directory));
  const Manifest manifest{.uuid = NewUuid(),
                          .epoch = {},
                          .start = 0,
                          .cut = kNoLsn,
                          .ring_bytes = options.ring_bytes,
                          .segment_bytes = options.segment_bytes};
  GEARDB_RETURN_IF_ERROR(WriteManifest(held.get(), directory, manifest));
  return CreatedLog{.directory = std::move(held), .lock = std::move(lock)};
}

Result<Manifest> LockAndReadManifest(Env* env, const std::string& directory, LockMode mode,
                                     std::unique_ptr<FileLock>* lock) {
  GEARDB_ASSIGN_OR_RETURN(const Manifest before, ReadManifest(env, directory));
  if (*lock != nullptr) return before;
  GEARDB_ASSIGN_OR_RETURN(*lock, env->Lock(JoinPath(directory, kLockName), mode));
  return ReadManifest(env, directory);
}

/// The steps of one open, in order; see wal/FORMAT.md, "Opening".
class LogOpener {
 public:
  LogOpener(Env* env, const std::string& directory, const OpenOptions& options)
      : env_(env),
        directory_(directory),
        log_directory_(JoinPath(directory, kLogDirectoryName)),
        options_(options),
        begin_(SteadyClock::now()) {}

  Result<OpenedLog> Open(const RecordVisitor& visitor) {
    GEARDB_RETURN_IF_ERROR(LockAndRead());
    GEARDB_RETURN_IF_ERROR(ReadRecords(visitor));
    if (!options_.read_only) {
      GEARDB_RETURN_IF_ERROR(CutAndDrain());
      GEARDB_RETURN_IF_ERROR(BeginEpoch());
      GEARDB_RETURN_IF_ERROR(MakeWriter());
    }
    opened_.report.epoch = opened_.manifest.epoch;
    opened_.report.total_seconds = Seconds(begin_, SteadyClock::now());
    return std::move(opened_);
  }

 private:
  // Step a.
  Status LockAndRead() {
    if (options_.take_lock) {
      const LockMode mode = options_.read_only ? LockMode::kShared : LockMode::kExclusive;
      GEARDB_ASSIGN_OR_RETURN(opened_.manifest,
                              LockAndReadManifest(env_, directory_, mode, &opened_.lock));
    } else {
      GEARDB_ASSIGN_OR_RETURN(opened_.manifest, ReadManifest(env_, directory_));
    }
    if (!options_.read_only && opened_.manifest.epoch.open == UINT32_MAX) {
      return Status::ResourceExhausted(directory_, " was opened for writing ", UINT32_MAX,
                                       " times, and cannot be any more: copy what it holds");
    }
    if (!options_.read_only && options_.log.log_bytes_max < opened_.manifest.segment_bytes) {
      return Status::InvalidArgument("log_bytes_max is ", options_.log.log_bytes_max,
                                     "; expected at least one segment, which has ",
                                     opened_.manifest.segment_bytes, " bytes in ", directory_);
    }
    GEARDB_ASSIGN_OR_RETURN(SegmentMap map,
                            SegmentMap::Read(env_, log_directory_, opened_.manifest,
                                             std::min(options_.from, options_.keep)));
    const RingAccess access = options_.read_only        ? RingAccess::kReadOnly
                              : options_.log.shared_map ? RingAccess::kMapped
                                                        : RingAccess::kWritten;
    const std::string ring_path = JoinPath(log_directory_, kRingName);
    GEARDB_ASSIGN_OR_RETURN(ring_,
                            RingFile::Open(env_, ring_path, opened_.manifest.ring_bytes, access));
    GEARDB_RETURN_IF_ERROR(CheckRingOwner(ring_.get(), ring_path, opened_.manifest));
    // Before one is taken for reading ahead, which can do without.
    if (!options_.read_only && options_.log.background) {
      GEARDB_ASSIGN_OR_RETURN(thread_, WriterThread::Start(log_directory_));
    }
    const ReadOptions read{
        .from = options_.from,
        .keep = options_.keep,
        .all_types = false,
        .use_ring = true,
        .allow_damaged_prefix = options_.read_only && options_.allow_damaged_prefix,
        .read_ahead = options_.log.background,
        .lean = options_.lean};
    scan_ = std::make_unique<LogReader::Core>(env_, log_directory_, opened_.manifest, read,
                                              std::move(map), ring_.get());
    return Status::Ok();
  }

  // Steps b and c.
  Status ReadRecords(const RecordVisitor& visitor) {
    CrashPoint("recovery_read");
    while (true) {
      GEARDB_ASSIGN_OR_RETURN(const auto record, scan_->Next());
      if (!record.has_value()) break;
      GEARDB_RETURN_IF_ERROR(visitor(*record));
    }
    OpenReport& report = opened_.report;
    report.read = scan_->report();
    const Lsn end = report.read.end_lsn;
    if (end < options_.reach) {
      return Status::Corruption("the log ends at LSN ", end,
                                ", and what it is opened for is as of LSN ", options_.reach,
                                ": the log has lost what was synced");
    }
    if (report.read.seal_lsn == kNoLsn && end > 0) {
      report.cut_lsn = end;
      report.note = "cut at LSN " + std::to_string(end) + ", durability unknown";
    }
    report.read_seconds = Seconds(begin_, SteadyClock::now());
    return Status::Ok();
  }

  bool drains() const { return end() > segments_end(); }
  Lsn end() const { return opened_.report.read.end_lsn; }
  Lsn segments_end() const { return opened_.report.read.segments_end_lsn; }

  // Steps d, e and f.
  Status CutAndDrain() {
    const auto begin = SteadyClock::now();
    GEARDB_RETURN_IF_ERROR(FillPool());
    GEARDB_ASSIGN_OR_RETURN(tail_, scan_->Tail());
    if (drains()) {
      CrashPoint("recovery_cut");
      if constexpr (!kBreak.skip_cut) {
        opened_.manifest.cut = end();
        GEARDB_RETURN_IF_ERROR(WriteManifest(env_, directory_, opened_.manifest));
      }
      CrashPoint("recovery_drain");
      GEARDB_RETURN_IF_ERROR(DrainTail());
    }
    const auto drained = SteadyClock::now();
    opened_.report.drain_seconds = Seconds(begin, drained);
    GEARDB_RETURN_IF_ERROR(RewriteUnsynced());
    CrashPoint("recovery_sync");
    // What ends at or below `start` was synced before `start` was written.
    if (end() > opened_.manifest.start) {
      for (SegmentFile* file : pool_->LiveFrom(opened_.manifest.start)) {
        GEARDB_RETURN_IF_ERROR(file->Sync());
        file->dirty.store(false, std::memory_order_relaxed);
      }
    }
    pool_->RestBelow(end());
    opened_.report.sync_seconds = Seconds(drained, SteadyClock::now());
    return Status::Ok();
  }

  // Sorts the files into live and free; segments at or beyond the end are free. Refuses what is
  // neither before any of them is changed.
  Status FillPool() {
    const SegmentMap& map = scan_->map();
    std::set<std::string> live;
    for (const auto& [base, name] : map.names) {
      if (base < end()) live.insert(name);
    }
    for (const auto* names : {&map.all, &map.no_files}) {
      for (const std::string& name : *names) {
        if (live.contains(name)) continue;
        GEARDB_RETURN_IF_ERROR(
            CheckFreeSegment(env_, JoinPath(log_directory_, name), opened_.manifest));
      }
    }
    GEARDB_ASSIGN_OR_RETURN(auto held, env_->HoldDirectory(log_directory_));
    pool_ = std::make_unique<SegmentPool>(std::move(held), log_directory_,
                                          opened_.manifest.segment_bytes, options_.log.direct_io);
    for (auto segment = map.names.rbegin(); segment != map.names.rend(); ++segment) {
      if (segment->first >= end()) continue;
      GEARDB_RETURN_IF_ERROR(pool_->AddLive(segment->second, segment->first));
    }
    for (const std::string& name : map.all) {
      if (live.contains(name)) continue;
      // A spare file that a full disk left short (its removal may be lost with the power) is made
      // whole by an open that finds room; this one does without it.
      const Status added = pool_->AddFree(name);
      if (added.code() != StatusCode::kResourceExhausted) GEARDB_RETURN_IF_ERROR(added);
    }
    // A spare file that a crash left between its creation and the sync of its name.
    return env_->SyncDirectory(log_directory_);
  }

  // Step e: [AlignDown(z, 4 KiB), y), zeros beyond, from a buffer of our own.
  Status DrainTail() {
    const uint64_t segment_bytes = opened_.manifest.segment_bytes;
    const Lsn tail_begin = AlignDown(segments_end(), kBlockBytes);
    const AlignedBuffer buffer(kWriteBytesMax);
    std::byte* const block = buffer.data();
    for (Lsn at = tail_begin; at < end();) {
      const Lsn segment_end = AlignDown(at, segment_bytes) + segment_bytes;
      const Lsn to = std::min({end(), segment_end, at + kWriteBytesMax});
      if (pool_->Find(at) == nullptr) {
        if (pool_->free_count() == 0) GEARDB_RETURN_IF_ERROR(pool_->CreateSpare());
        pool_->Bind(AlignDown(at, segment_bytes));
      }
      const uint64_t bytes = AlignUp(to - at, kBlockBytes);
      std::memset(block, 0, bytes);
      std::memcpy(block, tail_.data() + (at - tail_begin), to - at);
      GEARDB_RETURN_IF_ERROR(pool_->Find(at)->Write(at % segment_bytes, {block, bytes}));
      CrashPoint("recovery_drained_some");
      opened_.report.drained_bytes += to - at;
      at = to;
    }
    return Status::Ok();
  }

  // Step f, its first half: what no record says was synced may be what a failed sync has left,
  // which a page cache shows and no sync would write. Whoever wrote it may have done so through a
  // page cache even where this open does not.
  Status RewriteUnsynced() {
    const uint64_t segment_bytes = opened_.manifest.segment_bytes;
    const Lsn known = std::max(opened_.report.read.synced_lsn, opened_.manifest.start);
    const Lsn rewrite_end = AlignUp(segments_end(), kBlockBytes);
    for (Lsn at = AlignDown(known, kBlockBytes); at < rewrite_end;) {
      const Lsn to = std::min(AlignDown(at, segment_bytes) + segment_bytes, rewrite_end);
      SegmentFile* const file = pool_->Find(at);
      // What lies below where the reading began may be gone.
      if (file != nullptr) {
        const bool was_open = file->is_open();
        GEARDB_RETURN_IF_ERROR(file->Rewrite(at % segment_bytes, to - at));
        if (!was_open) {
          GEARDB_RETURN_IF_ERROR(file->Sync());
          file->Rest();
        }
      }
      at = to;
    }
    return Status::Ok();
  }

  // Step g.
  Status BeginEpoch() {
    CrashPoint("recovery_epoch");
    opened_.manifest.epoch.open += 1;
    opened_.manifest.start = end();
    opened_.manifest.cut = kNoLsn;
    return WriteManifest(env_, directory_, opened_.manifest);
  }

  // Step h.
  Status MakeWriter() {
    CrashPoint("recovery_serve");
    const Lsn block = AlignDown(end(), kBlockBytes);
    const size_t bytes = end() - block;
    if (bytes > 0) {
      std::memcpy(ring_->At(block), tail_.data() + tail_.size() - bytes, bytes);
      GEARDB_RETURN_IF_ERROR(ring_->Commit(block, bytes));
    }
    scan_.reset();
    opened_.writer = LogWriter::Core::Make(WriterParts{.ring = std::move(ring_),
                                                       .pool = std::move(pool_),
                                                       .manifest = opened_.manifest,
                                                       .options = options_.log,
                                                       .end = end(),
                                                       .sealed = opened_.report.cut_lsn == kNoLsn,
                                                       .thread = std::move(thread_)});
    return Status::Ok();
  }

  Env* const env_;
  const std::string directory_;
  const std::string log_directory_;
  const OpenOptions options_;
  const SteadyClock::time_point begin_;
  OpenedLog opened_;
  std::unique_ptr<RingFile> ring_;
  std::unique_ptr<SegmentPool> pool_;
  std::unique_ptr<LogReader::Core> scan_;
  std::vector<std::byte> tail_;
  std::unique_ptr<WriterThread> thread_;
};

Result<OpenedLog> OpenLog(Env* env, const std::string& directory, const OpenOptions& options,
                          const RecordVisitor& visitor) {
  // All that is opened is in one and the same.
  GEARDB_ASSIGN_OR_RETURN(const auto held, env->HoldDirectory(directory));
  return LogOpener(held.get(), directory, options).Open(visitor);
}

}  // namespace geardb::wal
