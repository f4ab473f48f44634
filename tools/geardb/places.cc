#include "tools/geardb/places.h"

#include <array>
#include <utility>

#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

using Counter = std::pair<const char*, uint64_t ActivityCounters::*>;

/// By their names in JSON.
constexpr std::array kCounters = {
    Counter{"frame_hits", &ActivityCounters::frame_hits},
    Counter{"frame_misses", &ActivityCounters::frame_misses},
    Counter{"frames_dropped", &ActivityCounters::frames_dropped},
    Counter{"frames_unplaced", &ActivityCounters::frames_unplaced},
    Counter{"log_page_reads", &ActivityCounters::log_page_reads},
    Counter{"cold_page_reads", &ActivityCounters::cold_page_reads},
    Counter{"log_records", &ActivityCounters::log_records},
    Counter{"log_bytes", &ActivityCounters::log_bytes},
    Counter{"fdatasyncs", &ActivityCounters::fdatasyncs},
    Counter{"cleaner_passes", &ActivityCounters::cleaner_passes},
    Counter{"cleaner_failed", &ActivityCounters::cleaner_failed},
    Counter{"cleaner_segments", &ActivityCounters::cleaner_segments},
    Counter{"cleaner_pages", &ActivityCounters::cleaner_pages},
    Counter{"cleaner_page_bytes", &ActivityCounters::cleaner_page_bytes},
    Counter{"cleaner_image_bytes", &ActivityCounters::cleaner_image_bytes},
    Counter{"cold_block_hits", &ActivityCounters::cold_block_hits},
    Counter{"cold_block_misses", &ActivityCounters::cold_block_misses},
    Counter{"cold_bytes_read", &ActivityCounters::cold_bytes_read},
    Counter{"cold_bytes_written", &ActivityCounters::cold_bytes_written},
    Counter{"waits_for_frames", &ActivityCounters::waits_for_frames},
    Counter{"wait_for_frames_us", &ActivityCounters::wait_for_frames_us},
    Counter{"waits_for_log_room", &ActivityCounters::waits_for_log_room},
    Counter{"wait_for_log_room_us", &ActivityCounters::wait_for_log_room_us},
    Counter{"waits_for_limiters", &ActivityCounters::waits_for_limiters},
    Counter{"wait_for_limiters_us", &ActivityCounters::wait_for_limiters_us},
    Counter{"waits_for_table_room", &ActivityCounters::waits_for_table_room},
    Counter{"wait_for_table_room_us", &ActivityCounters::wait_for_table_room_us},
    Counter{"waits_for_pages", &ActivityCounters::waits_for_pages},
    Counter{"wait_for_pages_us", &ActivityCounters::wait_for_pages_us},
};
static_assert(kCounters.size() * sizeof(uint64_t) == sizeof(ActivityCounters));

std::string PagesText(uint64_t pages, uint64_t frame_bytes) {
  return Grouped(pages) + " (" + BytesText(pages * frame_bytes) + ")";
}

std::string RateText(uint64_t hits, uint64_t misses) {
  if (hits + misses == 0) return "none asked for";
  return NumberText(100 * HitRate(hits, misses), 3) + " % of " + Grouped(hits + misses);
}

std::string WaitText(uint64_t waits, uint64_t us) {
  if (waits == 0) return "0";
  return Grouped(waits) + ", " + SecondsText(static_cast<double>(us) * 1e-6);
}

using Row = std::pair<const char*, std::string (*)(const ActivityCounters&)>;

