#include "tools/bench/usage.h"

#include <malloc.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

// Of jemalloc, where the program is linked with it.
extern "C" int mallctl(const char* name, void* old_value, size_t* old_bytes, void* new_value,
                       size_t new_bytes) __attribute__((weak));

namespace geardb::bench {
namespace {

/// The number behind "name:" in a file of /proc; 0 where there is none.
uint64_t NumberOf(const char* path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    uint64_t number = 0;
    if (word == name + ":" && file >> number) return number;
  }
  return 0;
}

uint64_t OfJemalloc(const char* name) {
  if (&mallctl == nullptr) return 0;
  uint64_t epoch = 1;
  size_t bytes = sizeof(epoch);
  // Statistics are as of the last time that this was set.
  if (mallctl("epoch", &epoch, &bytes, &epoch, bytes) != 0) return 0;
  size_t number = 0;
  bytes = sizeof(number);
  return mallctl(name, &number, &bytes, nullptr, 0) == 0 ? number : 0;
}

}  // namespace

MemoryUse OwnMemory() {
  constexpr const char* kPath = "/proc/self/smaps_rollup";
  return {.rss = NumberOf(kPath, "Rss") * 1024,
          .pss = NumberOf(kPath, "Pss") * 1024,
          .malloc_resident = OfJemalloc("stats.resident"),
          .malloc_allocated = OfJemalloc("stats.allocated")};
}

void GiveBackFreeMemory() {
  // 4096 stands for all arenas (MALLCTL_ARENAS_ALL of jemalloc 5).
  if (&mallctl != nullptr) mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
  malloc_trim(0);  // Of glibc's own, in a program that has no other.
}

uint64_t OwnBytesWritten() { return NumberOf("/proc/self/io", "write_bytes"); }

uint64_t DiskBytesOf(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (auto entry = std::filesystem::recursive_directory_iterator(directory, error);
       !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    struct stat found = {};
    if (::stat(entry->path().c_str(), &found) == 0 && S_ISREG(found.st_mode)) {
      bytes += static_cast<uint64_t>(found.st_blocks) * 512;
    }
  }
  return bytes;
}

}  // namespace geardb::bench
