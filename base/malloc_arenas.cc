#include "base/malloc_arenas.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/mutex.h"

namespace geardb {
namespace {

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

int MallocArenasFor(uint64_t budget_bytes) {
  constexpr uint64_t kEach = uint64_t{32} << 20;
  constexpr uint64_t kMuch = uint64_t{512} << 20;
  if (budget_bytes >= kMuch) return 0;
  return static_cast<int>(std::max<uint64_t>(budget_bytes / kEach, 2));
}

void LimitMallocArenas(uint64_t budget_bytes) {
  const int arenas = MallocArenasFor(budget_bytes);
  MutexLock lock(&arenas_mutex);
  if (arenas == 0 || IsDecided() || (arenas_asked != 0 && arenas_asked <= arenas)) return;
  arenas_asked = arenas;
#ifdef M_ARENA_MAX
  (void)mallopt(M_ARENA_MAX, arenas);
  (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
  (void)mallopt(M_TRIM_THRESHOLD, 128 << 10);
#endif
}

}  // namespace geardb
