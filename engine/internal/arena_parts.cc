// Small frames: of slabs of their pool's own, or of parts of slabs that pools share.
#include <bit>

#include "base/check.h"
#include "engine/internal/arena.h"

namespace geardb::engine {
namespace {

/// Parts are taken where there are fewer than so many slabs for each that the pools have to have.
constexpr uint64_t kCrowdedShare = 4;

}  // namespace

HostArena::Slab& HostArena::At(uint32_t part) {
  const uint32_t slab = part / kPartsPerSlab;
  return IsWhole(slab) ? slabs_[slab] : parts_.at(part);
}

const HostArena::Slab& HostArena::At(uint32_t part) const {
  const uint32_t slab = part / kPartsPerSlab;
  return IsWhole(slab) ? slabs_[slab] : parts_.at(part);
}

uint32_t HostArena::PartOf(FrameRef frame) const {
  const auto part = static_cast<uint32_t>(frame.offset() / kPartBytes);
  return IsWhole(part / kPartsPerSlab) ? part / kPartsPerSlab * kPartsPerSlab : part;
}

std::optional<uint32_t> HostArena::TakePart(FramePool* pool, bool of_free_slab) {
  if (!pool->takes_parts()) return std::nullopt;
  auto part = shared_.Take();
  if (!part) {
    if (!of_free_slab || free_slabs_.count() < 1 + MissingBefore(*pool)) return std::nullopt;
    shared_.Add(*free_slabs_.TakeLowest());
    part = shared_.Take();
  }
  ++pool->parts_;
  parts_[*part].owner = pool;
  return part;
}

std::optional<uint32_t> HostArena::TakeSmall(FramePool* pool, Kept kept) {
  const bool crowded = pools_.size() > 1 && kCrowdedShare * wanted_slabs_ > slab_count();
  std::optional<uint32_t> part;
  if (crowded && pool->kept_ == 0) part = TakePart(pool, /*of_free_slab=*/true);
  bool whole = false;
  const auto take_slab = [&](Kept of) GEARDB_REQUIRES(mutex_) {
    const auto slab = TakeSlabs(pool, of);
    if (slab) part = *slab * kPartsPerSlab;
    whole = slab.has_value();
  };
  if (!part) take_slab(Kept::kLeft);
  if (!part) part = TakePart(pool, /*of_free_slab=*/false);
  if (!part && kept == Kept::kTaken) take_slab(kept);
  if (!part) return std::nullopt;
  Slab& slab = At(*part);
  slab.frames = static_cast<uint32_t>((whole ? kSlabBytes : kPartBytes) / pool->frame_bytes());
  slab.free_bits.assign((slab.frames + 63) / 64, ~uint64_t{0});
  if (slab.frames % 64 != 0) slab.free_bits.back() = (uint64_t{1} << (slab.frames % 64)) - 1;
  pool->partial_.insert(*part);
  return part;
}

void HostArena::FreeSmall(FramePool* pool, uint32_t part) {
  const uint32_t slab = part / kPartsPerSlab;
  pool->partial_.erase(part);
  if (IsWhole(slab)) {
    FreeRun(pool, slab);
    return;
  }
  parts_.erase(part);
  --pool->parts_;
  if (shared_.Put(part)) free_slabs_.Put(slab);
}

bool HostArena::TakeFree(FramePool* pool, Kept kept, FrameRef* frame) {
  if (pool->frame_bytes() > kSlabBytes) return TakeFreeRun(pool, kept, frame);
  if (pool->partial_.empty() && !TakeSmall(pool, kept)) return false;
  const uint32_t part = *pool->partial_.begin();
  Slab& slab = At(part);
  for (size_t word = 0; word < slab.free_bits.size(); ++word) {
    if (slab.free_bits[word] == 0) continue;
    const auto bit = static_cast<uint64_t>(std::countr_zero(slab.free_bits[word]));
    slab.free_bits[word] &= slab.free_bits[word] - 1;
    *frame =
        FrameRef::Make(kHostArena, part * kPartBytes + (word * 64 + bit) * pool->frame_bytes());
    ++slab.used;
    used_bytes_ += pool->frame_bytes();
    if (slab.used == slab.frames) pool->partial_.erase(part);
    return true;
  }
  GEARDB_CHECK(false && "a partial slab has a free frame");
  return false;
}

}  // namespace geardb::engine
