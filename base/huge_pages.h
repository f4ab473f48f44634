// Huge pages behind shared memory. Most systems give it none by themselves (shmem_enabled is
// "never" by default), so each 4 KiB are a page fault at first and an entry of the TLB for ever;
// but they may be asked for one by one (MADV_COLLAPSE, Linux 6.2).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace geardb {

inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

/// Maps a memfd shared, to be read and written, at a multiple of kHugePageBytes, without huge
/// pages: a system that has them for all would put 2 MiB where 4 KiB are written. Nothing is
/// reserved. Null, and errno, where the system refuses. `bytes`: a multiple of 4096.
std::byte* MapShared(int fd, uint64_t bytes);

/// The huge pages of one mapping of MapShared. Thread-safe, also beside those who use its bytes.
class HugePages {
 public:
  /// Puts a huge page behind each aligned piece of kHugePageBytes that lies wholly in
  /// [begin, begin + bytes): what is there stays, and what nobody has written is zero. Where the
  /// system has none, or takes long to find one, it is not asked again.
  void Take(std::byte* begin, uint64_t bytes);
  uint64_t taken_bytes() const { return taken_bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> gives_none_{false};
  std::atomic<uint64_t> taken_bytes_{0};
};

}  // namespace geardb
