#include "tools/geardb/running_store.h"

#include <string>

#include "engine/database.h"
#include "tools/geardb/json_writer.h"
#include "tools/geardb/open_store.h"
#include "tools/geardb/places.h"
#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

void PrintPriorityTables(const TableActivity& table, std::ostream* out) {
  TextTable rows(
      {"priority table", "items", "drawable", "batches", "samplers wait", "appends wait"});
  for (const PriorityTableActivity& one : table.priority_tables) {
    rows.Add({Printable(one.name), Grouped(one.items), Grouped(one.drawable_items),
              Grouped(one.draws), Grouped(one.blocked.samples.waiting),
              Grouped(one.blocked.inserts.waiting)});
  }
  if (rows.empty()) return;
  *out << '\n';
  rows.Print(out);
  for (const PriorityTableActivity& one : table.priority_tables) {
    const auto say = [&](const char* who, const BlockedSide& side) {
      if (side.waiting == 0 || side.reason.empty()) return;
      *out << "  " << Printable(one.name) << ": " << who << Printable(side.reason) << '\n';
    };
    say("samplers wait: ", one.blocked.samples);
    say("appends wait: ", one.blocked.inserts);
  }
}

void PrintTables(const TablesActivity& tables, std::ostream* out) {
  if (tables.seen_us == 0) return;
  *out << "  tables    " << Grouped(tables.tables.size() + tables.left_out) << ", as counted "
       << TimeText(tables.seen_us);
  if (tables.left_out > 0) *out << "; " << Grouped(tables.left_out) << " are left out";
  *out << '\n';
  for (const TableActivity& table : tables.tables) {
    *out << "\ntable " << Printable(table.name) << " (number " << table.id
         << "): " << Counted(table.steps, "step") << " in "
         << Counted(table.trajectories, "trajectory") << " (" << Grouped(table.open_trajectories)
         << " open)\n"
         << "  pages     " << Grouped(table.pages) << ": " << BytesText(table.frame_bytes)
         << " of frames for " << BytesText(table.row_bytes) << " of rows\n";
    PrintPriorityTables(table, out);
    PrintTablePlaces(table.places, out);
  }
}

void WriteBlocked(std::string_view key, const BlockedSide& side, JsonWriter* json) {
  json->Key(key);
  json->BeginObject();
  json->Field("waiting", side.waiting);
  json->Field("reason", side.reason);
  json->EndObject();
}

void WriteTable(const TableActivity& table, JsonWriter* json) {
  json->BeginObject();
  json->Field("name", table.name);
  json->Field("id", table.id);
  json->Field("steps", table.steps);
  json->Field("trajectories", table.trajectories);
  json->Field("open", table.open_trajectories);
  json->Field("pages", table.pages);
  json->Field("frame_bytes", table.frame_bytes);
  json->Field("row_bytes", table.row_bytes);
  WriteTablePlaces(table.places, json);
  json->Key("priority_tables");
  json->BeginArray();
  for (const PriorityTableActivity& one : table.priority_tables) {
    json->BeginObject();
    json->Field("name", one.name);
    json->Field("items", one.items);
    json->Field("drawable_items", one.drawable_items);
    json->Field("draws", one.draws);
    WriteBlocked("samples", one.blocked.samples, json);
    WriteBlocked("inserts", one.blocked.inserts, json);
    json->EndObject();
  }
  json->EndArray();
  json->EndObject();
}

void WriteTables(const TablesActivity& tables, JsonWriter* json) {
  json->Field("tables_seen_us", tables.seen_us);
  json->Field("tables_left_out", tables.left_out);
  json->Key("tables");
  json->BeginArray();
  for (const TableActivity& table : tables.tables) WriteTable(table, json);
  json->EndArray();
}

void Print(const std::string& directory, std::string_view owner, const DatabaseActivity& activity,
           std::ostream* out) {
  *out
      << Printable(directory) << '\n'
      << "  running   " << Printable(owner)
      << ": what follows is what that process has written of itself, not what the database holds\n";
  if (activity.known) PrintStorePlaces(activity.stats, out);
  if (activity.known) PrintTables(activity.tables, out);
  PrintActivity(activity, out);
}

void Write(const std::string& directory, const wal::Manifest& manifest,
           const DatabaseActivity& activity, JsonWriter* json) {
  json->BeginObject();
  json->Field("directory", directory);
  json->Field("running", true);
  WriteManifest(manifest, json);
  json->Key("log");
  json->BeginObject();
  json->Field("end", activity.stats.log_published);
  WriteLogPlaces(activity.stats, json);
  json->EndObject();
  WriteCold(activity.stats.cold, json);
  WriteActivity(activity, json);
  WriteTables(activity.tables, json);
  json->EndObject();
}

}  // namespace

Result<int> ShowRunning(const Invocation& invocation, std::string_view owner) {
  const std::string directory = invocation.arguments.Text("directory");
  GEARDB_ASSIGN_OR_RETURN(const wal::Manifest manifest, ReadManifest(directory));
  GEARDB_ASSIGN_OR_RETURN(const DatabaseActivity activity, Database::ActivityOf(directory));
  if (!invocation.json) {
    Print(directory, owner, activity, invocation.out);
    return kExitGood;
  }
  JsonWriter json(invocation.out);
  Write(directory, manifest, activity, &json);
  return kExitGood;
}

}  // namespace geardb::cli
