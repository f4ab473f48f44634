#include "engine/schema.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "base/page_view.h"
#include "engine/internal/column_compression.h"
#include "engine/internal/companion.h"
#include "engine/internal/draw_groups.h"
#include "engine/internal/priority_limits.h"
#include "engine/internal/remover_rule.h"
#include "engine/internal/standing_filter.h"
#include "index/trajectory_index.h"
#include "kernels/convert.h"

namespace geardb {
namespace {

constexpr uint64_t kPageBytesTarget = uint64_t{64} << 10;
constexpr int64_t kTimeMsMax = int64_t{1'000'000'000'000'000};  // 31,000 years, in us 63 bits.

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '/' || c == '-';
}

Status ValidateName(std::string_view what, std::string_view name) {
  if (name.empty() || name.size() > kNameLengthMax) {
    return Status::InvalidArgument(what, " name '", name, "' has ", name.size(),
                                   " characters; expected 1 to ", kNameLengthMax);
  }
  if (!std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return Status::InvalidArgument(what, " name '", name,
                                   "' has characters outside [A-Za-z0-9_./-]");
  }
  if (name.starts_with("geardb.")) {
    return Status::InvalidArgument(what, " name '", name, "' begins with the reserved 'geardb.'");
  }
  return Status::Ok();
}

using engine::RowBytes;

/// Whether every element of the dtype can be `value`; a float is rounded, but not to infinity.
bool IsValueOf(DType dtype, double value) {
  if (dtype == DType::kBool) return value == 0 || value == 1;
  if (dtype > DType::kI64) {
    const uint64_t infinity = ElementBits(dtype, HUGE_VAL);
    return std::isinf(value) || ElementBits(dtype, std::fabs(value)) != infinity;
  }
  // Integers come in pairs, unsigned and signed, of the same size.
  const bool is_signed = static_cast<int>(dtype) % 2 == 1;
  const double end = std::ldexp(1.0, static_cast<int>(DTypeBytes(dtype)) * 8 - is_signed);
  return value == std::floor(value) && value < end && value >= (is_signed ? -end : 0.0);
}

Status ValidateGroups(const TableSpec& spec) {
  if (spec.groups.size() >= kColumnGroupsMax) {
    return Status::InvalidArgument("table '", spec.name, "' has ", spec.groups.size(),
                                   " column groups besides the first; at most ",
                                   kColumnGroupsMax - 1, " are supported");
  }
  std::set<std::string_view> names;
  for (const ColumnGroup& group : spec.groups) {
    GEARDB_RETURN_IF_ERROR(ValidateName("column group", group.name));
    if (!names.insert(group.name).second) {
      return Status::InvalidArgument("table '", spec.name, "' has two column groups named '",
                                     group.name, "'");
    }
    const bool used = std::any_of(spec.columns.begin(), spec.columns.end(),
                                  [&](const Column& column) { return column.group == group.name; });
    if (!used) {
      return Status::InvalidArgument("table '", spec.name, "': no column is in group '", group.name,
                                     "'");
    }
  }
  return Status::Ok();
}

Status ValidateColumnGroup(const TableSpec& spec, const Column& column) {
  if (column.group.empty()) return Status::Ok();
  if (!IsPerStep(column.kind)) {
    return Status::InvalidArgument("per-trajectory column '", column.name, "' names group '",
                                   column.group, "'; only per-step columns are in groups");
  }
  const auto group =
      std::find_if(spec.groups.begin(), spec.groups.end(),
                   [&](const ColumnGroup& known) { return known.name == column.group; });
  if (group == spec.groups.end()) {
    return Status::InvalidArgument("column '", column.name, "' names group '", column.group,
                                   "', which table '", spec.name, "' does not have");
  }
  if (column.in_final_row && group->late) {
    return Status::InvalidArgument("column '", column.name, "' is in the final row, but group '",
                                   group->name, "' is late: Patch fills its final rows, too");
  }
  return Status::Ok();
}

Status ValidateColumn(const TableSpec& spec, const Column& column) {
  GEARDB_RETURN_IF_ERROR(ValidateName("column", column.name));
  if (static_cast<int>(column.dtype) >= kDTypeCount) {
    return Status::InvalidArgument("column '", column.name, "' has the unknown dtype ",
                                   static_cast<int>(column.dtype));
  }
  if (column.kind > kColumnKindLast) {
    return Status::InvalidArgument("column '", column.name, "' has the unknown kind ",
                                   static_cast<int>(column.kind));
  }
  if (column.shape.rank() > kColumnRankMax) {
    // A Shape that was given more dimensions than it holds does not know how many.
    return Status::InvalidArgument("column '", column.name, "' has ",
                                   column.shape.rank() > Shape::kRankMax ? "more than " : "",
                                   std::min(column.shape.rank(), Shape::kRankMax),
                                   " dimensions; at most ", kColumnRankMax,
                                   " can be drawn, since a batch shows [batch, rows, stack, ...]");
  }
  const uint64_t bytes = RowBytes(column);
  if (bytes == 0) {
    return Status::InvalidArgument("column '", column.name, "' has shape ", column.shape.ToString(),
                                   "; dimensions must be positive and a row at most ",
                                   kColumnRowBytesMax, " bytes");
  }
  if (!IsPerStep(column.kind) && column.in_final_row) {
    return Status::InvalidArgument("per-trajectory column '", column.name,
                                   "' cannot be in the final row");
  }
  GEARDB_RETURN_IF_ERROR(engine::ValidateCompanion(spec, column));
  if (!IsValueOf(column.dtype, column.default_value)) {
    return Status::InvalidArgument("column '", column.name, "' has the default ",
                                   column.default_value, ", which is no ", DTypeName(column.dtype));
  }
  GEARDB_RETURN_IF_ERROR(ValidateColumnGroup(spec, column));
  GEARDB_RETURN_IF_ERROR(engine::CheckCompression(spec, column));
  if (column.in_final_row && !spec.final_row) {
    return Status::InvalidArgument("column '", column.name, "' is in the final row, but table '",
                                   spec.name, "' has no final_row");
  }
  return Status::Ok();
}

bool IsEdgeRule(EdgeRule rule) {
  return static_cast<int>(rule) <= static_cast<int>(EdgeRule::kShift);
}

Status ValidateWindowRule(const TableSpec& table, const PriorityTableSpec& spec) {
  const WindowRule& window = spec.window;
  const Extent& extent = window.extent;
  const bool sizes_good = extent.before >= 0 && extent.length >= 1 && extent.after >= 0 &&
                          extent.before <= kExtentMax && extent.length <= kExtentMax &&
                          extent.after <= kExtentMax;
  if (!sizes_good) {
    return Status::InvalidArgument(
        "priority table '", spec.name, "' has extent {before ", extent.before, ", length ",
        extent.length, ", after ", extent.after,
        "}; expected before >= 0, length >= 1, after >= 0, each at most ", kExtentMax);
  }
  if (window.stride < 1 || window.stride > kExtentMax) {
    return Status::InvalidArgument("priority table '", spec.name, "' has stride ", window.stride,
                                   "; expected 1 to ", kExtentMax);
  }
  if (!IsEdgeRule(window.left) || !IsEdgeRule(window.right)) {
    return Status::InvalidArgument("priority table '", spec.name, "' has an unknown edge rule");
  }
  if (window.cross_ends && !table.stream) {
    return Status::InvalidArgument("priority table '", spec.name, "' crosses ends, but table '",
                                   table.name, "' is no stream");
  }
  return Status::Ok();
}

Status ValidateRequired(const TableSpec& table, const PriorityTableSpec& spec) {
  std::set<std::string_view> names;
  for (const std::string& name : spec.required) {
    if (!names.insert(name).second) {
      return Status::InvalidArgument("priority table '", spec.name, "' requires '", name,
                                     "' twice");
    }
    const auto group = std::find_if(table.groups.begin(), table.groups.end(),
                                    [&](const ColumnGroup& known) { return known.name == name; });
    const bool is_group = group != table.groups.end();
    if (is_group && IsRequirable(*group)) continue;
    size_t number = 0;  // Among the per-trajectory columns.
    const Column* found = nullptr;
    for (const Column& column : table.columns) {
      if (IsPerStep(column.kind)) continue;
      if (column.name == name) found = &column;
      if (found != nullptr) break;
      ++number;
    }
    if (found == nullptr && is_group) {
      return Status::InvalidArgument("priority table '", spec.name, "' requires group '", name,
                                     "', which is ", group->late ? "volatile" : "not late",
                                     "; expected a late one that is logged");
    }
    if (found == nullptr) {
      return Status::InvalidArgument("priority table '", spec.name, "' requires '", name,
                                     "', which is no late column group and no per-trajectory "
                                     "column of table '",
                                     table.name, "'");
    }
    if (number >= index::kColumnsSetBits) {
      return Status::InvalidArgument("priority table '", spec.name, "' requires column '", name,
                                     "', per-trajectory column number ", number,
                                     "; only the first ", index::kColumnsSetBits,
                                     " can be required");
    }
  }
  return Status::Ok();
}

Status ValidateInitialPriority(const TableSpec& table, const PriorityTableSpec& spec) {
  // Whether it is used or not: a NaN would not even equal itself at the next open.
  const float value = spec.initial_priority_value;
  if (!(std::isfinite(value) && value >= 0)) {
    return Status::InvalidArgument("priority table '", spec.name, "' has initial priority ", value,
                                   "; expected a finite value of at least 0");
  }
  if (spec.initial != InitialPriority::kColumn) return Status::Ok();
  for (const Column& column : table.columns) {
    if (column.name != spec.initial_priority_column) continue;
    if (column.kind == ColumnKind::kPerTrajectory && column.shape.rank() == 0 &&
        column.dtype == DType::kF32) {
      const auto unset = static_cast<float>(column.default_value);
      if (std::isfinite(unset) && unset >= 0) return Status::Ok();
      return Status::InvalidArgument(
          "priority table '", spec.name, "' takes priorities from column '", column.name,
          "', whose default is ", unset, "; expected a finite value of at least 0");
    }
    return Status::InvalidArgument("priority table '", spec.name,
                                   "' takes priorities from column '", column.name,
                                   "', which is no per-trajectory f32 scalar");
  }
  return Status::InvalidArgument("priority table '", spec.name, "' takes priorities from column '",
                                 spec.initial_priority_column, "', which table '", table.name,
                                 "' does not have");
}

/// As short as it says which number it is.
template <typename Float>
std::string Text(Float value) {
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), value).ptr;
  return std::string(text, end);
}

