#include "engine/internal/activity_file.h"

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "engine/internal/activity_tables.h"

namespace geardb::engine {
namespace {

constexpr char kMagic[9] = "GEARCNT\n";
/// Version 1 has no levels, and version 2 no tables.
constexpr uint32_t kVersion = 3;
/// No version has more counters, or levels.
constexpr uint64_t kCountersMax = 1024;

/// In the order of the file: frozen; what is new goes to the end.
constexpr std::array kCounters = {
    &ActivityCounters::frame_hits,
    &ActivityCounters::frame_misses,
    &ActivityCounters::frames_dropped,
    &ActivityCounters::frames_unplaced,
    &ActivityCounters::log_page_reads,
    &ActivityCounters::cold_page_reads,
    &ActivityCounters::log_records,
    &ActivityCounters::log_bytes,
    &ActivityCounters::fdatasyncs,
    &ActivityCounters::cleaner_passes,
    &ActivityCounters::cleaner_failed,
    &ActivityCounters::cleaner_segments,
    &ActivityCounters::cleaner_pages,
    &ActivityCounters::cleaner_page_bytes,
    &ActivityCounters::cleaner_image_bytes,
    &ActivityCounters::cold_block_hits,
    &ActivityCounters::cold_block_misses,
    &ActivityCounters::cold_bytes_read,
    &ActivityCounters::cold_bytes_written,
    &ActivityCounters::waits_for_frames,
    &ActivityCounters::wait_for_frames_us,
    &ActivityCounters::waits_for_log_room,
    &ActivityCounters::wait_for_log_room_us,
    &ActivityCounters::waits_for_limiters,
    &ActivityCounters::wait_for_limiters_us,
    &ActivityCounters::waits_for_table_room,
    &ActivityCounters::wait_for_table_room_us,
    &ActivityCounters::waits_for_pages,
    &ActivityCounters::wait_for_pages_us,
};
static_assert(kCounters.size() * sizeof(uint64_t) == sizeof(ActivityCounters));

using Level = uint64_t* (*)(DatabaseStats*);

/// In the order of the file: frozen; what is new goes to the end.
constexpr std::array kLevels = {
    Level{[](DatabaseStats* stats) { return &stats->log_end; }},
    Level{[](DatabaseStats* stats) { return &stats->log_published; }},
    Level{[](DatabaseStats* stats) { return &stats->log_drained; }},
    Level{[](DatabaseStats* stats) { return &stats->log_synced; }},
    Level{[](DatabaseStats* stats) { return &stats->log_start; }},
    Level{[](DatabaseStats* stats) { return &stats->log_released; }},
    Level{[](DatabaseStats* stats) { return &stats->image_lsn; }},
    Level{[](DatabaseStats* stats) { return &stats->log_segments_live; }},
    Level{[](DatabaseStats* stats) { return &stats->log_segments_free; }},
    Level{[](DatabaseStats* stats) { return &stats->cold.disk_bytes; }},
    Level{[](DatabaseStats* stats) { return &stats->cold.live_bytes; }},
    Level{[](DatabaseStats* stats) { return &stats->frames.limit_bytes; }},
    Level{[](DatabaseStats* stats) { return &stats->frames.used_bytes; }},
    Level{[](DatabaseStats* stats) { return &stats->index.limit_bytes; }},
    Level{[](DatabaseStats* stats) { return &stats->index.used_bytes; }},
    Level{[](DatabaseStats* stats) { return &stats->batches.limit_bytes; }},
    Level{[](DatabaseStats* stats) { return &stats->batches.used_bytes; }},
    Level{[](DatabaseStats* stats) { return &stats->cold_memory.limit_bytes; }},
    Level{[](DatabaseStats* stats) { return &stats->cold_memory.used_bytes; }},
    Level{[](DatabaseStats* stats) { return &stats->cold.reserve_bytes; }},
};

/// What stands before the counters.
struct Head {
  char magic[8];
  uint32_t version;
  uint32_t length;  // Of the file.
  uint32_t opening;
  uint32_t since;
  int64_t opened_us;
  int64_t written_us;
  uint64_t counters;  // Of `last`, and of `total`.
};
static_assert(sizeof(Head) == 48);

/// Of a file that has `words` numbers between its head and its checksum.
constexpr uint64_t LengthWith(uint64_t words) {
  return sizeof(Head) + (words + 1) * sizeof(uint64_t);
}

/// Numbers beside the bytes of the tables.
constexpr uint64_t kWords = 2 * kCounters.size() + 1 + kLevels.size() + 1;
constexpr uint64_t kTablesBytesMax = kCountersBytesMax - LengthWith(kWords);

/// What lies between the head and the checksum, in numbers.
struct Parts {
  uint64_t counters = 0;
  uint64_t levels_at = 0, levels = 0;
  uint64_t tables_at = 0, tables = 0;
  uint64_t words = 0;  // All together.
};

/// Nothing where they do not fit into the file.
template <typename Get>
std::optional<Parts> FindParts(const Head& head, uint64_t bytes, const Get& get) {
  if (head.version == 0 || head.counters > kCountersMax || head.length > bytes) return std::nullopt;
  Parts parts{.counters = head.counters, .words = 2 * head.counters};
  const auto next = [&](uint64_t most, uint64_t* at, uint64_t* count) {
    if (LengthWith(parts.words + 1) > head.length) return false;
    *count = get(parts.words);
    *at = ++parts.words;
    if (*count > most) return false;
    parts.words += *count;
    return true;
  };
  if (head.version > 1 && !next(kCountersMax, &parts.levels_at, &parts.levels)) return std::nullopt;
  const uint64_t tables_max = head.length / sizeof(uint64_t);
  if (head.version > 2 && !next(tables_max, &parts.tables_at, &parts.tables)) return std::nullopt;
  if (head.length != LengthWith(parts.words)) return std::nullopt;
  return parts;
}

}  // namespace

ActivityCounters Sum(const ActivityCounters& a, const ActivityCounters& b) {
  ActivityCounters sum;
  for (const auto counter : kCounters) sum.*counter = a.*counter + b.*counter;
  return sum;
}

std::vector<std::byte> EncodeActivity(const DatabaseActivity& activity, uint64_t seed) {
  const std::vector<std::byte> tables = EncodeTables(activity.tables, kTablesBytesMax);
  std::vector<std::byte> bytes(LengthWith(kWords) + tables.size());
  Head head{.magic = {},
            .version = kVersion,
            .length = static_cast<uint32_t>(bytes.size()),
            .opening = activity.opening,
            .since = activity.since,
            .opened_us = activity.opened_us,
            .written_us = activity.written_us,
            .counters = kCounters.size()};
  std::memcpy(head.magic, kMagic, sizeof(head.magic));
  std::memcpy(bytes.data(), &head, sizeof(head));
  size_t at = sizeof(head);
  const auto put = [&](uint64_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    at += sizeof(value);
  };
  for (const auto counter : kCounters) put(activity.last.*counter);
  for (const auto counter : kCounters) put(activity.total.*counter);
  put(kLevels.size());
  DatabaseStats stats = activity.stats;
  for (const Level level : kLevels) put(*level(&stats));
  put(tables.size() / sizeof(uint64_t));
  std::memcpy(bytes.data() + at, tables.data(), tables.size());
  at += tables.size();
  put(Hash64(std::span(bytes).first(at), seed));
  return bytes;
}

Result<DatabaseActivity> DecodeActivity(std::span<const std::byte> bytes, uint64_t seed) {
  Head head;
  if (bytes.size() < LengthWith(0)) {
    return Status::Corruption("it has ", bytes.size(), " bytes; expected at least ", LengthWith(0));
  }
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (std::memcmp(head.magic, kMagic, sizeof(head.magic)) != 0) {
    return Status::Corruption("it does not begin as a file of counters");
  }
  if (head.version > kVersion) {
    return Status::Unsupported("written by a newer GearDB: it has version ", head.version,
                               "; this one knows ", kVersion);
  }
  const auto get = [&](uint64_t number) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + sizeof(head) + number * sizeof(value), sizeof(value));
    return value;
  };
  const std::optional<Parts> parts = FindParts(head, bytes.size(), get);
  if (!parts) {
    return Status::Corruption("version ", head.version, ", ", head.counters, " counters in ",
                              head.length, " bytes, of which ", bytes.size(), " are there");
  }
  uint64_t checksum = 0;
  const size_t end = head.length - sizeof(checksum);
  std::memcpy(&checksum, bytes.data() + end, sizeof(checksum));
  if (Hash64(bytes.first(end), seed) != checksum) {
    return Status::Corruption("it does not fit its checksum");
  }
  DatabaseActivity activity{.known = true,
                            .note = {},
                            .opening = head.opening,
                            .since = head.since,
                            .opened_us = head.opened_us,
                            .written_us = head.written_us};
  for (size_t i = 0; i < kCounters.size() && i < head.counters; ++i) {
    activity.last.*kCounters[i] = get(i);
    activity.total.*kCounters[i] = get(head.counters + i);
  }
  for (size_t i = 0; i < kLevels.size() && i < parts->levels; ++i) {
    *kLevels[i](&activity.stats) = get(parts->levels_at + i);
  }
  if (parts->tables == 0) return activity;
  auto tables = DecodeTables(bytes.subspan(sizeof(head) + parts->tables_at * sizeof(uint64_t),
                                           parts->tables * sizeof(uint64_t)));
  if (!tables) return Status::Corruption("what it has of tables is no FlatBuffer");
  activity.tables = std::move(*tables);
  return activity;
}

}  // namespace geardb::engine
