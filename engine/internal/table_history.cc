#include "engine/internal/table_history.h"

#include <algorithm>
#include <set>

#include "engine/internal/companion.h"

namespace geardb::engine {
namespace {

Status CheckNumbers(const TableHistory& history) {
  if (history.columns.size() > kColumnNumbersMax) {
    return Status::InvalidArgument(
        "table '", history.options.name, "' would have had ", history.columns.size(),
        " columns, dropped ones included; at most ", kColumnNumbersMax, " are supported");
  }
  if (history.groups.size() >= kColumnGroupNumbersMax) {
    return Status::InvalidArgument("table '", history.options.name, "' would have had ",
                                   history.groups.size() + 1,
                                   " column groups, dropped ones included; at most ",
                                   kColumnGroupNumbersMax, " are supported");
  }
  return Status::Ok();
}

}  // namespace

TableHistory::TableHistory(TableSpec created) : options(std::move(created)) {
  options.steps_per_page = ChooseStepsPerPage(options);
  for (ColumnGroup& group : options.groups) groups.push_back({.group = std::move(group)});
  for (Column& column : options.columns) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const GroupHistory& known) {
      return known.group.name == column.group;
    });
    const auto number = column.group.empty() ? 0 : group - groups.begin() + 1;
    columns.push_back({.column = std::move(column), .group = static_cast<uint32_t>(number)});
  }
  options.columns.clear();
  options.groups.clear();
  options.priority_tables.clear();
}

bool TableHistory::HasGroup(size_t number, uint32_t at) const {
  return std::any_of(columns.begin(), columns.end(), [&](const ColumnHistory& known) {
    return IsPerStep(known.column.kind) && known.group == number && known.IsThere(at);
  });
}

TableSpec TableHistory::SpecAt(uint32_t at) const {
  TableSpec spec = options;
  std::vector<bool> has_group(groups.size() + 1);
  for (const ColumnHistory& known : columns) {
    if (!known.IsThere(at)) continue;
    spec.columns.push_back(known.column);
    if (IsPerStep(known.column.kind)) has_group[known.group] = true;
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    if (has_group[i + 1]) spec.groups.push_back(groups[i].group);
  }
  return spec;
}

Result<TableHistory> WithColumns(const TableHistory& before, std::span<const Column> columns,
                                 std::span<const ColumnGroup> groups) {
  const std::string& table = before.options.name;
  if (columns.empty()) {
    return Status::InvalidArgument("table '", table, "': no columns are to be added");
  }
  TableHistory after = before;
  ++after.version;
  for (const ColumnGroup& group : groups) {
    after.groups.push_back({.group = group, .added = after.version});
  }
  const TableSpec there = before.spec();
  for (const Column& given : columns) {
    ColumnHistory& added =
        after.columns.emplace_back(ColumnHistory{.column = given, .added = after.version});
    if (!IsPerStep(given.kind)) continue;
    if (given.group.empty()) added.column.group = given.name;
    const std::string& name = added.column.group;
    const auto known = std::find_if(there.groups.begin(), there.groups.end(),
                                    [&](const ColumnGroup& group) { return group.name == name; });
    if (known != there.groups.end()) {
      return Status::InvalidArgument("table '", table, "': column '", given.name,
                                     "' cannot be added to group '", name,
                                     "', which is there: columns come in groups of their own");
    }
    const auto first = after.groups.begin() + static_cast<ptrdiff_t>(before.groups.size());
    auto found = std::find_if(first, after.groups.end(),
                              [&](const GroupHistory& group) { return group.group.name == name; });
    if (found == after.groups.end()) {
      if (!given.group.empty()) {
        return Status::InvalidArgument("column '", given.name, "' names group '", name,
                                       "', which is not added to table '", table, "' with it");
      }
      after.groups.push_back({.group = {.name = name}, .added = after.version});
      found = after.groups.end() - 1;
    }
    added.group = static_cast<uint32_t>(found - after.groups.begin()) + 1;
  }
  GEARDB_RETURN_IF_ERROR(CheckNumbers(after));
  for (size_t i = before.groups.size(); i < after.groups.size(); ++i) {
    if (after.HasGroup(i + 1, after.version)) continue;
    return Status::InvalidArgument("table '", table, "': no column is in group '",
                                   after.groups[i].group.name, "'");
  }
  GEARDB_RETURN_IF_ERROR(ValidateTableSpec(after.spec()));
  return after;
}

