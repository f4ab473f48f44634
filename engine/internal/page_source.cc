#include "engine/internal/page_source.h"

#include "base/break.h"
#include "base/hash.h"
#include "engine/internal/record_body.h"

namespace geardb::engine {
namespace {

std::string PageText(const PagePlace& place) {
  const GroupLayout& group = place.layout->group(place.group);
  std::string text = "page " + std::to_string(place.page_number) + " of trajectory " +
                     std::to_string(place.owner != 0 ? place.owner : place.trajectory) +
                     " of table '" + place.layout->spec().name + "'";
  if (!group.name.empty()) text += ", group '" + group.name + "'";
  return text;
}

}  // namespace

void CopyPieceIntoFrame(const PieceRowsOfPage& rows, std::span<const std::byte> piece,
                        std::byte* frame) {
  const TableLayout& layout = *rows.layout;
  const GroupLayout& group = layout.group(rows.group);
  PieceColumns(group.pages, rows.count).ForEach([&](size_t place, uint64_t from, uint64_t count) {
    // Behind the columns of group 0 are a stream's flags.
    const DType dtype = place < group.columns.size()
                            ? layout.step_columns()[group.columns[place]].dtype
                            : DType::kU8;
    CopyElements(dtype, frame + group.pages.FrameOffset(place, rows.first),
                 piece.subspan(from, count));
  });
}

Status PageSource::Read(const PagePlace& place, wal::AlignedBuffer* scratch, std::byte* frame,
                        bool* of_file) {
  const Status status = place.log_at != kNoLsn ? ReadLog(place, scratch, frame)
                        : place.in_cold        ? ReadCold(place, frame, of_file)
                                               : ReadPieces(place, scratch, frame, of_file);
  return status.WithContext(PageText(place));
}

namespace {

/// A piece of a page, as its record says.
struct FoundPiece {
  const fb::PieceRows* rows = nullptr;
  const wal::RecordIndex::Piece* piece = nullptr;
};

const flatbuffers::Vector<const fb::PieceRows*>* PiecesOf(const fb::Operation& operation) {
  if (const auto* append = operation.change_as_Append()) return append->pieces();
  if (const auto* patch = operation.change_as_Patch()) return patch->pieces();
  return nullptr;
}

FoundPiece FindPiece(const fb::Body& body, const wal::RecordIndex& record, const PagePlace& place) {
  size_t first = 0;  // Of the operation, among the record's pieces.
  for (uint32_t o = 0; body.operations() != nullptr && o < body.operations()->size(); ++o) {
    const fb::Operation& operation = *body.operations()->Get(o);
    const auto* pieces = PiecesOf(operation);
    if (pieces == nullptr) continue;
    for (uint32_t i = 0; i < pieces->size() && first + i < record.pieces.size(); ++i) {
      const fb::PieceRows& rows = *pieces->Get(i);
      if (operation.table_id() == place.layout->id() && rows.lpn() == place.lpn &&
          rows.generation() == place.generation && rows.group() == place.group) {
        return {&rows, &record.pieces[first + i]};
      }
    }
    first += pieces->size();
  }
  return {};
}

}  // namespace

Status PageSource::ReadPieces(const PagePlace& place, wal::AlignedBuffer* scratch, std::byte* frame,
                              bool* of_file) {
  PagePlace older = place;
  const Status status = CopyPieces(place, 0, scratch, frame, &older);
  const bool is_gone =
      status.code() == StatusCode::kCorruption || status.code() == StatusCode::kNotFound;
  if (!is_gone || older.newest_lsn == kNoLsn || cold_.load() == nullptr) return status;
  // A page that went on after it was moved: what the log has no more, the cold store has, as of
  // that piece or later. (Of a group that came later, the piece's end is not known here.)
  const bool may_lack = place.layout->group(place.group).added;
  if (may_lack) older.rows = 0;
  const Lsn gone = older.newest_lsn;
  ColdPageHeader moved;
  const Status cold = ReadCold(older, frame, of_file, &moved);
  if (cold.code() == StatusCode::kCorruption) {
    return Status::Corruption(status.message(), "; and ", cold.message());
  }
  GEARDB_RETURN_IF_ERROR(cold);
  // Pieces that it has may go at any time: only those behind them are copied again.
  const Lsn has = moved.lsn == kNoLsn ? gone : moved.lsn;
  GEARDB_RETURN_IF_ERROR(CopyPieces(place, has, scratch, frame, &older));
  if (may_lack || moved.rows >= older.rows) return Status::Ok();
  return Status::Corruption("the cold store has ", moved.rows, " of its first ", older.rows,
                            " rows");
}

Status PageSource::CopyPieces(const PagePlace& place, Lsn behind, wal::AlignedBuffer* scratch,
                              std::byte* frame, PagePlace* missing) {
  const PageLayout& pages = place.layout->group(place.group).pages;
  Lsn lsn = place.newest_lsn;
  // Of a group that came later, a page may have rows without it: before them all or, where a patch
  // was followed by some, between pieces. The frame has the defaults there.
  const bool may_lack = place.layout->group(place.group).added;
  for (uint32_t end = place.rows; end > 0 && !(may_lack && lsn == kNoLsn);) {
    missing->rows = end;
    missing->newest_lsn = lsn;
    if (behind > 0 && lsn <= behind) break;
    log_reads_.fetch_add(1, std::memory_order_relaxed);
    GEARDB_ASSIGN_OR_RETURN(const wal::RecordIndex record,
                            log_.ReadIndex(lsn, scratch, place.in_order));
    GEARDB_ASSIGN_OR_RETURN(const fb::Body* body, ReadBody(record.body()));
    const FoundPiece found = FindPiece(*body, record, place);
    const uint32_t rows_end =
        found.rows == nullptr ? 0 : uint32_t{found.rows->first()} + found.rows->count();
    if (found.rows == nullptr || found.rows->count() == 0 ||
        (may_lack && end < place.rows ? rows_end > end : rows_end != end) ||
        found.piece->bytes != PieceColumns(pages, found.rows->count()).bytes()) {
      return Status::Corruption("the record at LSN ", lsn, " has no piece of it up to row ", end);
    }
    // Other parts of the call may be gone with their segments, and this one still be there.
    GEARDB_ASSIGN_OR_RETURN(const auto piece,
                            log_.ReadPiece(*found.piece, scratch, place.in_order));
    CopyPieceIntoFrame({.layout = place.layout,
                        .group = place.group,
                        .first = found.rows->first(),
                        .count = found.rows->count()},
                       piece, frame);
    end = kBreak.read_newest_piece ? 0 : found.rows->first();
    lsn = found.rows->previous_lsn();
  }
  return Status::Ok();
}

Status PageSource::ReadLog(const PagePlace& place, wal::AlignedBuffer* scratch, std::byte* frame) {
  const PageLayout& pages = place.layout->group(place.group).pages;
  log_reads_.fetch_add(1, std::memory_order_relaxed);
  GEARDB_ASSIGN_OR_RETURN(
      const std::span<const std::byte> piece,
      log_.Read(place.log_at, PieceColumns(pages, place.rows).bytes(), scratch, place.in_order));
  if (static_cast<uint32_t>(Hash64(piece, seed_)) != place.log_checksum) {
    return Status::Corruption("the piece at LSN ", place.log_at, " does not fit its checksum");
  }
  CopyPieceIntoFrame({.layout = place.layout, .group = place.group, .count = place.rows}, piece,
                     frame);
  return Status::Ok();
}

// After a crash the cold store may have a newer version than the image, until the log's records are
// applied: it has all that the older one has.
Status PageSource::ReadCold(const PagePlace& place, std::byte* frame, bool* of_file,
                            ColdPageHeader* header) {
  const PageLayout& pages = place.layout->group(place.group).pages;
  ColdStore* cold = cold_.load(std::memory_order_acquire);
  if (cold == nullptr) return Status::Corruption("neither in the log nor in a cold store");
  cold_reads_.fetch_add(1, std::memory_order_relaxed);
  ColdRead read;
  read.key = ColdKeyOf(place);
  read.layout = &pages;
  read.frame = {frame, pages.frame_bytes()};
  read.lsn = place.newest_lsn;
  read.as_of = place.as_of;
  const Status status = cold->ReadPages({&read, 1});
  if (of_file != nullptr) *of_file = read.of_file;
  if (status.code() == StatusCode::kNotFound) return Status::Corruption(status.message());
  // The store is closed by the database's Close alone.
  if (status.code() == StatusCode::kFailedPrecondition) return Status::Cancelled(status.message());
  GEARDB_RETURN_IF_ERROR(status);
  if (header != nullptr) *header = read.header;
  if (read.header.lsn < place.newest_lsn && !kBreak.serve_stale_page) {
    return Status::Corruption("the cold store has it as of LSN ", read.header.lsn,
                              ", and it was changed at LSN ", place.newest_lsn);
  }
  if (read.header.rows >= place.rows) return Status::Ok();
  return Status::Corruption("the cold store has ", read.header.rows, " of its ", place.rows,
                            " rows");
}

}  // namespace geardb::engine
