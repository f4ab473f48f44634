#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace geardb {

uint64_t Hash64(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

struct Hasher64::State {
  XXH3_state_t xxh;
};

Hasher64::Hasher64(uint64_t seed) : state_(std::make_unique<State>()) {
  XXH3_INITSTATE(&state_->xxh);
  Reset(seed);
}
Hasher64::~Hasher64() = default;

void Hasher64::Reset(uint64_t seed) { XXH3_64bits_reset_withSeed(&state_->xxh, seed); }
void Hasher64::Add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
}
uint64_t Hasher64::Finish() const { return XXH3_64bits_digest(&state_->xxh); }

}  // namespace geardb
