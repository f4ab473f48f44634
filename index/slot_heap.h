// SlotHeap: slots in an order of keys, a binary heap that knows where each slot is. The first ones
// can be listed without taking them out.
//
// Invariants: heap_[places_[slot]] is the slot, for each that is there; no slot comes before its
// parent at (place - 1) / 2.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.h"

namespace geardb::index {

/// Slots of a smaller key come first; all keys of one heap differ.
struct SlotKey {
  int64_t rank = 0;
  uint64_t age = 0;
  uint32_t generation = 0;

  friend auto operator<=>(const SlotKey&, const SlotKey&) = default;
};

class SlotHeap {
 public:
  /// Makes slots [0, slot_count) usable, at 32 bytes each, and an eighth more.
  void Reserve(uint64_t slot_count);

  /// Adds a slot, or gives it another key. O(log n).
  void Set(Slot slot, const SlotKey& key);
  /// Passes over a slot that is not there. O(log n).
  void Erase(Slot slot);
  bool Contains(Slot slot) const { return places_[slot] != kNowhere; }
  uint64_t count() const { return heap_.size(); }
  /// Of a slot that is there.
  const SlotKey& key(Slot slot) const { return keys_[slot]; }

  // Listing. The heap does not change between Begin and the last Next.
  void Begin();
  /// The slots in their order, each once from Begin on. O(log k) for the k-th.
  std::optional<Slot> Next();

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  bool Before(uint32_t a, uint32_t b) const { return keys_[heap_[a]] < keys_[heap_[b]]; }
  void Put(uint32_t place, Slot slot);
  void Rise(uint32_t place);
  void Sink(uint32_t place);
  /// Places in frontier_: the one whose slot comes first is in front.
  auto ComesLater() const {
    return [this](uint32_t a, uint32_t b) { return Before(b, a); };
  }

  std::vector<Slot> heap_;
  std::vector<uint32_t> places_;    // By slot.
  std::vector<SlotKey> keys_;       // Likewise.
  std::vector<uint32_t> frontier_;  // Places that are next, or behind one that is.
};

}  // namespace geardb::index
