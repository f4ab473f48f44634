#include "index/heap_remover.h"

#include <bit>

namespace geardb::index {

int64_t HeapRemover::RankOf(float priority) const {
  // Finite floats of one sign are in the order of their bits; -0 is 0.
  const int64_t bits = std::bit_cast<uint32_t>(priority + 0.0f);
  return order_ == Order::kSmallestFirst ? bits : -bits;
}

void HeapRemover::SetPriority(Slot slot, float priority) {
  SlotKey key = heap_.key(slot);
  key.rank = RankOf(priority);
  heap_.Set(slot, key);
}

Status HeapRemover::Reserve(uint64_t slot_count) {
  heap_.Reserve(slot_count);
  return Status::Ok();
}

void HeapRemover::Add(const LeftTrajectory& left) {
  heap_.Set(left.slot, {.rank = RankOf(0), .age = left.age, .generation = left.generation});
}

}  // namespace geardb::index
