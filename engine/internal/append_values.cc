#include "engine/internal/append_values.h"

#include <algorithm>

namespace geardb::engine {
namespace {

Status CheckOffsets(const std::string& where, std::span<const uint64_t> offsets, uint64_t rows) {
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i] <= offsets[i + 1]) continue;
    return Status::InvalidArgument(where, " has offset ", offsets[i], " at ", i, " and then ",
                                   offsets[i + 1], "; expected offsets that ascend");
  }
  if (offsets.front() == 0 && offsets.back() == rows) return Status::Ok();
  return Status::InvalidArgument(where, " has offsets from ", offsets.front(), " to ",
                                 offsets.back(), " for ", rows, " rows; expected 0 to ", rows);
}

Status CheckType(const std::string& where, const CompanionColumn& column, const TensorView& value) {
  bool fits = value.dtype == column.dtype && value.shape.rank() == column.shape.rank() + 1 &&
              value.shape[0] >= 0;
  for (int axis = 0; fits && axis < column.shape.rank(); ++axis) {
    fits = value.shape[axis + 1] == column.shape[axis];
  }
  std::string expected = "rows";
  for (const int64_t dim : column.shape.dims()) expected += ", " + std::to_string(dim);
  if (!fits) {
    return Status::InvalidArgument(where, " takes ", DTypeName(column.dtype), "[", expected,
                                   "], not ", DTypeName(value.dtype), value.shape.ToString());
  }
  if (value.shape[0] > 0 && value.bytes == nullptr) {
    return Status::InvalidArgument(where, " has no bytes");
  }
  return Status::Ok();
}

}  // namespace

Result<ValueRows> BindValues(const std::string& table, const CompanionColumn& column,
                             const ColumnValue& given, const ValueCount& count) {
  const std::string where = "table '" + table + "': column '" + column.name + "'";
  GEARDB_RETURN_IF_ERROR(CheckType(where, column, given.value));
  const auto rows = static_cast<uint64_t>(given.value.shape[0]);
  ValueRows values{.rows = static_cast<const std::byte*>(given.value.bytes), .offsets = {}};
  if (!given.offsets.empty()) {
    GEARDB_RETURN_IF_ERROR(CheckOffsets(where, given.offsets, rows));
    values.offsets.assign(given.offsets.begin(), given.offsets.end());
  } else if (count.alone) {
    values.offsets = {0, rows};
  } else {
    return Status::InvalidArgument(where, " has values of any length, and no offsets of ",
                                   count.values ? std::to_string(*count.values) : "its",
                                   " values in them");
  }
  const uint64_t expected = count.values.value_or(std::max<uint64_t>(values.size(), 1));
  if (values.size() != expected) {
    return Status::InvalidArgument(where, " has offsets of ", values.size(), " values; expected ",
                                   expected);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values.count(i) <= kValueRowsMax) continue;
    return Status::InvalidArgument(where, " has a value of ", values.count(i), " rows; at most ",
                                   kValueRowsMax, " are supported");
  }
  return values;
}

}  // namespace geardb::engine
