#include "wal/vouch_scan.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "wal/aligned_buffer.h"
#include "wal/record_codec.h"

namespace geardb::wal {
namespace {

constexpr uint64_t kScanBytes = uint64_t{1} << 20;
/// Threads that read segments, at most, and how much each has to read at least.
constexpr uint64_t kThreadsMax = 4;
constexpr uint64_t kThreadBytes = uint64_t{32} << 20;

// Could the 64 bytes at `at` be the header of a record beyond the stop, of the manifest's epoch or
// of one that it cannot know of?
bool LooksLikeHeader(const std::byte* at, const Manifest& manifest, Lsn stop, uint64_t modulus,
                     uint64_t offset, RecordHeader* header) {
  Lsn lsn;
  std::memcpy(&lsn, at + offsetof(RecordHeader, lsn), sizeof(lsn));
  if (lsn < stop || lsn % modulus != offset) return false;
  std::memcpy(header, at, sizeof(*header));
  if (header->epoch() < manifest.epoch || (header->epoch() == manifest.epoch && lsn == stop)) {
    return false;
  }
  return header->zero == 0 && header->length >= sizeof(RecordHeader) &&
         header->metadata_length <= header->length && header->length <= manifest.segment_bytes;
}

// What a scan is for. Called for what lies beyond the stop, in no order, by one at a time.
class Search {
 public:
  virtual ~Search() = default;
  /// Whether the record of this header is worth reading.
  virtual bool Wants(const RecordHeader& header) const = 0;
  /// A record with a valid header and metadata. `where`: the file's path, or kTheRing.
  virtual Status Take(const ParsedRecord& record, const std::string& where) = 0;
};

constexpr std::string_view kTheRing = "the ring";

// The records of one segment file, wherever in it they begin.
class FileScan {
 public:
  /// `mutex`: held when the search is called.
  FileScan(Env* env, std::string path, const Manifest& manifest, Lsn stop, Mutex* mutex)
      : env_(env),
        path_(std::move(path)),
        manifest_(manifest),
        stop_(stop),
        mutex_(mutex),
        block_(kScanBytes) {}

  /// From offset `begin` on.
  Status Run(uint64_t begin, Search* search) {
    GEARDB_ASSIGN_OR_RETURN(file_, env_->OpenFile(path_, {.mode = FileMode::kRead}));
    GEARDB_ASSIGN_OR_RETURN(const uint64_t size, file_->Size());
    uint64_t at = begin;
    while (at < size) {
      GEARDB_ASSIGN_OR_RETURN(const FileExtent extent, file_->NextWritten(at));
      if (extent.begin >= extent.end) break;
      at = AlignDown(std::max(extent.begin, at), kDirectAlignment);
      for (; at < extent.end; at += kScanBytes) {
        const uint64_t wanted = AlignUp(std::min(kScanBytes, extent.end - at), kDirectAlignment);
        GEARDB_ASSIGN_OR_RETURN(const size_t read, file_->Read(at, block_.span().first(wanted)));
        GEARDB_RETURN_IF_ERROR(ScanBlock(at, read, search));
      }
      at = extent.end;
    }
    return Status::Ok();
  }

 private:
  Status ScanBlock(uint64_t at, size_t bytes, Search* search) {
    RecordHeader header;
    for (uint64_t i = 0; i + sizeof(RecordHeader) <= bytes; i += kRecordAlignment) {
      if (!LooksLikeHeader(block_.data() + i, manifest_, stop_, manifest_.segment_bytes, at + i,
                           &header)) {
        continue;
      }
      MutexLock lock(mutex_);
      if (search->Wants(header)) GEARDB_RETURN_IF_ERROR(CheckRecord(at + i, header, search));
    }
    return Status::Ok();
  }

  // Rare, so the record is read by itself: its metadata may lie beyond the block.
  Status CheckRecord(uint64_t at, const RecordHeader& header, Search* search) {
    record_bytes_.resize(header.length);
    GEARDB_ASSIGN_OR_RETURN(const size_t read, file_->Read(at, record_bytes_));
    if (read != record_bytes_.size() ||
        !ParseRecord(record_bytes_, header.lsn, manifest_.Seed(), &record_)) {
      return Status::Ok();
    }
    return search->Take(record_, path_);
  }

