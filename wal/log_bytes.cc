#include "wal/log_bytes.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "wal/segment_map.h"

namespace geardb::wal {
namespace {

/// A log may have more segments than a process may have descriptors.
constexpr uint64_t kOpenFilesMax = 96;
/// What is read at once for reads in order, those that are short enough, and how far the next one
/// may be from the last for more than its own bytes to be worth it.
constexpr uint64_t kBlockReadBytes = uint64_t{64} << 10;
constexpr uint64_t kShortBytes = uint64_t{16} << 10;
constexpr uint64_t kNearBytes = uint64_t{16} << 10;

}  // namespace

LogBytes::LogBytes(std::shared_ptr<Env> env, const std::string& directory, const Manifest& manifest,
                   bool direct)
    : env_(std::move(env)),
      log_directory_(JoinPath(directory, kLogDirectoryName)),
      segment_bytes_(manifest.segment_bytes),
      seed_(manifest.Seed()),
      direct_(direct),
      manifest_(manifest) {}

void LogBytes::UseManifest(const Manifest& manifest) {
  MutexLock lock(&mutex_);
  manifest_ = manifest;
  names_.clear();
}

Result<std::span<const std::byte>> LogBytes::Read(Lsn at, uint64_t count, AlignedBuffer* scratch,
                                                  bool in_order) {
  const Lsn base = AlignDown(at, segment_bytes_);
  if (count > segment_bytes_ || at + count > base + segment_bytes_) {
    return Status::Corruption(count, " bytes at LSN ", at, " cross a segment of the log in '",
                              log_directory_, "'");
  }
  if (in_order && count <= kShortBytes) {
    const auto found = ReadInOrder(at, count, scratch);
    // Where a block cannot be read, the bytes themselves may still be good.
    if (found.ok() && *found) return std::span<const std::byte>(scratch->span()).first(count);
  }
  GEARDB_ASSIGN_OR_RETURN(const std::shared_ptr<File> file, FindFile(base));
  const uint64_t begin = AlignDown(at - base, kDirectAlignment);
  const uint64_t bytes = AlignUp(at - base + count, kDirectAlignment) - begin;
  if (scratch->span().size() < bytes) *scratch = AlignedBuffer(bytes);
  file_reads_.fetch_add(1, std::memory_order_relaxed);
  GEARDB_ASSIGN_OR_RETURN(const size_t read, file->Read(begin, scratch->span().first(bytes)));
  const uint64_t skipped = at - base - begin;
  if (read < skipped + count) {
    return Status::Corruption("'", file->path(), "' ends at offset ", begin + read, ": ", count,
                              " bytes at LSN ", at, " are not there");
  }
  return std::span<const std::byte>(scratch->span()).subspan(skipped, count);
}

void LogBytes::NoteDrained(Lsn lsn) {
  Lsn known = drained_.load(std::memory_order_relaxed);
  while (known < lsn && !drained_.compare_exchange_weak(known, lsn)) {
  }
}

bool LogBytes::IsForgotten(Lsn base) {
  MutexLock lock(&mutex_);
  return base + segment_bytes_ <= forgotten_;
}

bool LogBytes::InBlock(Lsn at, uint64_t count) {
  return at >= block_begin_ && at + count <= block_end_ &&
         !IsForgotten(AlignDown(at, segment_bytes_));
}

Result<bool> LogBytes::ReadInOrder(Lsn at, uint64_t count, AlignedBuffer* scratch) {
  MutexLock lock(&block_mutex_);
  const Lsn end = at + count;
  const bool near = at <= in_order_end_ + kNearBytes && in_order_end_ <= end + kNearBytes;
  in_order_end_ = end;
  if (!InBlock(at, count)) {
    if (!near) return false;
    GEARDB_RETURN_IF_ERROR(FillBlock(at));
    if (!InBlock(at, count)) return false;
  }
  if (scratch->span().size() < count) *scratch = AlignedBuffer(AlignUp(count, kDirectAlignment));
  std::memcpy(scratch->data(), block_.data() + (at - block_begin_), count);
  return true;
}

Status LogBytes::FillBlock(Lsn at) {
  block_end_ = 0;
  const Lsn base = AlignDown(at, segment_bytes_);
  GEARDB_ASSIGN_OR_RETURN(const std::shared_ptr<File> file, FindFile(base));
  if (block_.empty()) block_ = AlignedBuffer(kBlockReadBytes);
  // What is drained later may be read too early here.
  const Lsn drained = drained_.load(std::memory_order_relaxed);
  const uint64_t begin = AlignDown(at - base, kDirectAlignment);
  const uint64_t bytes = std::min(kBlockReadBytes, segment_bytes_ - begin);
  file_reads_.fetch_add(1, std::memory_order_relaxed);
  GEARDB_ASSIGN_OR_RETURN(const size_t read, file->Read(begin, block_.span().first(bytes)));
  block_begin_ = base + begin;
  block_end_ = std::min(drained, block_begin_ + read);
  return Status::Ok();
}

Result<ParsedRecord> LogBytes::ReadHead(Lsn lsn, AlignedBuffer* scratch, bool in_order) {
  // A small record comes at once.
  const Lsn segment_end = AlignDown(lsn, segment_bytes_) + segment_bytes_;
  uint64_t count = std::min<uint64_t>(kDirectAlignment, segment_end - lsn);
  GEARDB_ASSIGN_OR_RETURN(auto bytes, Read(lsn, count, scratch, in_order));
  RecordHeader header;
  if (count >= sizeof(header)) {
    std::memcpy(&header, bytes.data(), sizeof(header));
    const uint64_t wanted = sizeof(header) + header.metadata_length;
    if (header.lsn == lsn && wanted > count && wanted <= segment_end - lsn) {
      count = wanted;
      GEARDB_ASSIGN_OR_RETURN(bytes, Read(lsn, count, scratch, in_order));
    }
  }
  ParsedRecord record;
  if (ParseIndex(bytes, lsn, seed_, &record)) return record;
  return Status::Corruption("there is no good record at LSN ", lsn, " of the log in '",
                            log_directory_, "'");
}

Result<RecordIndex> LogBytes::ReadIndex(Lsn lsn, AlignedBuffer* scratch, bool in_order) {
  GEARDB_ASSIGN_OR_RETURN(const ParsedRecord record, ReadHead(lsn, scratch, in_order));
  RecordIndex index;
  index.body_bytes = record.body.size();
  index.words.resize((record.body.size() + 7) / 8);
  if (!record.body.empty()) {
    std::memcpy(index.words.data(), record.body.data(), record.body.size());
  }
  const Lsn area = lsn + PieceAreaOffset(record.header.metadata_length);
  for (const PieceEntry& entry : record.pieces) {
    const bool in_part = entry.lsn != 0;
    index.pieces.push_back({.record = in_part ? entry.lsn : lsn,
                            .at = in_part ? kNoLsn : area + entry.offset,
                            .offset = entry.offset,
                            .bytes = entry.bytes,
                            .checksum = entry.checksum});
  }
  return index;
}

Result<std::span<const std::byte>> LogBytes::ReadPiece(const RecordIndex::Piece& piece,
                                                       AlignedBuffer* scratch, bool in_order) {
  Lsn at = piece.at;
  if (at == kNoLsn) {
    GEARDB_ASSIGN_OR_RETURN(const ParsedRecord part, ReadHead(piece.record, scratch, in_order));
    at = piece.record + PieceAreaOffset(part.header.metadata_length) + piece.offset;
  }
  GEARDB_ASSIGN_OR_RETURN(const auto bytes, Read(at, piece.bytes, scratch, in_order));
  if (Hash64(bytes, seed_) == piece.checksum) return bytes;
  return Status::Corruption("the piece at LSN ", at, " does not fit its checksum");
}

std::shared_ptr<File> LogBytes::FindOpen(Lsn base) {
  MutexLock lock(&mutex_);
  const auto found = files_.find(base);
  if (found == files_.end()) return nullptr;
  found->second.used = ++uses_;
  return found->second.file;
}

Status LogBytes::GoneBelow(Lsn base) const {
  return Status::Corruption("the segment at LSN ", base, " of the log in '", log_directory_,
                            "' is gone");
}

Result<std::string> LogBytes::FindName(Lsn base) {
  Manifest manifest;
  {
    MutexLock lock(&mutex_);
    // A file that is free still says which it was.
    if (base + segment_bytes_ <= forgotten_) return GoneBelow(base);
    const auto known = names_.find(base);
    if (known != names_.end()) return known->second;
    manifest = manifest_;
  }
  GEARDB_ASSIGN_OR_RETURN(SegmentMap map,
                          SegmentMap::Read(env_.get(), log_directory_, manifest, 0));
  const auto name = map.names.find(base);
  if (name == map.names.end()) {
    return Status::Corruption("no file in '", log_directory_, "' has the segment at LSN ", base);
  }
  std::string found = name->second;
  MutexLock lock(&mutex_);
  if (base + segment_bytes_ <= forgotten_) return GoneBelow(base);
  map.names.erase(map.names.begin(), map.names.lower_bound(AlignDown(forgotten_, segment_bytes_)));
  if (manifest_.epoch == manifest.epoch) names_ = std::move(map.names);
  return found;
}

Result<std::shared_ptr<File>> LogBytes::FindFile(Lsn base) {
  if (std::shared_ptr<File> open = FindOpen(base)) return open;
  GEARDB_ASSIGN_OR_RETURN(const std::string name, FindName(base));
  GEARDB_ASSIGN_OR_RETURN(
      std::shared_ptr<File> file,
      env_->OpenFile(JoinPath(log_directory_, name), {.mode = FileMode::kRead, .direct = direct_}));
  MutexLock lock(&mutex_);
  if (base + segment_bytes_ <= forgotten_) return GoneBelow(base);
  while (files_.size() >= kOpenFilesMax && !files_.contains(base)) {
    files_.erase(std::min_element(files_.begin(), files_.end(), [](const auto& a, const auto& b) {
      return a.second.used < b.second.used;
    }));
  }
  OpenFile& kept = files_[base];
  if (kept.file == nullptr) kept.file = std::move(file);
  kept.used = ++uses_;
  return kept.file;
}

void LogBytes::ForgetBelow(Lsn lsn) {
  MutexLock lock(&mutex_);
  forgotten_ = std::max(forgotten_, lsn);
  const Lsn kept_from = AlignDown(forgotten_, segment_bytes_);
  files_.erase(files_.begin(), files_.lower_bound(kept_from));
  names_.erase(names_.begin(), names_.lower_bound(kept_from));
}

uint64_t LogBytes::open_files() {
  MutexLock lock(&mutex_);
  return files_.size();
}

}  // namespace geardb::wal
