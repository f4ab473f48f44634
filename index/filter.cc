#include "index/filter.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace geardb::index {
namespace {

/// Loops of a fixed length over what cannot overlap are what the compiler turns into vector code.
constexpr size_t kLanes = 64;

template <typename Ordered>
Ordered FromBits(uint64_t bits) {
  Ordered value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// How an element is compared, and what a range asks of it.
template <typename T>
struct Element {
  using Ordered = T;
  static T Key(T value) { return value; }
};
struct HalfElement {
  using Ordered = int16_t;
  static int16_t Key(uint16_t bits) { return OrderedHalf(bits); }
};
template <>
struct Element<Float16> : HalfElement {};
template <>
struct Element<BFloat16> : HalfElement {};

template <typename T>
using Stored = std::conditional_t<std::is_arithmetic_v<T>, T, uint16_t>;

/// What is asked of a block of values.
template <typename Ordered>
struct Inside {
  Ordered low;
  Ordered high;
};

/// Where a range is the mask's first it is set, else added.
template <typename T, bool kFirst, typename Ordered>
inline void TestOne(const Stored<T>& value, const Inside<Ordered>& range, uint8_t* mask) {
  const Ordered key = Element<T>::Key(value);
  // Not &&, which would be a branch; and no test of a NaN is true.
  const auto inside = static_cast<uint8_t>((key >= range.low) & (key <= range.high));
  *mask = kFirst ? inside : static_cast<uint8_t>(*mask | inside);
}

template <typename T, bool kFirst>
void TestRange(const Stored<T>* __restrict values, uint32_t count, const ValueRange& range,
               uint8_t* __restrict mask) {
  using Ordered = typename Element<T>::Ordered;
  const Inside<Ordered> inside{FromBits<Ordered>(range.low), FromBits<Ordered>(range.high)};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) TestOne<T, kFirst>(values[i + j], inside, mask + i + j);
  }
  for (; i < count; ++i) TestOne<T, kFirst>(values[i], inside, mask + i);
}

template <typename T>
void TestRanges(const std::byte* bytes, uint32_t count, std::span<const ValueRange> ranges,
                uint8_t* mask) {
  const auto* values = reinterpret_cast<const Stored<T>*>(bytes);
  if (ranges.empty()) {
    std::memset(mask, 0, count);
    return;
  }
  TestRange<T, true>(values, count, ranges[0], mask);
  for (const ValueRange& range : ranges.subspan(1)) TestRange<T, false>(values, count, range, mask);
}

/// Brings strided values together.
template <typename T>
void Collect(const FilterColumn& column, const SlotBlock& block, std::byte* into) {
  const auto [first, count] = block;
  const std::byte* from = column.base + first * column.stride;
  auto* values = reinterpret_cast<T*>(into);
  for (uint32_t i = 0; i < count; ++i) {
    std::memcpy(values + i, from + i * column.stride, sizeof(T));
  }
  if constexpr (std::is_same_v<T, uint8_t>) {
    if (column.bits == 0xFF) return;
    for (uint32_t i = 0; i < count; ++i) values[i] &= column.bits;
  }
  if constexpr (std::is_same_v<T, uint64_t>) {
    if (column.less == nullptr) return;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t at = (first + i) * column.stride;
      uint64_t less = 0;
      std::memcpy(&less, column.less + at, sizeof(less));
      values[i] -= less + (std::to_integer<uint64_t>(column.less_bit[at]) & 1);
    }
  }
}

bool IsDense(const FilterColumn& column) {
  return column.stride == DTypeBytes(column.dtype) && column.bits == 0xFF && column.less == nullptr;
}

using TestFunction = void (*)(const std::byte*, uint32_t, std::span<const ValueRange>, uint8_t*);

TestFunction TestOf(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return TestRanges<int8_t>;
    case DType::kU16:
      return TestRanges<uint16_t>;
    case DType::kI16:
      return TestRanges<int16_t>;
    case DType::kU32:
      return TestRanges<uint32_t>;
    case DType::kI32:
      return TestRanges<int32_t>;
    case DType::kU64:
      return TestRanges<uint64_t>;
    case DType::kI64:
      return TestRanges<int64_t>;
    case DType::kF16:
      return TestRanges<Float16>;
    case DType::kBf16:
      return TestRanges<BFloat16>;
    case DType::kF32:
      return TestRanges<float>;
    case DType::kF64:
      return TestRanges<double>;
    default:
      return TestRanges<uint8_t>;
  }
}

enum class Join { kAnd, kOr };

template <Join kJoin>
__attribute__((noinline)) void JoinMasks(uint8_t* __restrict into, const uint8_t* __restrict other,
                                         uint32_t count) {
  // OR of what is turned around is AND: bits are 0 or 1.
  constexpr uint8_t kTurn = kJoin == Join::kAnd ? 0 : 1;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) {
      into[i + j] = static_cast<uint8_t>(((into[i + j] ^ kTurn) & (other[i + j] ^ kTurn)) ^ kTurn);
    }
  }
  for (; i < count; ++i) {
    into[i] = static_cast<uint8_t>(((into[i] ^ kTurn) & (other[i] ^ kTurn)) ^ kTurn);
  }
}

void NotMask(uint8_t* mask, uint32_t count) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) mask[i + j] = static_cast<uint8_t>(mask[i + j] ^ 1);
  }
  for (; i < count; ++i) mask[i] = static_cast<uint8_t>(mask[i] ^ 1);
}

}  // namespace

