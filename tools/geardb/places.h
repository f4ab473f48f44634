// Where a store's bytes are, and what processes did with it, as `geardb info` shows both.
#pragma once

#include <ostream>
#include <span>
#include <string>

#include "engine/database.h"
#include "tools/geardb/json_writer.h"
#include "tools/geardb/store_summary.h"

namespace geardb::cli {

/// The lines "places", "lag" and "cold" of a store.
void PrintStorePlaces(const DatabaseStats& stats, std::ostream* out);
/// The pages of a table, a line for each column group.
void PrintTablePlaces(std::span<const GroupPlaces> places, std::ostream* out);
/// What was done, of the last opening and of all; says why where it is unknown.
void PrintActivity(const DatabaseActivity& activity, std::ostream* out);

/// Fields of a database's object: what its manifest says, but for its log.
void WriteManifest(const wal::Manifest& manifest, JsonWriter* json);
/// Fields of the object "log".
void WriteLogPlaces(const DatabaseStats& stats, JsonWriter* json);
/// "cold", "activity", and "places" of a table: keys and values.
void WriteCold(const ColdStats& cold, JsonWriter* json);
void WriteActivity(const DatabaseActivity& activity, JsonWriter* json);
void WriteTablePlaces(std::span<const GroupPlaces> places, JsonWriter* json);

/// Hits over both; 0 where there were none.
double HitRate(uint64_t hits, uint64_t misses);
/// Bytes on disk over those that are live; 1 for an empty store.
double SpaceAmplification(const ColdStats& cold);

}  // namespace geardb::cli
