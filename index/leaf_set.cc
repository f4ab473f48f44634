#include "index/leaf_set.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "index/limits.h"

namespace geardb::index {
Result<std::unique_ptr<LeafSet>> LeafSet::Create(IndexMemory* memory, std::string_view name,
                                                 uint64_t leaf_capacity) {
  if (leaf_capacity == 0 || leaf_capacity > kLeafCapacityMax) {
    return Status::InvalidArgument("deleted leaves '", name, "' for ", leaf_capacity,
                                   " leaves: 1 to ", kLeafCapacityMax, " are possible");
  }
  GEARDB_ASSIGN_OR_RETURN(Region region, memory->Reserve(name, {Membership::Bytes(leaf_capacity)}));
  return std::unique_ptr<LeafSet>(new LeafSet(std::move(region)));
}

LeafSet::LeafSet(Region region) : region_(std::move(region)), bits_(region_.part_base(0)) {}

Status LeafSet::Reserve(uint64_t leaf_count) {
  if (leaf_count <= reserved_) return Status::Ok();
  GEARDB_RETURN_IF_ERROR(region_.Commit(0, Membership::Bytes(leaf_count)));
  reserved_ = leaf_count;
  return Status::Ok();
}

bool LeafSet::Add(uint64_t leaf) {
  GEARDB_CHECK(leaf < reserved_);
  const bool added = bits_.Set(leaf);
  count_ += added ? 1 : 0;
  return added;
}

void LeafSet::Forget(LeafRange range) {
  range.end = std::min(range.end, reserved_);
  if (count_ != 0) count_ -= bits_.ClearRange(range);
}

}  // namespace geardb::index
