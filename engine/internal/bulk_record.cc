#include "engine/internal/bulk_record.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace geardb::engine {
namespace {

// No entry of what goes into pieces (a priority, an fb::Item) crosses two of them.
constexpr uint64_t kPieceUnit = 16;

uint64_t PieceBytesMax(uint64_t record_max) { return record_max / 2 / kPieceUnit * kPieceUnit; }

}  // namespace

std::vector<PartOfPieces> SplitIntoParts(std::span<const uint64_t> piece_bytes,
                                         uint64_t record_bytes_max) {
  std::vector<PartOfPieces> split;
  const auto size_of = [&](size_t first, size_t count) {
    return wal::RecordSize::For(0, piece_bytes.subspan(first, count));
  };
  for (size_t first = 0; first < piece_bytes.size(); first += split.back().count) {
    const size_t left = piece_bytes.size() - first;
    const auto fits = [&](size_t count) {
      return count == 1 || size_of(first, count).total() <= record_bytes_max;
    };
    // A size takes as long as it has pieces: doubled, then halved, not one by one.
    size_t over = 2;
    while (over <= left && fits(over)) over *= 2;
    size_t count = over / 2;
    over = std::min(over, left + 1);
    while (over - count > 1) {
      const size_t middle = count + (over - count) / 2;
      (fits(middle) ? count : over) = middle;
    }
    split.push_back({first, count, size_of(first, count)});
  }
  return split;
}

void NamePieces(Lsn part_lsn, uint64_t seed, std::span<wal::PieceSource> pieces) {
  uint64_t offset = 0;
  for (wal::PieceSource& piece : pieces) {
    Hasher64 hasher(seed);
    uint64_t bytes = 0;
    for (const auto& run : piece.runs) {
      hasher.Add(run);
      bytes += run.size();
    }
    offset = AlignUp(offset, wal::kPieceAlignment);
    piece = {.foreign = {.lsn = part_lsn,
                         .offset = static_cast<uint32_t>(offset),
                         .bytes = static_cast<uint32_t>(bytes),
                         .checksum = hasher.Finish()}};
    offset += bytes;
  }
}

void BulkRecord::AddPiece(std::span<const std::span<const std::byte>> runs,
                          wal::PiecePlace* place) {
  uint64_t bytes = 0;
  for (const auto& run : runs) bytes += run.size();
  pieces_.push_back({.runs = runs, .place = place});
  piece_bytes_.push_back(bytes);
}

void BulkRecord::AddBytes(std::span<const std::byte> bytes) {
  const uint64_t piece_max = PieceBytesMax(database_->log->record_bytes_max());
  runs_.reserve(bytes.size() / piece_max + 1);
  for (size_t done = 0; done < bytes.size(); done += piece_max) {
    runs_.push_back(bytes.subspan(done, std::min<size_t>(piece_max, bytes.size() - done)));
    AddPiece(std::span(runs_).last(1));
  }
}

Status BulkRecord::CheckFits() const {
  if (NamingParts().total() <= database_->log->record_bytes_max()) return Status::Ok();
  return Status::InvalidArgument(pieces_.size(), " pages are too many for one change: its record ",
                                 "would take ", NamingParts().total(), " bytes; at most ",
                                 database_->log->record_bytes_max(),
                                 " fit the ring (a quarter of it)");
}

wal::RecordSize BulkRecord::Whole() const {
  return wal::RecordSize::For(change_->body_bytes().size(), piece_bytes_);
}

wal::RecordSize BulkRecord::NamingParts() const {
  return wal::RecordSize::For(change_->body_bytes().size(), {}, pieces_.size());
}

Status BulkRecord::CheckFits(size_t bytes, const BulkUnit& unit) const {
  const uint64_t record_max = database_->log->record_bytes_max();
  const uint64_t piece_max = PieceBytesMax(record_max);
  const auto fits = [&](uint64_t pieces) {
    return wal::RecordSize::For(change_->body_bytes().size(), {}, pieces).total() <= record_max;
  };
  if (fits((bytes + piece_max - 1) / piece_max)) return Status::Ok();
  uint64_t pieces = 0;
  for (uint64_t step = std::bit_floor(record_max); step > 0; step /= 2) {
    if (fits(pieces + step)) pieces += step;
  }
  const wal::Manifest& manifest = database_->manifest;
  const uint64_t of_ring = manifest.ring_bytes / 4;
  const uint64_t of_segment = manifest.segment_bytes / 2;
  return Status::InvalidArgument(
      bytes / unit.bytes, " ", unit.things, " are too many for one change: at most ",
      pieces * piece_max / unit.bytes, " fit a log with ring_bytes ", manifest.ring_bytes,
      " and segment_bytes ", manifest.segment_bytes, "; use a larger ",
      of_ring < of_segment   ? "ring_bytes"
      : of_ring > of_segment ? "segment_bytes"
                             : "ring_bytes and segment_bytes");
}

std::vector<wal::RecordSize> BulkRecord::Records() const {
  const uint64_t record_max = database_->log->record_bytes_max();
  if (Whole().total() <= record_max) return {Whole()};
  std::vector<wal::RecordSize> records;
  for (const PartOfPieces& part : SplitIntoParts(piece_bytes_, record_max)) {
    records.push_back(part.size);
  }
  records.push_back(NamingParts());
  return records;
}

Status BulkRecord::WriteParts(ChangeScope* scope, CommitOptions* how) {
  // Parts of a change that is refused half-way would be bytes that nothing names.
  GEARDB_RETURN_IF_ERROR(scope->PrepareFor(Records(), how->urgency));
  const auto parts = SplitIntoParts(piece_bytes_, database_->log->record_bytes_max());
  for (const PartOfPieces& part : parts) {
    GEARDB_RETURN_IF_ERROR(scope->AwaitRoomHolding(part.size, *how));
    const wal::Reservation at = scope->Reserve({.type = wal::RecordType::kPart,
                                                .size = part.size,
                                                .part = parts_++,
                                                .group_lsn = group_lsn_});
    const auto pieces = std::span(pieces_).subspan(part.first, part.count);
    database_->Finish(at, pieces, nullptr);
    how->deadline = Deadline::Infinite();  // What has begun is finished.
    group_lsn_ = at.group_lsn;
    NamePieces(at.lsn, database_->manifest.Seed(), pieces);
  }
  return Status::Ok();
}

Status BulkRecord::Reserve(ChangeScope* scope) {
  CommitOptions how = scope->how();
  wal::RecordSize size = Whole();
  if (size.total() > database_->log->record_bytes_max()) {
    GEARDB_RETURN_IF_ERROR(WriteParts(scope, &how));
    size = NamingParts();
  }
  const Status room = scope->AwaitRoomHolding(size, how);
  if (room.code() == StatusCode::kResourceExhausted && parts_ == 0) {
    // Others have taken the room since MakeLogRoom: the cleaner is to know of it.
    (void)scope->PrepareFor({&size, 1}, how.urgency);
  }
  GEARDB_RETURN_IF_ERROR(room);
  reservation_ =
      scope->Reserve({.type = how.type, .size = size, .part = parts_, .group_lsn = group_lsn_});
  return Status::Ok();
}

void BulkRecord::Finish() { database_->Finish(reservation_, pieces_, change_); }

}  // namespace geardb::engine