std::string Describe(const Column& column) {
  return std::string(DTypeName(column.dtype)) + column.shape.ToString() +
         engine::KindText(column.kind) + (column.in_final_row ? " in the final row" : "") +
         (column.group.empty() ? "" : " in group '" + column.group + "'") +
         (Text(column.default_value) == "0" ? "" : ", default " + Text(column.default_value)) +
         engine::CompressionText(column);
}

std::string Describe(const ColumnGroup& group) {
  return std::string(group.late ? "late" : "appended") + (group.is_volatile ? ", volatile" : "");
}

std::string_view NameOf(EdgeRule rule) {
  constexpr std::string_view kNames[] = {"require", "clip", "pad", "repeat", "shift"};
  return kNames[static_cast<size_t>(rule)];
}

std::string Describe(const Extent& extent) {
  return "{" + std::to_string(extent.before) + ", " + std::to_string(extent.length) + ", " +
         std::to_string(extent.after) + "}";
}

std::string Describe(const WindowRule& window) {
  return "stride " + std::to_string(window.stride) +
         (window.stride_from_end ? " from the end" : "") + ", left " +
         std::string(NameOf(window.left)) + ", right " + std::string(NameOf(window.right)) +
         (window.cross_ends ? ", cross_ends" : "");
}

std::string Describe(const EpochSpec& epoch) {
  return "of " + std::to_string(epoch.passes) + " passes" +
         (epoch.remove_covered ? ", covered trajectories removed" : "");
}