void CollectValues(const FilterColumn& column, const SlotBlock& block, std::byte* into) {
  switch (DTypeBytes(column.dtype)) {
    case 1:
      return Collect<uint8_t>(column, block, into);
    case 2:
      return Collect<uint16_t>(column, block, into);
    case 4:
      return Collect<uint32_t>(column, block, into);
    default:
      return Collect<uint64_t>(column, block, into);
  }
}

// ---- Building.

uint32_t FilterProgram::AddColumn(const FilterColumn& column) {
  columns_.push_back(column);
  return static_cast<uint32_t>(columns_.size() - 1);
}

void FilterProgram::PushTest(uint32_t column, const ValueRanges& ranges) {
  GEARDB_CHECK(columns_[column].dtype == ranges.dtype);
  steps_.push_back({.kind = Kind::kTest,
                    .value = ranges.negated,
                    .column = column,
                    .first_range = static_cast<uint32_t>(ranges_.size()),
                    .range_count = static_cast<uint32_t>(ranges.ranges.size())});
  ranges_.insert(ranges_.end(), ranges.ranges.begin(), ranges.ranges.end());
  depth_ = std::max(depth_, ++height_);
  GEARDB_CHECK(depth_ <= kDepthMax);
}

void FilterProgram::PushConstant(bool value) {
  steps_.push_back({.kind = Kind::kConstant, .value = value});
  depth_ = std::max(depth_, ++height_);
  GEARDB_CHECK(depth_ <= kDepthMax);
}

void FilterProgram::And() {
  GEARDB_CHECK(height_-- >= 2);
  steps_.push_back({.kind = Kind::kAnd});
}

void FilterProgram::Or() {
  GEARDB_CHECK(height_-- >= 2);
  steps_.push_back({.kind = Kind::kOr});
}

size_t FilterProgram::PushSkip(bool value) {
  steps_.push_back({.kind = Kind::kSkip, .value = value});
  return steps_.size() - 1;
}

// ---- Running.

void FilterProgram::Test(const Step& step, const SlotBlock& block, std::byte* values,
                         uint8_t* mask) const {
  const FilterColumn& column = columns_[step.column];
  const std::byte* bytes = column.base + block.first * column.stride;
  if (!IsDense(column)) {
    CollectValues(column, block, values);
    bytes = values;
  }
  TestOf(column.dtype)(bytes, block.count,
                       std::span(ranges_).subspan(step.first_range, step.range_count), mask);
  if (step.value) NotMask(mask, block.count);
}

void FilterProgram::Run(const SlotBlock& block, const Scratch& scratch) const {
  GEARDB_CHECK(height_ == 1);
  uint8_t* top = scratch.masks - scratch.block;  // The last mask; none yet.
  for (size_t at = 0; at < steps_.size(); ++at) {
    const Step& step = steps_[at];
    switch (step.kind) {
      case Kind::kTest:
        top += scratch.block;
        Test(step, block, scratch.values, top);
        break;
      case Kind::kConstant:
        top += scratch.block;
        std::memset(top, step.value ? 1 : 0, block.count);
        break;
      case Kind::kNot:
        NotMask(top, block.count);
        break;
      case Kind::kAnd:
        top -= scratch.block;
        JoinMasks<Join::kAnd>(top, top + scratch.block, block.count);
        break;
      case Kind::kOr:
        top -= scratch.block;
        JoinMasks<Join::kOr>(top, top + scratch.block, block.count);
        break;
      case Kind::kSkip:
        if (FilterRun::CountSet({top, block.count}) == (step.value ? block.count : 0)) {
          at = step.target - 1;
        }
        break;
    }
  }
}

bool FilterProgram::Matches(Slot slot) const {
  std::array<uint8_t, kDepthMax> masks;
  uint64_t value = 0;
  const Scratch scratch{
      .masks = masks.data(), .values = reinterpret_cast<std::byte*>(&value), .block = 1};
  Run({.first = slot, .count = 1}, scratch);
  return masks[0] != 0;
}

FilterRun::FilterRun(const FilterProgram& program)
    : program_(program),
      masks_(size_t{program.depth()} * FilterProgram::kBlockSlots),
      values_(FilterProgram::kBlockSlots) {}

std::span<const uint8_t> FilterRun::Block(uint64_t first, uint32_t count) {
  GEARDB_CHECK(count <= FilterProgram::kBlockSlots);
  const FilterProgram::Scratch scratch{.masks = masks_.data(),
                                       .values = reinterpret_cast<std::byte*>(values_.data()),
                                       .block = FilterProgram::kBlockSlots};
  program_.Run({.first = first, .count = count}, scratch);
  return std::span<const uint8_t>(masks_).first(count);
}

uint64_t FilterRun::Count(uint64_t slot_count) {
  uint64_t count = 0;
  for (uint64_t first = 0; first < slot_count; first += FilterProgram::kBlockSlots) {
    const uint64_t left = slot_count - first;
    count += CountSet(
        Block(first, static_cast<uint32_t>(std::min<uint64_t>(left, FilterProgram::kBlockSlots))));
  }
  return count;
}

uint32_t FilterRun::CountSet(std::span<const uint8_t> mask) {
  // Eight bytes at a time: a block has at most 128 such words, so no byte of their sum overflows.
  uint64_t sums = 0;
  size_t at = 0;
  for (; at + 8 <= mask.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, mask.data() + at, sizeof(word));
    sums += word;
  }
  uint32_t count = 0;
  for (int byte = 0; byte < 8; ++byte) count += static_cast<uint32_t>(sums >> (8 * byte)) & 0xFF;
  for (; at < mask.size(); ++at) count += mask[at];
  return count;
}

}  // namespace geardb::index