  Env* const env_;
  const std::string path_;
  const Manifest& manifest_;
  const Lsn stop_;
  Mutex* const mutex_;
  const AlignedBuffer block_;
  std::unique_ptr<File> file_;
  std::vector<std::byte> record_bytes_;
  ParsedRecord record_;
};

Status ScanRing(RingFile* ring, const Manifest& manifest, Lsn stop, Search* search) {
  ParsedRecord record;
  RecordHeader header;
  GEARDB_ASSIGN_OR_RETURN(const auto extents, ring->WrittenExtents());
  for (const FileExtent& extent : extents) {
    for (uint64_t at = AlignDown(extent.begin, kRecordAlignment);
         at + sizeof(RecordHeader) <= extent.end; at += kRecordAlignment) {
      if (LooksLikeHeader(ring->At(at), manifest, stop, ring->bytes(), at, &header) &&
          search->Wants(header) && header.length <= ring->bytes() &&
          ParseRecord({ring->At(at), header.length}, header.lsn, manifest.Seed(), &record)) {
        GEARDB_RETURN_IF_ERROR(search->Take(record, std::string(kTheRing)));
      }
    }
  }
  return Status::Ok();
}

// A file of which what begins at `begin` is to be scanned.
struct FileRest {
  std::string path;
  uint64_t begin = 0;
};

// Scans files by as many threads as they are worth.
class FilesScan {
 public:
  FilesScan(Env* env, const ScannedLog& log, Lsn stop, std::vector<FileRest> files, Search* search)
      : env_(env), log_(log), stop_(stop), files_(std::move(files)), search_(search) {}

  Status Run(uint64_t threads_max) {
    uint64_t bytes = 0;
    for (const FileRest& file : files_) bytes += log_.manifest.segment_bytes - file.begin;
    const uint64_t count =
        std::min({threads_max, bytes / kThreadBytes, static_cast<uint64_t>(files_.size())});
    std::vector<std::thread> threads;
    for (uint64_t i = 1; i < count; ++i) {
      auto thread = StartThread("scans the log", [this] { ScanFiles(); });
      if (!thread.ok()) break;  // Those that are there do it.
      threads.push_back(std::move(thread).value());
    }
    ScanFiles();
    for (std::thread& thread : threads) thread.join();
    MutexLock lock(&mutex_);
    return status_;
  }

 private:
  void ScanFiles() {
    for (size_t at = next_++; at < files_.size(); at = next_++) {
      FileScan scan(env_, files_[at].path, log_.manifest, stop_, &search_mutex_);
      const Status status = scan.Run(files_[at].begin, search_);
      if (status.ok()) continue;
      next_ = files_.size();
      MutexLock lock(&mutex_);
      if (status_.ok()) status_ = status;
    }
  }

  Env* const env_;
  const ScannedLog& log_;
  const Lsn stop_;
  const std::vector<FileRest> files_;
  Search* const search_;
  std::atomic<size_t> next_{0};
  Mutex search_mutex_;
  Mutex mutex_;
  Status status_ GEARDB_GUARDED_BY(mutex_);
};

Status ScanAll(Env* env, const ScannedLog& log, const Followed& followed, uint64_t threads_max,
               Search* search) {
  const uint64_t segment_bytes = log.manifest.segment_bytes;
  std::map<std::string, uint64_t> followed_bytes;
  for (const auto& [base, name] : log.map.names) {
    if (base < followed.kept_from || base >= followed.segments_end) continue;
    followed_bytes[name] = std::min(followed.segments_end - base, segment_bytes);
  }
  std::vector<FileRest> files;
  for (const std::string& name : log.map.all) {
    const auto found = followed_bytes.find(name);
    const uint64_t begin = found == followed_bytes.end() ? 0 : found->second;
    if (begin != segment_bytes) files.push_back({JoinPath(log.directory, name), begin});
  }
  FilesScan scan(env, log, followed.stop, std::move(files), search);
  GEARDB_RETURN_IF_ERROR(scan.Run(threads_max));
  if (log.ring == nullptr) return Status::Ok();
  return ScanRing(log.ring, log.manifest, followed.stop, search);
}

// Whether the header of the record at `lsn` is there, in ring or segment, whatever else is of it. A
// writer stores it last.
Result<bool> HasHeader(Env* env, const ScannedLog& log, Lsn lsn) {
  RecordHeader header;
  const auto is_its_own = [&] { return header.lsn == lsn && header.epoch() == log.manifest.epoch; };
  if (log.ring != nullptr) {
    std::memcpy(&header, log.ring->At(lsn), sizeof(header));
    if (is_its_own()) return true;
  }
  const uint64_t offset = lsn % log.manifest.segment_bytes;
  const auto found = log.map.names.find(lsn - offset);
  if (found == log.map.names.end()) return false;
  GEARDB_ASSIGN_OR_RETURN(const auto file, env->OpenFile(JoinPath(log.directory, found->second),
                                                         {.mode = FileMode::kRead}));
  GEARDB_ASSIGN_OR_RETURN(const size_t read,
                          file->Read(offset, std::as_writable_bytes(std::span(&header, 1))));
  return read == sizeof(header) && is_its_own();
}

// The largest synced LSN that a record knows of.
class VouchSearch final : public Search {
 public:
  explicit VouchSearch(const Manifest& manifest) : manifest_(manifest), vouched_(manifest.start) {}