std::string DescribeInitial(const PriorityTableSpec& spec) {
  constexpr std::string_view kKinds[] = {"max", "constant", "column"};
  return std::string(kKinds[static_cast<size_t>(spec.initial)]) + " (value " +
         Text(spec.initial_priority_value) + ", column '" + spec.initial_priority_column + "')";
}

std::string Joined(const std::vector<std::string>& names) {
  std::string all = "[";
  for (const std::string& name : names) all += (all.size() > 1 ? ", " : "") + name;
  return all + "]";
}

/// The first field in which two specs of one priority table differ, and what it is in each.
std::string DifferenceOf(const PriorityTableSpec& a, const PriorityTableSpec& b) {
  const auto differs = [](const std::string& field, const std::string& was, const std::string& is) {
    return field + " " + was + ", not " + is;
  };
  const auto selector = [](SelectorKind kind) {
    constexpr const char* kNames[] = {"uniform",  "prioritized",         "fifo", "lifo", "min_heap",
                                      "max_heap", "without_replacement", "epoch"};
    return std::string(kNames[static_cast<size_t>(kind)]);
  };
  const auto item = [](const auto& spec) { return engine::DescribeItem(spec); };
  if (item(a) != item(b)) return differs("item", item(a), item(b));
  if (!(a.window.extent == b.window.extent)) {
    return differs("extent", Describe(a.window.extent), Describe(b.window.extent));
  }
  if (!(a.window == b.window)) return differs("window", Describe(a.window), Describe(b.window));
  if (a.selector != b.selector) {
    return differs("selector", selector(a.selector), selector(b.selector));
  }
  if (a.required != b.required) return differs("required", Joined(a.required), Joined(b.required));
  if (a.alpha != b.alpha) return differs("alpha", Text(a.alpha), Text(b.alpha));
  if (engine::LimitsOf(a) != engine::LimitsOf(b)) {
    return differs("limits", engine::Describe(engine::LimitsOf(a)),
                   engine::Describe(engine::LimitsOf(b)));
  }
  if (a.epoch != b.epoch) return differs("epoch", Describe(a.epoch), Describe(b.epoch));
  if (a.seed != b.seed) return differs("seed", std::to_string(a.seed), std::to_string(b.seed));
  return differs("initial priority", DescribeInitial(a), DescribeInitial(b));
}

}  // namespace

