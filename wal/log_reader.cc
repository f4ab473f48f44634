#include "wal/log_reader.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/break.h"
#include "base/hash.h"
#include "wal/log_scan.h"
#include "wal/segment_check.h"

namespace geardb::wal {

LogReader::Core::Core(Env* env, std::string log_directory, const Manifest& manifest,
                      const ReadOptions& options, SegmentMap map, RingFile* ring)
    : env_(env),
      log_directory_(std::move(log_directory)),
      manifest_(manifest),
      seed_(manifest.Seed()),
      options_(options),
      map_(std::move(map)),
      ring_(ring),
      stream_(env, log_directory_, &map_, manifest.segment_bytes, options.read_ahead, options.lean),
      position_(options.from) {
  report_.start_lsn = report_.segments_end_lsn = report_.end_lsn = options.from;
  report_.vouched_lsn = manifest.start;
}

// Rule 11, but for the pieces.
bool LogReader::Core::EpochFits(const RecordHeader& header) const {
  if constexpr (kBreak.keep_stale_tail) return header.epoch() <= manifest_.epoch;
  if (header.lsn >= manifest_.cut) return false;
  if (header.lsn >= manifest_.start) return header.epoch() == manifest_.epoch;
  return header.epoch() <= manifest_.epoch && header.epoch() >= last_epoch_;
}

Result<LogReader::Core::Found> LogReader::Core::LookInSegment(Lsn lsn, ParsedRecord* record) {
  GEARDB_ASSIGN_OR_RETURN(auto bytes, stream_.At(lsn, sizeof(RecordHeader)));
  if (bytes.size() < sizeof(RecordHeader)) return Found::kNothing;
  uint32_t length;
  std::memcpy(&length, bytes.data() + offsetof(RecordHeader, length), sizeof(length));
  const uint64_t left = manifest_.segment_bytes - lsn % manifest_.segment_bytes;
  if (length > bytes.size() && length <= left) {
    GEARDB_ASSIGN_OR_RETURN(bytes, stream_.At(lsn, length));
  }
  if (!ParseRecord(bytes, lsn, seed_, record) || !EpochFits(record->header)) {
    return Found::kNothing;
  }
  return PiecesGood(*record, seed_) ? Found::kValid : Found::kBadPiece;
}

LogReader::Core::Found LogReader::Core::LookInRing(Lsn lsn, ParsedRecord* record) {
  if (kBreak.ignore_ring_at_recovery || ring_ == nullptr || !options_.use_ring) {
    return Found::kNothing;
  }
  const uint64_t in_segment = manifest_.segment_bytes - lsn % manifest_.segment_bytes;
  const std::span<const std::byte> bytes(ring_->At(lsn), std::min(ring_->bytes(), in_segment));
  if (!ParseRecord(bytes, lsn, seed_, record) || !EpochFits(record->header)) {
    return Found::kNothing;
  }
  return PiecesGood(*record, seed_) ? Found::kValid : Found::kBadPiece;
}

Status LogReader::Core::DamageAt(Lsn lsn, Lsn synced) const {
  return Status::Corruption("the log is damaged at LSN ", lsn, ", ", stream_.PlaceOf(lsn),
                            ": no valid record there, but everything up to LSN ", synced,
                            " was synced");
}

Result<bool> LogReader::Core::EndOrDamage(const Status& damage) {
  if (!damage.ok() && !options_.allow_damaged_prefix) return damage;
  report_.damage = damage;
  return false;
}

// Neither segment nor ring has a valid record at position_. True when the segment's record is taken
// all the same (page damage), false at the end of the log.
Result<bool> LogReader::Core::AtStop(Found in_segment, ParsedRecord* record) {
  if (!vouch_known_) {
    GEARDB_ASSIGN_OR_RETURN(report_.vouched_lsn, ScanForVouched(env_, Files(), Place()));
    vouch_known_ = true;
  }
  if (report_.vouched_lsn <= position_) return false;
  if (in_segment != Found::kBadPiece || report_.ring_records > 0) {
    return EndOrDamage(DamageAt(position_, report_.vouched_lsn));
  }
  in_ring_ = false;
  damaged_record_ = true;
  GEARDB_ASSIGN_OR_RETURN(const Found again, LookInSegment(position_, record));
  GEARDB_CHECK(again == Found::kBadPiece);
  return true;
}

// Finds the record at position_; false at the end of the log.
Result<bool> LogReader::Core::FindNext(ParsedRecord* record) {
  damaged_record_ = false;
  Found in_segment = Found::kNothing;
  if (!in_ring_) {
    GEARDB_ASSIGN_OR_RETURN(in_segment, LookInSegment(position_, record));
    if (in_segment == Found::kValid) return true;
    if (in_segment == Found::kBadPiece && position_ < report_.vouched_lsn) {
      damaged_record_ = true;
      return true;
    }
    if (position_ < manifest_.start) return EndOrDamage(DamageAt(position_, manifest_.start));
    in_ring_ = true;
  }
  if (LookInRing(position_, record) == Found::kValid) {
    ++report_.ring_records;
    return true;
  }
  return AtStop(in_segment, record);
}

ScannedLog LogReader::Core::Files() const {
  return {.directory = log_directory_,
          .manifest = manifest_,
          .map = map_,
          .ring = options_.use_ring ? ring_ : nullptr};
}

Followed LogReader::Core::Place() const {
  return {.kept_from = AlignDown(std::min(options_.from, options_.keep), manifest_.segment_bytes),
          .segments_end = report_.segments_end_lsn,
          .stop = position_};
}

Result<RecordsBeyond> LogReader::Core::FindBeyond() {
  GEARDB_CHECK(done_);
  return ScanBeyond(env_, Files(), Place());
}

void LogReader::Core::Accept(const ParsedRecord& record, bool damaged) {
  if (report_.ring_records == 0) report_.segments_end_lsn = position_ + record.header.length;
  position_ += record.header.length;
  // A call does not outlive its process: parts of an earlier open have no final record.
  if (last_epoch_ != record.header.epoch()) LeaveParts();
  last_epoch_ = record.header.epoch();
  report_.end_lsn = position_;
  report_.synced_lsn = std::max(report_.synced_lsn, record.header.synced_lsn);
  ++report_.records;
  report_.bytes += record.header.length;
  const bool seal = record.header.type == static_cast<uint16_t>(RecordType::kSeal);
  report_.seal_lsn = seal ? record.header.lsn : kNoLsn;
  if (damaged) {
    for (const PieceEntry& entry : record.pieces) {
      if (entry.lsn == 0 && Hash64(PieceBytes(record, entry), seed_) != entry.checksum) {
        ++report_.damaged_pieces;
      }
    }
  }
}

namespace {

Lsn PieceArea(const RecordHeader& header) {
  return header.lsn + PieceAreaOffset(header.metadata_length);
}

}  // namespace

void LogReader::Core::KeepPart(const ParsedRecord& record) {
  parts_[record.header.lsn] = {.group_lsn = record.header.group_lsn,
                               .area = PieceArea(record.header),
                               .area_bytes = record.piece_area.size(),
                               .in_ring = in_ring_};
}

void LogReader::Core::LeaveParts() {
  std::set<Lsn> groups;
  for (const auto& [lsn, part] : parts_) groups.insert(part.group_lsn);
  report_.void_groups += groups.size();
  parts_.clear();
}

PieceView LogReader::Core::ResolvePiece(const ParsedRecord& record, const PieceEntry& entry) {
  PieceView piece{.lsn = entry.lsn == 0 ? record.header.lsn : entry.lsn,
                  .offset = entry.offset,
                  .at = PieceArea(record.header) + entry.offset,
                  .good = true,
                  .bytes = {},
                  .checksum = entry.checksum};
  if (entry.lsn == 0) {
    piece.bytes = PieceBytes(record, entry);
    piece.good = !damaged_record_ || Hash64(piece.bytes, seed_) == entry.checksum;
    return piece;
  }
  const auto part = parts_.find(entry.lsn);
  piece.good = false;
  piece.at = part == parts_.end() ? kNoLsn : part->second.area + entry.offset;
  if (part == parts_.end() || uint64_t{entry.offset} + entry.bytes > part->second.bytes.size()) {
    return piece;
  }
  piece.bytes = std::span(part->second.bytes).subspan(entry.offset, entry.bytes);
  piece.good = Hash64(piece.bytes, seed_) == entry.checksum;
  return piece;
}

Status LogReader::Core::ReadParts(Lsn group_lsn) {
  for (auto& [lsn, part] : parts_) {
    if (part.group_lsn != group_lsn) continue;
    if (part.in_ring) {
      part.bytes = {ring_->At(part.area), part.area_bytes};
      continue;
    }
    const Lsn base = AlignDown(part.area, manifest_.segment_bytes);
    const std::string path = JoinPath(log_directory_, map_.names.at(base));
    GEARDB_ASSIGN_OR_RETURN(const auto file, env_->OpenFile(path, {.mode = FileMode::kRead}));
    std::vector<std::byte>& bytes = part_bytes_.emplace_back(part.area_bytes);
    GEARDB_RETURN_IF_ERROR(ReadSparse(file.get(), part.area - base, bytes));
    part.bytes = bytes;
  }
  return Status::Ok();
}

Status LogReader::Core::ResolvePieces(const ParsedRecord& record) {
  pieces_.clear();
  part_bytes_.clear();
  const bool ends_group = record.header.group_lsn != 0 &&
                          record.header.type != static_cast<uint16_t>(RecordType::kPart);
  if (ends_group) GEARDB_RETURN_IF_ERROR(ReadParts(record.header.group_lsn));
  for (const PieceEntry& entry : record.pieces) pieces_.push_back(ResolvePiece(record, entry));
  if (!ends_group) return Status::Ok();
  std::erase_if(parts_,
                [&](const auto& part) { return part.second.group_lsn == record.header.group_lsn; });
  return Status::Ok();
}

Result<bool> LogReader::Core::Wanted(const ParsedRecord& record) const {
  switch (static_cast<RecordType>(record.header.type)) {
    case RecordType::kData:
    case RecordType::kCommit:
    case RecordType::kTag:
      return true;
    case RecordType::kPad:
    case RecordType::kSegment:
    case RecordType::kSeal:
    case RecordType::kPart:
      return options_.all_types;
  }
  if ((record.header.flags & kSafeToIgnore) != 0) return options_.all_types;
  return Status::Unsupported("written by a newer GearDB: record of type ", record.header.type,
                             " at LSN ", record.header.lsn, ", which this program does not know");
}

Result<std::optional<RecordView>> LogReader::Core::Next() {
  while (!done_) {
    GEARDB_ASSIGN_OR_RETURN(const bool found, FindNext(&record_));
    if (!found) {
      done_ = true;
      report_.end_lsn = position_;
      if (report_.ring_records == 0) report_.segments_end_lsn = position_;
      LeaveParts();
      break;
    }
    const RecordHeader& header = record_.header;
    Accept(record_, damaged_record_);
    if (header.type == static_cast<uint16_t>(RecordType::kPart)) KeepPart(record_);
    GEARDB_ASSIGN_OR_RETURN(const bool wanted, Wanted(record_));
    if (!wanted) continue;
    GEARDB_RETURN_IF_ERROR(ResolvePieces(record_));
    RecordView view{.header = header,
                    .lsn = header.lsn,
                    .end = header.lsn + header.length,
                    .type = static_cast<RecordType>(header.type),
                    .from_ring = report_.ring_records > 0,
                    .page_damage = false,
                    .body = record_.body,
                    .pieces = pieces_};
    for (const PieceView& piece : pieces_) view.page_damage |= !piece.good;
    return std::optional<RecordView>(view);
  }
  return std::optional<RecordView>();
}

Result<std::vector<std::byte>> LogReader::Core::Tail() {
  const Lsn begin = AlignDown(report_.segments_end_lsn, kBlockBytes);
  std::vector<std::byte> tail(report_.end_lsn - begin);
  const uint64_t from_segments = report_.segments_end_lsn - begin;
  if (from_segments > 0) {
    GEARDB_ASSIGN_OR_RETURN(const auto bytes, stream_.At(begin, from_segments));
    if (bytes.size() < from_segments) return DamageAt(begin, report_.segments_end_lsn);
    std::memcpy(tail.data(), bytes.data(), from_segments);
  }
  if (tail.size() > from_segments) {
    std::memcpy(tail.data() + from_segments, ring_->At(report_.segments_end_lsn),
                tail.size() - from_segments);
  }
  return tail;
}

LogReader::LogReader(std::unique_ptr<Core> core) : core_(std::move(core)) {}
LogReader::~LogReader() = default;

Result<std::unique_ptr<LogReader>> LogReader::Open(Env* env, const std::string& directory,
                                                   const Manifest& manifest,
                                                   const ReadOptions& options) {
  const std::string log_directory = JoinPath(directory, kLogDirectoryName);
  ReadOptions resolved = options;
  const bool oldest = options.from == kNoLsn;
  GEARDB_ASSIGN_OR_RETURN(
      SegmentMap map,
      SegmentMap::Read(env, log_directory, manifest, oldest ? options.released : options.from));
  if (oldest) {
    resolved.from = map.names.empty() ? AlignDown(options.released, manifest.segment_bytes)
                                      : map.FirstInRow(manifest.segment_bytes);
  }
  std::unique_ptr<RingFile> ring;
  if (options.use_ring) {
    const std::string path = JoinPath(log_directory, kRingName);
    GEARDB_ASSIGN_OR_RETURN(ring,
                            RingFile::Open(env, path, manifest.ring_bytes, RingAccess::kReadOnly));
    GEARDB_RETURN_IF_ERROR(CheckRingOwner(ring.get(), path, manifest));
  }
  auto core =
      std::make_unique<Core>(env, log_directory, manifest, resolved, std::move(map), ring.get());
  core->own_ring = std::move(ring);
  return std::unique_ptr<LogReader>(new LogReader(std::move(core)));
}

Result<std::optional<RecordView>> LogReader::Next() { return core_->Next(); }
Result<RecordsBeyond> LogReader::FindBeyond() { return core_->FindBeyond(); }
const ReadReport& LogReader::report() const { return core_->report(); }
std::string LogReader::PlaceOf(Lsn lsn) const { return core_->PlaceOf(lsn); }

}  // namespace geardb::wal
