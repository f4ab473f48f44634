#include "index/lifo_remover.h"

namespace geardb::index {

Status LifoRemover::Reserve(uint64_t slot_count) {
  heap_.Reserve(slot_count);
  return Status::Ok();
}

void LifoRemover::Add(const LeftTrajectory& left) {
  heap_.Set(left.slot, {.rank = 0, .age = ~left.age, .generation = ~left.generation});
}

}  // namespace geardb::index
