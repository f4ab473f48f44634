#include "index/slot_heap.h"

#include <algorithm>
#include <utility>

namespace geardb::index {

void SlotHeap::Reserve(uint64_t slot_count) {
  if (slot_count <= places_.size()) return;
  places_.resize(slot_count + slot_count / 8, kNowhere);
  keys_.resize(places_.size());
}

void SlotHeap::Put(uint32_t place, Slot slot) {
  heap_[place] = slot;
  places_[slot] = place;
}

void SlotHeap::Rise(uint32_t place) {
  while (place > 0 && Before(place, (place - 1) / 2)) {
    const uint32_t parent = (place - 1) / 2;
    const Slot slot = heap_[place];
    Put(place, heap_[parent]);
    Put(parent, slot);
    place = parent;
  }
}

void SlotHeap::Sink(uint32_t place) {
  for (;;) {
    uint32_t first = place;
    for (uint64_t child = uint64_t{place} * 2 + 1; child <= uint64_t{place} * 2 + 2; ++child) {
      if (child >= heap_.size()) break;
      if (Before(static_cast<uint32_t>(child), first)) first = static_cast<uint32_t>(child);
    }
    if (first == place) return;
    const Slot slot = heap_[place];
    Put(place, heap_[first]);
    Put(first, slot);
    place = first;
  }
}

void SlotHeap::Set(Slot slot, const SlotKey& key) {
  keys_[slot] = key;
  if (!Contains(slot)) {
    heap_.push_back(slot);
    places_[slot] = static_cast<uint32_t>(heap_.size() - 1);
  }
  Rise(places_[slot]);
  Sink(places_[slot]);
}

void SlotHeap::Erase(Slot slot) {
  if (!Contains(slot)) return;
  const uint32_t place = places_[slot];
  const Slot last = heap_.back();
  heap_.pop_back();
  places_[slot] = kNowhere;
  if (last == slot) return;
  Put(place, last);
  Rise(place);
  Sink(places_[last]);
}

void SlotHeap::Begin() {
  frontier_.clear();
  if (!heap_.empty()) frontier_.push_back(0);
}

std::optional<Slot> SlotHeap::Next() {
  if (frontier_.empty()) return std::nullopt;
  std::pop_heap(frontier_.begin(), frontier_.end(), ComesLater());
  const uint32_t place = frontier_.back();
  frontier_.pop_back();
  for (uint64_t child = uint64_t{place} * 2 + 1; child <= uint64_t{place} * 2 + 2; ++child) {
    if (child >= heap_.size()) break;
    frontier_.push_back(static_cast<uint32_t>(child));
    std::push_heap(frontier_.begin(), frontier_.end(), ComesLater());
  }
  return heap_[place];
}

}  // namespace geardb::index
