// Everything that can be seen without drawing.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/differential/runner.h"

namespace geardb::differential {
namespace {

double AsNumber(const Column& column, const Bytes& bytes) {
  if (column.dtype == DType::kBool) return bytes[0] == std::byte{0} ? 0 : 1;
  int32_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

/// The row that a byte of their values is of.
int64_t RowAt(const PlainTrajectory& trajectory, const std::vector<Value>& values, size_t byte) {
  int64_t row = trajectory.first_row();
  for (size_t i = 0; i < values.size() && byte >= values[i]->size(); ++i, ++row) {
    byte -= values[i]->size();
  }
  return row;
}

}  // namespace

void Runner::CompareAll() {
  for (const auto& live : tables_) {
    if (!different()) CompareTable(live.get());
  }
  if (!different()) CompareTags();
  if (!different()) ++result_.counts.done[op_];
}

void Runner::CompareTable(LiveTable* live) {
  const PlainTable& plain = live->plain;
  const Table& table = *live->table;
  std::vector<std::string> found, expected;
  for (const Column& column : table.spec().columns) found.push_back(column.name);
  for (const PlainColumn& column : plain.columns) expected.push_back(column.column.name);
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  if (!Same("columns", found, expected)) return;
  expected.clear();
  for (const PlainPriority& priority : plain.priorities) expected.push_back(priority.spec.name);
  if (!Same("priority tables", table.PriorityTables(), expected)) return;
  uint64_t steps = 0, open = 0, pages = 0;
  for (const auto& [id, trajectory] : plain.trajectories) {
    const int64_t page_rows = plain.spec.steps_per_page;
    steps += static_cast<uint64_t>(trajectory.steps());
    open += trajectory.open() ? 1u : 0u;
    pages += static_cast<uint64_t>((trajectory.rows_end() - 1) / page_rows -
                                   trajectory.first_row() / page_rows + 1);
  }
  Same("steps", table.StepCount(), steps);
  Same("open", table.Stats().open_trajectories, open);
  Same("pages", table.Places()[0].pages, pages);
  const std::vector<TrajectoryRecord> records = table.Scan(ScanOptions{});
  std::vector<TrajectoryId> ids, there;
  for (const TrajectoryRecord& record : records) ids.push_back(record.id);
  for (const auto& [id, trajectory] : plain.trajectories) there.push_back(id);
  if (!Same("ids", ids, there)) return;
  for (const TrajectoryRecord& record : records) {
    CompareRecord(live, record);
    if (different()) return;
  }
  Same("no trajectory", table.Find(plain.last_id + 1).status().code(), StatusCode::kNotFound);
  for (size_t p = 0; p < plain.priorities.size() && !different(); ++p) ComparePriority(live, p);
}

void Runner::CompareRecord(LiveTable* live, const TrajectoryRecord& record) {
  const PlainTrajectory& trajectory = live->plain.trajectories.at(record.id);
  Same("state", record.state, trajectory.state);
  Same("end", record.end, trajectory.end);
  Same("first row", record.first_row, trajectory.first_row());
  Same("rows end", record.rows_end, trajectory.rows_end());
  Same("steps end", record.steps_end, trajectory.steps_end());
  Same("created", record.created_us, trajectory.created_us);
  Same("times sampled", record.times_sampled, trajectory.times_sampled);
  for (const ColumnGroup& group : live->plain.groups) {
    const auto filled = live->table->Filled(record.id, group.name);
    if (!group.late) {
      Same("filled", filled.status().code(), StatusCode::kInvalidArgument);
      continue;
    }
    if (!filled.ok()) return Differ("filled", filled.status().ToString());
    const auto expected = trajectory.filled.find(group.name);
    const int64_t end = expected == trajectory.filled.end() ? 0 : expected->second;
    Same("filled", std::max(*filled, trajectory.first_row()),
         std::max(end, trajectory.first_row()));
  }
  if (!different()) CompareRows(live, trajectory);
  if (!different()) CompareSlice(live, trajectory);
}

void Runner::CompareRows(LiveTable* live, const PlainTrajectory& trajectory) {
  const auto read = live->table->Read(trajectory.id, {}, {});
  if (!read.ok()) return Differ("read", read.status().ToString());
  size_t per_step = 0;
  for (const PlainColumn& column : live->plain.columns) per_step += column.per_step() ? 1u : 0u;
  if (!Same("columns read", read->size(), per_step)) return;
  for (const ColumnRows& rows : *read) {
    const PlainColumn& column = *live->plain.FindColumn(rows.column);
    Bytes expected;
    std::vector<Value> values;
    for (const PlainRow& row : trajectory.rows) {
      values.push_back(live->plain.ValueOf(row, column));
      expected.insert(expected.end(), values.back()->begin(), values.back()->end());
    }
    if (column.any_length()) {
      const auto offsets = OffsetsOf<int64_t>(column.column, values);
      if (!Same("offsets of " + rows.column, rows.offsets, offsets)) return;
    }
    if (rows.bytes == expected) continue;
    size_t at = 0;
    while (at < std::min(rows.bytes.size(), expected.size()) && rows.bytes[at] == expected[at]) {
      ++at;
    }
    return Differ("rows", "column " + rows.column + " of trajectory " +
                              std::to_string(trajectory.id) + " differs first in row " +
                              std::to_string(RowAt(trajectory, values, at)));
  }
  result_.counts.rows_compared += trajectory.rows.size();
  for (const PlainColumn& column : live->plain.columns) {
    if (column.per_step()) continue;
    const std::string_view name = column.column.name;
    const auto value = live->table->Read(trajectory.id, {&name, 1}, {});
    if (!value.ok()) return Differ("read", value.status().ToString());
    if ((*value)[0].bytes == *live->plain.ValueOf(trajectory, column)) continue;
    return Differ("value", "column " + column.column.name + " of trajectory " +
                               std::to_string(trajectory.id));
  }
}

/// Some of the rows, in steps or from the last on.
void Runner::CompareSlice(LiveTable* live, const PlainTrajectory& trajectory) {
  const auto choice = static_cast<int64_t>(trajectory.id);
  RowRange range{.step = choice % 5 == 0 ? -1 : 1 + choice % 2};
  int64_t begin = trajectory.first_row();
  int64_t end = trajectory.rows_end();
  if (range.step > 0) {
    range.begin = begin += choice % 3;
    range.end = choice % 4 == 0 ? -1 : end + choice % 7;
    if (choice % 4 == 0) --end;
  }
  const auto read = live->table->Read(trajectory.id, {}, range);
  if (!read.ok()) return Differ("read of a range", read.status().ToString());
  std::vector<int64_t> rows;
  for (int64_t row = begin; row < end; row += std::abs(range.step)) rows.push_back(row);
  if (range.step < 0) std::reverse(rows.begin(), rows.end());
  for (const ColumnRows& column : *read) {
    Bytes expected;
    for (const int64_t row : rows) {
      const auto at = static_cast<size_t>(row - trajectory.first_row());
      const Value value =
          live->plain.ValueOf(trajectory.rows[at], *live->plain.FindColumn(column.column));
      expected.insert(expected.end(), value->begin(), value->end());
    }
    if (column.bytes == expected) continue;
    return Differ("range",
                  "column " + column.column + " of trajectory " + std::to_string(trajectory.id));
  }
}

/// Those that one step has removed, in any order.
void Runner::CompareRemovals(LiveTable* live) {
  const auto read = live->table->ReadRemovals(live->removals_seen);
  if (!read.ok()) return Differ("removals", read.status().ToString());
  const auto& all = live->plain.removals;
  std::vector<std::pair<TrajectoryId, std::string>> found, expected;
  const auto named = [](const Removal& removal) {
    return std::string(RemovalReasonName(removal.reason)) + " " + removal.priority_table;
  };
  for (const Removal& removal : read->removals) found.emplace_back(removal.id, named(removal));
  for (size_t i = live->removals_seen; i < all.size(); ++i) {
    expected.emplace_back(all[i].id, named(all[i]));
    ++result_.counts.removed[RemovalReasonName(all[i].reason)];
  }
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  Same("removals", found, expected);
  live->removals_seen = all.size();
  Same("removals so far", read->next, live->removals_seen);
}

void Runner::CompareTags() {
  const std::vector<Tag> tags = database_->Tags();
  if (!Same("tags", tags.size(), tags_.size())) return;
  for (size_t i = 0; i < tags.size(); ++i) {
    Same("tag", tags[i].name, tags_[i].first);
    if (tags[i].blob != tags_[i].second) Differ("blob", "of tag '" + tags[i].name + "'");
  }
  if (tags_.empty()) {
    Same("no tag", database_->LastTag().status().code(), StatusCode::kNotFound);
  } else {
    const auto last = database_->LastTag();
    if (!last.ok()) return Differ("last tag", last.status().ToString());
    Same("last tag", last->name, tags_.back().first);
  }
}

/// Rows of two columns, from anywhere.
void Runner::Gather(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr || live->plain.trajectories.empty()) return;
  Choices choices(step.numbers[1]);
  std::vector<RowId> rows;
  std::vector<const PlainRow*> plain_rows;
  for (uint64_t i = choices.Below(6) + 1; i > 0; --i) {
    const PlainTrajectory& trajectory = *TrajectoryAt(live, Mixed(step.numbers[1], i));
    const auto there = static_cast<uint64_t>(trajectory.rows_end() - trajectory.first_row());
    const int64_t row =
        trajectory.first_row() + static_cast<int64_t>(Mixed(step.numbers[1], 99 + i) % there);
    plain_rows.push_back(&trajectory.row(row));
    rows.push_back({trajectory.id, i % 3 == 0 ? row - trajectory.rows_end() : row});
  }
  if (choices.OneIn(5)) {
    rows.push_back({rows[0].id, 1'000'000});
    const GatherColumn asked{.column = "act", .rows = rows};
    const bool there = live->plain.FindColumn("act") != nullptr;
    SameCode("no row", live->table->Gather({&asked, 1}).status(),
             there ? StatusCode::kInvalidArgument : StatusCode::kNotFound);
    return;
  }
  std::vector<const PlainColumn*> columns;
  std::vector<GatherColumn> asked;
  for (const PlainColumn& column : live->plain.columns) {
    if (!column.per_step() || column.any_length()) continue;
    columns.push_back(&column);
    asked.push_back({.column = column.column.name, .rows = rows});
  }
  const auto gathered = live->table->Gather(asked);
  if (!SameCode("gather", gathered.status(), StatusCode::kOk)) return;
  for (size_t c = 0; c < columns.size(); ++c) {
    Bytes expected;
    for (const PlainRow* row : plain_rows) {
      const Value value = live->plain.ValueOf(*row, *columns[c]);
      expected.insert(expected.end(), value->begin(), value->end());
    }
    if ((*gathered)[c].bytes != expected) Differ("bytes", "column " + columns[c]->column.name);
  }
}

void Runner::Scan(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr) return;
  Choices choices(step.numbers[1]);
  const std::string text = FilterKind(&choices, /*standing=*/false);
  const Filter filter = text.empty() ? Filter::All() : Filter::Parse(text).value();
  const auto count = live->table->Count(filter);
  Choices of_options(step.numbers[2]);
  ScanOptions options;
  options.from_id = of_options.Below(4) * 7;
  if (of_options.OneIn(2)) options.end_id = options.from_id + 20;
  if (of_options.OneIn(2)) options.limit = of_options.Below(5);
  if (of_options.OneIn(2)) options.state = static_cast<TrajectoryState>(1 + of_options.Below(3));
  const auto records = live->table->Scan(filter, options);
  const Status check = live->table->Check(filter);
  SameCode("check", records.status(), check.code());
  Same("code", count.status().code(), check.code());
  if (!check.ok()) {
    const bool missing =
        live->plain.FindColumn("goal") == nullptr || live->plain.FindColumn("flag") == nullptr;
    Same("a column is missing", missing, true);
    return;
  }
  uint64_t passing = 0;
  std::vector<TrajectoryId> found, expected;
  for (const TrajectoryRecord& record : *records) found.push_back(record.id);
  for (const auto& [id, trajectory] : live->plain.trajectories) {
    if (!live->plain.Passes(text, trajectory)) continue;
    ++passing;
    const bool asked = id >= options.from_id && id < options.end_id &&
                       (!options.state || trajectory.state == *options.state);
    if (asked && expected.size() < options.limit) expected.push_back(id);
  }
  Same("count", *count, passing);
  Same("ids", found, expected);
}

