#include "engine/internal/filter_bind.h"

#include <cstddef>
#include <utility>

namespace geardb::engine {
namespace {

using index::Comparison;
using index::ExactNumber;
using index::FilterColumn;
using index::FilterProgram;
using index::TrajectoryRecord;
using index::ValueRanges;
using Kind = FilterExpression::Kind;

// The numbers of WordsOfField.
static_assert(static_cast<int>(index::TrajectoryState::kOpen) == 1 &&
              static_cast<int>(index::TrajectoryState::kClosed) == 2 &&
              static_cast<int>(index::TrajectoryState::kOrphaned) == 3);
static_assert(static_cast<int>(End::kGo) == 0 && static_cast<int>(End::kTerminated) == 1 &&
              static_cast<int>(End::kTruncated) == 2 && static_cast<int>(End::kCut) == 3);

/// Where per-trajectory values are; without an index, types alone are looked at.
struct Sources {
  const TableLayout& layout;
  const index::TrajectoryIndex* trajectories = nullptr;

  const std::byte* Records() const {
    if (trajectories == nullptr) return nullptr;
    return reinterpret_cast<const std::byte*>(&trajectories->record(0));
  }
  FilterColumn Field(size_t offset, DType dtype) const {
    const std::byte* records = Records();
    return {.base = records == nullptr ? nullptr : records + offset,
            .stride = sizeof(TrajectoryRecord),
            .dtype = dtype};
  }
};

bool IsReal(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBf16 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

Status WrongType(const Sources& sources, const FilterOperand& operand, DType dtype,
                 std::string_view expected) {
  return Status::InvalidArgument("table '", sources.layout.spec().name,
                                 "': ", PrintOperand(operand), " is ", DTypeName(dtype),
                                 "; a filter expected ", expected);
}

Result<size_t> FindColumn(const Sources& sources, const FilterOperand& operand) {
  const TableLayout& layout = sources.layout;
  if (const auto found = layout.FindTrajectoryColumn(operand.column)) return *found;
  if (!layout.FindStepColumn(operand.column)) return layout.NoSuchColumn(operand.column);
  return Status::InvalidArgument("table '", layout.spec().name, "': column '", operand.column,
                                 "' is per step; a filter takes per-trajectory columns");
}

Result<FilterColumn> BindColumn(const Sources& sources, const FilterOperand& operand) {
  GEARDB_ASSIGN_OR_RETURN(const size_t number, FindColumn(sources, operand));
  const TrajectoryColumn& column = sources.layout.trajectory_columns()[number];
  if (column.companion) {
    return Status::InvalidArgument(
        "table '", sources.layout.spec().name, "': column '", column.name,
        "' is a blob or wider than ", kTrajectoryColumnBytesMax,
        " bytes; a filter asks whether it is set, isset(", column.name, "), and no more");
  }
  GEARDB_ASSIGN_OR_RETURN(const size_t element, ElementOf(operand, sources.layout, column.shape));
  FilterColumn bound{.stride = column.bytes, .dtype = column.dtype};
  if (sources.trajectories != nullptr) {
    bound.base =
        sources.trajectories->column(column.place, 0).data() + element * DTypeBytes(column.dtype);
  }
  return bound;
}

Result<FilterColumn> BindSource(const Sources& sources, const FilterOperand& operand) {
  switch (operand.field) {
    case FilterField::kColumn:
      return BindColumn(sources, operand);
    case FilterField::kId:
      return sources.Field(offsetof(TrajectoryRecord, id), DType::kU64);
    case FilterField::kFirstRow:
      return sources.Field(offsetof(TrajectoryRecord, first_row), DType::kU64);
    case FilterField::kCreatedUs:
      return sources.Field(offsetof(TrajectoryRecord, created_us), DType::kI64);
    case FilterField::kTimesSampled:
      return sources.Field(offsetof(TrajectoryRecord, times_sampled), DType::kU64);
    case FilterField::kState:
      return sources.Field(offsetof(TrajectoryRecord, state), DType::kU8);
    case FilterField::kEnd:
      return sources.Field(offsetof(TrajectoryRecord, end), DType::kU8);
    case FilterField::kLength:
      break;
  }
  // One past the last row, less the first, less a final row (the lowest of the flags).
  static_assert(index::kFinalRowStored == 1);
  FilterColumn length = sources.Field(offsetof(TrajectoryRecord, rows_end), DType::kU64);
  length.less = sources.Field(offsetof(TrajectoryRecord, first_row), DType::kU64).base;
  length.less_bit = sources.Field(offsetof(TrajectoryRecord, flags), DType::kU8).base;
  return length;
}

Result<FilterColumn> BindIsSet(const Sources& sources, const FilterOperand& operand) {
  GEARDB_ASSIGN_OR_RETURN(const size_t number, FindColumn(sources, operand));
  // The bits of a little-endian word, byte by byte.
  if (number >= index::kColumnsSetBits) {
    return Status::Unsupported("table '", sources.layout.spec().name, "': isset(",
                               PrintOperand(operand), "): only the first ", index::kColumnsSetBits,
                               " per-trajectory columns are known to be set or not");
  }
  FilterColumn bits =
      sources.Field(offsetof(TrajectoryRecord, columns_set) + number / 8, DType::kU8);
  bits.bits = static_cast<uint8_t>(1u << (number % 8));
  return bits;
}

/// Elements that are not 0.
ValueRanges NotZero(DType dtype) {
  return index::CompareRanges(dtype, Comparison::kNotEqual, ExactNumber());
}

class Compiler {
 public:
  Compiler(const Sources& sources, FilterProgram* program) : sources_(sources), program_(program) {}

  Status Compile(const FilterExpression& expression) {
    switch (expression.kind) {
      case Kind::kConstant:
        program_->PushConstant(expression.value);
        return Status::Ok();
      case Kind::kAnd:
      case Kind::kOr:
        return CompileChain(expression);
      case Kind::kNot:
        GEARDB_RETURN_IF_ERROR(Compile(expression.children[0]));
        program_->Not();
        return Status::Ok();
      default:
        return CompileTest(expression);
    }
  }

 private:
  Status CompileChain(const FilterExpression& chain) {
    const bool all = chain.kind == Kind::kAnd;
    std::vector<size_t> skips;
    GEARDB_RETURN_IF_ERROR(Compile(chain.children[0]));
    for (size_t i = 1; i < chain.children.size(); ++i) {
      skips.push_back(program_->PushSkip(!all));
      GEARDB_RETURN_IF_ERROR(Compile(chain.children[i]));
      if (all) {
        program_->And();
      } else {
        program_->Or();
      }
    }
    for (const size_t skip : skips) program_->Land(skip);
    return Status::Ok();
  }

  Status CompileTest(const FilterExpression& test) {
    GEARDB_ASSIGN_OR_RETURN(const FilterColumn column, test.kind == Kind::kIsSet
                                                           ? BindIsSet(sources_, test.operand)
                                                           : BindSource(sources_, test.operand));
    GEARDB_ASSIGN_OR_RETURN(const ValueRanges ranges, RangesOf(test, column.dtype));
    program_->PushTest(program_->AddColumn(column), ranges);
    return Status::Ok();
  }

  Result<ValueRanges> RangesOf(const FilterExpression& test, DType dtype) const {
    if (test.kind == Kind::kIsSet) return NotZero(dtype);
    if (test.kind == Kind::kTruth) {
      if (dtype == DType::kBool) return NotZero(dtype);
      return WrongType(sources_, test.operand, dtype, "a comparison of it");
    }
    if (test.kind == Kind::kIsNaN) {
      if (!IsReal(dtype)) {
        return WrongType(sources_, test.operand, dtype, "f16, bf16, f32 or f64 in isnan");
      }
      ValueRanges ranges = index::NumberRanges(dtype);
      ranges.negated = true;
      return ranges;
    }
    const bool with_bool = test.constants[0].kind == FilterConstant::Kind::kBool;
    if (with_bool != (dtype == DType::kBool)) {
      return WrongType(sources_, test.operand, dtype,
                       with_bool ? "a bool beside true and false" : "numbers beside a number");
    }
    if (test.kind == Kind::kCompare) {
      return index::CompareRanges(dtype, test.comparison, test.constants[0].number);
    }
    std::vector<ExactNumber> numbers;
    for (const FilterConstant& constant : test.constants) numbers.push_back(constant.number);
    return index::AnyOfRanges(dtype, numbers);
  }

  const Sources& sources_;
  FilterProgram* const program_;
};

Result<FilterProgram> Bind(const Filter& filter, const Sources& sources) {
  FilterProgram program;
  GEARDB_RETURN_IF_ERROR(Compiler(sources, &program).Compile(filter.impl().expression));
  // Last, so that the records of slots that do not pass are not read for it.
  const size_t skip = program.PushSkip(false);
  const FilterColumn state = sources.Field(offsetof(TrajectoryRecord, state), DType::kU8);
  program.PushTest(program.AddColumn(state), NotZero(DType::kU8));
  program.And();
  program.Land(skip);
  return program;
}

}  // namespace

Result<size_t> ElementOf(const FilterOperand& operand, const TableLayout& layout,
                         const Shape& shape) {
  const bool fits =
      operand.element ? shape.rank() == 1 && *operand.element < shape[0] : shape.rank() == 0;
  if (fits) return size_t{operand.element.value_or(0)};
  return Status::InvalidArgument(
      "table '", layout.spec().name, "': column '", operand.column, "' has shape ",
      shape.ToString(), "; ", PrintOperand(operand), " is ",
      !operand.element ? "no scalar: name an element of a vector, as x[0]"
                       : "no element of a vector");
}

Result<index::FilterColumn> BindOperand(const FilterOperand& operand, const TableLayout& layout,
                                        const index::TrajectoryIndex& trajectories) {
  return BindSource({layout, &trajectories}, operand);
}

Result<FilterProgram> BindFilter(const Filter& filter, const TableLayout& layout,
                                 const index::TrajectoryIndex& trajectories) {
  return Bind(filter, {layout, &trajectories});
}

Status CheckFilter(const Filter& filter, const TableLayout& layout) {
  return Bind(filter, {layout}).status();
}

}  // namespace geardb::engine