/// What people read, a line each.
constexpr std::array kRows = {
    Row{"pages in memory when shown",
        [](const ActivityCounters& of) { return RateText(of.frame_hits, of.frame_misses); }},
    Row{"frames dropped", [](const ActivityCounters& of) { return Grouped(of.frames_dropped); }},
    Row{"pages read from the log",
        [](const ActivityCounters& of) { return Grouped(of.log_page_reads); }},
    Row{"pages read from the cold store",
        [](const ActivityCounters& of) { return Grouped(of.cold_page_reads); }},
    Row{"blocks of the cold store in its cache",
        [](const ActivityCounters& of) {
          return RateText(of.cold_block_hits, of.cold_block_misses);
        }},
    Row{"written to the log", [](const ActivityCounters& of) { return BytesText(of.log_bytes); }},
    Row{"syncs of the log", [](const ActivityCounters& of) { return Grouped(of.fdatasyncs); }},
    Row{"passes of the cleaner",
        [](const ActivityCounters& of) {
          return Grouped(of.cleaner_passes) +
                 (of.cleaner_failed == 0 ? "" : ", " + Grouped(of.cleaner_failed) + " failed");
        }},
    Row{"segments that it freed",
        [](const ActivityCounters& of) { return Grouped(of.cleaner_segments); }},
    Row{"pages that it moved",
        [](const ActivityCounters& of) {
          return Grouped(of.cleaner_pages) + " (" + BytesText(of.cleaner_page_bytes) + ")";
        }},
    Row{"waits for frames",
        [](const ActivityCounters& of) {
          return WaitText(of.waits_for_frames, of.wait_for_frames_us);
        }},
    Row{"waits for room in the log",
        [](const ActivityCounters& of) {
          return WaitText(of.waits_for_log_room, of.wait_for_log_room_us);
        }},
    Row{"waits for limiters",
        [](const ActivityCounters& of) {
          return WaitText(of.waits_for_limiters, of.wait_for_limiters_us);
        }},
    Row{"waits for room in a table",
        [](const ActivityCounters& of) {
          return WaitText(of.waits_for_table_room, of.wait_for_table_room_us);
        }},
    Row{"waits for pages",
        [](const ActivityCounters& of) {
          return WaitText(of.waits_for_pages, of.wait_for_pages_us);
        }},
};

using Budget = std::pair<const char*, BudgetStats DatabaseStats::*>;

/// By their names in JSON.
constexpr std::array kBudgets = {
    Budget{"frames", &DatabaseStats::frames}, Budget{"index", &DatabaseStats::index},
    Budget{"batches", &DatabaseStats::batches}, Budget{"cold", &DatabaseStats::cold_memory}};

void PrintBudgets(const DatabaseStats& stats, std::ostream* out) {
  if (stats.frames.limit_bytes == 0) return;  // Written before they were.
  *out << "memory    ";
  const char* between = "";
  for (const auto& [name, budget] : kBudgets) {
    const BudgetStats& of = stats.*budget;
    *out << between << name << ' ' << BytesText(of.used_bytes) << " of "
         << BytesText(of.limit_bytes);
    between = ", ";
  }
  *out << '\n';
}

void WriteBudgets(const DatabaseStats& stats, JsonWriter* json) {
  json->Key("budgets");
  json->BeginObject();
  for (const auto& [name, budget] : kBudgets) {
    json->Key(name);
    json->BeginObject();
    json->Field("used_bytes", (stats.*budget).used_bytes);
    json->Field("limit_bytes", (stats.*budget).limit_bytes);
    json->EndObject();
  }
  json->EndObject();
}

void WriteCounters(std::string_view key, const ActivityCounters& counters, JsonWriter* json) {
  json->Key(key);
  json->BeginObject();
  for (const auto& [name, counter] : kCounters) json->Field(name, counters.*counter);
  json->EndObject();
}

}  // namespace

double HitRate(uint64_t hits, uint64_t misses) {
  return hits + misses == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(hits + misses);
}

double SpaceAmplification(const ColdStats& cold) {
  return cold.live_bytes == 0
             ? 1.0
             : static_cast<double>(cold.disk_bytes) / static_cast<double>(cold.live_bytes);
}

void PrintStorePlaces(const DatabaseStats& stats, std::ostream* out) {
  *out << "  segments  " << Grouped(stats.log_segments_live) << " live, "
       << Grouped(stats.log_segments_free) << " free; pages from LSN " << Grouped(stats.log_start)
       << " on are in the log\n"
       << "  lag       " << BytesText(stats.log_lag_bytes())
       << " of the log not known to be synced, " << BytesText(stats.cleaner_lag_bytes())
       << " since "
       << (stats.image_lsn == 0 ? std::string("its begin: there is no image of the index")
                                : "the image of the index, as of LSN " + Grouped(stats.image_lsn))
       << '\n';
  if (stats.cold.disk_bytes == 0 && stats.image_lsn == 0) return;
  *out << "  cold      " << BytesText(stats.cold.disk_bytes) << " on disk for "
       << BytesText(stats.cold.live_bytes) << " that are live ("
       << NumberText(SpaceAmplification(stats.cold), 3) << " times), "
       << BytesText(stats.cold.reserve_bytes) << " kept for a full disk\n";
}

