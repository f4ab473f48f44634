// HeapRemover: the smallest or the largest priority leaves first, among equals the oldest.
#pragma once

#include "index/remover.h"
#include "index/slot_heap.h"

namespace geardb::index {

class HeapRemover final : public Remover {
 public:
  enum class Order : uint8_t { kSmallestFirst, kLargestFirst };
  explicit HeapRemover(Order order) : order_(order) {}

  /// The priority of a member: finite, at least 0. It is 0 from Add on.
  void SetPriority(Slot slot, float priority);

  Status Reserve(uint64_t slot_count) override;
  void Add(const LeftTrajectory& left) override;
  void Erase(Slot slot) override { heap_.Erase(slot); }
  uint64_t count() const override { return heap_.count(); }
  void Begin(uint64_t /*removal*/) override { heap_.Begin(); }
  std::optional<Slot> Next() override { return heap_.Next(); }
  void End() override {}

 private:
  int64_t RankOf(float priority) const;

  const Order order_;
  SlotHeap heap_;
};

}  // namespace geardb::index
