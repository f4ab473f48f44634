// geardb head: the first and last trajectories of a table, or the rows of one of them.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tools/geardb/command.h"
#include "tools/geardb/json_writer.h"
#include "tools/geardb/open_store.h"
#include "tools/geardb/text_table.h"
#include "tools/geardb/values.h"
#include "tools/geardb/words.h"

namespace geardb::cli {
namespace {

/// Which of `size` things are shown: [0, front) and [back, size).
struct Ends {
  Ends(uint64_t size, uint64_t count) : front(std::min(size, count)) {
    back = std::max(front, size - std::min(size, count));
  }
  uint64_t front = 0;
  uint64_t back = 0;
};

/// Columns that were asked for; all of the table when none were. NotFound names those there are.
Result<std::vector<Column>> ChosenColumns(const Invocation& invocation, const TableSpec& spec) {
  const std::vector<std::string> names = invocation.arguments.Names("columns");
  if (names.empty()) return spec.columns;
  std::vector<Column> chosen;
  for (const std::string& name : names) {
    const auto found = std::find_if(spec.columns.begin(), spec.columns.end(),
                                    [&](const Column& column) { return column.name == name; });
    if (found == spec.columns.end()) {
      std::string list;
      for (const Column& column : spec.columns) list += (list.empty() ? "" : ", ") + column.name;
      return Status::NotFound("table '", spec.name, "' has no column '", name, "'; it has ", list);
    }
    chosen.push_back(*found);
  }
  return chosen;
}

/// Those per step, or those per trajectory.
std::vector<Column> OfKind(const std::vector<Column>& columns, ColumnKind kind) {
  std::vector<Column> chosen;
  for (const Column& column : columns) {
    if (IsPerStep(column.kind) == IsPerStep(kind)) chosen.push_back(column);
  }
  return chosen;
}

std::string CellText(const Column& column, const TensorView& value) {
  const bool any = column.kind == ColumnKind::kRagged || column.kind == ColumnKind::kBlob;
  return any ? AnyText(value) : ValueText(value);
}

Result<std::vector<ColumnRows>> ReadColumns(const Table& table, TrajectoryId id,
                                            const std::vector<Column>& columns,
                                            const RowRange& range) {
  if (columns.empty()) return std::vector<ColumnRows>();
  std::vector<std::string_view> names;
  for (const Column& column : columns) names.push_back(column.name);
  return table.Read(id, names, range);
}

// ---- A list of trajectories.

struct ListedTrajectory {
  TrajectoryRecord record;
  std::vector<ColumnRows> values;  ///< Of the per-trajectory columns.
};

/// Of those that pass the filter, the first and last.
struct List {
  uint64_t all = 0;  ///< That pass.
  std::vector<ListedTrajectory> shown;
};

Result<List> ListTrajectories(const Table& table, const std::vector<Column>& columns,
                              const Filter& filter, uint64_t count) {
  GEARDB_ASSIGN_OR_RETURN(const std::vector<TrajectoryRecord> records, table.Scan(filter));
  const Ends ends(records.size(), count);
  List list{.all = records.size(), .shown = {}};
  for (uint64_t i = 0; i < records.size(); ++i) {
    if (i >= ends.front && i < ends.back) continue;
    ListedTrajectory one{.record = records[i], .values = {}};
    GEARDB_ASSIGN_OR_RETURN(one.values, ReadColumns(table, one.record.id, columns, {}));
    list.shown.push_back(std::move(one));
  }
  return list;
}

std::string StateText(const TrajectoryRecord& record) {
  return std::string(record.state == TrajectoryState::kClosed ? Word(record.end)
                                                              : Word(record.state));
}

void PrintTrajectories(const List& list, const std::vector<Column>& columns, std::ostream* out) {
  std::vector<std::string> header = {"id", "steps", "rows", "state", "begun", "sampled"};
  for (const Column& column : columns) header.push_back(column.name);
  TextTable rows(header, 0);
  for (const ListedTrajectory& listed : list.shown) {
    const TrajectoryRecord& record = listed.record;
    std::string range = std::to_string(record.first_row);
    range +=
        record.rows_end > record.first_row + 1 ? "…" + std::to_string(record.rows_end - 1) : "";
    std::vector<std::string> row = {
        std::to_string(record.id),
        Grouped(static_cast<uint64_t>(record.steps_end - record.first_row)),
        range,
        StateText(record),
        TimeText(record.created_us),
        Grouped(record.times_sampled)};
    for (size_t c = 0; c < columns.size(); ++c) {
      row.push_back(CellText(columns[c], listed.values[c].view()));
    }
    rows.Add(std::move(row));
  }
  rows.Print(out);
  if (list.shown.size() < list.all) {
    *out << "the first and last of " << Counted(list.all, "trajectory") << "; -n shows more\n";
  }
}

void WriteRecord(const TrajectoryRecord& record, JsonWriter* json) {
  json->Field("id", record.id);
  json->Field("state", Word(record.state));
  json->Field("end", Word(record.end));
  json->Field("first_row", record.first_row);
  json->Field("rows_end", record.rows_end);
  json->Field("steps_end", record.steps_end);
  json->Field("created_us", record.created_us);
  json->Field("times_sampled", record.times_sampled);
}

void WriteValues(const std::vector<ColumnRows>& values, JsonWriter* json) {
  json->Key("columns");
  json->BeginObject();
  for (const ColumnRows& value : values) {
    json->Key(value.column);
    WriteValue(value.view(), json);
  }
  json->EndObject();
}

Status ShowTrajectories(const Invocation& invocation, const Table& table,
                        const std::vector<Column>& columns) {
  const std::vector<Column> shown = OfKind(columns, ColumnKind::kPerTrajectory);
  GEARDB_ASSIGN_OR_RETURN(const Filter filter, FilterOf(invocation));
  GEARDB_ASSIGN_OR_RETURN(
      const List list, ListTrajectories(table, shown, filter, invocation.arguments.Count("count")));
  if (!invocation.json) {
    PrintTrajectories(list, shown, invocation.out);
    return Status::Ok();
  }
  JsonWriter json(invocation.out);
  json.BeginObject();
  json.Field("table", table.spec().name);
  if (invocation.arguments.Has("filter")) json.Field("filter", filter.ToString());
  json.Field("trajectories", list.all);
  json.Key("shown");
  json.BeginArray();
  for (const ListedTrajectory& one : list.shown) {
    json.BeginObject();
    WriteRecord(one.record, &json);
    WriteValues(one.values, &json);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return Status::Ok();
}

// ---- The rows of one trajectory.

/// Rows [first, first + n) of the per-step columns.
struct RowBlock {
  int64_t first = 0;
  int64_t count = 0;
  std::vector<ColumnRows> columns;
};

Result<RowBlock> ReadBlock(const Table& table, TrajectoryId id, const std::vector<Column>& columns,
                           const RowRange& range) {
  RowBlock block;
  block.first = *range.begin;
  block.count = *range.end - *range.begin;
  GEARDB_ASSIGN_OR_RETURN(block.columns, ReadColumns(table, id, columns, range));
  return block;
}

void PrintBlocks(const TrajectoryRecord& record, const std::vector<RowBlock>& blocks,
                 const std::vector<Column>& columns, std::ostream* out) {
  const bool has_final = record.rows_end > record.steps_end;
  std::vector<std::string> header = {"row"};
  for (const Column& column : columns) header.push_back(column.name);
  if (has_final) header.push_back("");
  TextTable rows(header, 0);
  for (size_t b = 0; b < blocks.size(); ++b) {
    const RowBlock& block = blocks[b];
    if (b > 0 && blocks[b - 1].first + blocks[b - 1].count < block.first) rows.Add({"…"});
    for (int64_t i = 0; i < block.count; ++i) {
      std::vector<std::string> row = {std::to_string(block.first + i)};
      for (size_t c = 0; c < columns.size(); ++c) {
        row.push_back(CellText(columns[c], ValueAt(block.columns[c], i)));
      }
      if (has_final) row.push_back(block.first + i >= record.steps_end ? "final" : "");
      rows.Add(std::move(row));
    }
  }
  rows.Print(out);
}

void WriteBlocks(const TrajectoryRecord& record, const std::vector<RowBlock>& blocks,
                 JsonWriter* json) {
  json->Key("rows");
  json->BeginArray();
  for (const RowBlock& block : blocks) {
    for (int64_t i = 0; i < block.count; ++i) {
      json->BeginObject();
      json->Field("row", block.first + i);
      json->Field("final", block.first + i >= record.steps_end);
      json->Key("columns");
      json->BeginObject();
      for (const ColumnRows& column : block.columns) {
        json->Key(column.column);
        WriteValue(ValueAt(column, i), json);
      }
      json->EndObject();
      json->EndObject();
    }
  }
  json->EndArray();
}

Status ShowRows(const Invocation& invocation, const Table& table,
                const std::vector<Column>& columns) {
  const TrajectoryId id = invocation.arguments.Count("id");
  GEARDB_ASSIGN_OR_RETURN(const TrajectoryRecord record, table.Find(id));
  const std::vector<Column> per_step = OfKind(columns, ColumnKind::kPerStep);
  const std::vector<Column> whole = OfKind(columns, ColumnKind::kPerTrajectory);
  GEARDB_ASSIGN_OR_RETURN(const auto values, ReadColumns(table, id, whole, {}));
  const Ends ends(static_cast<uint64_t>(record.rows_end - record.first_row),
                  invocation.arguments.Count("count"));
  const auto front_end = record.first_row + static_cast<int64_t>(ends.front);
  const auto back = record.first_row + static_cast<int64_t>(ends.back);
  std::vector<RowBlock> blocks(2);
  GEARDB_ASSIGN_OR_RETURN(blocks[0], ReadBlock(table, id, per_step, {record.first_row, front_end}));
  GEARDB_ASSIGN_OR_RETURN(blocks[1], ReadBlock(table, id, per_step, {back, record.rows_end}));
  if (invocation.json) {
    JsonWriter json(invocation.out);
    json.BeginObject();
    json.Field("table", table.spec().name);
    WriteRecord(record, &json);
    WriteValues(values, &json);
    WriteBlocks(record, blocks, &json);
    json.EndObject();
    return Status::Ok();
  }
  *invocation.out << "trajectory " << record.id << ": "
                  << Counted(static_cast<uint64_t>(record.steps_end - record.first_row), "step")
                  << ", " << StateText(record) << ", begun " << TimeText(record.created_us)
                  << ", sampled " << Counted(record.times_sampled, "time") << '\n';
  for (size_t c = 0; c < whole.size(); ++c) {
    *invocation.out << "  " << whole[c].name << " = " << CellText(whole[c], values[c].view())
                    << '\n';
  }
  PrintBlocks(record, blocks, per_step, invocation.out);
  return Status::Ok();
}

}  // namespace

Result<int> RunHead(const Invocation& invocation) {
  GEARDB_ASSIGN_OR_RETURN(const auto files, OpenFiles(invocation));
  GEARDB_ASSIGN_OR_RETURN(const auto database, OpenStore(invocation, files));
  // First of all, since it may be why something is not found.
  const int code = WarnOfDamage(invocation, DamageOf(*database));
  GEARDB_ASSIGN_OR_RETURN(const std::string name, TableName(invocation, *database));
  GEARDB_ASSIGN_OR_RETURN(const auto table, database->OpenTable(name));
  GEARDB_ASSIGN_OR_RETURN(const auto columns, ChosenColumns(invocation, table->spec()));
  if (invocation.arguments.Has("id") && invocation.arguments.Has("filter")) {
    return Status::InvalidArgument("--id names one trajectory, --filter chooses among all");
  }
  const Status shown = invocation.arguments.Has("id")
                           ? ShowRows(invocation, *table, columns)
                           : ShowTrajectories(invocation, *table, columns);
  if (!shown.ok()) return shown;
  return code;
}

}  // namespace geardb::cli
