// Random: the quickstart's random numbers, which can be saved in a tag and continued.
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace geardb::quickstart {

/// A stream of Philox blocks: the state is its seed, its stream number and how many were taken, so
/// that copying those 24 bytes copies the generator. Trivially copyable. Not thread-safe.
class Random {
 public:
  Random() = default;
  Random(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  uint64_t Next64() {
    const uint64_t n = taken_++;
    const PhiloxBlock block = Philox4x32(
        seed_, PhiloxBlock{{static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32),
                            static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)}});
    return block.v[0] | (uint64_t{block.v[1]} << 32);
  }
  /// Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next64() >> 11) * 0x1p-53; }
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  /// Uniform in 0 … bound - 1.
  uint64_t Below(uint64_t bound) { return MulHi64(Next64(), bound); }

 private:
  uint64_t seed_ = 0;
  uint64_t stream_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace geardb::quickstart
