// The checksum of everything that GearDB writes: XXH3-64, seeded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace geardb {

/// XXH3-64 of `bytes` with `seed` (see https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
uint64_t Hash64(std::span<const std::byte> bytes, uint64_t seed);

/// The same hash over parts given one after the other: Hash64 of their concatenation.
class Hasher64 {
 public:
  explicit Hasher64(uint64_t seed);
  ~Hasher64();
  Hasher64(const Hasher64&) = delete;
  Hasher64& operator=(const Hasher64&) = delete;

  void Reset(uint64_t seed);
  void Add(std::span<const std::byte> bytes);
  uint64_t Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace geardb