void Runner::Statistics(const Step& step) {
  LiveTable* const live = TableAt(step.numbers[0]);
  if (live == nullptr) return;
  constexpr std::string_view kColumns[] = {"act", "goal", "flag"};
  const std::string_view name = kColumns[step.numbers[1] % 3];
  const PlainColumn* const column = live->plain.FindColumn(name);
  const Filter filter = Filter::Parse("state == closed").value();
  const auto statistics = live->table->Statistics(name, filter);
  const HistogramBins bins{.count = 7, .low = -5, .high = 30};
  const auto histogram = live->table->Histogram(name, bins, filter);
  if (column == nullptr) {
    SameCode("column", statistics.status(), StatusCode::kNotFound);
    return;
  }
  if (!SameCode("statistics", statistics.status(), StatusCode::kOk)) return;
  if (!SameCode("histogram", histogram.status(), StatusCode::kOk)) return;
  std::vector<double> values;
  for (const auto& [id, trajectory] : live->plain.trajectories) {
    if (!trajectory.closed()) continue;
    if (!column->per_step()) {
      values.push_back(AsNumber(column->column, *live->plain.ValueOf(trajectory, *column)));
      continue;
    }
    for (const PlainRow& row : trajectory.rows) {
      if (row.final) continue;
      values.push_back(AsNumber(column->column, *live->plain.ValueOf(row, *column)));
    }
  }
  Same("values", statistics->count, values.size());
  std::vector<uint64_t> counts(7);
  uint64_t below = 0, above = 0;
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
    if (value < -5) {
      ++below;
    } else if (value > 30) {
      ++above;
    } else {
      ++counts[std::min<size_t>(static_cast<size_t>((value + 5) / 5), 6)];
    }
  }
  Same("histogram", histogram->counts, counts);
  Same("below", histogram->below, below);
  Same("above", histogram->above, above);
  if (values.empty()) return;
  const auto n = static_cast<double>(values.size());
  Same("min", statistics->min, *std::min_element(values.begin(), values.end()));
  Same("max", statistics->max, *std::max_element(values.begin(), values.end()));
  Same("mean", std::abs(statistics->mean - sum / n) < 1e-9 * (1 + std::abs(sum)), true);
  const double variance = std::max(0.0, squares / n - (sum / n) * (sum / n));
  Same("std", std::abs(statistics->std - std::sqrt(variance)) < 1e-5, true);
}

}  // namespace geardb::differential
