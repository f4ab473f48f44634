#include "index/uniform_remover.h"

#include "base/philox.h"

namespace geardb::index {

Result<std::unique_ptr<UniformRemover>> UniformRemover::Create(IndexMemory* memory,
                                                               std::string_view name,
                                                               const Options& options) {
  GEARDB_ASSIGN_OR_RETURN(auto members,
                          UniformSelector::Create(memory, name, options.slot_capacity));
  GEARDB_RETURN_IF_ERROR(members->ReserveHidden());
  return std::unique_ptr<UniformRemover>(new UniformRemover(std::move(members), options.seed));
}

Status UniformRemover::Reserve(uint64_t slot_count) { return members_->Reserve(slot_count); }

void UniformRemover::Add(const LeftTrajectory& left) {
  members_->Insert(LeafRange{left.slot, uint64_t{left.slot} + 1}, 1);
}

void UniformRemover::Erase(Slot slot) { members_->Erase({slot, uint64_t{slot} + 1}); }

void UniformRemover::Begin(uint64_t removal) { removal_ = removal; }

std::optional<Slot> UniformRemover::Next() {
  if (members_->total() == 0) return std::nullopt;
  const uint64_t random = PhiloxRandom64(seed_, removal_++, 0, PhiloxPurpose::kRemover);
  const uint64_t slot = members_->view().Select(MulHi64(random, members_->total()));
  given_.push_back(slot);
  members_->Hide({&slot, 1});
  return static_cast<Slot>(slot);
}

void UniformRemover::End() {
  members_->Show(given_);
  given_.clear();
}

}  // namespace geardb::index
