// geardb info: what a database holds.

#include <string>

#include "tools/geardb/command.h"
#include "tools/geardb/json_writer.h"
#include "tools/geardb/open_store.h"
#include "tools/geardb/places.h"
#include "tools/geardb/running_store.h"
#include "tools/geardb/store_summary.h"
#include "tools/geardb/text_table.h"
#include "tools/geardb/words.h"

namespace geardb::cli {
namespace {

std::string RemoverText(const TableSpec& spec) {
  const std::string by = " by priority in " + spec.remover_priority_table + " leave";
  switch (spec.remover) {
    case Remover::kNone:
      return "appends wait";
    case Remover::kFifo:
      return "the oldest leave";
    case Remover::kLifo:
      return "the newest leave";
    case Remover::kUniform:
      return "any leave, seed " + std::to_string(spec.remover_seed);
    case Remover::kMinHeap:
      return "the smallest" + by;
    case Remover::kMaxHeap:
      return "the largest" + by;
  }
  return "unknown";
}

std::string CapacityText(const TableSpec& spec) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (spec.trajectories_max > 0) add(Counted(spec.trajectories_max, "trajectory"));
  if (spec.steps_max > 0) add(Counted(spec.steps_max, "step"));
  if (spec.bytes_max > 0) add(BytesText(spec.bytes_max));
  if (text.empty()) return "no bound";
  return "at most " + text + ", then " + RemoverText(spec);
}

std::string GroupText(const TableSpec& spec, const Column& column) {
  for (const ColumnGroup& group : spec.groups) {
    if (group.name != column.group) continue;
    return group.name + (group.late ? ", late" : "") + (group.is_volatile ? ", volatile" : "");
  }
  return "";
}

std::string TimesText(const TableSpec& spec) {
  const auto after = [](int64_t ms) { return SecondsText(static_cast<double>(ms) * 1e-3); };
  std::string text = spec.ttl_ms == 0 ? "closed trajectories stay"
                                      : "closed trajectories leave after " + after(spec.ttl_ms);
  text += spec.orphan_timeout_ms == 0 ? ", orphans too"
                                      : ", orphans are cut after " + after(spec.orphan_timeout_ms);
  return text;
}

/// "late (2 columns)", with commas between them; "" where there is the first alone.
std::string GroupsText(const TableSpec& spec) {
  std::string text;
  for (const ColumnGroup& group : spec.groups) {
    uint64_t columns = 0;
    for (const Column& column : spec.columns) columns += column.group == group.name ? 1u : 0u;
    text += (text.empty() ? "" : "; ") + group.name + (group.late ? ", late" : "") +
            (group.is_volatile ? ", volatile" : "") + ": " + Counted(columns, "column");
  }
  return text;
}

std::string OnePer(ColumnKind kind) {
  const std::string one = IsPerStep(kind) ? "step" : "trajectory";
  const bool any = kind == ColumnKind::kRagged || kind == ColumnKind::kBlob;
  return any ? one + ", any rows" : one;
}

void PrintColumns(const TableSpec& spec, std::ostream* out) {
  TextTable columns(
      {"column", "dtype", "shape", "one per", "in final row", "group", "default", "compression"});
  for (const Column& column : spec.columns) {
    columns.Add(
        {column.name, std::string(DTypeName(column.dtype)), column.shape.ToString(),
         OnePer(column.kind), column.in_final_row ? "yes" : "", GroupText(spec, column),
         column.default_value == 0 ? "" : NumberText(column.default_value),
         column.compression == Compression::kLz4 ? "" : CompressionName(column.compression)});
  }
  columns.Print(out);
}

std::string SelectorText(const PriorityTableSummary& table) {
  const auto& [spec, stats] = table;
  std::string text(Word(spec.selector));
  if (HasWeights(spec.selector)) text += ", α " + NumberText(spec.alpha);
  if (spec.selector != SelectorKind::kEpoch) return text;
  const EpochStats& epoch = stats.epoch;
  if (epoch.epoch == 0) return text + ", none begun";
  text +=
      " " + Grouped(epoch.epoch) + ", pass " + Grouped(epoch.pass) + " of " + Grouped(epoch.passes);
  if (epoch.exhausted) return text + ", exhausted";
  return text + ", " + Grouped(epoch.remaining) + " of " + Grouped(epoch.items) + " remain";
}

void PrintPriorityTables(const TableSummary& table, std::ostream* out) {
  TextTable rows({"priority table", "items", "drawable", "draws", "max priority", "scale",
                  "selector", "new items", "items are", "limits", "inserts", "samples", "deletes",
                  "exhausted"});
  for (const PriorityTableSummary& one : table.priority_tables) {
    const auto& [spec, stats] = one;
    rows.Add({spec.name, Grouped(stats.items), Grouped(stats.drawable_items), Grouped(stats.draws),
              NumberText(static_cast<double>(stats.max_priority)),
              "2^" + std::to_string(stats.scale_shift), SelectorText(one), InitialText(spec),
              ItemsText(spec), stats.limiter.limits, Grouped(stats.limiter.inserts),
              Grouped(stats.limiter.samples), Grouped(stats.limiter.deletes),
              Grouped(stats.limiter.exhausted)});
  }
  if (rows.empty()) return;
  *out << '\n';
  rows.Print(out);
  for (const auto& [spec, stats] : table.priority_tables) {
    if (spec.item != ItemKind::kGroup) continue;
    const GroupStats& groups = stats.groups;
    *out << "  " << spec.name << ": " << Counted(groups.ready, "group") << " ready ("
         << Grouped(groups.complete) << " complete, " << Grouped(groups.sealed_by_hand)
         << " sealed by hand, " << Grouped(groups.sealed_by_deadline) << " by deadline, "
         << Grouped(groups.taking) << " still taking members), " << Grouped(groups.waiting)
         << " waiting; " << Counted(groups.members, "member") << '\n';
  }
  for (const auto& [spec, stats] : table.priority_tables) {
    if (spec.filter.empty()) continue;
    *out << "  " << spec.name << ' ' << Word(spec.filter_action) << "s what fails "
         << Printable(spec.filter) << ": " << Counted(stats.filtered_items, "item") << '\n';
  }
}

void PrintTable(const TableSummary& table, std::ostream* out) {
  const TableStats& stats = table.stats;
  *out << "\ntable " << table.spec.name << " (number " << table.id
       << "): " << Counted(stats.steps, "step") << " in "
       << Counted(stats.trajectories, "trajectory") << " (" << Grouped(table.open) << " open, "
       << Grouped(table.closed) << " closed, " << Grouped(table.orphaned) << " orphaned)\n"
       << "  pages     " << Grouped(stats.pages) << " of " << Counted(table.steps_per_page, "row")
       << ", filled to " << NumberText(100 * table.fill(), 3)
       << " %: " << BytesText(stats.frame_bytes) << " of frames for " << BytesText(stats.row_bytes)
       << " of rows (" << NumberText(table.frame_bytes_per_row_byte(), 3) << " times)\n"
       << "  capacity  " << CapacityText(table.spec) << '\n'
       << "  time      " << TimesText(table.spec) << '\n'
       << "  kind      " << (table.spec.stream ? "streams" : "episodes")
       << (table.spec.final_row ? " with a final row" : " without a final row") << '\n';
  if (!table.spec.groups.empty()) *out << "  groups    " << GroupsText(table.spec) << '\n';
  *out << '\n';
  PrintColumns(table.spec, out);
  PrintPriorityTables(table, out);
  PrintTablePlaces(table.places, out);
}

void PrintTags(const std::vector<Tag>& tags, std::ostream* out) {
  TextTable rows({"tag", "LSN", "written", "blob"});
  for (const Tag& tag : tags) {
    rows.Add({Printable(tag.name), Grouped(tag.lsn), TimeText(tag.created_us),
              tag.damaged ? "DAMAGED" : BytesText(tag.blob.size())});
  }
  if (rows.empty()) return;
  *out << '\n';
  rows.Print(out);
}

std::string EndText(const RecoveryReport& recovery) {
  if (!recovery.damage.ok()) return "damaged";
  if (recovery.clean) return "closed cleanly";
  return recovery.end == 0 ? "nothing was ever logged" : "not closed: its owner died";
}

void PrintSummary(const StoreFiles& files, const StoreSummary& summary, std::ostream* out) {
  const RecoveryReport& recovery = summary.recovery;
  const wal::Manifest& manifest = summary.manifest;
  *out << Printable(files.directory) << '\n'
       << "  format    " << wal::kFormatVersion << ", uuid " << wal::UuidText(manifest.uuid)
       << ", opened " << Counted(manifest.epoch.open, "time") << " for writing\n"
       << "  log       LSN " << Grouped(recovery.start) << " to " << Grouped(recovery.end) << ", "
       << BytesText(recovery.end - recovery.start) << " in "
       << Counted(summary.segment_files, "file") << " of " << BytesText(manifest.segment_bytes)
       << ", ring of " << BytesText(manifest.ring_bytes) << '\n'
       << "  recovery  " << Counted(recovery.records, "record") << " in "
       << SecondsText(recovery.seconds) << ", " << Grouped(recovery.ring_records)
       << " only in the ring; " << EndText(recovery) << '\n';
  PrintStorePlaces(summary.stats, out);
  if (recovery.damaged_pages > 0) {
    *out << "  DAMAGE    " << Counted(recovery.damaged_pages, "damaged page")
         << ": see 'geardb verify'\n";
  }
  if (!recovery.damage.ok()) {
    *out << "  DAMAGE    what follows is the state before it: "
         << Printable(recovery.damage.message()) << '\n';
  } else if (!recovery.note.empty())
    *out << "  note      " << Printable(recovery.note) << '\n';
  for (const TableSummary& table : summary.tables) PrintTable(table, out);
  PrintTags(summary.tags, out);
  PrintActivity(summary.activity, out);
}

void WriteColumn(const Column& column, JsonWriter* json) {
  json->BeginObject();
  json->Field("name", column.name);
  json->Field("dtype", DTypeName(column.dtype));
  json->Key("shape");
  json->BeginArray();
  for (const int64_t dim : column.shape.dims()) json->Number(dim);
  json->EndArray();
  json->Field("kind", Word(column.kind));
  json->Field("in_final_row", column.in_final_row);
  json->Field("group", column.group);
  json->Field("default", column.default_value);
  json->Field("compression", CompressionName(column.compression));
  json->EndObject();
}

void WriteGroup(const ColumnGroup& group, JsonWriter* json) {
  json->BeginObject();
  json->Field("name", group.name);
  json->Field("late", group.late);
  json->Field("volatile", group.is_volatile);
  json->EndObject();
}

/// What is of another kind of limiter is null.
void WriteLimiter(const PriorityTableSpec& spec, JsonWriter* json) {
  const RateLimit& limiter = spec.limiter;
  const bool ratio = limiter.kind == LimiterKind::kRatio;
  const bool queue = limiter.kind == LimiterKind::kQueue || limiter.kind == LimiterKind::kStack;
  const auto field = [json](std::string_view key, bool has, auto value) {
    json->Key(key);
    has ? json->Number(value) : json->Null();
  };
  json->Key("limiter");
  json->BeginObject();
  json->Field("kind", Word(limiter.kind));
  field("min_size", !queue, limiter.min_size);
  field("samples_per_insert", ratio, limiter.samples_per_insert);
  field("error_buffer", ratio, limiter.error_buffer);
  field("capacity", queue, limiter.capacity);
  json->EndObject();
  json->Field("max_times_sampled", spec.max_times_sampled);
  json->Field("remove_when_exhausted", spec.remove_when_exhausted.value_or(queue));
}

void WriteDrawGroups(const GroupSpec& spec, const GroupStats& stats, JsonWriter* json) {
  json->Key("group");
  json->BeginObject();
  json->Field("key", spec.key);
  json->Field("count", spec.count);
  json->Field("at_least", spec.at_least == 0 ? spec.count : spec.at_least);
  json->Field("deadline_ms", spec.deadline_ms);
  json->Field("waiting", stats.waiting);
  json->Field("ready", stats.ready);
  json->Field("members", stats.members);
  json->Field("taking", stats.taking);
  json->Field("complete", stats.complete);
  json->Field("sealed_by_hand", stats.sealed_by_hand);
  json->Field("sealed_by_deadline", stats.sealed_by_deadline);
  json->EndObject();
}

void WritePriorityTable(const PriorityTableSummary& summary, JsonWriter* json) {
  const auto& [spec, stats] = summary;
  json->BeginObject();
  json->Field("name", spec.name);
  json->Field("item", Word(spec.item));
  if (spec.item == ItemKind::kWindow) {
    json->Key("window");
    json->BeginObject();
    json->Field("before", spec.window.extent.before);
    json->Field("length", spec.window.extent.length);
    json->Field("after", spec.window.extent.after);
    json->Field("stride", spec.window.stride);
    json->Field("stride_from_end", spec.window.stride_from_end);
    json->Field("left", Word(spec.window.left));
    json->Field("right", Word(spec.window.right));
    json->Field("cross_ends", spec.window.cross_ends);
    json->EndObject();
  }
  if (spec.item == ItemKind::kGroup) WriteDrawGroups(spec.group, stats.groups, json);
  json->Field("selector", Word(spec.selector));
  if (spec.selector == SelectorKind::kEpoch) {
    json->Key("epoch");
    json->BeginObject();
    json->Field("epoch", stats.epoch.epoch);
    json->Field("pass", stats.epoch.pass);
    json->Field("passes", stats.epoch.passes);
    json->Field("items", stats.epoch.items);
    json->Field("remaining", stats.epoch.remaining);
    json->Field("exhausted", stats.epoch.exhausted);
    json->Field("remove_covered", spec.epoch.remove_covered);
    json->EndObject();
  }
  if (!spec.filter.empty()) {
    json->Key("filter");
    json->BeginObject();
    json->Field("text", spec.filter);
    json->Field("action", Word(spec.filter_action));
    json->Field("items", stats.filtered_items);
    json->EndObject();
  }
  json->Field("alpha", spec.alpha);
  json->Field("initial", InitialText(spec));
  json->Field("seed", spec.seed);
  json->Field("items", stats.items);
  json->Field("drawable_items", stats.drawable_items);
  json->Field("draws", stats.draws);
  json->Field("max_priority", stats.max_priority);
  json->Field("scale_shift", stats.scale_shift);
  json->Field("limits", stats.limiter.limits);
  WriteLimiter(spec, json);
  json->Field("inserts", stats.limiter.inserts);
  json->Field("samples", stats.limiter.samples);
  json->Field("deletes", stats.limiter.deletes);
  json->Field("deleted_unsampled", stats.limiter.deleted_unsampled);
  json->Field("exhausted", stats.limiter.exhausted);
  json->EndObject();
}

void WriteTable(const TableSummary& table, JsonWriter* json) {
  const TableSpec& spec = table.spec;
  json->BeginObject();
  json->Field("name", spec.name);
  json->Field("id", table.id);
  json->Field("final_row", spec.final_row);
  json->Field("stream", spec.stream);
  json->Field("steps_per_page", table.steps_per_page);
  json->Field("trajectories_max", spec.trajectories_max);
  json->Field("steps_max", spec.steps_max);
  json->Field("bytes_max", spec.bytes_max);
  json->Field("ttl_ms", spec.ttl_ms);
  json->Field("orphan_timeout_ms", spec.orphan_timeout_ms);
  json->Field("remover", Word(spec.remover));
  json->Field("remover_priority_table", spec.remover_priority_table);
  json->Field("remover_seed", spec.remover_seed);
  json->Key("columns");
  json->BeginArray();
  for (const Column& column : spec.columns) WriteColumn(column, json);
  json->EndArray();
  json->Key("groups");
  json->BeginArray();
  for (const ColumnGroup& group : spec.groups) WriteGroup(group, json);
  json->EndArray();
  json->Field("steps", table.stats.steps);
  json->Field("trajectories", table.stats.trajectories);
  json->Field("open", table.open);
  json->Field("closed", table.closed);
  json->Field("orphaned", table.orphaned);
  json->Field("pages", table.stats.pages);
  json->Field("frame_bytes", table.stats.frame_bytes);
  json->Field("row_bytes", table.stats.row_bytes);
  json->Field("fill", table.fill());
  json->Field("frame_bytes_per_row_byte", table.frame_bytes_per_row_byte());
  WriteTablePlaces(table.places, json);
  json->Key("priority_tables");
  json->BeginArray();
  for (const auto& priorities : table.priority_tables) WritePriorityTable(priorities, json);
  json->EndArray();
  json->EndObject();
}

void WriteRecovery(const RecoveryReport& recovery, JsonWriter* json) {
  json->Key("recovery");
  json->BeginObject();
  json->Field("records", recovery.records);
  json->Field("bytes", recovery.bytes);
  json->Field("ring_records", recovery.ring_records);
  json->Field("orphaned", recovery.orphaned);
  json->Field("damaged_pages", recovery.damaged_pages);
  json->Field("damaged_priorities", recovery.damaged_priorities);
  json->Field("damaged_tags", recovery.damaged_tags);
  json->Field("clean", recovery.clean);
  json->Field("seconds", recovery.seconds);
  json->Field("note", recovery.note);
  json->Field("damage", recovery.damage.message());
  json->EndObject();
}

void WriteSummary(const StoreFiles& files, const StoreSummary& summary, JsonWriter* json) {
  const wal::Manifest& manifest = summary.manifest;
  json->BeginObject();
  json->Field("directory", files.directory);
  json->Field("running", false);
  WriteManifest(manifest, json);
  json->Key("log");
  json->BeginObject();
  json->Field("start", summary.recovery.start);
  json->Field("end", summary.recovery.end);
  json->Field("segment_bytes", manifest.segment_bytes);
  json->Field("segment_files", summary.segment_files);
  json->Field("ring_bytes", manifest.ring_bytes);
  WriteLogPlaces(summary.stats, json);
  json->EndObject();
  WriteCold(summary.stats.cold, json);
  WriteActivity(summary.activity, json);
  WriteRecovery(summary.recovery, json);
  json->Key("tables");
  json->BeginArray();
  for (const TableSummary& table : summary.tables) WriteTable(table, json);
  json->EndArray();
  json->Key("tags");
  json->BeginArray();
  for (const Tag& tag : summary.tags) {
    json->BeginObject();
    json->Field("name", tag.name);
    json->Field("lsn", tag.lsn);
    json->Field("created_us", tag.created_us);
    json->Field("blob_bytes", tag.blob.size());
    json->Field("damaged", tag.damaged);
    json->EndObject();
  }
  json->EndArray();
  json->EndObject();
}

}  // namespace

Result<int> RunSummary(const Invocation& invocation) {
  auto taken = TakeFiles(invocation);
  if (taken.status().code() == StatusCode::kFailedPrecondition) {
    return ShowRunning(invocation, taken.status().message());
  }
  GEARDB_ASSIGN_OR_RETURN(const StoreFiles files, std::move(taken));
  GEARDB_ASSIGN_OR_RETURN(const auto database, OpenStore(invocation, files));
  GEARDB_ASSIGN_OR_RETURN(const StoreSummary summary, Summarize(files, database.get()));
  const Status damage = DamageOf(*database);
  if (!invocation.json) {
    // Says itself what is damaged.
    PrintSummary(files, summary, invocation.out);
    return damage.ok() ? kExitGood : kExitDamage;
  }
  JsonWriter json(invocation.out);
  WriteSummary(files, summary, &json);
  return WarnOfDamage(invocation, damage);
}

}  // namespace geardb::cli
