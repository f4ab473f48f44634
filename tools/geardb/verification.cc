#include "tools/geardb/verification.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "engine/internal/cold_check.h"
#include "engine/internal/cold_tier.h"
#include "tools/geardb/record_words.h"
#include "tools/geardb/text_table.h"
#include "tools/geardb/whole_read.h"
#include "wal/segment_check.h"

namespace geardb::cli {
namespace {

/// How many problems are kept; a file of zeros should not fill the memory.
constexpr size_t kProblemsMax = 1000;
/// Of bytes of a segment: an open for writing drains the ring again from the first record that no
/// segment has.
constexpr const char* kMended =
    "the ring has a good copy, and the next open for writing puts it back in its place";

/// An open for writing goes on in the block in which the segments' records end, and needs the bytes
/// there that come before: also those before where it began to read.
Status CheckTail(const wal::LogReader& reader) {
  const Lsn end = reader.report().segments_end_lsn;
  const Lsn block = AlignDown(end, wal::kBlockBytes);
  const std::string place = reader.PlaceOf(block);
  const bool in_file = place.rfind(" at offset ") != std::string::npos;
  if (end == block || in_file) return Status::Ok();
  return Status::Corruption("the log is damaged at LSN ", block, ", ", place,
                            ": nothing is there, but it goes on at LSN ", end);
}

}  // namespace

bool NamesPlace(std::string_view text, std::string_view place) {
  constexpr std::string_view kAround = " '\":;,";
  for (size_t at = text.find(place); at != std::string_view::npos; at = text.find(place, at + 1)) {
    const size_t end = at + place.size();
    if ((at == 0 || kAround.find(text[at - 1]) != std::string_view::npos) &&
        (end == text.size() || kAround.find(text[end]) != std::string_view::npos)) {
      return true;
    }
  }
  return false;
}

void Verification::AddProblem(std::string place, Lsn lsn, std::string text) {
  if (problems_.size() < kProblemsMax) {
    problems_.push_back({std::move(place), lsn, std::move(text)});
  }
}

void Verification::AddFailure(std::string place, Lsn lsn, const Status& failure,
                              const std::string& what) {
  if (failure.code() == StatusCode::kUnsupported) {
    if (newer_.ok()) newer_ = failure;
    return;
  }
  // Nothing is wrong with a store that this process has no memory or no descriptors for.
  if (failure.code() == StatusCode::kResourceExhausted) {
    if (memory_.ok()) memory_ = failure;
    return;
  }
  if (IsKnown(failure)) {
    losses_.push_back(what + std::string(failure.message()));
  } else {
    AddProblem(std::move(place), lsn, what + failure.ToString());
  }
}

bool Verification::IsKnown(const Status& failure) const {
  const auto names = [&](const Problem& problem) {
    return NamesPlace(failure.message(), problem.place) ||
           (problem.lsn != kNoLsn &&
            NamesPlace(failure.message(), "LSN " + std::to_string(problem.lsn)));
  };
  return std::ranges::any_of(problems_, names) || std::ranges::any_of(bad_pieces_, names);
}

void Verification::AddLoss(std::string text) {
  replay_lost_ = true;
  const bool known = std::ranges::any_of(
      bad_pieces_, [this](const Problem& piece) { return piece.lsn >= *replayed_from_; });
  if (problems_.empty() && !known) {
    AddProblem(files_->directory, kNoLsn, std::move(text));
  } else {
    losses_.push_back(std::move(text));
  }
}

Status Verification::Run() {
  GEARDB_RETURN_IF_ERROR(CheckFiles());
  GEARDB_RETURN_IF_ERROR(CheckLog());
  GEARDB_RETURN_IF_ERROR(CheckCold());
  GEARDB_RETURN_IF_ERROR(CheckReplay());
  SettlePieces();
  SettleSegments();
  return Status::Ok();
}

Status Verification::CheckLog() {
  problems_before_log_ = problems_.size();
  LogReading reading = ReadingOf(*files_);
  GEARDB_ASSIGN_OR_RETURN(const bool read, ReadLog(reading.options, reading.open_from));
  if (read) return Status::Ok();
  reading.options.from = reading.open_from;
  return ReadLog(reading.options, 0).status();
}

Result<bool> Verification::ReadLog(const wal::ReadOptions& options, Lsn open_from) {
  auto opened = wal::LogReader::Open(Env::Posix(), files_->directory, files_->manifest, options);
  if (!opened.ok()) {
    AddFailure(files_->log_directory(), kNoLsn, opened.status(), "the log cannot be read: ");
    return true;
  }
  wal::LogReader& reader = **opened;
  bool at_end = false;
  while (true) {
    const auto record = reader.Next();
    if (!record.ok()) {
      const Lsn at = reader.report().end_lsn;
      AddFailure(files_->log_directory(), at, record.status(), "the log cannot be read further: ");
      break;
    }
    at_end = !*record;
    if (at_end) break;
    NoteRecord(**record, CheckRecord(**record, reader));
  }
  const wal::ReadReport& report = reader.report();
  verified_.records += report.records;
  verified_.ring_records += report.ring_records;
  verified_.log_bytes += report.bytes;
  verified_.log_end = report.end_lsn;
  verified_.sealed = report.seal_lsn != kNoLsn;
  if (at_end && !report.damage.ok() && report.end_lsn < open_from) {
    notes_.push_back(std::string(report.damage.message()) +
                     "; no open reads it, since the image of the index has what the records up to "
                     "LSN " +
                     Grouped(open_from) + " say: nothing is lost");
    return false;
  }
  if (at_end) GEARDB_RETURN_IF_ERROR(CheckEnd(&reader));
  return true;
}

// Says what is to be said of where the log ends.
Status Verification::CheckEnd(wal::LogReader* of) {
  wal::LogReader& reader = *of;
  const wal::ReadReport& report = reader.report();
  if (!report.damage.ok()) {
    AddProblem(reader.PlaceOf(report.end_lsn), report.end_lsn,
               std::string(report.damage.message()));
  } else if (report.end_lsn == 0) {
    notes_.push_back("nothing was ever logged");
  } else if (!verified_.sealed) {
    notes_.push_back("the log ends at LSN " + Grouped(report.end_lsn) +
                     " without a seal: its owner died, and what it had not synced may be missing");
  }
  const bool synced_is_lost =
      report.damage.ok() && report.ring_records > 0 && vouched_ > report.segments_end_lsn;
  if (synced_is_lost) CheckDrained(reader);
  if (verified_.sealed && report.ring_records > 0 && !synced_is_lost) {
    notes_.push_back("the log was closed, but of its last " +
                     Counted(report.ring_records, "record") + " only the ring's copy is good");
  }
  if (report.void_groups > 0) {
    notes_.push_back(Counted(report.void_groups, "group") +
                     " of records never came to an end, and counts for nothing");
  }
  return report.damage.ok() ? CheckBeyond(of) : Status::Ok();
}

// The log ends at the first record that is not there and was not known to be synced. What lies
// behind it is dropped by an open for writing: by rule, but nobody should lose it unawares.
Status Verification::CheckBeyond(wal::LogReader* reader) {
  GEARDB_ASSIGN_OR_RETURN(wal::RecordsBeyond beyond, reader->FindBeyond());
  const Lsn end = reader->report().end_lsn;
  if (beyond.records == 0) {
    if (beyond.header_at_end) {
      notes_.push_back("a record at LSN " + Grouped(end) + " has its header, but is not whole: a " +
                       "power loss has torn it, or it is damaged; nothing valid lies behind it");
    }
    return Status::Ok();
  }
  if (beyond.acknowledged) {
    beyond_ = BeyondEnd{reader->PlaceOf(end), end, std::move(beyond)};
  } else {
    notes_.push_back(
        Counted(beyond.records, "record") + " beyond the log's end, up to LSN " +
        Grouped(beyond.end_lsn) + ", lie in the ring behind one that is not there. An " +
        "open for writing drops them. If its writer died before it was finished, none " +
        "of them was acknowledged; if its bytes in the ring were lost since, they may " +
        "have been, at log");
  }
  return Status::Ok();
}

void Verification::NoteRecord(const wal::RecordView& record, std::string what) {
  vouched_ = std::max(vouched_, record.header.synced_lsn);
  if (!record.from_ring) return;
  // A pad's bytes behind its header are anything.
  const uint64_t bytes =
      record.type == wal::RecordType::kPad ? sizeof(wal::RecordHeader) : record.end - record.lsn;
  ring_records_.push_back({record.lsn, bytes, std::move(what)});
}

// What was synced is in the segments, and a reading needs the ring for none of it. Where it does
// all the same, the file's bytes are not those that were written.
void Verification::CheckDrained(const wal::LogReader& reader) {
  const Lsn begin = reader.report().segments_end_lsn;
  const size_t problems_before = problems_.size();
  for (const RingRecord& record : ring_records_) {
    if (record.lsn >= vouched_) break;
    const Status status = CompareWithRing(record, reader);
    if (!status.ok()) AddProblem(reader.PlaceOf(record.lsn), record.lsn, status.ToString());
  }
  if (problems_.size() == problems_before) {
    AddProblem(reader.PlaceOf(begin), begin,
               "no valid record there, but everything up to LSN " + std::to_string(vouched_) +
                   " was synced; " + kMended);
  }
}

Status Verification::CompareWithRing(const RingRecord& record, const wal::LogReader& reader) {
  const std::string place = reader.PlaceOf(record.lsn);
  const size_t path_bytes = place.rfind(" at offset ");
  if (path_bytes == std::string::npos) return Status::Ok();  // No file holds that segment.
  const std::string path = place.substr(0, path_bytes);
  GEARDB_ASSIGN_OR_RETURN(const auto segment, Env::Posix()->OpenFile(path, {}));
  GEARDB_ASSIGN_OR_RETURN(const auto ring, Env::Posix()->OpenFile(files_->ring_path(), {}));
  std::vector<std::byte> stored(record.bytes);
  std::vector<std::byte> good(record.bytes);
  const uint64_t offset = record.lsn % files_->manifest.segment_bytes;
  GEARDB_RETURN_IF_ERROR(ReadSparse(segment.get(), offset, stored));
  // The ring may wrap inside the record.
  const uint64_t ring_bytes = files_->manifest.ring_bytes;
  const uint64_t first = std::min(record.bytes, ring_bytes - record.lsn % ring_bytes);
  const std::span<std::byte> into(good);
  GEARDB_RETURN_IF_ERROR(ReadSparse(ring.get(), record.lsn % ring_bytes, into.first(first)));
  GEARDB_RETURN_IF_ERROR(ReadSparse(ring.get(), 0, into.subspan(first)));
  const auto [at, ring_at] = std::ranges::mismatch(stored, good);
  if (at == stored.end()) return Status::Ok();
  AddProblem(
      path + " at offset " + std::to_string(offset + static_cast<uint64_t>(at - stored.begin())),
      record.lsn,
      "the byte is not the one that was written and synced; " + std::string(kMended) +
          "; the record: " + record.what);
  return Status::Ok();
}

std::string Verification::CheckRecord(const wal::RecordView& record, const wal::LogReader& reader) {
  if (record.type == wal::RecordType::kPart) {
    part_areas_[record.lsn] = record.lsn + wal::PieceAreaOffset(record.header.metadata_length);
    return "a part of a larger one";
  }
  if (record.type != wal::RecordType::kData && record.type != wal::RecordType::kTag) {
    return "of the log's own (a pad, the head of a segment, a seal)";
  }
  const auto operations = DescribeOperations(record.body, &names_);
  if (!operations.ok()) {
    AddProblem(reader.PlaceOf(record.lsn), record.lsn, std::string(operations.status().message()));
  }
  std::string what = operations.ok() ? JoinWords(*operations) : "unknown operations";
  CheckPieces(record, reader, what);
  part_areas_.clear();
  return what;
}

void Verification::CheckPieces(const wal::RecordView& record, const wal::LogReader& reader,
                               const std::string& what) {
  for (size_t i = 0; i < record.pieces.size(); ++i) {
    const wal::PieceView& piece = record.pieces[i];
    ++verified_.pieces;
    verified_.piece_bytes += piece.bytes.size();
    // A part may lie in a segment that the cold store has made free: its pages are there.
    if (piece.good || piece.lsn < reader.report().start_lsn) continue;
    Lsn area = record.lsn + wal::PieceAreaOffset(record.header.metadata_length);
    if (piece.lsn != record.lsn) {
      const auto part = part_areas_.find(piece.lsn);
      area = part == part_areas_.end() ? piece.lsn : part->second;
    }
    const Lsn at = area + piece.offset;
    std::string place = reader.PlaceOf(at);
    if (record.from_ring) {
      place =
          files_->ring_path() + " at offset " + std::to_string(at % files_->manifest.ring_bytes);
    }
    if (bad_pieces_.size() == kProblemsMax) continue;
    bad_pieces_.push_back(
        {std::move(place), record.lsn,
         "piece " + std::to_string(i) + " of " + std::to_string(record.pieces.size()) +
             (piece.bytes.empty()
                  ? " is missing"
                  : ", " + Counted(piece.bytes.size(), "byte") + ", does not fit its checksum") +
             "; the record: " + what});
  }
}

// A piece that was removed, trimmed, patched over or moved to the cold store stays in the log.
void Verification::SettlePieces() {
  std::vector<Problem> needed;
  std::string first_of_others;
  for (Problem& piece : bad_pieces_) {
    const bool unknown = !replayed_from_.has_value();
    if (unknown || (piece.lsn >= *replayed_from_ ? replay_lost_ : rows_lost_)) {
      needed.push_back(std::move(piece));
    } else if (first_of_others.empty()) {
      first_of_others = piece.place;
    }
  }
  const size_t others = bad_pieces_.size() - needed.size();
  if (others > 0) {
    notes_.push_back(Counted(others, "piece") + " of the log cannot be read (the first: " +
                     Printable(first_of_others) + "), but nothing that is there needs " +
                     (others == 1 ? "it" : "them") + ": no damage");
  }
  problems_.insert(problems_.begin() + static_cast<ptrdiff_t>(problems_before_log_),
                   std::make_move_iterator(needed.begin()), std::make_move_iterator(needed.end()));
}

// A replay reads one good copy of each index chunk, and goes on where another is bad.
Status Verification::CheckCold() {
  const std::string directory = JoinPath(files_->directory, engine::kColdDirectory);
  const auto found = engine::CheckColdChunks(directory);
  // What keeps the store from being opened, the replay says.
  if (!found.ok()) return Status::Ok();
  for (const std::string& text : found->manifest) {
    AddProblem(directory, kNoLsn,
               text +
                   "; nothing is lost, and geardb repair, or the next open for writing, writes "
                   "it again");
  }
  for (const std::string& note : found->notes) notes_.push_back(Printable(note));
  for (const std::string& text : found->files) AddProblem(directory, kNoLsn, text);
  for (const auto& [path, text] : found->blobs) {
    AddProblem(path, kNoLsn,
               text +
                   "; what values it still has can be read, and geardb repair writes header and "
                   "footer again");
  }
  for (const auto& [path, text] : found->tables) {
    AddProblem(path, kNoLsn,
               text + "; its keys can be read all the same, and geardb repair writes it again");
  }
  for (const std::string& text : found->copies) {
    AddProblem(directory, kNoLsn,
               text +
                   "; where the other copy is good, nothing is lost, and geardb repair writes "
                   "this one again");
  }
  return Status::Ok();
}

// The log was read from behind a segment that is missing, as if it began there. An open ends before
// it.
Status Verification::CheckEndOf(const RecoveryReport& recovery) {
  const wal::ReadOptions as_replayed{
      .from = recovery.start, .all_types = true, .allow_damaged_prefix = true};
  GEARDB_ASSIGN_OR_RETURN(const auto reader, wal::LogReader::Open(Env::Posix(), files_->directory,
                                                                  files_->manifest, as_replayed));
  while (true) {
    GEARDB_ASSIGN_OR_RETURN(const auto record, reader->Next());
    if (!record.has_value()) break;
  }
  verified_.log_end = reader->report().end_lsn;
  return CheckBeyond(reader.get());
}

Status Verification::CheckReplay() {
  const auto opened = OpenStore(*invocation_, *files_);
  if (opened.status().code() == StatusCode::kInvalidArgument) return opened.status();
  if (opened.status().code() == StatusCode::kResourceExhausted) {
    memory_ = opened.status();
    return Status::Ok();
  }
  if (!opened.ok()) {
    AddFailure(files_->directory, kNoLsn, opened.status(), "the log cannot be replayed: ");
    return Status::Ok();
  }
  Database& database = **opened;
  const RecoveryReport& recovery = database.recovery();
  replayed_from_ = recovery.start;
  if (recovery.end < verified_.log_end) GEARDB_RETURN_IF_ERROR(CheckEndOf(recovery));
  GEARDB_RETURN_IF_ERROR(CheckAsWriter(recovery.start));
  if (recovery.damaged_pages > 0) {
    AddLoss(
        Counted(recovery.damaged_pages, "page") +
        " cannot be restored, and the trajectories that they belong to are lost: " + recovery.note);
  } else if (recovery.damaged_priorities + recovery.damaged_tags > 0) {
    AddLoss(recovery.note);
  }
  for (const std::string& name : database.Tables()) {
    ++verified_.tables;
    const auto table = database.OpenTable(name);
    const Status status = table.ok() ? CheckTable(table->get()) : table.status();
    if (!status.ok()) AddProblem("table " + name, kNoLsn, status.ToString());
  }
  const std::string counters = database.Activity().note;
  // A database that was never closed may have none yet.
  if (counters.find("cannot be used") != std::string::npos) {
    notes_.push_back(Printable(counters) + "; nothing depends on it, and the counters begin anew");
  }
  return Status::Ok();
}

// What was opened for reading goes without what an open for writing needs: a log that is whole up
// to what the rest of the store says of it, and the block in which it goes on. The log by itself
// may look whole from its first segment on, and end before that.
Status Verification::CheckAsWriter(Lsn from) {
  auto opened =
      wal::LogReader::Open(Env::Posix(), files_->directory, files_->manifest, {.from = from});
  Status refused = opened.status();
  while (refused.ok()) {
    const auto record = (*opened)->Next();
    refused = record.status();
    if (!refused.ok() || *record) continue;
    refused = CheckTail(**opened);
    break;
  }
  if (refused.ok() || IsKnown(refused)) return Status::Ok();
  if (refused.code() != StatusCode::kCorruption) return refused;
  AddProblem(files_->log_directory(), opened.ok() ? (*opened)->report().end_lsn : from,
             "an open for writing is refused: " + std::string(refused.message()));
  return Status::Ok();
}

Status Verification::CheckTable(Table* table) {
  const WholeRead whole(table);
  for (const TrajectoryRecord& record : table->Scan({})) {
    ++verified_.trajectories;
    const Status read = whole.Read(record);
    if (!read.ok()) {
      rows_lost_ = true;
      AddProblem("table " + table->spec().name + ", trajectory " + std::to_string(record.id),
                 kNoLsn, read.ToString());
      continue;
    }
    verified_.rows += static_cast<uint64_t>(record.rows_end - record.first_row);
  }
  for (const std::string& name : table->PriorityTables()) {
    GEARDB_ASSIGN_OR_RETURN(const auto priorities, table->OpenPriorityTable(name));
    const uint64_t items = priorities->Items().size();
    if (items != priorities->Count()) {
      AddProblem("table " + table->spec().name + ", priority table " + name, kNoLsn,
                 "has " + Grouped(items) + " items, counts " + Grouped(priorities->Count()));
    }
  }
  return Status::Ok();
}

}  // namespace geardb::cli
