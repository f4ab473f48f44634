#include "tests/differential/kinds.h"

#include <cstring>

namespace geardb::differential {
namespace {

template <typename T>
void Put(T value, Bytes* bytes) {
  const auto* const first = reinterpret_cast<const std::byte*>(&value);
  bytes->insert(bytes->end(), first, first + sizeof(T));
}

void PutElement(DType dtype, double value, Bytes* bytes) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return Put(static_cast<uint8_t>(value), bytes);
    case DType::kI16:
      return Put(static_cast<int16_t>(value), bytes);
    case DType::kI32:
      return Put(static_cast<int32_t>(value), bytes);
    default:
      return Put(static_cast<float>(value), bytes);
  }
}

/// Often none or one, seldom more than a page.
size_t LengthOf(const Column& column, uint64_t seed) {
  const uint64_t random = Mixed(seed, 77);
  const size_t most = column.kind == ColumnKind::kBlob ? 16'000 : 3'000;
  const size_t kLengths[] = {0, 1, 2 + random % 7, 2 + random % 7, random % 300, random % most};
  return kLengths[(random >> 32) % std::size(kLengths)];
}

Bytes OneRowOf(const Column& column, uint64_t seed) {
  Bytes bytes;
  const auto elements = static_cast<size_t>(column.shape.elements());
  if (column.name == "team") {  // Few keys, so that groups become complete.
    PutElement(column.dtype, static_cast<double>(Mixed(seed, 0) % 3) - 1, &bytes);
    return bytes;
  }
  bytes.reserve(elements * DTypeBytes(column.dtype));
  if (column.dtype == DType::kU8) {
    for (uint64_t i = 0; bytes.size() < elements; ++i) Put(Mixed(seed, i), &bytes);
    bytes.resize(elements);
    return bytes;
  }
  for (size_t i = 0; i < elements; ++i) {
    const uint64_t random = Mixed(seed, i);
    if (column.name == "prio") {
      Put(PriorityOf(random), &bytes);
    } else if (column.name == "discount") {
      PutElement(column.dtype, static_cast<double>(random % 5) / 4, &bytes);
    } else if (column.dtype == DType::kBool) {
      PutElement(column.dtype, static_cast<double>(random % 2), &bytes);
    } else {
      PutElement(column.dtype, static_cast<double>(random % 200) / 4 - 10, &bytes);
    }
  }
  return bytes;
}

}  // namespace

Bytes RowOf(const Column& column, uint64_t seed) {
  if (!AnyLength(column)) return OneRowOf(column, seed);
  Column all = column;
  all.shape = column.shape.WithOuter({static_cast<int64_t>(LengthOf(column, seed))});
  return OneRowOf(all, seed);
}

Bytes RowOfNumber(const Column& column, double number) {
  Bytes bytes;
  if (AnyLength(column)) return bytes;
  for (int64_t i = 0; i < column.shape.elements(); ++i) {
    PutElement(column.dtype, number, &bytes);
  }
  return bytes;
}

float NumberAt(DType dtype, const std::byte* element) {
  const auto as = [&]<typename T>(T value) {
    std::memcpy(&value, element, sizeof(T));
    return static_cast<float>(value);
  };
  switch (dtype) {
    case DType::kBool:
      return as(uint8_t{}) != 0 ? 1.0f : 0.0f;
    case DType::kU8:
      return as(uint8_t{});
    case DType::kI16:
      return as(int16_t{});
    case DType::kI32:
      return as(int32_t{});
    default:
      return as(float{});
  }
}

float PriorityOf(uint64_t seed) {
  return seed % 16 == 15 ? 0.0f : static_cast<float>(1 + seed % 15) / 4.0f;
}

bool IsBounded(const TableSpec& spec) {
  return spec.trajectories_max > 0 || spec.steps_max > 0 || spec.bytes_max > 0;
}

std::string FilterKind(Choices* choices, bool standing) {
  const uint64_t kind = choices->Below(standing ? 8 : 9);
  const std::string bound = std::to_string(choices->Below(8));
  const std::string kinds[] = {"",
                               "goal >= " + bound,
                               "length > " + bound,
                               "state == closed",
                               "!flag && goal != " + bound,
                               "isset(goal) || end == terminated",
                               "first_row < " + bound,
                               "goal in {" + bound + ", 3, 10}",
                               "times_sampled <= " + bound};
  return kinds[kind];
}

