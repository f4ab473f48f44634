// What a schema says of draw groups (GroupSpec): whether it can be, and how it is said.

#include "base/concatenate.h"
#include "engine/internal/draw_groups.h"

namespace geardb::engine {
namespace {

/// Of a year: far from what a time in microseconds holds.
constexpr int64_t kDeadlineMsMax = int64_t{365} * 24 * 3600 * 1000;

bool IsInteger(DType dtype) {
  switch (dtype) {
    case DType::kU8:
    case DType::kI8:
    case DType::kU16:
    case DType::kI16:
    case DType::kU32:
    case DType::kI32:
    case DType::kU64:
    case DType::kI64:
      return true;
    default:
      return false;
  }
}

Status ValidateKey(const TableSpec& table, const PriorityTableSpec& spec) {
  const std::string where = "priority table '" + spec.name + "' groups by column '";
  for (const Column& column : table.columns) {
    if (column.name != spec.group.key) continue;
    const bool fits = column.kind == ColumnKind::kPerTrajectory && column.shape.rank() == 0 &&
                      IsInteger(column.dtype);
    if (fits) return Status::Ok();
    return Status::InvalidArgument(where, column.name,
                                   "', which is no per-trajectory scalar of integers");
  }
  return Status::InvalidArgument(where, spec.group.key, "', which table '", table.name,
                                 "' does not have");
}

}  // namespace

Status ValidateDrawGroups(const TableSpec& table, const PriorityTableSpec& spec) {
  const GroupSpec& group = spec.group;
  const std::string where = "priority table '" + spec.name + "' draws ";
  if (spec.item != ItemKind::kGroup) {
    if (group == GroupSpec()) return Status::Ok();
    return Status::InvalidArgument(where, "no groups (item ", ItemKindName(spec.item),
                                   ") and says how they are: ", DescribeDrawGroups(group));
  }
  GEARDB_RETURN_IF_ERROR(ValidateKey(table, spec));
  if (group.count < 1 || group.count > kGroupCountMax) {
    return Status::InvalidArgument(where, "groups of ", group.count, " members; expected 1 to ",
                                   kGroupCountMax);
  }
  if (group.at_least > group.count) {
    return Status::InvalidArgument(where, "groups of ", group.count, " that need at least ",
                                   group.at_least, "; expected 1 to ", group.count,
                                   " (0: as many as that)");
  }
  if (group.deadline_ms < 0 || group.deadline_ms > kDeadlineMsMax) {
    return Status::InvalidArgument(where, "groups with deadline_ms ", group.deadline_ms,
                                   "; expected 0 (none) to ", kDeadlineMsMax);
  }
  const uint32_t least = group.at_least == 0 ? group.count : group.at_least;
  if (group.deadline_ms > 0 && least == group.count) {
    return Status::InvalidArgument(
        where, "groups with deadline_ms ", group.deadline_ms, " that need all ", group.count,
        " members: it would come to nothing; expected at_least 1 to ", group.count, " less one");
  }
  return Status::Ok();
}

std::string DescribeDrawGroups(const GroupSpec& group) {
  std::string text = Concatenate("of ", group.count, " by '", group.key, "'");
  if (group.at_least > 0 && group.at_least < group.count) {
    text += Concatenate(", ready with ", group.at_least);
  }
  if (group.deadline_ms > 0) text += Concatenate(" after ", group.deadline_ms, " ms");
  return text;
}

std::string DescribeItem(const PriorityTableSpec& spec) {
  const bool groups = spec.item == ItemKind::kGroup;
  return std::string(ItemKindName(spec.item)) + (groups ? " " : "") +
         (groups ? DescribeDrawGroups(spec.group) : "");
}

}  // namespace geardb::engine
