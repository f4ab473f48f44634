// The orders in which an ordered selector gives its members, and the keys that stand for them in a
// KeyTree: the larger key is given first.
//
// A key is a bit that says "visible", and below it 63 bits, never all 0, that differ from member to
// member: of fifo and lifo the sequence number of the insertion; of heaps 31 bits of the raw
// priority (finite floats of one sign are in the order of their bits) and 32 of the sequence
// number, by which the oldest comes first among equals.
#pragma once

#include <bit>
#include <cstdint>

namespace geardb::index {

/// In which order members are given. Fixed numbers: they lie in shared memory.
enum class ItemOrder : uint32_t {
  kOldestFirst = 0,    ///< Fifo.
  kNewestFirst = 1,    ///< Lifo.
  kSmallestFirst = 2,  ///< Min heap: by raw priority, among equals the oldest first.
  kLargestFirst = 3,   ///< Max heap: likewise.
};

inline constexpr uint64_t kVisibleKey = uint64_t{1} << 63;
inline constexpr uint64_t kKeyMask = kVisibleKey - 1;

/// The order looks at raw priorities.
constexpr bool OrdersByPriority(ItemOrder order) {
  return order == ItemOrder::kSmallestFirst || order == ItemOrder::kLargestFirst;
}

/// Sequence numbers that keys can tell apart. 2^63 are more than 292 years of 10^9 a second;
/// of heaps they come to an end, and members are then numbered anew.
constexpr uint64_t SequenceLimit(ItemOrder order) {
  return OrdersByPriority(order) ? uint64_t{UINT32_MAX} : kKeyMask;
}

/// The key of a visible member; `sequence` is below SequenceLimit.
constexpr uint64_t MakeKey(ItemOrder order, float raw_priority, uint64_t sequence) {
  // -0 is 0.
  const uint64_t raw = uint64_t{std::bit_cast<uint32_t>(raw_priority + 0.0f)} << 32;
  switch (order) {
    case ItemOrder::kOldestFirst:
      return kVisibleKey | (kKeyMask - sequence);
    case ItemOrder::kNewestFirst:
      return kVisibleKey | (sequence + 1);
    case ItemOrder::kSmallestFirst:
      return kVisibleKey | (kKeyMask - (raw | sequence));
    case ItemOrder::kLargestFirst:
      break;
  }
  return kVisibleKey | raw | (UINT32_MAX - sequence);
}

/// What MakeKey was given; of keys made visible or not.
constexpr uint64_t SequenceOfKey(ItemOrder order, uint64_t key) {
  key &= kKeyMask;
  switch (order) {
    case ItemOrder::kOldestFirst:
      return kKeyMask - key;
    case ItemOrder::kNewestFirst:
      return key - 1;
    case ItemOrder::kSmallestFirst:
      return (kKeyMask - key) & UINT32_MAX;
    case ItemOrder::kLargestFirst:
      break;
  }
  return UINT32_MAX - (key & UINT32_MAX);
}

/// 1 for orders without priorities.
constexpr float RawPriorityOfKey(ItemOrder order, uint64_t key) {
  if (!OrdersByPriority(order)) return 1.0f;
  key &= kKeyMask;
  if (order == ItemOrder::kSmallestFirst) key = kKeyMask - key;
  return std::bit_cast<float>(static_cast<uint32_t>(key >> 32));
}

}  // namespace geardb::index
