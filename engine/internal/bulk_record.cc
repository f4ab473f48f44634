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

std::vector<wal::RecordSize> BulkRecord::Records(size_t bytes) const {
  const uint64_t record_max = database_->log->record_bytes_max();
  const uint64_t piece_max = PieceBytesMax(record_max);
  std::vector<uint64_t> sizes;
  for (size_t done = 0; done < bytes; done += piece_max) {
    sizes.push_back(std::min<uint64_t>(piece_max, bytes - done));
  }
  const uint64_t body_bytes = change_->body_bytes().size();
  const wal::RecordSize whole = wal::RecordSize::For(body_bytes, sizes);
  if (whole.total() <= record_max) return {whole};
  std::vector<wal::RecordSize> records;
  for (const uint64_t bytes_of_part : sizes) {
    records.push_back(wal::RecordSize::For(0, {&bytes_of_part, 1}));
  }
  records.push_back(wal::RecordSize::For(body_bytes, {}, sizes.size()));
  return records;
}

Status BulkRecord::Reserve(ChangeScope* scope, std::span<const std::byte> bytes) {
  CommitOptions how = scope->how();
  const uint64_t piece_max = PieceBytesMax(database_->log->record_bytes_max());
  for (size_t done = 0; done < bytes.size(); done += piece_max) {
    runs_.push_back(bytes.subspan(done, std::min<size_t>(piece_max, bytes.size() - done)));
  }
  for (size_t i = 0; i < runs_.size(); ++i) {
    pieces_.push_back({.runs = std::span(runs_).subspan(i, 1)});
  }
  const std::vector<wal::RecordSize> records = Records(bytes.size());
  const wal::RecordSize& size = records.back();
  uint32_t parts = 0;
  Lsn group_lsn = 0;
  if (records.size() > 1) {
    // Parts of a change that is refused half-way would be bytes that nothing names.
    GEARDB_RETURN_IF_ERROR(database_->log->PrepareFor(records, how.urgency));
    for (size_t i = 0; i < runs_.size(); ++i) {
      GEARDB_RETURN_IF_ERROR(scope->AwaitRoomHolding(records[i], how));
      const wal::Reservation at = scope->Reserve({.type = wal::RecordType::kPart,
                                                  .size = records[i],
                                                  .part = parts++,
                                                  .group_lsn = group_lsn});
      database_->Finish(at, std::span(pieces_).subspan(i, 1), nullptr);
      how.deadline = Deadline::Infinite();  // What has begun is finished.
      group_lsn = at.group_lsn;
      pieces_[i] = {.foreign = {.lsn = at.lsn,
                                .offset = 0,
                                .bytes = static_cast<uint32_t>(runs_[i].size()),
                                .checksum = Hash64(runs_[i], database_->manifest.Seed())}};
    }
  }
  GEARDB_RETURN_IF_ERROR(scope->AwaitRoomHolding(size, how));
  reservation_ =
      scope->Reserve({.type = how.type, .size = size, .part = parts, .group_lsn = group_lsn});
  return Status::Ok();
}

void BulkRecord::Finish() { database_->Finish(reservation_, pieces_, change_); }

}  // namespace geardb::engine