bool operator==(const Column& a, const Column& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.kind == b.kind &&
         a.in_final_row == b.in_final_row && a.group == b.group && a.compression == b.compression &&
         a.expected_rows == b.expected_rows &&
         std::bit_cast<uint64_t>(a.default_value) == std::bit_cast<uint64_t>(b.default_value);
}

Status ValidatePriorityTableSpec(const TableSpec& table, const PriorityTableSpec& spec) {
  GEARDB_RETURN_IF_ERROR(ValidateName("priority table", spec.name));
  if (spec.item > kItemKindLast || spec.selector > kSelectorKindLast ||
      static_cast<int>(spec.initial) > 2) {
    return Status::InvalidArgument("priority table '", spec.name,
                                   "' has an unknown item, selector or initial priority");
  }
  GEARDB_RETURN_IF_ERROR(ValidateWindowRule(table, spec));
  if (!(spec.alpha >= 0 && spec.alpha <= 4)) {
    return Status::InvalidArgument("priority table '", spec.name, "' has alpha ", spec.alpha,
                                   "; expected 0 to 4");
  }
  GEARDB_RETURN_IF_ERROR(engine::ValidateDrawGroups(table, spec));
  GEARDB_RETURN_IF_ERROR(ValidateRequired(table, spec));
  GEARDB_RETURN_IF_ERROR(engine::ValidateLimits(spec));
  return ValidateInitialPriority(table, spec);
}

