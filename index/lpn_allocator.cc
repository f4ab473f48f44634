#include "index/lpn_allocator.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "base/break.h"
#include "base/check.h"

namespace geardb::index {
namespace {

constexpr uint32_t kWordShift = 6;

uint64_t WordsFor(uint64_t entries) { return (entries + 63) >> kWordShift; }

}  // namespace

Result<LpnAllocator> LpnAllocator::Create(IndexMemory* memory, std::string_view name,
                                          uint64_t capacity) {
  if (capacity == 0 || capacity >= kNone) {
    return Status::InvalidArgument("numbers of '", name, "' for ", capacity, " entries: 1 to ",
                                   kNone - 1, " are possible");
  }
  std::vector<uint64_t> parts;
  uint64_t words = capacity;
  do {
    words = WordsFor(words);
    parts.push_back(words * 8);
  } while (words > 1);
  LpnAllocator allocator;
  GEARDB_ASSIGN_OR_RETURN(allocator.region_, memory->Reserve(name, parts));
  allocator.levels_ = static_cast<int>(parts.size());
  allocator.capacity_ = capacity;
  return allocator;
}

Status LpnAllocator::Reserve(uint64_t count) {
  if (count <= reserved_) return Status::Ok();
  if (count > capacity_) {
    return Status::ResourceExhausted("numbers of '", region_.name(), "' end at ", capacity_, ", ",
                                     count, " are asked for");
  }
  uint64_t words = count;
  for (int level = 0; level < levels_; ++level) {
    words = WordsFor(words);
    GEARDB_RETURN_IF_ERROR(region_.Commit(static_cast<size_t>(level), words * 8));
  }
  reserved_ = count;
  return Status::Ok();
}

uint64_t LpnAllocator::CountFor(uint64_t more) const { return std::max(high_water_, used_ + more); }

uint32_t LpnAllocator::LowestFree() const {
  uint64_t index = 0;
  for (int level = levels_ - 1; level >= 0; --level) {
    // Beyond what is reserved nothing may be read, and nothing lower is free.
    if (index << (kWordShift * static_cast<uint32_t>(level + 1)) >= reserved_) return kNone;
    const uint64_t word = Level(level)[index];
    if (word == ~uint64_t{0}) return kNone;
    index = index * 64 + static_cast<uint64_t>(std::countr_one(word));
  }
  return index < reserved_ ? static_cast<uint32_t>(index) : kNone;
}

void LpnAllocator::Take(uint32_t number) {
  uint64_t index = number;
  for (int level = 0; level < levels_; ++level) {
    uint64_t& word = Level(level)[index / 64];
    word |= uint64_t{1} << (index % 64);
    if (word != ~uint64_t{0}) break;
    index /= 64;
  }
  ++used_;
  high_water_ = std::max<uint64_t>(high_water_, uint64_t{number} + 1);
}

uint32_t LpnAllocator::Allocate() {
  const uint32_t number = LowestFree();
  if (number == kNone) return kNone;
  const bool freed_before = number + 1 < high_water_;
  if (kBreak.reuse_lpn_twice && freed_before && number % 2 == 1) return number;
  Take(number);
  return number;
}

bool LpnAllocator::AllocateSpecific(uint32_t number) {
  if (number >= reserved_ || InUse(number)) return false;
  Take(number);
  return true;
}

bool LpnAllocator::Free(uint32_t number) {
  if (!InUse(number)) return false;
  uint64_t index = number;
  for (int level = 0; level < levels_; ++level) {
    uint64_t& word = Level(level)[index / 64];
    const bool was_full = word == ~uint64_t{0};
    word &= ~(uint64_t{1} << (index % 64));
    if (!was_full) break;
    index /= 64;
  }
  --used_;
  return true;
}

bool LpnAllocator::InUse(uint32_t number) const {
  return number < reserved_ && ((Level(0)[number / 64] >> (number % 64)) & 1) != 0;
}

}  // namespace geardb::index
