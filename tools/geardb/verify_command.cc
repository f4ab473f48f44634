// geardb verify: reads all that lives in a store, and names what is damaged.

#include <string>

#include "tools/geardb/command.h"
#include "tools/geardb/json_writer.h"
#include "tools/geardb/open_store.h"
#include "tools/geardb/text_table.h"
#include "tools/geardb/verification.h"

namespace geardb::cli {
namespace {

/// What is to be known before the database is opened for writing.
std::string BeyondText(const Verification& verification) {
  const BeyondEnd& end = *verification.beyond();
  std::string files;
  for (const auto& [path, records] : end.records.by_file) {
    files += (files.empty() ? "" : ", ") + Grouped(records) + " in " + path;
  }
  return "the log ends at LSN " + std::to_string(end.lsn) + ", " + end.place +
         ", but beyond it lie " + Counted(end.records.records, "valid record") + ", up to LSN " +
         std::to_string(end.records.end_lsn) + " (" + files +
         "): what stood before them was not known to be synced, and is damaged or was lost; an "
         "open for writing drops them. A copy of the directory keeps them";
}

void Print(const Verification& verification, std::ostream* out) {
  const Verified& verified = verification.verified();
  *out << "read " << Counted(verified.records, "record") << " of the log ("
       << BytesText(verified.log_bytes) << " in " << Counted(verified.segment_files, "file") << ", "
       << Counted(verified.ring_records, "record") << " only in the ring), "
       << Counted(verified.pieces, "piece") << " (" << BytesText(verified.piece_bytes) << ")\n";
  if (verification.memory().ok() && verification.newer().ok()) {
    *out << "replayed " << Counted(verified.tables, "table") << ": "
         << Counted(verified.rows, "row") << " in " << Counted(verified.trajectories, "trajectory")
         << '\n';
  }
  for (const Status& reason : {verification.newer(), verification.memory()}) {
    if (!reason.ok()) *out << "NOT REPLAYED: " << Printable(reason.message()) << '\n';
  }
  for (const std::string& note : verification.notes()) *out << "note: " << Printable(note) << '\n';
  for (const Problem& problem : verification.problems()) {
    *out << "DAMAGE: ";
    // The library's own words name the place already.
    if (!NamesPlace(problem.text, problem.place)) {
      *out << Printable(problem.place);
      if (problem.lsn != kNoLsn) *out << " (LSN " << problem.lsn << ")";
      *out << ": ";
    }
    *out << Printable(problem.text) << '\n';
  }
  for (const std::string& loss : verification.losses()) {
    *out << "by this damage: " << Printable(loss) << '\n';
  }
  if (verification.beyond()) *out << "WARNING: " << Printable(BeyondText(verification)) << '\n';
  if (!verification.problems().empty()) {
    *out << Counted(verification.problems().size(), "problem") << " found\n";
  } else if (!verification.newer().ok()) {
    *out << "no damage found in what this version can read: see above\n";
  } else if (!verification.memory().ok()) {
    *out << "no damage found in what needs no replay: see above\n";
  } else {
    *out << (verification.beyond() ? "no other damage found: see above\n" : "no damage found\n");
  }
}

void WriteBeyond(const Verification& verification, JsonWriter* json) {
  if (!verification.beyond()) {
    json->Null();
    return;
  }
  const BeyondEnd& end = *verification.beyond();
  json->BeginObject();
  json->Field("place", end.place);
  json->Field("lsn", end.lsn);
  json->Field("records", end.records.records);
  json->Field("end_lsn", end.records.end_lsn);
  json->Key("files");
  json->BeginArray();
  for (const auto& [path, records] : end.records.by_file) {
    json->BeginObject();
    json->Field("path", path);
    json->Field("records", records);
    json->EndObject();
  }
  json->EndArray();
  json->Field("text", BeyondText(verification));
  json->EndObject();
}

void WriteJson(const StoreFiles& files, const Verification& verification, std::ostream* out) {
  const Verified& verified = verification.verified();
  JsonWriter json(out);
  json.BeginObject();
  json.Field("directory", files.directory);
  json.Field("good", verification.good());
  json.Key("problems");
  json.BeginArray();
  for (const Problem& problem : verification.problems()) {
    json.BeginObject();
    json.Field("place", problem.place);
    json.Key("lsn");
    if (problem.lsn == kNoLsn) {
      json.Null();
    } else {
      json.Number(problem.lsn);
    }
    json.Field("text", problem.text);
    json.EndObject();
  }
  json.EndArray();
  json.Key("losses");
  json.BeginArray();
  for (const std::string& loss : verification.losses()) json.String(loss);
  json.EndArray();
  json.Key("beyond_end");
  WriteBeyond(verification, &json);
  json.Key("notes");
  json.BeginArray();
  for (const std::string& note : verification.notes()) json.String(note);
  json.EndArray();
  json.Field("replayed", verification.memory().ok() && verification.newer().ok());
  json.Field("memory", verification.memory().message());
  json.Field("newer", verification.newer().message());
  json.Field("segment_files", verified.segment_files);
  json.Field("records", verified.records);
  json.Field("ring_records", verified.ring_records);
  json.Field("log_bytes", verified.log_bytes);
  json.Field("log_end", verified.log_end);
  json.Field("sealed", verified.sealed);
  json.Field("pieces", verified.pieces);
  json.Field("piece_bytes", verified.piece_bytes);
  json.Field("tables", verified.tables);
  json.Field("trajectories", verified.trajectories);
  json.Field("rows", verified.rows);
  json.EndObject();
}

}  // namespace

Result<int> RunVerify(const Invocation& invocation) {
  GEARDB_ASSIGN_OR_RETURN(const StoreFiles files, OpenFiles(invocation));
  Verification verification(&files, &invocation);
  GEARDB_RETURN_IF_ERROR(verification.Run());
  if (invocation.json) {
    WriteJson(files, verification, invocation.out);
  } else {
    Print(verification, invocation.out);
  }
  if (!verification.problems().empty()) return kExitDamage;
  if (verification.beyond()) return kExitBeyond;
  if (!verification.newer().ok()) return kExitNewer;
  return verification.memory().ok() ? kExitGood : kExitMemory;
}

}  // namespace geardb::cli
