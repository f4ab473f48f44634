// FilterProgram: a filter over arrays indexed by slot, compiled into steps that each handle a block
// of slots. It sees columns as addresses and strides, and knows nothing of tables.
//
// Invariants: a finished program leaves one mask; no step needs more than depth() of them at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/types.h"
#include "index/filter_ranges.h"

namespace geardb::index {

/// Values by slot: that of slot s is at base + s · stride, aligned to its size. Owns nothing.
struct FilterColumn {
  const std::byte* base = nullptr;
  uint64_t stride = 0;
  DType dtype = DType::kU8;
  /// Of a u8: only these bits of it count.
  uint8_t bits = 0xFF;
  /// Of a u64: what is subtracted from it, of the same stride: another u64, and the lowest bit of a
  /// byte. Both or neither.
  const std::byte* less = nullptr;
  const std::byte* less_bit = nullptr;
};

/// Slots [first, first + count).
struct SlotBlock {
  uint64_t first = 0;
  uint32_t count = 0;
};

/// Copies the values of a column in a block of slots to `into`, one behind the other.
void CollectValues(const FilterColumn& column, const SlotBlock& block, std::byte* into);

/// Built once, in postfix order; then read-only, and may be run from many threads.
class FilterProgram {
 public:
  static constexpr uint32_t kBlockSlots = 1024;
  /// Masks that a program may need at once.
  static constexpr uint32_t kDepthMax = 160;

  // Building. Each Push adds a mask, And and Or make one of two, Not turns the last around.

  /// The number of a column, for PushTest.
  uint32_t AddColumn(const FilterColumn& column);
  /// Slots whose value lies in the ranges, which are of the column's dtype.
  void PushTest(uint32_t column, const ValueRanges& ranges);
  void PushConstant(bool value);
  void Not() { steps_.push_back({.kind = Kind::kNot}); }
  void And();
  void Or();
  /// From here to Land, nothing is run for a block in which all slots of the last mask have
  /// `value`. What is between them leaves as many masks as there were.
  size_t PushSkip(bool value);
  void Land(size_t skip) { steps_[skip].target = steps_.size(); }

  uint32_t depth() const { return depth_; }

  /// Evaluates one slot.
  bool Matches(Slot slot) const;

 private:
  friend class FilterRun;
  enum class Kind : uint8_t { kTest, kConstant, kNot, kAnd, kOr, kSkip };
  struct Step {
    Kind kind = Kind::kTest;
    bool value = false;   // kConstant, kSkip; kTest: negated
    uint32_t column = 0;  // kTest
    uint32_t first_range = 0, range_count = 0;
    size_t target = 0;  // kSkip
  };
  /// Memory for a run: masks of `block` bytes each, and a block of values.
  struct Scratch {
    uint8_t* masks = nullptr;
    std::byte* values = nullptr;
    uint32_t block = 0;
  };
  void Run(const SlotBlock& block, const Scratch& scratch) const;
  void Test(const Step& step, const SlotBlock& block, std::byte* values, uint8_t* mask) const;

  std::vector<FilterColumn> columns_;
  std::vector<Step> steps_;
  std::vector<ValueRange> ranges_;
  uint32_t height_ = 0;
  uint32_t depth_ = 0;
};

/// Runs a program over blocks; owns the memory for it. One per thread. The program outlives it.
class FilterRun {
 public:
  explicit FilterRun(const FilterProgram& program);

  /// One byte for each of slots [first, first + count), count ≤ kBlockSlots: 1 where it passes,
  /// else 0. Valid until the next call.
  std::span<const uint8_t> Block(uint64_t first, uint32_t count);

  /// Calls `visit(slot)` for the slots below `slot_count` that pass, in order.
  template <typename Visit>
  void ForEach(uint64_t slot_count, Visit visit) {
    for (uint64_t first = 0; first < slot_count; first += FilterProgram::kBlockSlots) {
      const auto count = static_cast<uint32_t>(slot_count - first < FilterProgram::kBlockSlots
                                                   ? slot_count - first
                                                   : FilterProgram::kBlockSlots);
      const std::span<const uint8_t> mask = Block(first, count);
      if (CountSet(mask) == 0) continue;
      for (uint32_t i = 0; i < count; ++i) {
        if (mask[i] != 0) visit(static_cast<Slot>(first + i));
      }
    }
  }
  /// How many slots below `slot_count` pass.
  uint64_t Count(uint64_t slot_count);

  /// Bytes that are 1, of at most kBlockSlots that are 0 or 1.
  static uint32_t CountSet(std::span<const uint8_t> mask);

 private:
  const FilterProgram& program_;
  std::vector<uint8_t> masks_;
  std::vector<uint64_t> values_;
};

}  // namespace geardb::index
