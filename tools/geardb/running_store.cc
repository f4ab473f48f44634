#include "tools/geardb/running_store.h"

#include <string>

#include "engine/database.h"
#include "tools/geardb/json_writer.h"
#include "tools/geardb/open_store.h"
#include "tools/geardb/places.h"
#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

void Print(const std::string& directory, std::string_view owner, const DatabaseActivity& activity,
           std::ostream* out) {
  *out
      << Printable(directory) << '\n'
      << "  running   " << Printable(owner)
      << ": what follows is what that process has written of itself, not what the database holds\n";
  if (activity.known) PrintStorePlaces(activity.stats, out);
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
