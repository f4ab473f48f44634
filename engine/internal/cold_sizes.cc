#include "engine/internal/cold_sizes.h"

#include <algorithm>

namespace geardb::engine {

uint64_t SstFileBytes(const ColdStoreOptions& options) {
  constexpr uint64_t kShare = 16;
  constexpr uint64_t kLeast = uint64_t{1} << 20;
  return std::min(options.sst_file_bytes, std::max(kLeast, options.memory_bytes / kShare));
}

int CacheShardBits(uint64_t memory_bytes) {
  constexpr uint64_t kLeast = uint64_t{8} << 20;
  constexpr int kMost = 4;
  int bits = 0;
  while (bits < kMost && memory_bytes >> (bits + 1) >= kLeast) ++bits;
  return bits;
}

// Of what each thread has freed, malloc keeps twice the largest piece that it ever gave back to the
// system.
uint64_t BufferBytes(uint64_t unflushed_bytes) {
  constexpr uint64_t kShare = 32;
  constexpr uint64_t kLeast = uint64_t{64} << 10;
  constexpr uint64_t kMost = uint64_t{1} << 20;
  return std::clamp(unflushed_bytes / kShare, kLeast, kMost);
}

}  // namespace geardb::engine
