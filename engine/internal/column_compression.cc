#include "engine/internal/column_compression.h"

#include <algorithm>

#include "engine/internal/companion.h"

namespace geardb::engine {

Status CheckCompression(const TableSpec& spec, const Column& column) {
  if (column.compression > kCompressionLast) {
    return Status::InvalidArgument("column '", column.name, "' has the unknown compression ",
                                   static_cast<int>(column.compression));
  }
  if (column.compression == Compression::kLz4) return Status::Ok();
  const auto wrong = [&](const std::string& why) {
    return Status::InvalidArgument("column '", column.name, "' has compression ",
                                   CompressionName(column.compression), ", but ", why,
                                   ", which is never in the cold store; expected the default");
  };
  if (column.kind == ColumnKind::kPerTrajectory && !HasCompanion(column))
    return wrong("is per trajectory");
  const auto group =
      std::find_if(spec.groups.begin(), spec.groups.end(),
                   [&](const ColumnGroup& known) { return known.name == column.group; });
  if (group == spec.groups.end() || !group->is_volatile) return Status::Ok();
  return wrong("is in the volatile group '" + group->name + "'");
}

std::string CompressionText(const Column& column) {
  if (column.compression == Compression::kLz4) return "";
  return std::string(", compression ") + CompressionName(column.compression);
}

ColumnCodecSpec CodecOf(Compression compression) {
  switch (compression) {
    case Compression::kLz4:
      break;
    case Compression::kNone:
      return {.codec = ColumnCodec::kNone};
    case Compression::kZstd:
      return {.codec = ColumnCodec::kZstd};
    case Compression::kXorDelta:
      return {.codec = ColumnCodec::kXorLz4};
  }
  return {.codec = ColumnCodec::kLz4};
}

std::vector<ColumnCodecSpec> PageCodecs(const TableLayout& layout, size_t group) {
  const GroupLayout& of = layout.group(group);
  // What is behind the columns is compressed as by default.
  std::vector<ColumnCodecSpec> codecs(of.pages.column_count());
  const std::vector<Column>& columns = layout.spec().columns;
  for (size_t c = 0; c < of.columns.size(); ++c) {
    const std::string& name = layout.step_columns()[of.columns[c]].name;
    const auto column = std::find_if(columns.begin(), columns.end(),
                                     [&](const Column& known) { return known.name == name; });
    if (column != columns.end()) codecs[c] = CodecOf(column->compression);
  }
  return codecs;
}

}  // namespace geardb::engine
