// How much malloc keeps of what it is given back, in a process with little memory.
#pragma once

#include <cstdint>

namespace geardb {

/// How many arenas malloc may have where so many bytes are budgeted in all; 0: as many as it likes.
/// glibc gives each thread an arena, up to eight for each core, and each arena keeps a MiB or more.
int MallocArenasFor(uint64_t budget_bytes);

/// Asks malloc to make no more arenas than that from now on; never more than it was asked before.
/// It is a setting of the process: whoever has set `MALLOC_ARENA_MAX`, or `arena_max` in
/// `GLIBC_TUNABLES`, has decided, and nothing is done. Nor is it with another malloc than glibc's.
/// Thread-safe.
void LimitMallocArenas(uint64_t budget_bytes);

}  // namespace geardb