DatabaseOptions OptionsKind(uint64_t kind) {
  Choices choices(kind);
  DatabaseOptions options;
  options.budgets.frames_bytes = uint64_t{80} << 20;  // Slabs for all groups and values.
  options.budgets.index_bytes = uint64_t{64} << 20;
  constexpr uint64_t kSegmentKiB[] = {512, 256, 1024};
  options.segment_bytes = kSegmentKiB[choices.Below(3)] << 10;
  options.ring_bytes = uint64_t{512} << (10 + choices.Below(2));
  options.log_bytes_max = uint64_t{3} << 20;
  options.resident = choices.OneIn(6);
  options.ack = choices.OneIn(4) ? Ack::kSync : Ack::kLog;
  options.budgets.cold_bytes = choices.OneIn(2) ? uint64_t{4} << 20 : 0;
  options.space_amplification_max = choices.OneIn(2) ? 1.1 : 1.5;
  options.background = false;
  return options;
}

PriorityLimits LimitsKind(const PriorityTableSpec& spec, bool bounded_table, Choices* choices) {
  PriorityLimits limits;
  limits.limiter.min_size = 1 + choices->Below(3);
  if (spec.selector == SelectorKind::kEpoch) return limits;
  if (choices->OneIn(3)) limits.max_times_sampled = static_cast<uint32_t>(1 + choices->Below(3));
  if (choices->OneIn(3)) limits.remove_when_exhausted = choices->Below(2) == 1;
  if (bounded_table) return limits;  // What is evicted may open a limiter, or not: see README.
  if (choices->OneIn(4)) {
    limits.max_times_sampled = 0;
    const bool lifo = spec.selector == SelectorKind::kLifo;
    limits.limiter = {.kind = lifo ? LimiterKind::kStack : LimiterKind::kQueue,
                      .capacity = 12 + choices->Below(40)};
  } else if (choices->OneIn(5)) {
    limits.limiter.kind = LimiterKind::kRatio;
    limits.limiter.samples_per_insert = static_cast<double>(1 + choices->Below(4)) / 2;
    limits.limiter.error_buffer = 8 + static_cast<double>(choices->Below(40));
  }
  return limits;
}

namespace {

/// Some columns of any length, and one that is wide.
void AddValueColumns(Choices* choices, TableSpec* spec) {
  const uint64_t expected_rows = choices->OneIn(2) ? 100 : 0;
  // Filled afterwards, where there is such a group.
  const bool can_wait = !spec->groups.empty() && spec->groups[0].late;
  const bool late = can_wait && !spec->groups[0].is_volatile && choices->OneIn(3);
  const Column columns[] = {
      {.name = "text",
       .dtype = DType::kU8,
       .kind = ColumnKind::kRagged,
       .group = late ? spec->groups[0].name : "",
       .expected_rows = expected_rows},
      {.name = "agents",
       .dtype = DType::kI16,
       .shape = {3},
       .kind = ColumnKind::kRagged,
       .in_final_row = spec->final_row},
      {.name = "level",
       .dtype = DType::kU8,
       .kind = ColumnKind::kBlob,
       .expected_rows = expected_rows},
      {.name = "map", .shape = {20}, .kind = ColumnKind::kPerTrajectory, .default_value = 2}};
  for (const Column& column : columns) {
    if (choices->Below(3) < 2) spec->columns.push_back(column);
  }
}

}  // namespace

namespace {

/// What a page of a table without values of any length takes at most.
uint64_t PageBytes(const TableSpec& spec) {
  uint64_t bytes = 128 * (1 + spec.groups.size());
  for (const Column& column : spec.columns) {
    const auto row = static_cast<uint64_t>(column.shape.elements()) * DTypeBytes(column.dtype);
    if (IsPerStep(column.kind)) bytes += 16 + row * spec.steps_per_page;
  }
  return bytes;
}

/// Of trajectories, rows, or bytes. How many rows a page of values has, the model does not know, so
/// tables that have some are not bounded in bytes.
void AddCapacity(uint64_t kind, uint64_t size, TableSpec* spec) {
  bool values = false;
  for (const Column& column : spec->columns) {
    values |= AnyLength(column) || column.name == "map";
  }
  if (kind == 4 || (kind == 7 && size % 4 == 0)) spec->trajectories_max = 6 + size;
  if (kind == 5 || (kind >= 6 && values)) spec->steps_max = 64 + size;
  if (kind >= 6 && !values) spec->bytes_max = (kPagesOfCall + size) * PageBytes(*spec);
}

}  // namespace

