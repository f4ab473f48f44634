#include "tools/geardb/verification.h"

#include <string_view>
#include <utility>

#include "tools/geardb/record_words.h"
#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

/// How many problems are kept; a file of zeros should not fill the memory.
constexpr size_t kProblemsMax = 1000;

}  // namespace

void Verification::AddProblem(std::string place, Lsn lsn, std::string text) {
  if (problems_.size() < kProblemsMax) {
    problems_.push_back({std::move(place), lsn, std::move(text)});
  }
}

Status Verification::Run() {
  GEARDB_RETURN_IF_ERROR(CheckFiles());
  GEARDB_RETURN_IF_ERROR(CheckLog());
  CheckReplay();
  return Status::Ok();
}

Status Verification::CheckFiles() {
  const std::string log_directory = files_->log_directory();
  GEARDB_ASSIGN_OR_RETURN(const auto names, Env::Posix()->List(log_directory));
  bool has_ring = false;
  for (const std::string& name : names) {
    const std::string path = JoinPath(log_directory, name);
    if (name == wal::kRingName) {
      has_ring = true;
      GEARDB_RETURN_IF_ERROR(CheckSize(path, files_->manifest.ring_bytes));
    } else if (std::string_view(name).starts_with(wal::kSegmentPrefix)) {
      ++verified_.segment_files;
      GEARDB_RETURN_IF_ERROR(CheckSize(path, files_->manifest.segment_bytes));
    } else {
      notes_.push_back("'" + Printable(path) + "' is no file of a database");
    }
  }
  if (!has_ring) AddProblem(files_->ring_path(), kNoLsn, "the ring is missing");
  return Status::Ok();
}

Status Verification::CheckSize(const std::string& path, uint64_t expected) {
  GEARDB_ASSIGN_OR_RETURN(const auto file, Env::Posix()->OpenFile(path, {}));
  GEARDB_ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
  if (bytes != expected) {
    AddProblem(
        path, kNoLsn,
        "the file has " + std::to_string(bytes) + " bytes, expected " + std::to_string(expected));
  }
  return Status::Ok();
}

Status Verification::CheckLog() {
  const wal::ReadOptions options{.all_types = true, .allow_damaged_prefix = true};
  auto opened = wal::LogReader::Open(Env::Posix(), files_->directory, files_->manifest, options);
  if (!opened.ok()) {
    AddProblem(files_->log_directory(), kNoLsn, opened.status().ToString());
    return Status::Ok();
  }
  wal::LogReader& reader = **opened;
  while (true) {
    const auto record = reader.Next();
    if (!record.ok()) {
      AddProblem(files_->log_directory(), reader.report().end_lsn, record.status().ToString());
      break;
    }
    if (!*record) break;
    CheckRecord(**record, reader);
  }
  const wal::ReadReport& report = reader.report();
  verified_.records = report.records;
  verified_.ring_records = report.ring_records;
  verified_.log_bytes = report.bytes;
  verified_.log_end = report.end_lsn;
  verified_.sealed = report.seal_lsn != kNoLsn;
  if (!report.damage.ok()) {
    AddProblem(reader.PlaceOf(report.end_lsn), report.end_lsn,
               std::string(report.damage.message()));
  } else if (report.end_lsn == 0) {
    notes_.push_back("nothing was ever logged");
  } else if (!verified_.sealed) {
    notes_.push_back("the log ends at LSN " + Grouped(report.end_lsn) +
                     " without a seal: its owner died, and what it had not synced may be missing");
  }
  if (verified_.sealed && report.ring_records > 0) {
    notes_.push_back("the log was closed, but of its last " +
                     Counted(report.ring_records, "record") + " only the ring's copy is good");
  }
  if (report.void_groups > 0) {
    notes_.push_back(Counted(report.void_groups, "group") +
                     " of records never came to an end, and counts for nothing");
  }
  return Status::Ok();
}

void Verification::CheckRecord(const wal::RecordView& record, const wal::LogReader& reader) {
  if (record.type == wal::RecordType::kPart) {
    part_areas_[record.lsn] = record.lsn + wal::PieceAreaOffset(record.header.metadata_length);
    return;
  }
  if (record.type != wal::RecordType::kData && record.type != wal::RecordType::kTag) return;
  const auto operations = DescribeOperations(record.body, &names_);
  if (!operations.ok()) {
    AddProblem(reader.PlaceOf(record.lsn), record.lsn, std::string(operations.status().message()));
  }
  CheckPieces(record, reader, operations.ok() ? JoinWords(*operations) : "unknown operations");
  part_areas_.clear();
}

void Verification::CheckPieces(const wal::RecordView& record, const wal::LogReader& reader,
                               const std::string& what) {
  for (size_t i = 0; i < record.pieces.size(); ++i) {
    const wal::PieceView& piece = record.pieces[i];
    ++verified_.pieces;
    verified_.piece_bytes += piece.bytes.size();
    if (piece.good) continue;
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
    AddProblem(std::move(place), record.lsn,
               "piece " + std::to_string(i) + " of " + std::to_string(record.pieces.size()) +
                   (piece.bytes.empty() ? " is missing"
                                        : ", " + Counted(piece.bytes.size(), "byte") +
                                              ", does not fit its checksum") +
                   "; the record: " + what);
  }
}

void Verification::CheckReplay() {
  const auto opened = OpenStore(*invocation_);
  if (!opened.ok()) {
    AddProblem(files_->directory, kNoLsn,
               "the log cannot be replayed: " + opened.status().ToString());
    return;
  }
  Database& database = **opened;
  const RecoveryReport& recovery = database.recovery();
  if (recovery.damaged_pages > 0) {
    AddProblem(files_->directory, kNoLsn,
               Counted(recovery.damaged_pages, "page") +
                   " cannot be restored, and the trajectories that they belong to are lost: " +
                   recovery.note);
  }
  if (recovery.damaged_priorities + recovery.damaged_tags > 0) {
    AddProblem(files_->directory, kNoLsn, recovery.note);
  }
  for (const std::string& name : database.Tables()) {
    ++verified_.tables;
    const auto table = database.OpenTable(name);
    const Status status = table.ok() ? CheckTable(table->get()) : table.status();
    if (!status.ok()) AddProblem("table " + name, kNoLsn, status.ToString());
  }
}

Status Verification::CheckTable(Table* table) {
  for (const TrajectoryRecord& record : table->Scan({})) {
    ++verified_.trajectories;
    const auto rows = table->Read(record.id, {}, {});
    if (!rows.ok()) {
      AddProblem("table " + table->spec().name + ", trajectory " + std::to_string(record.id),
                 kNoLsn, rows.status().ToString());
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