TableId NumberCompanions(TableHistory* history, TableId first) {
  for (ColumnHistory& known : history->columns) {
    const bool came = known.added == history->version && known.added > 0;
    if (came && HasCompanion(known.column)) known.companion = first++;
  }
  return first;
}

Result<TableHistory> WithoutColumns(const TableHistory& before,
                                    std::span<const std::string_view> names) {
  const std::string& table = before.options.name;
  if (names.empty()) {
    return Status::InvalidArgument("table '", table, "': no columns are to be dropped");
  }
  TableHistory after = before;
  ++after.version;
  for (const std::string_view name : names) {
    const auto found =
        std::find_if(after.columns.begin(), after.columns.end(), [&](const ColumnHistory& known) {
          return known.column.name == name && known.IsThere(before.version);
        });
    if (found == after.columns.end()) {
      std::string others;
      for (const Column& column : before.spec().columns) {
        others += (others.empty() ? "" : ", ") + column.name;
      }
      return Status::NotFound("table '", table, "' has no column '", name, "'; it has ", others);
    }
    if (found->dropped == after.version) {
      return Status::InvalidArgument("table '", table, "': column '", name, "' is dropped twice");
    }
    found->dropped = after.version;
  }
  // What it asks of a table: a per-step column in the first group.
  GEARDB_RETURN_IF_ERROR(ValidateTableSpec(after.spec()));
  return after;
}

Status ValidateHistory(const TableHistory& history) {
  GEARDB_RETURN_IF_ERROR(CheckNumbers(history));
  const auto wrong = [&](const auto&... what) {
    return Status::InvalidArgument("table '", history.options.name, "': ", what...);
  };
  // Each change brings a column, or lets one leave.
  if (history.version > 2 * kColumnNumbersMax) {
    return wrong(history.version, " changes of its columns");
  }
  std::set<uint32_t> changes = {0};
  uint32_t last = 0;
  for (const ColumnHistory& known : history.columns) {
    const bool ordered = known.added >= last && known.added <= history.version &&
                         known.dropped > known.added &&
                         (known.dropped == kNotDropped || known.dropped <= history.version);
    if (!ordered) {
      return wrong("column '", known.column.name, "' comes with change ", known.added,
                   " and leaves with ", known.dropped, " of ", history.version);
    }
    last = known.added;
    if ((known.companion != 0) != (known.added > 0 && HasCompanion(known.column))) {
      return wrong("column '", known.column.name, "' has its values in table ", known.companion);
    }
    changes.insert(known.added);
    if (known.dropped != kNotDropped) changes.insert(known.dropped);
    if (!IsPerStep(known.column.kind) || known.group == 0) {
      if (known.group == 0 && (known.added == 0 || !IsPerStep(known.column.kind))) {
        continue;
      }
      return wrong("column '", known.column.name, "' comes into group ", known.group);
    }
    if (known.group > history.groups.size() ||
        history.groups[known.group - 1].added != known.added) {
      return wrong("column '", known.column.name, "' does not come with its group");
    }
  }
  last = 0;
  for (size_t i = 0; i < history.groups.size(); ++i) {
    const GroupHistory& known = history.groups[i];
    if (known.added < last || !history.HasGroup(i + 1, known.added)) {
      return wrong("group '", known.group.name, "' comes with change ", known.added,
                   ", out of order or without columns");
    }
    last = known.added;
  }
  if (changes.size() != history.version + 1) {
    return wrong(history.version, " changes of its columns, of which ", changes.size() - 1,
                 " are there");
  }
  for (const uint32_t change : changes) {
    GEARDB_RETURN_IF_ERROR(ValidateTableSpec(history.SpecAt(change)));
  }
  return Status::Ok();
}

}  // namespace geardb::engine