Status ValidateTableSpec(const TableSpec& spec) {
  GEARDB_RETURN_IF_ERROR(ValidateName("table", spec.name));
  if (spec.columns.size() > kColumnsMax) {
    return Status::InvalidArgument("table '", spec.name, "' has ", spec.columns.size(),
                                   " columns; at most ", kColumnsMax, " are supported");
  }
  GEARDB_RETURN_IF_ERROR(ValidateGroups(spec));
  std::set<std::string_view> names;
  bool has_step_column = false;
  size_t companions = 0;
  for (const Column& column : spec.columns) {
    GEARDB_RETURN_IF_ERROR(ValidateColumn(spec, column));
    if (!names.insert(column.name).second) {
      return Status::InvalidArgument("table '", spec.name, "' has two columns named '", column.name,
                                     "'");
    }
    has_step_column |= IsPerStep(column.kind) && column.group.empty();
    companions += engine::HasCompanion(column) ? 1u : 0u;
  }
  if (companions > kLengthColumnsMax) {
    return Status::InvalidArgument("table '", spec.name, "' has ", companions,
                                   " ragged, blob and wide per-trajectory columns; at most ",
                                   kLengthColumnsMax, " are supported");
  }
  if (!has_step_column) {
    return Status::InvalidArgument("table '", spec.name, "' has no per-step column",
                                   spec.groups.empty() ? "" : " in its first column group");
  }
  const uint32_t steps = spec.steps_per_page;
  if (steps != 0 && (!std::has_single_bit(steps) || steps > kStepsPerPageMax)) {
    return Status::InvalidArgument("table '", spec.name, "' has steps_per_page ", steps,
                                   "; expected a power of two of at most ", kStepsPerPageMax);
  }
  if (spec.expected_steps == 0) {
    return Status::InvalidArgument("table '", spec.name, "' expects trajectories of 0 steps");
  }
  const uint64_t least_steps = spec.final_row ? 3 : 2;
  if (spec.steps_max != 0 && spec.steps_max < least_steps) {
    return Status::InvalidArgument(
        "table '", spec.name, "' has steps_max ", spec.steps_max, "; expected at least ",
        least_steps, ", since a row of an open trajectory always stays (0: no bound)");
  }
  GEARDB_RETURN_IF_ERROR(engine::ValidateRemover(spec));
  for (const auto& [name, ms] :
       {std::pair("ttl_ms", spec.ttl_ms), std::pair("orphan_timeout_ms", spec.orphan_timeout_ms)}) {
    if (ms >= 0 && ms <= kTimeMsMax) continue;
    return Status::InvalidArgument("table '", spec.name, "' has ", name, " ", ms,
                                   "; expected 0 (never) to ", kTimeMsMax);
  }
  if (spec.priority_tables.size() > kPriorityTablesMax) {
    return Status::InvalidArgument("table '", spec.name, "' has ", spec.priority_tables.size(),
                                   " priority tables; at most ", kPriorityTablesMax);
  }
  std::set<std::string_view> priority_names;
  for (const PriorityTableSpec& priority : spec.priority_tables) {
    GEARDB_RETURN_IF_ERROR(ValidatePriorityTableSpec(spec, priority));
    if (!priority_names.insert(priority.name).second) {
      return Status::InvalidArgument("table '", spec.name, "' has two priority tables named '",
                                     priority.name, "'");
    }
  }
  return Status::Ok();
}

