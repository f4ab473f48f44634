// geardb verify: reads every byte, and names what is damaged.

#include <string>

#include "tools/geardb/command.h"
#include "tools/geardb/json_writer.h"
#include "tools/geardb/open_store.h"
#include "tools/geardb/text_table.h"
#include "tools/geardb/verification.h"

namespace geardb::cli {
namespace {

void Print(const Verification& verification, std::ostream* out) {
  const Verified& verified = verification.verified();
  *out << "read " << Counted(verified.records, "record") << " of the log ("
       << BytesText(verified.log_bytes) << " in " << Counted(verified.segment_files, "file") << ", "
       << Counted(verified.ring_records, "record") << " only in the ring), "
       << Counted(verified.pieces, "piece") << " (" << BytesText(verified.piece_bytes) << ")\n";
  if (verification.memory().ok()) {
    *out << "replayed " << Counted(verified.tables, "table") << ": "
         << Counted(verified.rows, "row") << " in " << Counted(verified.trajectories, "trajectory")
         << '\n';
  } else {
    *out << "NOT REPLAYED: " << Printable(verification.memory().message()) << '\n';
  }
  for (const std::string& note : verification.notes()) *out << "note: " << Printable(note) << '\n';
  for (const Problem& problem : verification.problems()) {
    *out << "DAMAGE: ";
    // The log's own words name the place already.
    if (problem.lsn == kNoLsn || problem.text.find(problem.place) == std::string::npos) {
      *out << Printable(problem.place);
      if (problem.lsn != kNoLsn) *out << " (LSN " << problem.lsn << ")";
      *out << ": ";
    }
    *out << Printable(problem.text) << '\n';
  }
  if (verification.problems().empty()) {
    *out << "no damage found"
         << (verification.memory().ok() ? "\n" : " in what needs no replay: see above\n");
  } else {
    *out << Counted(verification.problems().size(), "problem") << " found\n";
  }
}

void WriteJson(const StoreFiles& files, const Verification& verification, std::ostream* out) {
  const Verified& verified = verification.verified();
  JsonWriter json(out);
  json.BeginObject();
  json.Field("directory", files.directory);
  json.Field("good", verification.problems().empty() && verification.memory().ok());
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
  json.Key("notes");
  json.BeginArray();
  for (const std::string& note : verification.notes()) json.String(note);
  json.EndArray();
  json.Field("replayed", verification.memory().ok());
  json.Field("memory", verification.memory().message());
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
  return verification.memory().ok() ? kExitGood : kExitMemory;
}

}  // namespace geardb::cli
