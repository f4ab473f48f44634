#include "tests/conformance/random_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

namespace geardb::conformance {
namespace {

Shape RandomShape(RandomChoice* choice) {
  switch (choice->Below(8)) {
    case 0:
    case 1:
    case 2:
      return Shape();
    case 3:
    case 4:
      return Shape({choice->Between(1, 7)});
    case 5:
    case 6:
      return Shape({choice->Between(1, 3), choice->Between(1, 5)});
    default:
      return Shape({choice->Between(256, 300), 4});
  }
}

std::vector<Column> RandomColumns(RandomChoice* choice, bool final_row) {
  std::vector<Column> columns;
  columns.push_back(Column{.name = "obs",
                           .dtype = choice->Of({DType::kU8, DType::kI16, DType::kF32, DType::kF16,
                                                DType::kBf16, DType::kU16, DType::kI8}),
                           .shape = RandomShape(choice),
                           .in_final_row = final_row});
  const DType reward = choice->Percent(60)
                           ? DType::kF32
                           : choice->Of({DType::kF64, DType::kI8, DType::kI64, DType::kF16});
  columns.push_back(Column{.name = "reward", .dtype = reward, .shape = {}});
  columns.push_back(Column{.name = "discount", .shape = {}});
  columns.push_back(
      Column{.name = "life", .dtype = choice->Of({DType::kBool, DType::kU8}), .shape = {}});
  columns.push_back(Column{.name = "action",
                           .dtype = choice->Of({DType::kI64, DType::kU64, DType::kU32, DType::kI32,
                                                DType::kBool, DType::kF64}),
                           .shape = RandomShape(choice),
                           .in_final_row = final_row && choice->Percent(30)});
  columns.push_back(Column{.name = "goal",
                           .dtype = choice->Of({DType::kF32, DType::kU8, DType::kI32}),
                           .shape = Shape({choice->Between(1, 4)}),
                           .kind = ColumnKind::kPerTrajectory});
  columns.push_back(
      Column{.name = "first_priority", .shape = {}, .kind = ColumnKind::kPerTrajectory});
  choice->Shuffle(&columns);
  return columns;
}

/// A number that every element of the dtype can be.
double RandomDefault(DType dtype, RandomChoice* choice) {
  if (dtype == DType::kBool) return static_cast<double>(choice->Below(2));
  if (dtype == DType::kF32 || dtype == DType::kF64)
    return static_cast<double>(choice->Between(-9, 9)) / 4.0;
  return static_cast<double>(choice->Between(0, 100));
}

/// Puts the columns into groups, of which the first keeps one at least.
void RandomGroups(RandomChoice* choice, TableSpec* spec) {
  for (Column& column : spec->columns) {
    if (choice->Percent(50)) column.default_value = RandomDefault(column.dtype, choice);
    if (column.name == "first_priority") column.default_value = std::fabs(column.default_value);
  }
  if (choice->Percent(30)) return;
  spec->groups = {{.name = "apart"}, {.name = "scratch", .is_volatile = true}};
  for (Column& column : spec->columns) {
    if (column.kind == ColumnKind::kPerTrajectory || column.name == "reward") continue;
    column.group = choice->Of({"", "", "apart", "scratch"});
  }
  if (choice->Percent(70)) {
    spec->groups.push_back({.name = "late", .late = true, .is_volatile = choice->Percent(20)});
    spec->columns.push_back({.name = "target", .group = "late", .default_value = -1});
    spec->columns.push_back({.name = "logits",
                             .dtype = choice->Of({DType::kF16, DType::kU8, DType::kF64}),
                             .shape = RandomShape(choice),
                             .group = "late",
                             .default_value = 3});
  }
  std::erase_if(spec->groups, [&](const ColumnGroup& group) {
    return std::none_of(spec->columns.begin(), spec->columns.end(),
                        [&](const Column& column) { return column.group == group.name; });
  });
  choice->Shuffle(&spec->groups);
}

PriorityTableSpec RandomPriorityTable(RandomChoice* choice, const TableSpec& table) {
  PriorityTableSpec spec;
  spec.name = "draws" + std::to_string(table.priority_tables.size());
  spec.item = choice->Percent(25) ? ItemKind::kTrajectory : ItemKind::kWindow;
  const auto rule = [choice] { return static_cast<EdgeRule>(choice->Below(5)); };
  if (spec.item == ItemKind::kWindow) {
    spec.window.extent = Extent{choice->Percent(40) ? 0 : choice->Between(1, 4),
                                choice->Percent(30) ? 1 : choice->Between(2, 6),
                                choice->Percent(30) ? 0 : choice->Between(1, 4)};
    spec.window.stride = choice->Percent(60) ? 1 : choice->Between(2, 4);
    spec.window.stride_from_end = choice->Percent(25);
    spec.window.left = rule();
    spec.window.right = rule();
    spec.window.cross_ends = table.stream && choice->Percent(50);
  }
  spec.selector =
      choice->Percent(50)
          ? choice->Of({SelectorKind::kUniform, SelectorKind::kPrioritized})
          : choice->Of({SelectorKind::kFifo, SelectorKind::kLifo, SelectorKind::kMinHeap,
                        SelectorKind::kMaxHeap, SelectorKind::kWithoutReplacement});
  spec.alpha = choice->Of({0.0, 0.6, 1.0});
  spec.initial = static_cast<InitialPriority>(choice->Below(3));
  spec.initial_priority_value = choice->Of({0.5f, 1.0f, 3.0f});
  if (spec.initial == InitialPriority::kColumn) spec.initial_priority_column = "first_priority";
  spec.seed = choice->Bits();
  for (const ColumnGroup& group : table.groups) {
    if (group.late && !group.is_volatile && choice->Percent(40)) spec.required = {group.name};
  }
  if (choice->Percent(15)) spec.required.push_back("goal");
  return spec;
}

template <typename T>
void Put(T value, std::byte* element) {
  std::memcpy(element, &value, sizeof(T));
}

void PutRandomElement(DType dtype, RandomChoice* choice, std::byte* element) {
  const uint64_t bits = choice->Bits();
  const auto number = static_cast<double>(choice->Between(-100'000, 100'000)) / 777.0;
  switch (dtype) {
    case DType::kF16:  // Any but those without a value.
      return Put(static_cast<uint16_t>((bits & 0x7C00) == 0x7C00 ? bits & 0xBFFF : bits), element);
    case DType::kBf16:
      return Put(static_cast<uint16_t>((bits & 0x7F80) == 0x7F80 ? bits & 0xBFFF : bits), element);
    case DType::kF32:
      return Put(static_cast<float>(number), element);
    case DType::kF64:
      return Put(number, element);
    case DType::kBool:
      return Put(static_cast<uint8_t>(bits & 1), element);
    default:
      std::memcpy(element, &bits, DTypeBytes(dtype));
  }
}

Side SideOf(EdgeRule rule) {
  switch (rule) {
    case EdgeRule::kRequire:
      return Side::kRequire;
    case EdgeRule::kClip:
      return Side::kClip;
    case EdgeRule::kPad:
      return Side::kPad;
    case EdgeRule::kRepeat:
      return Side::kRepeat;
    case EdgeRule::kShift:
      return Side::kShift;
  }
  return Side::kRequire;
}

size_t PlaceOf(const TableSpec& spec, const std::vector<size_t>& places, std::string_view name) {
  for (size_t i = 0; i < places.size(); ++i) {
    if (spec.columns[places[i]].name == name) return i;
  }
  GEARDB_CHECK(false);
}

}  // namespace

size_t RandomTable::StepColumn(std::string_view name) const {
  return PlaceOf(spec, step_columns, name);
}

size_t RandomTable::TrajectoryColumn(std::string_view name) const {
  return PlaceOf(spec, trajectory_columns, name);
}

bool RandomTable::IsLate(const Column& column) const {
  return std::any_of(spec.groups.begin(), spec.groups.end(), [&](const ColumnGroup& group) {
    return group.late && group.name == column.group;
  });
}

Bytes DefaultRow(const Column& column) {
  Bytes row(RowBytesOf(column));
  const double value = column.default_value;
  for (size_t at = 0; at < row.size(); at += DTypeBytes(column.dtype)) {
    switch (column.dtype) {
      case DType::kF32:
        Put(static_cast<float>(value), &row[at]);
        break;
      case DType::kF64:
        Put(value, &row[at]);
        break;
      case DType::kF16:  // Whole numbers of at most 100: six bits behind the leading one.
      case DType::kBf16: {
        if (value == 0) break;
        const int exponent = std::ilogb(value);
        const bool half = column.dtype == DType::kF16;
        const int fraction_bits = half ? 10 : 7;
        const auto fraction =
            static_cast<int>((std::ldexp(value, -exponent) - 1) * std::ldexp(1.0, fraction_bits));
        const int biased = exponent + (half ? 15 : 127);
        Put(static_cast<uint16_t>((biased << fraction_bits) | fraction), &row[at]);
        break;
      }
      default: {  // Little-endian.
        const auto number = static_cast<int64_t>(value);
        std::memcpy(&row[at], &number, DTypeBytes(column.dtype));
      }
    }
  }
  return row;
}

size_t RowBytesOf(const Column& column) {
  return static_cast<size_t>(column.shape.elements()) * DTypeBytes(column.dtype);
}

RandomTable MakeRandomTable(RandomChoice* choice) {
  RandomTable table;
  TableSpec& spec = table.spec;
  spec.name = "table";
  spec.final_row = choice->Percent(50);
  spec.stream = choice->Percent(40);
  spec.columns = RandomColumns(choice, spec.final_row);
  RandomGroups(choice, &spec);
  spec.steps_per_page = choice->Of({1u, 2u, 4u, 16u});
  if (choice->Percent(20)) {
    // Room for the pages that the open trajectories of all lanes keep.
    spec.steps_max = 12 * spec.steps_per_page + static_cast<uint64_t>(choice->Between(40, 80));
  } else if (choice->Percent(15)) {
    spec.trajectories_max = static_cast<uint64_t>(choice->Between(8, 14));
  }
  if (choice->Percent(40)) spec.remover = Remover::kLifo;
  for (int64_t i = choice->Between(2, 4); i > 0; --i) {
    spec.priority_tables.push_back(RandomPriorityTable(choice, spec));
  }
  for (size_t i = 0; i < spec.columns.size(); ++i) {
    const bool per_step = spec.columns[i].kind == ColumnKind::kPerStep;
    (per_step ? table.step_columns : table.trajectory_columns).push_back(i);
  }
  return table;
}

RandomTable MakeTableOfAllRules(RandomChoice* choice) {
  RandomTable table = MakeRandomTable(choice);
  table.spec.priority_tables.clear();
  for (uint8_t pair = 0; pair < 25; ++pair) {
    PriorityTableSpec spec = RandomPriorityTable(choice, table.spec);
    spec.item = ItemKind::kWindow;
    spec.required.clear();  // All situations are to be seen.
    spec.window = {.extent = {choice->Between(1, 3), choice->Between(1, 3), choice->Between(0, 2)},
                   .left = static_cast<EdgeRule>(pair / 5),
                   .right = static_cast<EdgeRule>(pair % 5),
                   .cross_ends = table.spec.stream && choice->Percent(40)};
    table.spec.priority_tables.push_back(spec);
  }
  return table;
}

std::string DescribeTable(const RandomTable& table) {
  const TableSpec& spec = table.spec;
  std::ostringstream out;
  out << "table" << (spec.final_row ? " final_row" : "") << (spec.stream ? " stream" : "")
      << ", steps_per_page " << spec.steps_per_page << ", steps_max " << spec.steps_max
      << ", trajectories_max " << spec.trajectories_max
      << (spec.remover == Remover::kLifo ? ", lifo" : "");
  for (const ColumnGroup& group : spec.groups) {
    out << ", group " << group.name << (group.is_volatile ? " (volatile)" : "");
  }
  return std::move(out).str();
}

std::string DescribePriorityTable(const PriorityTableSpec& spec) {
  static constexpr const char* kSelectors[] = {
      "uniform",  "prioritized",         "fifo", "lifo", "min heap",
      "max heap", "without replacement", "epoch"};
  static constexpr const char* kRules[] = {"require", "clip", "pad", "repeat", "shift"};
  const WindowRule& window = spec.window;
  std::ostringstream out;
  out << spec.name << ": " << kSelectors[static_cast<size_t>(spec.selector)];
  if (spec.item == ItemKind::kTrajectory) {
    out << " trajectories";
  } else {
    out << " windows {" << window.extent.before << ", " << window.extent.length << ", "
        << window.extent.after << "}, stride " << window.stride
        << (window.stride_from_end ? " from the end" : "") << ", left "
        << kRules[static_cast<size_t>(window.left)] << ", right "
        << kRules[static_cast<size_t>(window.right)]
        << (window.cross_ends ? ", crossing ends" : "");
  }
  for (const std::string& name : spec.required) out << ", requires " << name;
  out << "; initial " << static_cast<int>(spec.initial) << ", alpha " << spec.alpha;
  return std::move(out).str();
}

ModelTable ModelTableOf(const RandomTable& table) {
  ModelTable model;
  for (size_t i = 0; i < table.step_columns.size(); ++i) {
    const Column& column = table.step_column(i);
    ModelColumn& added = model.columns.emplace_back(ModelColumn{
        column.dtype, static_cast<size_t>(column.shape.elements()), column.in_final_row});
    for (const ColumnGroup& group : table.spec.groups) {
      if (group.name != column.group) continue;
      added.late = group.late;
      added.is_volatile = group.is_volatile;
    }
    added.unwritten = DefaultRow(column);
  }
  model.final_row = table.spec.final_row;
  model.stream = table.spec.stream;
  return model;
}

ModelCapacity ModelCapacityOf(const RandomTable& table) {
  return ModelCapacity{.steps_max = static_cast<int64_t>(table.spec.steps_max),
                       .trajectories_max = static_cast<int64_t>(table.spec.trajectories_max),
                       .steps_per_page = static_cast<int64_t>(table.spec.steps_per_page),
                       .lifo = table.spec.remover == Remover::kLifo};
}

ModelRule ModelRuleOf(const PriorityTableSpec& spec) {
  const auto requires_it = [&](const char* name) {
    return std::find(spec.required.begin(), spec.required.end(), name) != spec.required.end();
  };
  if (spec.item == ItemKind::kTrajectory) {
    return ModelRule{.trajectories = true,
                     .needs_filled = requires_it("late"),
                     .needs_mark = requires_it("goal")};
  }
  const WindowRule& window = spec.window;
  return ModelRule{.before = window.extent.before,
                   .length = window.extent.length,
                   .after = window.extent.after,
                   .stride = window.stride,
                   .stride_from_end = window.stride_from_end,
                   .left = SideOf(window.left),
                   .right = SideOf(window.right),
                   .cross_ends = window.cross_ends,
                   .needs_filled = requires_it("late"),
                   .needs_mark = requires_it("goal")};
}

Bytes RandomRow(const Column& column, RandomChoice* choice) {
  const size_t element_bytes = DTypeBytes(column.dtype);
  Bytes bytes(RowBytesOf(column));
  if (bytes.size() > 256) {  // Large rows: a counter is enough to tell them apart, and quick.
    const uint64_t first = choice->Bits();
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      const uint64_t word =
          (first + at) & (column.dtype == DType::kBool ? 0x0101010101010101u : 0x3333333333333333u);
      std::memcpy(&bytes[at], &word, 8);
    }
    return bytes;
  }
  for (size_t at = 0; at < bytes.size(); at += element_bytes) {
    PutRandomElement(column.dtype, choice, &bytes[at]);
  }
  return bytes;
}

}  // namespace geardb::conformance
