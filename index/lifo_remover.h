// LifoRemover: the newest leaves first.
#pragma once

#include "index/remover.h"
#include "index/slot_heap.h"

namespace geardb::index {

class LifoRemover final : public Remover {
 public:
  Status Reserve(uint64_t slot_count) override;
  void Add(const LeftTrajectory& left) override;
  void Erase(Slot slot) override { heap_.Erase(slot); }
  uint64_t count() const override { return heap_.count(); }
  void Begin(uint64_t /*removal*/) override { heap_.Begin(); }
  std::optional<Slot> Next() override { return heap_.Next(); }
  void End() override {}

 private:
  SlotHeap heap_;
};

}  // namespace geardb::index
