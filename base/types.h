// The small value types that all layers share. Vocabulary: engine/README.md, "Words".
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace geardb {

using Lsn = uint64_t;           ///< Byte position in the log.
using TrajectoryId = uint64_t;  ///< Never reused, from 1; 0 is none.
using Slot = uint32_t;          ///< Index of a trajectory record in its partition; reused.
using Lpn = uint32_t;           ///< Logical page number, dense per partition; reused.
using TableId = uint32_t;       ///< Number of a table in its database; never reused.

inline constexpr Lpn kNoLpn = UINT32_MAX;
inline constexpr Slot kNoSlot = UINT32_MAX;
inline constexpr Lsn kNoLsn = UINT64_MAX;

/// What an appended row says about its trajectory. The values are in log records: frozen.
enum class End : uint8_t {
  kGo = 0,          ///< The trajectory goes on.
  kTerminated = 1,  ///< The environment ended; nothing is bootstrapped beyond.
  kTruncated = 2,   ///< Stopped from outside (a time limit); the final observation is known.
  kCut = 3,         ///< Stopped, and the final observation is not known.
  kSkip = 4,        ///< Nothing is written for this environment in this call.
};

/// What an acknowledged change survives. Ordered: a higher level includes the lower ones.
enum class Ack : uint8_t {
  kMemory = 0,  ///< Nothing: the change has its place in the order of the log. It can be seen when
                ///< a wait for its ticket (at kLog) has returned, often before.
  kLog = 1,     ///< The death of the process (SIGKILL): its record is in the mapped ring.
  kSync = 2,    ///< Power loss: its record is in a segment and fdatasync has returned.
};

/// What importance weights are divided by.
enum class WeightMaximum : uint8_t {
  kBatch = 0,  ///< The largest weight of the batch.
  kTable = 1,  ///< The largest weight of any item that can be drawn.
  kNone = 2,   ///< 1: plain (n·P)^−β.
};

/// Names one item of a priority table for a later update. Trivially copyable; an array of them
/// comes with every batch. `leaf` is LPN * S + offset for a window, the slot for a trajectory.
struct ItemHandle {
  uint64_t leaf = 0;
  uint32_t generation = 0;  ///< Of the page for a window, of the slot for a trajectory.
  uint32_t length = 0;      ///< Rows of the item when it was drawn; informative.

  friend bool operator==(const ItemHandle&, const ItemHandle&) = default;
};
static_assert(sizeof(ItemHandle) == 16 && std::is_trivially_copyable_v<ItemHandle>);

/// Where a page's frame is: arena number in the top 8 bits, byte offset in the lower 56. Never a
/// pointer, so that every process and GPU can resolve it with its own table of arena bases.
struct FrameRef {
  uint64_t bits = UINT64_MAX;

  static constexpr FrameRef Make(uint8_t arena, uint64_t offset) {
    return FrameRef{(uint64_t{arena} << 56) | offset};
  }
  constexpr bool valid() const { return bits != UINT64_MAX; }
  constexpr uint8_t arena() const { return static_cast<uint8_t>(bits >> 56); }
  constexpr uint64_t offset() const { return bits & ((uint64_t{1} << 56) - 1); }

  friend bool operator==(const FrameRef&, const FrameRef&) = default;
};

/// Rounds `value` up to a multiple of `alignment`, a power of two.
constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}
/// Rounds `value` down to a multiple of `alignment`, a power of two.
constexpr uint64_t AlignDown(uint64_t value, uint64_t alignment) {
  return value & ~(alignment - 1);
}

}  // namespace geardb
