#include "base/large_memory.h"

#include <sys/mman.h>

#include <new>

#include "base/check.h"
#include "base/types.h"

namespace geardb {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr uint64_t kPageBytes = 4096;

// What a sanitizer of memory is to watch over comes from its own allocator.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kWatched = true;
#elif defined(__has_feature)
constexpr bool kWatched = __has_feature(address_sanitizer);
#else
constexpr bool kWatched = false;
#endif

// Below, what malloc keeps of it is used again by others.
constexpr uint64_t kMappedFrom = kWatched ? UINT64_MAX : uint64_t{32} << 10;

}  // namespace

std::byte* TakeMemory(uint64_t bytes) {
  if (bytes < kMappedFrom) {
    return static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow));
  }
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

void GiveMemoryBack(std::byte* memory, uint64_t bytes) noexcept {
  if (memory == nullptr) return;
  if (bytes < kMappedFrom) return ::operator delete(memory, kAlignment);
  GEARDB_CHECK(munmap(memory, bytes) == 0);
}

void LeaveMemory(std::byte* from, uint64_t bytes) noexcept {
  if (kWatched) return;
  const auto begin = reinterpret_cast<uintptr_t>(from);
  const uint64_t skipped = AlignUp(begin, kPageBytes) - begin;
  if (skipped >= bytes) return;
  // Refused, and nothing lost, where pages are larger.
  (void)madvise(from + skipped, AlignDown(bytes - skipped, kPageBytes), MADV_DONTNEED);
}

}  // namespace geardb
