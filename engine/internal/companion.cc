#include "engine/internal/companion.h"

#include <algorithm>
#include <bit>

namespace geardb::engine {
namespace {

// Of the pages of companions. Frozen: stored pages are laid out by them.
constexpr uint64_t kWantedPageBytes = uint64_t{64} << 10;
constexpr uint64_t kPageRowsMax = uint64_t{1} << 15;
/// What a value has that nobody has told the size of.
constexpr uint64_t kValueBytesGuessed = uint64_t{4} << 10;
constexpr uint64_t kStepsMax = uint64_t{1} << 20;

}  // namespace

uint64_t RowBytes(const Column& column) {
  uint64_t bytes = DTypeBytes(column.dtype);
  for (const int64_t dim : column.shape.dims()) {
    if (dim <= 0 || static_cast<uint64_t>(dim) > kColumnRowBytesMax / bytes) return 0;
    bytes *= static_cast<uint64_t>(dim);
  }
  return bytes;
}

uint64_t StoredRowBytes(const Column& column) {
  return column.kind == ColumnKind::kRagged ? sizeof(RaggedRange) : RowBytes(column);
}

bool HasCompanion(const Column& column) {
  if (column.kind == ColumnKind::kRagged || column.kind == ColumnKind::kBlob) return true;
  return column.kind == ColumnKind::kPerTrajectory && RowBytes(column) > kTrajectoryColumnBytesMax;
}

Status ValidateCompanion(const TableSpec& spec, const Column& column) {
  const bool any_length = column.kind == ColumnKind::kRagged || column.kind == ColumnKind::kBlob;
  if (!any_length && column.expected_rows != 0) {
    return Status::InvalidArgument("column '", column.name, "' expects ", column.expected_rows,
                                   " rows, but is neither ragged nor a blob");
  }
  if (any_length && column.default_value != 0) {
    return Status::InvalidArgument("column '", column.name, "' has the default ",
                                   column.default_value,
                                   "; that of a ragged column or a blob is no rows");
  }
  if (column.expected_rows > kValueRowsMax) {
    return Status::InvalidArgument("column '", column.name, "' expects ", column.expected_rows,
                                   " rows; at most ", kValueRowsMax, " are supported");
  }
  if (column.kind != ColumnKind::kRagged) return Status::Ok();
  for (const ColumnGroup& group : spec.groups) {
    if (group.name != column.group || !group.is_volatile) continue;
    return Status::Unsupported("ragged column '", column.name, "' is in group '", group.name,
                               "', which is volatile; expected one that is logged");
  }
  return Status::Ok();
}

std::string KindText(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kPerStep:
      return " per step";
    case ColumnKind::kPerTrajectory:
      return " per trajectory";
    case ColumnKind::kRagged:
      return " ragged";
    case ColumnKind::kBlob:
      return " blob";
  }
  return " of no kind";
}

TableSpec CompanionSpec(const TableSpec& owner, const Column& column) {
  const uint64_t row_bytes = std::max<uint64_t>(RowBytes(column), 1);
  uint64_t rows = 1;  // Of a trajectory.
  if (column.kind != ColumnKind::kPerTrajectory) {
    rows = column.expected_rows != 0 ? column.expected_rows
                                     : std::max<uint64_t>(kValueBytesGuessed / row_bytes, 1);
  }
  if (column.kind == ColumnKind::kRagged) rows *= std::min(owner.expected_steps, kStepsMax);
  const uint64_t by_length = std::bit_ceil((std::min(rows, kPageRowsMax * 4) + 3) / 4);
  const uint64_t by_bytes = std::bit_floor(std::max<uint64_t>(kWantedPageBytes / row_bytes, 1));
  TableSpec spec;
  // No name of a user's, and what messages say between quotes: table 't', column 'c'.
  spec.name = owner.name + "', column '" + column.name;
  spec.columns = {{.name = "rows",
                   .dtype = column.dtype,
                   .shape = column.shape,
                   .compression = column.compression}};
  spec.steps_per_page = static_cast<uint32_t>(std::min({by_length, by_bytes, kPageRowsMax}));
  spec.expected_steps = std::max<uint64_t>(rows, 1);
  spec.remover = Remover::kNone;
  return spec;
}

}  // namespace geardb::engine
