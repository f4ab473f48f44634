// Memory that comes and goes in large pieces: straight from the system, so that it leaves the
// process when it is given back. malloc keeps such pieces in the arenas of the threads that took
// them, each as much as it once had.
#pragma once

#include <cstddef>
#include <cstdint>

namespace geardb {

/// Uninitialised bytes, aligned to 64; null where there are none.
std::byte* TakeMemory(uint64_t bytes);
/// `bytes`: of TakeMemory. Nothing for null.
void GiveMemoryBack(std::byte* memory, uint64_t bytes) noexcept;

/// Nobody reads these bytes of TakeMemory again before they are written: whole pages of them leave
/// the process until then.
void LeaveMemory(std::byte* from, uint64_t bytes) noexcept;

/// For a std::unique_ptr to memory of TakeMemory.
struct GiveBackMemory {
  uint64_t bytes = 0;
  void operator()(std::byte* memory) const noexcept { GiveMemoryBack(memory, bytes); }
};

}  // namespace geardb