  bool Wants(const RecordHeader& header) const override {
    return header.epoch() > manifest_.epoch || header.synced_lsn > vouched_;
  }
  Status Take(const ParsedRecord& record, const std::string& where) override {
    const RecordHeader& header = record.header;
    if (header.epoch() > manifest_.epoch) {
      return Status::Corruption(where, ": the record at LSN ", header.lsn, " is of term ",
                                header.term, ", open ", header.open, ", but MANIFEST is of term ",
                                manifest_.epoch.term, ", open ", manifest_.epoch.open,
                                ": it is older than the log, or another log's");
    }
    vouched_ = std::max(vouched_, header.synced_lsn);
    return Status::Ok();
  }
  Lsn vouched() const { return vouched_; }

 private:
  const Manifest& manifest_;
  Lsn vouched_;
};

// Records that would be the log's if the one at the stop were there.
class BeyondSearch final : public Search {
 public:
  BeyondSearch(const Manifest& manifest, std::string ring_path)
      : manifest_(manifest), ring_path_(std::move(ring_path)) {}

  bool Wants(const RecordHeader& header) const override {
    return header.epoch() == manifest_.epoch && header.lsn < manifest_.cut &&
           !found_.contains(header.lsn);
  }
  Status Take(const ParsedRecord& record, const std::string& where) override {
    if (!PiecesGood(record, manifest_.Seed())) return Status::Ok();
    found_[record.header.lsn] = where == kTheRing ? ring_path_ : where;
    end_ = std::max(end_, record.header.lsn + record.header.length);
    return Status::Ok();
  }
  RecordsBeyond Finish() const {
    RecordsBeyond beyond{.records = found_.size(), .end_lsn = end_};
    for (const auto& [lsn, path] : found_) {
      ++beyond.by_file[path];
      beyond.acknowledged |= path != ring_path_;
    }
    return beyond;
  }

 private:
  const Manifest& manifest_;
  const std::string ring_path_;
  std::map<Lsn, std::string> found_;  // LSN → the file; segments are scanned first.
  Lsn end_ = 0;
};

}  // namespace

Result<Lsn> ScanForVouched(Env* env, const ScannedLog& log, const Followed& followed) {
  VouchSearch search(log.manifest);
  GEARDB_RETURN_IF_ERROR(ScanAll(env, log, followed, kThreadsMax, &search));
  return search.vouched();
}

Result<RecordsBeyond> ScanBeyond(Env* env, const ScannedLog& log, const Followed& followed) {
  BeyondSearch search(log.manifest, JoinPath(log.directory, kRingName));
  // One after the other: of two files with the same record always the same one counts.
  GEARDB_RETURN_IF_ERROR(ScanAll(env, log, followed, 1, &search));
  RecordsBeyond beyond = search.Finish();
  GEARDB_ASSIGN_OR_RETURN(beyond.header_at_end, HasHeader(env, log, followed.stop));
  // What the ring has room for (rule 3) says what had been drained, and so published.
  const bool stop_was_drained =
      beyond.end_lsn > AlignDown(followed.stop, kBlockBytes) + log.manifest.ring_bytes;
  beyond.acknowledged |= beyond.records > 0 && (beyond.header_at_end || stop_was_drained);
  return beyond;
}

}  // namespace geardb::wal
