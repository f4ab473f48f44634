// UniformRemover: every trajectory is equally likely to leave next. Removal number k of a table
// takes the member of rank MulHi64(PhiloxRandom64(seed, k, 0, kRemover), members) in order of
// slots, so what leaves follows from the log and the seed.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "index/remover.h"
#include "index/uniform_selector.h"

namespace geardb::index {

class UniformRemover final : public Remover {
 public:
  struct Options {
    uint64_t slot_capacity = 0;  ///< 1…2^32; bounds Reserve.
    uint64_t seed = 0;
  };
  /// `memory` outlives it. ResourceExhausted when its first pages do not fit the budget.
  static Result<std::unique_ptr<UniformRemover>> Create(IndexMemory* memory, std::string_view name,
                                                        const Options& options);

  Status Reserve(uint64_t slot_count) override;
  void Add(const LeftTrajectory& left) override;
  void Erase(Slot slot) override;
  uint64_t count() const override { return members_->count(); }
  void Begin(uint64_t removal) override;
  std::optional<Slot> Next() override;
  void End() override;

 private:
  UniformRemover(std::unique_ptr<UniformSelector> members, uint64_t seed)
      : members_(std::move(members)), seed_(seed) {}

  const std::unique_ptr<UniformSelector> members_;  // What was given is hidden until End.
  const uint64_t seed_;
  uint64_t removal_ = 0;
  std::vector<uint64_t> given_;
};

}  // namespace geardb::index