void PrintTablePlaces(std::span<const GroupPlaces> all, std::ostream* out) {
  TextTable rows({"pages of group", "written", "in the log", "in the cold store", "older version",
                  "nowhere else"});
  for (const GroupPlaces& places : all) {
    if (places.pages == 0) continue;
    const std::string group = places.group.empty() ? "(first)" : places.group;
    rows.Add({places.column.empty() ? group : "values of " + places.column,
              PagesText(places.pages, places.frame_bytes),
              PagesText(places.in_log, places.frame_bytes),
              PagesText(places.in_cold, places.frame_bytes), Grouped(places.in_both),
              Grouped(places.only_framed)});
  }
  if (rows.empty()) return;
  *out << '\n';
  rows.Print(out);
}

void PrintActivity(const DatabaseActivity& activity, std::ostream* out) {
  if (!activity.known) {
    *out << "\nwhat was done is unknown: " << Printable(activity.note) << '\n';
    return;
  }
  *out << "\nwhat was done, as written " << TimeText(activity.written_us) << '\n';
  TextTable rows(
      {"", "opening " + Grouped(activity.opening),
       activity.since == 1 ? "all openings" : "openings since " + Grouped(activity.since)});
  for (const auto& [name, text] : kRows) {
    rows.Add({name, text(activity.last), text(activity.total)});
  }
  rows.Print(out);
  PrintBudgets(activity.stats, out);
}

void WriteManifest(const wal::Manifest& manifest, JsonWriter* json) {
  json->Field("format", wal::kFormatVersion);
  json->Field("uuid", wal::UuidText(manifest.uuid));
  json->Field("term", manifest.epoch.term);
  json->Field("open_count", manifest.epoch.open);
}

void WriteLogPlaces(const DatabaseStats& stats, JsonWriter* json) {
  json->Field("synced", stats.log_synced);
  json->Field("lag_bytes", stats.log_lag_bytes());
  json->Field("pages_from", stats.log_start);
  json->Field("released", stats.log_released);
  json->Field("segments_live", stats.log_segments_live);
  json->Field("segments_free", stats.log_segments_free);
  json->Field("image", stats.image_lsn);
  json->Field("cleaner_lag_bytes", stats.cleaner_lag_bytes());
}

void WriteCold(const ColdStats& cold, JsonWriter* json) {
  json->Key("cold");
  json->BeginObject();
  json->Field("disk_bytes", cold.disk_bytes);
  json->Field("live_bytes", cold.live_bytes);
  json->Field("space_amplification", SpaceAmplification(cold));
  json->Field("reserve_bytes", cold.reserve_bytes);
  json->EndObject();
}

void WriteActivity(const DatabaseActivity& activity, JsonWriter* json) {
  json->Key("activity");
  json->BeginObject();
  json->Field("known", activity.known);
  json->Field("note", activity.note);
  json->Field("opening", activity.opening);
  json->Field("since", activity.since);
  json->Field("opened_us", activity.opened_us);
  json->Field("written_us", activity.written_us);
  WriteCounters("last", activity.last, json);
  WriteCounters("total", activity.total, json);
  WriteBudgets(activity.stats, json);
  json->EndObject();
}

void WriteTablePlaces(std::span<const GroupPlaces> all, JsonWriter* json) {
  json->Key("places");
  json->BeginArray();
  for (const GroupPlaces& places : all) {
    json->BeginObject();
    json->Field("group", places.group);
    json->Field("frame_bytes", places.frame_bytes);
    json->Field("pages", places.pages);
    json->Field("framed", places.framed);
    json->Field("in_log", places.in_log);
    json->Field("in_cold", places.in_cold);
    json->Field("in_both", places.in_both);
    json->Field("only_framed", places.only_framed);
    if (!places.column.empty()) json->Field("column", places.column);
    json->EndObject();
  }
  json->EndArray();
}

}  // namespace geardb::cli
