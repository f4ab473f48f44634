// How much malloc keeps of what it is given back, in a process with little memory.
#pragma once

#include <cstdint>

namespace geardb {

/// How many arenas malloc may have where so many bytes are budgeted in all; 0: as many as it likes.
/// glibc gives each thread an arena, up to eight for each core, and each arena keeps a MiB or more.
int MallocArenasFor(uint64_t budget_bytes);

/// Asks malloc to make no more arenas than that from now on, never more than it was asked before;
/// and to give back at once what was allocated with a MiB or more, and what is free at an arena's
/// end beyond 128 KiB. (glibc's own bounds grow with the chunks that it has seen freed, up to 32
/// and 64 MiB.) jemalloc, where the process has it, is asked to give back within a fifth of a
/// second what nobody uses; by itself it takes ten seconds. Nor do threads of ours keep there what
/// they give back (KeepNoThreadCache). They are settings of the process:
/// whoever has set one in `GLIBC_TUNABLES` or the variables `MALLOC_ARENA_MAX`,
/// `MALLOC_MMAP_THRESHOLD_`, `MALLOC_TRIM_THRESHOLD_` and `MALLOC_TOP_PAD_`, or jemalloc's
/// `dirty_decay_ms` (`MALLOC_CONF`), has decided, and nothing is done. Nor is it with a third
/// malloc. Thread-safe.
void LimitMalloc(uint64_t budget_bytes);
/// Of that, what jemalloc is asked for. False: the process has none, or somebody has decided.
bool LimitJemalloc();
/// For a thread of ours, as it begins: where jemalloc was limited, nothing that this thread gives
/// back stays in a cache of its own, which has up to 20 blocks of each size up to 32 KiB.
void KeepNoThreadCache();

}  // namespace geardb
