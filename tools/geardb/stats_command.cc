// geardb stats: what the values of columns come to.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "tools/geardb/command.h"
#include "tools/geardb/json_writer.h"
#include "tools/geardb/open_store.h"
#include "tools/geardb/text_table.h"

namespace geardb::cli {
namespace {

/// One line of the answer.
struct Summary {
  std::string column;
  ColumnStatistics statistics;
  std::optional<ColumnHistogram> histogram;
};

/// A column as people name it, and as a filter does.
struct Name {
  std::string shown;
  std::string asked;
};

/// Whether each step, or each trajectory, has one number of it.
bool IsScalar(const Column& column) {
  const bool any_length = column.kind == ColumnKind::kRagged || column.kind == ColumnKind::kBlob;
  return column.shape.rank() == 0 && !any_length;
}

/// What was asked for; else all scalar columns, and the length.
std::vector<Name> ColumnsOf(const Invocation& invocation, const TableSpec& spec) {
  std::vector<Name> names;
  for (const std::string& name : invocation.arguments.Names("columns")) {
    names.push_back({name, name});
  }
  if (!names.empty()) return names;
  for (const Column& column : spec.columns) {
    if (IsScalar(column)) names.push_back({column.name, "`" + column.name + "`"});
  }
  names.push_back({"length", "length"});
  return names;
}

Result<Summary> Summarize(const Table& table, const Name& name, const Filter& filter,
                          uint64_t bins) {
  Summary summary{.column = name.shown, .statistics = {}, .histogram = {}};
  GEARDB_ASSIGN_OR_RETURN(summary.statistics, table.Statistics(name.asked, filter));
  const ColumnStatistics& statistics = summary.statistics;
  if (bins == 0 || statistics.count == 0) return summary;
  if (!std::isfinite(statistics.min) || !std::isfinite(statistics.max)) {
    // What is not finite is below or above.
    constexpr double kMost = 1e300;
    const double low = std::isfinite(statistics.min) ? statistics.min : -kMost;
    const double high = std::isfinite(statistics.max) ? statistics.max : kMost;
    GEARDB_ASSIGN_OR_RETURN(
        summary.histogram,
        table.Histogram(name.asked, {.edges = {}, .count = bins, .low = low, .high = high},
                        filter));
    return summary;
  }
  // One value alone has no range; it gets a bin of its own.
  const bool single = statistics.min == statistics.max;
  const double high = single ? std::nextafter(statistics.min, HUGE_VAL) : statistics.max;
  GEARDB_ASSIGN_OR_RETURN(
      summary.histogram,
      table.Histogram(
          name.asked,
          {.edges = {}, .count = single ? 1 : bins, .low = statistics.min, .high = high}, filter));
  return summary;
}

void PrintHistogram(const Summary& summary, std::ostream* out) {
  const ColumnHistogram& histogram = *summary.histogram;
  TextTable rows({summary.column, "up to", "count"}, 2);
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    rows.Add({NumberText(histogram.edges[i]), NumberText(histogram.edges[i + 1]),
              Grouped(histogram.counts[i])});
  }
  *out << '\n';
  rows.Print(out);
}

void Print(const std::vector<Summary>& summaries, uint64_t trajectories, std::ostream* out) {
  *out << Counted(trajectories, "trajectory") << '\n';
  TextTable rows({"column", "count", "NaN", "mean", "std", "min", "max"}, 0);
  for (const Summary& summary : summaries) {
    const ColumnStatistics& one = summary.statistics;
    const bool none = one.count == 0;
    rows.Add({summary.column, Grouped(one.count), Grouped(one.nans),
              none ? "" : NumberText(one.mean), none ? "" : NumberText(one.std),
              none ? "" : NumberText(one.min), none ? "" : NumberText(one.max)});
  }
  rows.Print(out);
  for (const Summary& summary : summaries) {
    if (summary.histogram) PrintHistogram(summary, out);
  }
}

template <typename T>
void WriteArray(std::string_view key, const std::vector<T>& values, JsonWriter* json) {
  json->Key(key);
  json->BeginArray();
  for (const T value : values) json->Number(value);
  json->EndArray();
}

void Write(const std::vector<Summary>& summaries, JsonWriter* json) {
  json->Key("columns");
  json->BeginArray();
  for (const Summary& summary : summaries) {
    json->BeginObject();
    json->Field("column", summary.column);
    json->Field("count", summary.statistics.count);
    json->Field("nans", summary.statistics.nans);
    json->Field("mean", summary.statistics.mean);
    json->Field("std", summary.statistics.std);
    json->Field("min", summary.statistics.min);
    json->Field("max", summary.statistics.max);
    if (summary.histogram) {
      json->Key("histogram");
      json->BeginObject();
      WriteArray("edges", summary.histogram->edges, json);
      WriteArray("counts", summary.histogram->counts, json);
      json->Field("below", summary.histogram->below);
      json->Field("above", summary.histogram->above);
      json->EndObject();
    }
    json->EndObject();
  }
  json->EndArray();
}

}  // namespace

Result<int> RunStats(const Invocation& invocation) {
  GEARDB_ASSIGN_OR_RETURN(const Filter filter, FilterOf(invocation));
  GEARDB_ASSIGN_OR_RETURN(const auto files, OpenFiles(invocation));
  GEARDB_ASSIGN_OR_RETURN(const auto database, OpenStore(invocation, files));
  const int code = WarnOfDamage(invocation, DamageOf(*database));
  GEARDB_ASSIGN_OR_RETURN(const std::string name, TableName(invocation, *database));
  GEARDB_ASSIGN_OR_RETURN(const auto table, database->OpenTable(name));
  GEARDB_ASSIGN_OR_RETURN(const uint64_t trajectories, table->Count(filter));
  std::vector<Summary> summaries;
  for (const Name& column : ColumnsOf(invocation, table->spec())) {
    GEARDB_ASSIGN_OR_RETURN(Summary summary,
                            Summarize(*table, column, filter, invocation.arguments.Count("bins")));
    summaries.push_back(std::move(summary));
  }
  if (!invocation.json) {
    Print(summaries, trajectories, invocation.out);
    return code;
  }
  JsonWriter json(invocation.out);
  json.BeginObject();
  json.Field("table", name);
  json.Field("filter", filter.ToString());
  json.Field("trajectories", trajectories);
  Write(summaries, &json);
  json.EndObject();
  return code;
}

}  // namespace geardb::cli
