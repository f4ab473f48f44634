// LpnAllocator: numbers (LPNs, slots) from 0, always the lowest free one, so that which number is
// handed out depends on the set in use alone. A hierarchy of bitmaps, 64 entries to a word.
//
// Invariants: a bit of level 0 is 1 when its number is in use; a bit of level k + 1 is 1 when the
// word of level k that it stands for is full. Zeroed memory is an allocator with all numbers free.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "index/index_memory.h"

namespace geardb::index {

/// Not thread-safe: the owner orders it. Only Reserve can fail.
class LpnAllocator {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// Numbers [0, capacity), capacity 1…2^32 - 2.
  static Result<LpnAllocator> Create(IndexMemory* memory, std::string_view name, uint64_t capacity);

  /// Makes numbers [0, count) usable; ResourceExhausted by budget or capacity. To be able to
  /// allocate k more numbers, reserve CountFor(k).
  Status Reserve(uint64_t count);
  uint64_t reserved() const { return reserved_; }
  /// One more than the largest number in use could be after `more` allocations.
  uint64_t CountFor(uint64_t more) const;

  /// Takes the lowest free number; kNone when all reserved numbers are in use.
  uint32_t Allocate();
  /// The number that Allocate would take, or kNone.
  uint32_t LowestFree() const;
  /// Takes this number, as a replay does. False when it is in use or not reserved.
  bool AllocateSpecific(uint32_t number);
  /// Gives a number back. False when it is not in use.
  bool Free(uint32_t number);
  bool InUse(uint32_t number) const;

  /// Numbers in use.
  uint64_t used() const { return used_; }
  /// One more than the largest number ever in use.
  uint64_t high_water() const { return high_water_; }

 private:
  static constexpr int kLevelsMax = 6;  // 64^6 > 2^32

  uint64_t* Level(int level) const {
    return reinterpret_cast<uint64_t*>(region_.part_base(static_cast<size_t>(level)));
  }
  void Take(uint32_t number);

  Region region_;
  int levels_ = 0;
  uint64_t capacity_ = 0;
  uint64_t reserved_ = 0;
  uint64_t used_ = 0;
  uint64_t high_water_ = 0;
};

}  // namespace geardb::index
