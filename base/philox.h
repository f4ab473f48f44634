// Philox4x32-10: the counter-based generator behind every draw (host and device).
//
// Key = the priority table's seed; counter = {draw number u64, row u32, purpose u32}. Frozen: the
// same seed and counter give the same item on every machine and in every version.
// Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define GEARDB_HOST_DEVICE __host__ __device__
#else
#define GEARDB_HOST_DEVICE
#endif

namespace geardb {

/// What a random number is for. Frozen.
enum class PhiloxPurpose : uint32_t {
  kItem = 0,     ///< Which item a row of a batch shows.
  kViewRow = 1,  ///< A drawn row of a view (goal relabelling).
  kShuffle = 2,  ///< The order of an epoch.
  kAnchor = 3,   ///< Which row of a drawn trajectory a window stands at.
  kPart = 4,     ///< Which part of a mixed sampler a row of a batch comes from.
  kRemover = 5,  ///< What leaves a full table.
};

/// 128 random bits.
struct PhiloxBlock {
  uint32_t v[4];
};

/// One block of Philox4x32-10.
GEARDB_HOST_DEVICE constexpr PhiloxBlock Philox4x32(uint64_t key, PhiloxBlock counter) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter.v[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter.v[2];
    counter = PhiloxBlock{
        {static_cast<uint32_t>(p1 >> 32) ^ counter.v[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ counter.v[3] ^ k1, static_cast<uint32_t>(p0)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

/// 128 random bits for `row` of draw number `draw`; the blocks of one purpose are numbered by
/// `stream`, below 2^24.
GEARDB_HOST_DEVICE constexpr PhiloxBlock PhiloxRandom128(uint64_t seed, uint64_t draw, uint32_t row,
                                                         PhiloxPurpose purpose, uint32_t stream) {
  return Philox4x32(
      seed, PhiloxBlock{{static_cast<uint32_t>(draw), static_cast<uint32_t>(draw >> 32), row,
                         static_cast<uint32_t>(purpose) | (stream << 8)}});
}

/// 64 random bits for `row` of draw number `draw`.
GEARDB_HOST_DEVICE constexpr uint64_t PhiloxRandom64(uint64_t seed, uint64_t draw, uint32_t row,
                                                     PhiloxPurpose purpose) {
  const PhiloxBlock block =
      Philox4x32(seed, PhiloxBlock{{static_cast<uint32_t>(draw), static_cast<uint32_t>(draw >> 32),
                                    row, static_cast<uint32_t>(purpose)}});
  return block.v[0] | (uint64_t{block.v[1]} << 32);
}

/// floor(random * bound / 2^64): uniform below `bound` (its bias is below bound / 2^64).
GEARDB_HOST_DEVICE constexpr uint64_t MulHi64(uint64_t random, uint64_t bound) {
  __extension__ using Product = unsigned __int128;  // A user may compile with -pedantic-errors.
  return static_cast<uint64_t>((static_cast<Product>(random) * bound) >> 64);
}

}  // namespace geardb