TableSpec TableKind(const std::string& name, uint64_t kind) {
  Choices choices(kind);
  TableSpec spec;
  spec.name = name;
  spec.final_row = choices.OneIn(2);
  spec.stream = choices.OneIn(3);
  spec.steps_per_page = uint32_t{1} << choices.Below(4);
  spec.columns = {
      {.name = "act", .dtype = DType::kI32, .default_value = 7},
      {.name = "goal", .dtype = DType::kI32, .kind = ColumnKind::kPerTrajectory},
      {.name = "flag", .dtype = DType::kBool, .kind = ColumnKind::kPerTrajectory},
      {.name = "prio", .dtype = DType::kF32, .kind = ColumnKind::kPerTrajectory},
      {.name = "team", .dtype = DType::kI16, .kind = ColumnKind::kPerTrajectory},
      {.name = "obs", .dtype = DType::kF32, .shape = {2}, .in_final_row = spec.final_row}};
  if (choices.OneIn(3)) {
    spec.columns.push_back({.name = "frame",
                            .dtype = DType::kU8,
                            .shape = {24'000},
                            .compression = static_cast<Compression>(choices.Below(4))});
    spec.steps_per_page = 4;
  }
  if (choices.OneIn(2)) {  // Of n-step returns.
    spec.columns.push_back({.name = "discount", .dtype = DType::kF32});
    spec.columns.push_back({.name = "lost", .dtype = DType::kBool});
  }
  if (choices.OneIn(2)) {
    spec.groups.push_back({.name = "late", .late = true, .is_volatile = choices.OneIn(4)});
    spec.columns.push_back({.name = "ret", .group = "late", .default_value = -1});
  }
  if (choices.OneIn(3)) {
    spec.groups.push_back({.name = "cache", .is_volatile = true});
    spec.columns.push_back({.name = "aux", .dtype = DType::kI16, .group = "cache"});
  }
  if (choices.OneIn(2)) AddValueColumns(&choices, &spec);
  if (choices.OneIn(4)) spec.ttl_ms = 1 + static_cast<int64_t>(choices.Below(400));
  if (choices.OneIn(4)) spec.orphan_timeout_ms = 1 + static_cast<int64_t>(choices.Below(400));
  const uint64_t capacity = choices.Below(8);
  const uint64_t size = choices.Below(24);
  AddCapacity(capacity, size, &spec);
  const uint64_t remover = choices.Below(6);
  if (IsBounded(spec)) spec.remover = static_cast<Remover>((remover + 1) % 6);
  spec.remover_seed = remover;
  const uint64_t priority_tables = choices.Below(4);
  for (uint64_t i = 0; i < priority_tables; ++i) {
    spec.priority_tables.push_back(
        PriorityTableKind("p" + std::to_string(i), spec, Mixed(kind, i) >> 20));
  }
  if (RemovesByPriority(spec.remover)) {
    spec.remover = Remover::kLifo;
    for (const PriorityTableSpec& priority : spec.priority_tables) {
      if (!HasPriorities(priority.selector)) continue;
      spec.remover = remover % 2 == 0 ? Remover::kMaxHeap : Remover::kMinHeap;
      spec.remover_priority_table = priority.name;
    }
  }
  return spec;
}

WindowRule WindowKind(bool stream, Choices* choices) {
  WindowRule window;
  window.extent = {static_cast<int64_t>(choices->Below(3)),
                   1 + static_cast<int64_t>(choices->Below(3)),
                   static_cast<int64_t>(choices->Below(3))};
  if (choices->OneIn(4)) window.stride = 2;
  if (choices->OneIn(5)) window.stride_from_end = true;
  window.left = static_cast<EdgeRule>(choices->Below(5));
  window.right = static_cast<EdgeRule>(choices->Below(5));
  window.cross_ends = stream && choices->Below(3) > 0;
  return window;
}

ViewRows RowsKind(const PriorityTableSpec& rule, Choices* choices) {
  // Of a trajectory any rows may be asked for; of a window, those of its extent.
  const bool window = rule.item == ItemKind::kWindow;
  const Extent extent = window ? rule.window.extent : Extent{.before = 2, .length = 3, .after = 1};
  const int64_t end = extent.length + extent.after;
  const auto some_row = [&] {
    const auto all = static_cast<uint64_t>(extent.before + end);
    return static_cast<int64_t>(choices->Below(all)) - extent.before;
  };
  ViewRows rows;
  const uint64_t form = choices->Below(4);
  if (form == 0) return rows;
  if (form == 1) {
    for (uint64_t more = choices->Below(3) + 1; more > 0; --more) rows.list.push_back(some_row());
    return rows;
  }
  constexpr int64_t kStrides[] = {1, 2, -1, -2};
  rows.stride = kStrides[choices->Below(std::size(kStrides))];
  rows.begin = some_row();
  const int64_t fit = 1 + (rows.stride > 0 ? (end - 1 - rows.begin) / rows.stride
                                           : (rows.begin + extent.before) / -rows.stride);
  if (form == 2 && fit >= extent.length) {
    rows.plus =
        static_cast<int64_t>(choices->Below(static_cast<uint64_t>(fit - extent.length) + 1));
  } else {
    rows.count = 1 + static_cast<int64_t>(choices->Below(static_cast<uint64_t>(fit)));
  }
  return rows;
}

namespace {

/// Complete, ready from some members on, or by a deadline.
GroupSpec GroupKind(Choices* choices) {
  GroupSpec group{.key = "team", .count = static_cast<uint32_t>(1 + choices->Below(4))};
  group.at_least = static_cast<uint32_t>(choices->Below(group.count + 1));
  const bool may_wait = group.at_least > 0 && group.at_least < group.count;
  const uint64_t deadline_ms = choices->Below(300);
  if (may_wait && choices->OneIn(2)) group.deadline_ms = 1 + static_cast<int64_t>(deadline_ms);
  return group;
}

}  // namespace

PriorityTableSpec PriorityTableKind(const std::string& name, const TableSpec& table,
                                    uint64_t kind) {
  Choices choices(kind);
  PriorityTableSpec spec;
  spec.name = name;
  spec.seed = kind % 1000;
  spec.selector = static_cast<SelectorKind>(choices.Below(8));
  constexpr ItemKind kItems[] = {ItemKind::kWindow, ItemKind::kWindow, ItemKind::kTrajectory,
                                 ItemKind::kGroup};
  spec.item = kItems[choices.Below(std::size(kItems))];
  if (spec.item == ItemKind::kGroup) spec.group = GroupKind(&choices);
  if (spec.item == ItemKind::kWindow) spec.window = WindowKind(table.stream, &choices);
  spec.alpha = choices.OneIn(3) ? 0.5 : 1.0;
  const uint64_t initial = choices.Below(4);
  if (initial == 1) {
    spec.initial = InitialPriority::kConstant;
    spec.initial_priority_value = 0.75f;
  } else if (initial == 2) {
    spec.initial = InitialPriority::kColumn;
    spec.initial_priority_column = "prio";
  }
  if (choices.OneIn(5)) {
    for (const ColumnGroup& group : table.groups) {
      if (group.late && !group.is_volatile) spec.required.push_back(group.name);
    }
    if (choices.OneIn(2)) spec.required.push_back("goal");
    for (const Column& column : table.columns) {
      const bool requires_it = column.kind == ColumnKind::kBlob && choices.OneIn(2);
      if (requires_it) spec.required.push_back(column.name);
    }
  }
  PriorityLimits limits = LimitsKind(spec, IsBounded(table), &choices);
  const GroupSpec& group = spec.group;
  const bool takes_when_ready = group.deadline_ms == 0 && group.at_least < group.count &&
                                group.at_least > 0 && spec.selector != SelectorKind::kEpoch;
  // Members come between two draws of a group, and then there is none any more.
  if (takes_when_ready && choices.OneIn(2)) limits = {.max_times_sampled = 3};
  spec.limiter = limits.limiter;
  spec.max_times_sampled = limits.max_times_sampled;
  spec.remove_when_exhausted = limits.remove_when_exhausted;
  if (spec.selector == SelectorKind::kEpoch) {
    spec.epoch.passes = static_cast<uint32_t>(1 + choices.Below(2));
    spec.epoch.remove_covered = choices.OneIn(3);
    return spec;
  }
  if (choices.OneIn(4)) {
    spec.filter = FilterKind(&choices, /*standing=*/true);
    if (choices.OneIn(2)) spec.filter_action = FilterAction::kExpire;
  }
  return spec;
}

}  // namespace geardb::differential
