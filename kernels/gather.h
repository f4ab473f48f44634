// Gather: copies the rows that a batch shows from frames to the batch's buffers.
//
// The engine resolves every entry of an output to runs, under its lock, at draw time; the gather
// itself sees frames, offsets and bytes only: no table, no trajectory, no edge rule. Descriptors
// are plain: they hold no pointer but an output's destination, so the same plan can be handed to
// a GPU, whose arena bases are others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/dtype.h"
#include "base/types.h"

namespace geardb {

/// Where each arena begins in the address space of whoever gathers, by the arena number of a
/// FrameRef. Passed by value; entries of arenas that do not exist are never read.
struct ArenaBases {
  static constexpr int kArenas = 256;
  const std::byte* base[kArenas] = {};

  const std::byte* Resolve(FrameRef frame) const {
    // An arena may begin at address 0: its offsets are addresses.
    return reinterpret_cast<const std::byte*>(reinterpret_cast<uintptr_t>(base[frame.arena()]) +
                                              frame.offset());
  }
};

/// Runs of one size at equal distances in the output. A run is bytes that are contiguous in one
/// frame and in the output: consecutive rows of one page. Of each only its source is stored, 8
/// bytes: a batch of single rows is one group, and its plan no longer than a list of pointers.
struct RunGroup {
  uint64_t first_source = 0;        ///< Sources [first_source, first_source + count) of the plan.
  uint64_t count = 0;               ///< Runs.
  uint64_t bytes = 0;               ///< Of each run in its frame: whole elements.
  uint64_t destination_offset = 0;  ///< Of the first run: bytes from the output's destination.
  uint64_t stride = 0;              ///< From one run's first byte in the output to the next one's.
};
static_assert(sizeof(RunGroup) == 40 && std::is_trivially_copyable_v<RunGroup>);

/// A reference to the byte at `offset` of a frame.
constexpr FrameRef AdvanceInFrame(FrameRef frame, uint64_t offset) {
  return FrameRef{frame.bits + offset};
}

/// Bytes of the output that show no row: its pattern is repeated there.
struct FillRun {
  uint64_t destination_offset = 0;  ///< A multiple of the delivered element's size.
  uint64_t bytes = 0;               ///< Likewise.
};
static_assert(sizeof(FillRun) == 16 && std::is_trivially_copyable_v<FillRun>);

/// What becomes of an element on its way.
enum class GatherConvert : uint8_t {
  kCopy = 0,   ///< Nothing: bytes.
  kToF32 = 1,  ///< The nearest f32, ties to even; bool gives 0 or 1. A run writes 4 bytes for each
               ///< stored element, so it is longer (or shorter) in the output than in the frame.
};

/// One output array: its share of the plan's groups, in any order; no two of their runs overlap in
/// the output. Sources may appear in any number of runs.
struct GatherOutput {
  std::byte* destination = nullptr;  ///< Aligned to the delivered element; not owned.
  uint64_t first_group = 0;  ///< Groups [first_group, first_group + group_count) of the plan.
  uint64_t group_count = 0;
  uint64_t first_fill = 0;
  uint64_t fill_count = 0;
  uint64_t pattern = 0;  ///< The padding element (kernels/convert.h, ElementBits) in the low bytes.
  uint32_t pattern_bytes = 1;  ///< Size of the delivered element: 1, 2, 4 or 8.
  GatherConvert convert = GatherConvert::kCopy;
  DType stored = DType::kU8;  ///< With kToF32: type of the elements in the frames.
};
static_assert(std::is_trivially_copyable_v<GatherOutput>);

/// A whole batch: one call gathers all its outputs. Owns nothing.
struct GatherPlan {
  std::span<const GatherOutput> outputs;
  std::span<const RunGroup> groups;
  std::span<const FrameRef> sources;  ///< First byte of each run: AdvanceInFrame(frame, offset).
  std::span<const FillRun> fills;
};

/// Carries out `plan` on the calling thread; returns when the bytes are there. The frames must be
/// protected from reuse by the caller (an epoch), and neither overlap the outputs.
void GatherCpu(const GatherPlan& plan, const ArenaBases& arenas);

}  // namespace geardb
