// Numbers that selectors and trees have in common.
#pragma once

#include <cstddef>
#include <cstdint>

namespace geardb::index {

/// More leaves than a machine has memory for.
inline constexpr uint64_t kLeafCapacityMax = uint64_t{1} << 40;

/// Leaves that are worked on at a time, in arrays on the stack.
inline constexpr size_t kChunk = 256;

}  // namespace geardb::index
