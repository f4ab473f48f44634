#include "base/malloc_limits.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/mutex.h"

/// jemalloc's: reads and writes its settings. Null where the process has another malloc.
extern "C" __attribute__((weak, visibility("default"))) int mallctl(const char* name, void* old,
                                                                    size_t* old_size, void* set,
                                                                    size_t set_size);

namespace geardb {
namespace {

/// jemalloc's own.
constexpr ptrdiff_t kDefaultDecayMs = 10'000;
/// Of rows of 64 KiB in 160 MiB, 5 % less is kept with it and batches come as fast; with 0, which
/// saves another 1 %, a third slower.
constexpr ptrdiff_t kDecayMs = 200;

std::atomic<bool> jemalloc_limited{false};
Mutex arenas_mutex;
int arenas_asked GEARDB_GUARDED_BY(arenas_mutex) = 0;  // 0: none yet.

bool IsDecided() {
  for (const char* name : {"MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_",
                           "MALLOC_TOP_PAD_"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  return tunables != nullptr &&
         std::string_view(tunables).find("glibc.malloc") != std::string_view::npos;
}

}  // namespace

bool LimitJemalloc() {
  ptrdiff_t decay = 0;
  size_t size = sizeof(decay);
  const char* const option = "opt.dirty_decay_ms";
  const bool read = mallctl != nullptr && mallctl(option, &decay, &size, nullptr, 0) == 0;
  if (!read || decay != kDefaultDecayMs) return false;
  unsigned arenas = 0;
  size = sizeof(arenas);
  (void)mallctl("arenas.narenas", &arenas, &size, nullptr, 0);
  ptrdiff_t wanted = kDecayMs;
  // Of those that come, and of those that there are; of one that is not in use yet nothing is set.
  (void)mallctl("arenas.dirty_decay_ms", nullptr, nullptr, &wanted, sizeof(wanted));
  for (unsigned arena = 0; arena < arenas; ++arena) {
    const std::string name = "arena." + std::to_string(arena) + ".dirty_decay_ms";
    (void)mallctl(name.c_str(), nullptr, nullptr, &wanted, sizeof(wanted));
  }
  jemalloc_limited.store(true, std::memory_order_relaxed);
  return true;
}

void KeepNoThreadCache() {
  if (!jemalloc_limited.load(std::memory_order_relaxed)) return;
  bool enabled = false;
  (void)mallctl("thread.tcache.enabled", nullptr, nullptr, &enabled, sizeof(enabled));
}

int MallocArenasFor(uint64_t budget_bytes) {
  constexpr uint64_t kEach = uint64_t{32} << 20;
  constexpr uint64_t kMuch = uint64_t{512} << 20;
  if (budget_bytes >= kMuch) return 0;
  return static_cast<int>(std::max<uint64_t>(budget_bytes / kEach, 2));
}

void LimitMalloc(uint64_t budget_bytes) {
  const int arenas = MallocArenasFor(budget_bytes);
  MutexLock lock(&arenas_mutex);
  if (arenas == 0 || IsDecided() || (arenas_asked != 0 && arenas_asked <= arenas)) return;
  arenas_asked = arenas;
  (void)LimitJemalloc();
#ifdef M_ARENA_MAX
  (void)mallopt(M_ARENA_MAX, arenas);
  (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
  (void)mallopt(M_TRIM_THRESHOLD, 128 << 10);
#endif
}

}  // namespace geardb