Status CheckSameSpec(const TableSpec& stored, const TableSpec& wanted) {
  const auto differs = [&](std::string_view what, const auto& was, const auto& is) {
    return Status::FailedPrecondition("table '", stored.name, "' is stored with ", what, " ", was,
                                      ", not ", is);
  };
  for (size_t i = 0; i < std::min(stored.columns.size(), wanted.columns.size()); ++i) {
    const Column& a = stored.columns[i];
    const Column& b = wanted.columns[i];
    if (a.name != b.name) return differs("column", a.name, b.name);
    if (a != b) return differs("column '" + a.name + "' as", Describe(a), Describe(b));
  }
  if (stored.columns.size() != wanted.columns.size()) {
    return differs("columns:", stored.columns.size(), wanted.columns.size());
  }
  for (size_t i = 0; i < std::min(stored.groups.size(), wanted.groups.size()); ++i) {
    const ColumnGroup& a = stored.groups[i];
    const ColumnGroup& b = wanted.groups[i];
    if (a.name != b.name) return differs("column group", a.name, b.name);
    if (a != b) return differs("column group '" + a.name + "' as", Describe(a), Describe(b));
  }
  if (stored.groups.size() != wanted.groups.size()) {
    return differs("column groups:", stored.groups.size() + 1, wanted.groups.size() + 1);
  }
  if (stored.final_row != wanted.final_row) {
    return differs("final_row", stored.final_row, wanted.final_row);
  }
  if (stored.stream != wanted.stream) return differs("stream", stored.stream, wanted.stream);
  if (wanted.steps_per_page != 0 && stored.steps_per_page != wanted.steps_per_page) {
    return differs("steps_per_page", stored.steps_per_page, wanted.steps_per_page);
  }
  if (stored.trajectories_max != wanted.trajectories_max) {
    return differs("trajectories_max", stored.trajectories_max, wanted.trajectories_max);
  }
  if (stored.steps_max != wanted.steps_max) {
    return differs("steps_max", stored.steps_max, wanted.steps_max);
  }
  if (stored.bytes_max != wanted.bytes_max) {
    return differs("bytes_max", stored.bytes_max, wanted.bytes_max);
  }
  const std::string remover = engine::DescribeRemover(stored);
  if (remover != engine::DescribeRemover(wanted)) {
    return differs("remover", remover, engine::DescribeRemover(wanted));
  }
  if (stored.ttl_ms != wanted.ttl_ms) return differs("ttl_ms", stored.ttl_ms, wanted.ttl_ms);
  if (stored.orphan_timeout_ms != wanted.orphan_timeout_ms) {
    return differs("orphan_timeout_ms", stored.orphan_timeout_ms, wanted.orphan_timeout_ms);
  }
  for (const PriorityTableSpec& priority : wanted.priority_tables) {
    const auto found =
        std::find_if(stored.priority_tables.begin(), stored.priority_tables.end(),
                     [&](const PriorityTableSpec& other) { return other.name == priority.name; });
    if (found == stored.priority_tables.end()) {
      return Status::FailedPrecondition("table '", stored.name,
                                        "' is stored without the priority table '", priority.name,
                                        "'; add it with CreatePriorityTable");
    }
    if (!engine::SameButFilter(*found, priority)) {
      return Status::FailedPrecondition("table '", stored.name, "': priority table '",
                                        priority.name, "' is stored with ",
                                        DifferenceOf(*found, priority));
    }
  }
  return Status::Ok();
}

uint32_t ChooseStepsPerPage(const TableSpec& spec) {
  if (spec.steps_per_page != 0) return spec.steps_per_page;
  std::map<std::string_view, uint64_t> bytes_of = {{"", spec.stream ? 1 : 0}};
  for (const Column& column : spec.columns) {
    if (IsPerStep(column.kind)) bytes_of[column.group] += engine::StoredRowBytes(column);
  }
  uint64_t bytes_per_step = 0;  // Of the widest group.
  for (const auto& [group, bytes] : bytes_of) bytes_per_step = std::max(bytes_per_step, bytes);
  const uint64_t by_bytes = std::bit_floor(
      std::max<uint64_t>(kPageBytesTarget / std::max<uint64_t>(bytes_per_step, 1), 1));
  const uint64_t quarter = (std::min<uint64_t>(spec.expected_steps, uint64_t{1} << 40) + 3) / 4;
  const uint64_t by_length = spec.expected_steps == 1 ? 1 : std::bit_ceil(quarter);
  return static_cast<uint32_t>(
      std::min({by_bytes, by_length, static_cast<uint64_t>(kStepsPerPageMax)}));
}

}  // namespace geardb
