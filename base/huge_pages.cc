#include "base/huge_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <chrono>

#include "base/types.h"

namespace geardb {
namespace {

// Of <linux/mman.h>; the C library of a system may be older than its kernel.
constexpr int kPopulateWrite = 23;
constexpr int kCollapse = 25;
/// Zeroing one takes 0.1 to 0.4 ms; what takes so much longer has moved other memory out of the
/// way.
constexpr auto kTooLong = std::chrono::milliseconds(20);

}  // namespace

std::byte* MapShared(int fd, uint64_t bytes) {
  const uint64_t reserved = bytes + kHugePageBytes;
  void* const all =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(all);
  const uintptr_t aligned = AlignUp(begin, kHugePageBytes);
  void* const place = static_cast<std::byte*>(all) + (aligned - begin);
  void* const mapped =
      mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    munmap(all, reserved);
    errno = error;
    return nullptr;
  }
  if (aligned > begin) munmap(all, aligned - begin);
  munmap(static_cast<std::byte*>(mapped) + bytes, begin + reserved - (aligned + bytes));
  madvise(mapped, bytes, MADV_NOHUGEPAGE);
  return static_cast<std::byte*>(mapped);
}

void HugePages::Take(std::byte* begin, uint64_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t aligned = AlignUp(address, kHugePageBytes);
  const uintptr_t end = AlignDown(address + bytes, kHugePageBytes);
  for (uintptr_t at = aligned; at < end && !gives_none_.load(std::memory_order_relaxed);
       at += kHugePageBytes) {
    std::byte* const piece = begin + (at - address);
    const auto began = std::chrono::steady_clock::now();
    // Of a piece where no page is, the kernel makes none. (Not by a write: others may write there.)
    const bool taken = madvise(piece, kHugePageBytes, MADV_HUGEPAGE) == 0 &&
                       madvise(piece, 4096, kPopulateWrite) == 0 &&
                       madvise(piece, kHugePageBytes, kCollapse) == 0;
    if (taken) taken_bytes_.fetch_add(kHugePageBytes, std::memory_order_relaxed);
    if (!taken || std::chrono::steady_clock::now() - began > kTooLong) gives_none_.store(true);
  }
}

}  // namespace geardb
