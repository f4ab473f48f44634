#include "engine/internal/stored_schema.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/internal/companion.h"
#include "engine/internal/priority_limits.h"

namespace geardb::engine {
namespace {

/// More than a valid schema has: what is beyond is not even copied from a record.
constexpr size_t kStoredNameMax = 256;
constexpr size_t kStoredColumnsMax = 1024;

Status DecodeRemover(const fb::TableSpec& stored, TableSpec* spec) {
  spec->remover = static_cast<Remover>(stored.remover());
  if (spec->remover > kRemoverLast) {
    return Status::Unsupported("written by a newer GearDB: table '", spec->name, "' has remover ",
                               static_cast<int>(stored.remover()));
  }
  if (stored.remover_priority_table() != nullptr) {
    if (stored.remover_priority_table()->size() > kStoredNameMax) {
      return Status::Corruption("table '", spec->name, "' is stored with the name of a priority ",
                                "table of more than ", kStoredNameMax, " characters");
    }
    spec->remover_priority_table = stored.remover_priority_table()->str();
  }
  spec->remover_seed = stored.remover_seed();
  return Status::Ok();
}

/// With `added` and `dropped` in images alone: a record says them by being where it is.
flatbuffers::Offset<fb::Column> EncodeColumn(flatbuffers::FlatBufferBuilder* builder,
                                             const ColumnHistory& known, uint32_t added = 0,
                                             uint32_t dropped = 0) {
  const Column& column = known.column;
  const auto name = builder->CreateString(column.name);
  const auto dims = column.shape.dims();
  const auto shape = builder->CreateVector(dims.data(), dims.size());
  // Else a field is left out that equals its default, as -0.0 does.
  builder->ForceDefaults(column.default_value == 0 && std::signbit(column.default_value));
  const auto stored = fb::CreateColumn(*builder, name, static_cast<uint8_t>(column.dtype), shape,
                                       static_cast<uint8_t>(column.kind), column.in_final_row,
                                       static_cast<uint16_t>(known.group), column.default_value,
                                       static_cast<uint8_t>(column.compression), added, dropped,
                                       column.expected_rows, known.companion);
  builder->ForceDefaults(false);
  return stored;
}

flatbuffers::Offset<fb::ColumnGroup> EncodeGroup(flatbuffers::FlatBufferBuilder* builder,
                                                 const ColumnGroup& group, uint32_t added = 0) {
  const auto name = builder->CreateString(group.name);
  return fb::CreateColumnGroup(*builder, name, group.late, group.is_volatile, added);
}

Result<Column> DecodeColumn(const fb::Column& stored, std::string_view table) {
  if (stored.name() == nullptr || stored.name()->size() > kStoredNameMax ||
      (stored.shape() && stored.shape()->size() > Shape::kRankMax)) {
    return Status::Corruption("table '", table, "' is stored with a column that is none");
  }
  Column decoded;
  decoded.name = stored.name()->str();
  decoded.dtype = static_cast<DType>(stored.dtype());
  if (stored.shape()) {
    for (const int64_t dim : *stored.shape()) decoded.shape.Append(dim);
  }
  decoded.kind = static_cast<ColumnKind>(stored.kind());
  decoded.expected_rows = stored.expected_rows();
  if (decoded.kind > kColumnKindLast) {
    return Status::Unsupported("written by a newer GearDB: column '", decoded.name, "' of table '",
                               table, "' has kind ", static_cast<int>(stored.kind()));
  }
  decoded.in_final_row = stored.in_final_row();
  decoded.default_value = stored.default_value();
  decoded.compression = static_cast<Compression>(stored.compression());
  if (decoded.compression > kCompressionLast) {
    return Status::Unsupported("written by a newer GearDB: column '", decoded.name, "' of table '",
                               table, "' has compression ", static_cast<int>(stored.compression()));
  }
  return decoded;
}

Result<ColumnGroup> DecodeGroup(const fb::ColumnGroup& stored, std::string_view table) {
  if (stored.name() == nullptr || stored.name()->size() > kStoredNameMax) {
    return Status::Corruption("table '", table, "' is stored with a column group that is none");
  }
  return ColumnGroup{stored.name()->str(), stored.late(), stored.is_volatile()};
}

/// Everything but the columns and groups.
Result<TableSpec> DecodeOptions(const fb::TableSpec* stored) {
  if (stored == nullptr || stored->name() == nullptr || stored->columns() == nullptr) {
    return Status::Corruption("a table is stored without its name or columns");
  }
  if (stored->name()->size() > kStoredNameMax || stored->columns()->size() > kColumnNumbersMax) {
    return Status::Corruption("a table is stored with a name of ", stored->name()->size(),
                              " characters and ", stored->columns()->size(), " columns");
  }
  TableSpec spec;
  spec.name = stored->name()->str();
  if (stored->partitions() == 0) {
    return Status::Corruption("table '", spec.name, "' is stored with 0 partitions");
  }
  if (stored->partitions() > 1) {
    return Status::Unsupported("written by a newer GearDB: table '", spec.name, "' has ",
                               stored->partitions(), " partitions");
  }
  spec.final_row = stored->final_row();
  spec.stream = stored->stream();
  spec.steps_per_page = stored->steps_per_page();
  spec.expected_steps = stored->expected_steps();
  spec.trajectories_max = stored->trajectories_max();
  spec.steps_max = stored->steps_max();
  spec.bytes_max = stored->bytes_max();
  GEARDB_RETURN_IF_ERROR(DecodeRemover(*stored, &spec));
  spec.ttl_ms = stored->ttl_ms();
  spec.orphan_timeout_ms = stored->orphan_timeout_ms();
  return spec;
}

}  // namespace

Status DecodeFilter(const flatbuffers::String* filter, uint8_t action, PriorityTableSpec* spec) {
  spec->filter_action = static_cast<FilterAction>(action);
  if (spec->filter_action > kFilterActionLast) {
    return Status::Unsupported("written by a newer GearDB: a standing filter of action ",
                               static_cast<int>(action));
  }
  if (filter != nullptr && filter->size() > kFilterTextMax) {
    return Status::Corruption("a standing filter of ", filter->size(), " characters is stored");
  }
  spec->filter = filter == nullptr ? "" : filter->str();
  return Status::Ok();
}

flatbuffers::Offset<fb::PriorityTableSpec> EncodePriorityTableSpec(
    flatbuffers::FlatBufferBuilder* builder, const PriorityTableSpec& spec) {
  const auto name = builder->CreateString(spec.name);
  const auto column = builder->CreateString(spec.initial_priority_column);
  const auto required = spec.required.empty() ? 0 : builder->CreateVectorOfStrings(spec.required);
  const auto limits = EncodeLimits(builder, LimitsOf(spec));
  const auto filter = spec.filter.empty() ? 0 : builder->CreateString(spec.filter);
  const auto key = spec.group.key.empty() ? 0 : builder->CreateString(spec.group.key);
  fb::PriorityTableSpecBuilder stored(*builder);
  stored.add_name(name);
  stored.add_item(static_cast<uint8_t>(spec.item));
  stored.add_before(spec.window.extent.before);
  stored.add_length(spec.window.extent.length);
  stored.add_after(spec.window.extent.after);
  stored.add_stride(spec.window.stride);
  stored.add_stride_from_end(spec.window.stride_from_end);
  stored.add_left(static_cast<uint8_t>(spec.window.left));
  stored.add_right(static_cast<uint8_t>(spec.window.right));
  stored.add_cross_ends(spec.window.cross_ends);
  stored.add_selector(static_cast<uint8_t>(spec.selector));
  stored.add_alpha(spec.alpha);
  stored.add_initial(static_cast<uint8_t>(spec.initial));
  stored.add_initial_value(spec.initial_priority_value);
  stored.add_initial_column(column);
  stored.add_seed(spec.seed);
  if (!spec.required.empty()) stored.add_required(required);
  stored.add_limits(limits);
  stored.add_epoch_passes(spec.epoch.passes);
  stored.add_epoch_remove_covered(spec.epoch.remove_covered);
  if (!spec.filter.empty()) stored.add_filter(filter);
  stored.add_filter_action(static_cast<uint8_t>(spec.filter_action));
  if (!spec.group.key.empty()) stored.add_group_key(key);
  stored.add_group_count(spec.group.count);
  stored.add_group_at_least(spec.group.at_least);
  stored.add_group_deadline_ms(spec.group.deadline_ms);
  return stored.Finish();
}

Result<PriorityTableSpec> DecodePriorityTableSpec(const fb::PriorityTableSpec* stored) {
  if (stored == nullptr || stored->name() == nullptr) {
    return Status::Corruption("a priority table is stored without its name");
  }
  const auto* column = stored->initial_column();
  const auto* key = stored->group_key();
  const bool by_column = stored->initial() == static_cast<uint8_t>(InitialPriority::kColumn);
  // What is not looked at was stored once however long it was.
  if (column != nullptr && column->size() > kStoredNameMax && !by_column) column = nullptr;
  if (stored->name()->size() > kStoredNameMax ||
      (column != nullptr && column->size() > kStoredNameMax) ||
      (key != nullptr && key->size() > kStoredNameMax)) {
    return Status::Corruption("a priority table is stored with a name of more than ",
                              kStoredNameMax, " characters");
  }
  PriorityTableSpec spec;
  spec.name = stored->name()->str();
  spec.item = static_cast<ItemKind>(stored->item());
  spec.window.extent = Extent{stored->before(), stored->length(), stored->after()};
  spec.window.stride = stored->stride();
  spec.window.stride_from_end = stored->stride_from_end();
  spec.window.left = static_cast<EdgeRule>(stored->left());
  spec.window.right = static_cast<EdgeRule>(stored->right());
  spec.window.cross_ends = stored->cross_ends();
  spec.selector = static_cast<SelectorKind>(stored->selector());
  if (spec.selector > kSelectorKindLast) {
    return Status::Unsupported("written by a newer GearDB: priority table '", spec.name,
                               "' has selector ", static_cast<int>(stored->selector()));
  }
  if (key != nullptr) spec.group.key = key->str();
  spec.group.count = stored->group_count();
  spec.group.at_least = stored->group_at_least();
  spec.group.deadline_ms = stored->group_deadline_ms();
  spec.alpha = stored->alpha();
  spec.initial = static_cast<InitialPriority>(stored->initial());
  spec.initial_priority_value = stored->initial_value();
  if (column != nullptr) spec.initial_priority_column = column->str();
  spec.seed = stored->seed();
  for (uint32_t i = 0; stored->required() != nullptr && i < stored->required()->size(); ++i) {
    const auto* name = stored->required()->Get(i);
    if (name->size() > kStoredNameMax || i >= kStoredColumnsMax) {
      return Status::Corruption("priority table '", spec.name, "' requires ",
                                stored->required()->size(), " names, one of ", name->size(),
                                " characters");
    }
    spec.required.push_back(name->str());
  }
  const Result<PriorityLimits> limits = DecodeLimits(stored->limits());
  if (!limits.ok()) return limits.status().WithContext("priority table '" + spec.name + "'");
  SetLimits(*limits, &spec);
  spec.epoch = {.passes = stored->epoch_passes(), .remove_covered = stored->epoch_remove_covered()};
  const Status filter = DecodeFilter(stored->filter(), stored->filter_action(), &spec);
  if (!filter.ok()) return filter.WithContext("priority table '" + spec.name + "'");
  return spec;
}

flatbuffers::Offset<fb::TableSpec> EncodeTableHistory(flatbuffers::FlatBufferBuilder* builder,
                                                      const TableHistory& history) {
  std::vector<flatbuffers::Offset<fb::Column>> columns;
  for (const ColumnHistory& known : history.columns) {
    const uint32_t dropped = known.dropped == kNotDropped ? 0 : known.dropped;
    columns.push_back(EncodeColumn(builder, known, known.added, dropped));
  }
  std::vector<flatbuffers::Offset<fb::ColumnGroup>> groups;
  for (const GroupHistory& known : history.groups) {
    groups.push_back(EncodeGroup(builder, known.group, known.added));
  }
  const TableSpec& spec = history.options;
  const auto name = builder->CreateString(spec.name);
  const auto columns_offset = builder->CreateVector(columns);
  const auto groups_offset = groups.empty() ? 0 : builder->CreateVector(groups);
  const auto& by = spec.remover_priority_table;
  const auto by_offset = by.empty() ? 0 : builder->CreateString(by);
  return fb::CreateTableSpec(*builder, name, columns_offset, spec.final_row, spec.stream,
                             spec.steps_per_page, spec.expected_steps, spec.trajectories_max,
                             spec.steps_max, spec.bytes_max, static_cast<uint8_t>(spec.remover),
                             /*partitions=*/1, groups_offset, spec.ttl_ms, spec.orphan_timeout_ms,
                             by_offset, spec.remover_seed, history.version);
}

flatbuffers::Offset<fb::TableSpec> EncodeTableSpec(flatbuffers::FlatBufferBuilder* builder,
                                                   const TableSpec& spec) {
  TableHistory history(spec);
  history.options.steps_per_page = spec.steps_per_page;
  return EncodeTableHistory(builder, history);
}

flatbuffers::Offset<fb::AddColumns> EncodeAddColumns(flatbuffers::FlatBufferBuilder* builder,
                                                     const TableHistory& after) {
  std::vector<flatbuffers::Offset<fb::Column>> columns;
  for (const ColumnHistory& known : after.columns) {
    if (known.added == after.version) columns.push_back(EncodeColumn(builder, known));
  }
  std::vector<flatbuffers::Offset<fb::ColumnGroup>> groups;
  for (const GroupHistory& known : after.groups) {
    if (known.added == after.version) groups.push_back(EncodeGroup(builder, known.group));
  }
  const auto columns_offset = builder->CreateVector(columns);
  const auto groups_offset = groups.empty() ? 0 : builder->CreateVector(groups);
  const bool any =
      std::any_of(after.columns.begin(), after.columns.end(), [&](const ColumnHistory& known) {
        return known.added == after.version && known.companion != 0;
      });
  const uint32_t numbers_end = any ? kFirstRange : 0;
  return fb::CreateAddColumns(*builder, columns_offset, groups_offset, numbers_end, numbers_end);
}

Result<TableSpec> DecodeTableSpec(const fb::TableSpec* stored) {
  GEARDB_ASSIGN_OR_RETURN(const TableHistory history, DecodeTableHistory(stored));
  bool as_created = history.version == 0;
  for (const ColumnHistory& known : history.columns) {
    as_created &= known.added == 0 && known.dropped == kNotDropped;
  }
  for (const GroupHistory& known : history.groups) as_created &= known.added == 0;
  if (as_created) {
    TableSpec spec = history.options;
    for (const ColumnHistory& known : history.columns) spec.columns.push_back(known.column);
    for (const GroupHistory& known : history.groups) spec.groups.push_back(known.group);
    spec.steps_per_page = stored->steps_per_page();
    return spec;
  }
  return Status::Corruption("table '", history.options.name, "' is created with changes of its ",
                            "columns");
}

Result<TableHistory> DecodeTableHistory(const fb::TableSpec* stored) {
  GEARDB_ASSIGN_OR_RETURN(const TableSpec options, DecodeOptions(stored));
  TableHistory history(options);
  history.options.steps_per_page = options.steps_per_page;
  history.version = stored->column_changes();
  for (uint32_t i = 0; stored->groups() != nullptr && i < stored->groups()->size(); ++i) {
    const fb::ColumnGroup& group = *stored->groups()->Get(i);
    if (i >= kColumnGroupNumbersMax) {
      return Status::Corruption("table '", options.name, "' is stored with ",
                                stored->groups()->size(), " column groups");
    }
    GEARDB_ASSIGN_OR_RETURN(ColumnGroup decoded, DecodeGroup(group, options.name));
    history.groups.push_back({.group = std::move(decoded), .added = group.added()});
  }
  for (const fb::Column* column : *stored->columns()) {
    GEARDB_ASSIGN_OR_RETURN(Column decoded, DecodeColumn(*column, options.name));
    if (column->group() > history.groups.size()) {
      return Status::Corruption("table '", options.name, "' is stored with a column in group ",
                                column->group(), " of ", history.groups.size() + 1);
    }
    if (column->group() > 0) decoded.group = history.groups[column->group() - 1u].group.name;
    history.columns.push_back({.column = std::move(decoded),
                               .group = column->group(),
                               .added = column->added(),
                               .dropped = column->dropped() == 0 ? kNotDropped : column->dropped(),
                               .companion = column->companion()});
  }
  return history;
}

Result<TableHistory> DecodeAddColumns(const fb::AddColumns& stored, const TableHistory& before) {
  const std::string& table = before.options.name;
  std::vector<ColumnGroup> groups;
  for (uint32_t i = 0; stored.groups() != nullptr && i < stored.groups()->size(); ++i) {
    if (i >= kColumnGroupNumbersMax) {
      return Status::Corruption("table '", table, "' gets ", stored.groups()->size(), " groups");
    }
    GEARDB_ASSIGN_OR_RETURN(groups.emplace_back(), DecodeGroup(*stored.groups()->Get(i), table));
  }
  std::vector<Column> columns;
  for (uint32_t i = 0; stored.columns() != nullptr && i < stored.columns()->size(); ++i) {
    const fb::Column& column = *stored.columns()->Get(i);
    const size_t first = before.groups.size() + 1;  // Number of the first group that comes.
    const bool in_group = column.group() >= first && column.group() < first + groups.size();
    const bool per_step = IsPerStep(static_cast<ColumnKind>(column.kind()));
    if (i >= kColumnNumbersMax || (per_step ? !in_group : column.group() != 0)) {
      return Status::Corruption("table '", table, "' gets ", stored.columns()->size(),
                                " columns, number ", i, " of them in group ", column.group(),
                                ", which does not come with it");
    }
    GEARDB_ASSIGN_OR_RETURN(columns.emplace_back(), DecodeColumn(column, table));
    if (per_step) columns.back().group = groups[column.group() - first].name;
  }
  GEARDB_ASSIGN_OR_RETURN(TableHistory after, WithColumns(before, columns, groups));
  for (uint32_t i = 0; i < columns.size(); ++i) {
    ColumnHistory& added = after.columns[before.columns.size() + i];
    added.companion = stored.columns()->Get(i)->companion();
    if ((added.companion != 0) == HasCompanion(added.column)) continue;
    return Status::Corruption("table '", table, "' gets column '", added.column.name,
                              "' with its values in table ", added.companion);
  }
  return after;
}

Result<TableHistory> DecodeDropColumns(const fb::DropColumns& stored, const TableHistory& before) {
  std::vector<std::string_view> names;
  for (uint32_t i = 0; stored.names() != nullptr && i < stored.names()->size(); ++i) {
    const auto* name = stored.names()->Get(i);
    if (i >= kColumnNumbersMax || name->size() > kStoredNameMax) {
      return Status::Corruption("table '", before.options.name, "' loses ", stored.names()->size(),
                                " columns, one with a name of ", name->size(), " characters");
    }
    names.push_back(name->string_view());
  }
  return WithoutColumns(before, names);
}

namespace {

template <typename Spec>
Status CheckDecoded(const Result<Spec>& decoded, const Spec& spec, std::string_view what) {
  if (decoded.ok() && *decoded == spec) return Status::Ok();
  return Status::InvalidArgument(what, " '", spec.name, "' cannot be stored: ",
                                 decoded.ok() ? "it would be another" : decoded.status().message());
}

}  // namespace

Status CheckStorable(const TableSpec& spec) {
  TableSpec alone = spec;
  alone.priority_tables.clear();
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(EncodeTableSpec(&builder, alone));
  const auto* const stored = flatbuffers::GetRoot<fb::TableSpec>(builder.GetBufferPointer());
  return CheckDecoded(DecodeTableSpec(stored), alone, "table");
}

Status CheckStorable(const PriorityTableSpec& spec) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(EncodePriorityTableSpec(&builder, spec));
  const auto* const stored =
      flatbuffers::GetRoot<fb::PriorityTableSpec>(builder.GetBufferPointer());
  return CheckDecoded(DecodePriorityTableSpec(stored), spec, "priority table");
}

}  // namespace geardb::engine
