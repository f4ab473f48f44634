// How a sampler draws from an epoch: short batches, rests that are left out, and the end.

#include <algorithm>

#include "engine/internal/epochs.h"
#include "engine/internal/sampler_impl.h"

namespace geardb {

uint64_t Sampler::Impl::RowsNext() const {
  const engine::PriorityState& priority = priority_table_->state();
  const auto batch = static_cast<uint64_t>(options_.batch);
  if (priority.epoch() == nullptr || options_.drop_last) return batch;
  return std::min(batch, priority.selector().drawable());
}

Status Sampler::Impl::CheckEpoch() const {
  const engine::EpochState* epoch = priority_table_->state().epoch();
  if (epoch == nullptr || !epoch->exhausted()) return Status::Ok();
  const engine::EpochMark mark = epoch->mark();
  const std::string& table = priority_table_->table->layout().spec().name;
  if (mark.epoch == 0) {
    return Status::OutOfRange("priority table '", priority_table_->spec.name, "' of table '", table,
                              "': no epoch has begun (BeginEpoch)");
  }
  return Status::OutOfRange("priority table '", priority_table_->spec.name, "' of table '", table,
                            "': epoch ", mark.epoch, " is exhausted after pass ", mark.pass);
}

Status Sampler::Impl::WaitsForOthers() const {
  const engine::EpochState* epoch = priority_table_->state().epoch();
  if (epoch == nullptr || epoch->reserved() == 0) return Status::Ok();
  return Status::DeadlineExceeded("priority table '", priority_table_->spec.name, "' of table '",
                                  priority_table_->table->layout().spec().name,
                                  "' waits: ", epoch->reserved(), " items of pass ",
                                  epoch->mark().pass, " of epoch ", epoch->mark().epoch,
                                  " are drawn by other samplers and not handed over");
}

bool Sampler::Impl::RestIsLeftOut() const {
  const engine::PriorityState& priority = priority_table_->state();
  const engine::EpochState* epoch = priority.epoch();
  return epoch != nullptr && options_.drop_last && !options_.observer && !epoch->exhausted() &&
         epoch->reserved() == 0 &&
         priority.selector().drawable() < static_cast<uint64_t>(options_.batch);
}

Status Sampler::Impl::LeaveOutRest() {
  engine::EpochMark ended;
  {
    MutexLock lock(&priority_table_->table->state->mutex);
    if (!RestIsLeftOut()) return Status::Ok();
    ended = priority_table_->state().epoch()->mark();
  }
  return engine::EndPass(priority_table_.get(), ended);
}

}  // namespace geardb
