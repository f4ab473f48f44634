#include "engine/internal/stored_schema.h"

#include <algorithm>
#include <utility>
#include <vector>

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
  return stored.Finish();
}

Result<PriorityTableSpec> DecodePriorityTableSpec(const fb::PriorityTableSpec* stored) {
  if (stored == nullptr || stored->name() == nullptr) {
    return Status::Corruption("a priority table is stored without its name");
  }
  const auto* column = stored->initial_column();
  if (stored->name()->size() > kStoredNameMax ||
      (column != nullptr && column->size() > kStoredNameMax)) {
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

flatbuffers::Offset<fb::TableSpec> EncodeTableSpec(flatbuffers::FlatBufferBuilder* builder,
                                                   const TableSpec& spec) {
  std::vector<flatbuffers::Offset<fb::Column>> columns;
  for (const Column& column : spec.columns) {
    const auto name = builder->CreateString(column.name);
    const auto dims = column.shape.dims();
    const auto shape = builder->CreateVector(dims.data(), dims.size());
    const auto group = std::find_if(spec.groups.begin(), spec.groups.end(),
                                    [&](const auto& known) { return known.name == column.group; });
    const auto number = column.group.empty() ? 0 : group - spec.groups.begin() + 1;
    columns.push_back(fb::CreateColumn(*builder, name, static_cast<uint8_t>(column.dtype), shape,
                                       static_cast<uint8_t>(column.kind), column.in_final_row,
                                       static_cast<uint16_t>(number), column.default_value,
                                       static_cast<uint8_t>(column.compression)));
  }
  std::vector<flatbuffers::Offset<fb::ColumnGroup>> groups;
  for (const ColumnGroup& group : spec.groups) {
    const auto name = builder->CreateString(group.name);
    groups.push_back(fb::CreateColumnGroup(*builder, name, group.late, group.is_volatile));
  }
  const auto name = builder->CreateString(spec.name);
  const auto columns_offset = builder->CreateVector(columns);
  const auto groups_offset = groups.empty() ? 0 : builder->CreateVector(groups);
  const auto& by = spec.remover_priority_table;
  const auto by_offset = by.empty() ? 0 : builder->CreateString(by);
  return fb::CreateTableSpec(*builder, name, columns_offset, spec.final_row, spec.stream,
                             spec.steps_per_page, spec.expected_steps, spec.trajectories_max,
                             spec.steps_max, spec.bytes_max, static_cast<uint8_t>(spec.remover),
                             /*partitions=*/1, groups_offset, spec.ttl_ms, spec.orphan_timeout_ms,
                             by_offset, spec.remover_seed);
}

Result<TableSpec> DecodeTableSpec(const fb::TableSpec* stored) {
  if (stored == nullptr || stored->name() == nullptr || stored->columns() == nullptr) {
    return Status::Corruption("a table is stored without its name or columns");
  }
  if (stored->name()->size() > kStoredNameMax || stored->columns()->size() > kStoredColumnsMax) {
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
  for (uint32_t i = 0; stored->groups() != nullptr && i < stored->groups()->size(); ++i) {
    const fb::ColumnGroup* group = stored->groups()->Get(i);
    if (group->name() == nullptr || group->name()->size() > kStoredNameMax ||
        i >= kColumnGroupsMax) {
      return Status::Corruption("table '", spec.name,
                                "' is stored with a column group that is none");
    }
    spec.groups.push_back({group->name()->str(), group->late(), group->is_volatile()});
  }
  for (const fb::Column* column : *stored->columns()) {
    if (column->name() == nullptr || column->name()->size() > kStoredNameMax ||
        (column->shape() && column->shape()->size() > Shape::kRankMax)) {
      return Status::Corruption("table '", spec.name, "' is stored with a column that is none");
    }
    Column decoded;
    decoded.name = column->name()->str();
    decoded.dtype = static_cast<DType>(column->dtype());
    if (column->shape()) {
      for (const int64_t dim : *column->shape()) decoded.shape.Append(dim);
    }
    decoded.kind = static_cast<ColumnKind>(column->kind());
    decoded.in_final_row = column->in_final_row();
    decoded.default_value = column->default_value();
    decoded.compression = static_cast<Compression>(column->compression());
    if (decoded.compression > kCompressionLast) {
      return Status::Unsupported("written by a newer GearDB: column '", decoded.name,
                                 "' of table '", spec.name, "' has compression ",
                                 static_cast<int>(column->compression()));
    }
    if (column->group() > spec.groups.size()) {
      return Status::Corruption("table '", spec.name, "' is stored with a column in group ",
                                column->group(), " of ", spec.groups.size() + 1);
    }
    if (column->group() > 0) decoded.group = spec.groups[column->group() - 1u].name;
    spec.columns.push_back(std::move(decoded));
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

}  // namespace geardb::engine
