#include "index/hidden_leaves.h"

#include "base/check.h"

namespace geardb::index {

Status HiddenLeaves::ReserveBits(uint64_t leaf_count) {
  GEARDB_RETURN_IF_ERROR(region_->Commit(part_, Membership::Bytes(leaf_count)));
  header_->reserved = 1;
  return Status::Ok();
}

Status HiddenLeaves::Grow(uint64_t leaf_count) {
  return header_->reserved == 0 ? Status::Ok() : ReserveBits(leaf_count);
}

bool HiddenLeaves::Set(uint64_t leaf) {
  GEARDB_CHECK(header_->reserved != 0);
  const bool changed = view_.bits_.Set(leaf);
  header_->count += changed ? 1 : 0;
  return changed;
}

bool HiddenLeaves::Clear(uint64_t leaf) {
  const bool changed = header_->count != 0 && view_.bits_.Clear(leaf);
  header_->count -= changed ? 1 : 0;
  return changed;
}

void HiddenLeaves::Forget(LeafRange range) {
  if (header_->count != 0) header_->count -= view_.bits_.ClearRange(range);
}

}  // namespace geardb::index
