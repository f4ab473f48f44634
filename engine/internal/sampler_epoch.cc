// How a sampler draws from an epoch: short batches, rests that are left out, and the end.

#include <algorithm>

#include "engine/internal/epochs.h"
#include "engine/internal/sampler_impl.h"

namespace geardb {

uint64_t Sampler::Impl::RowsNext() const {
  const auto batch = static_cast<uint64_t>(options_.batch);
  const engine::PriorityState& priority = sources_[0].priority();
  if (sources_.size() > 1 || priority.epoch() == nullptr || options_.drop_last) return batch;
  return std::min(batch, priority.selector().drawable());
}

bool Sampler::Impl::RestIsLeftOut() const {
  if (!options_.drop_last || options_.observer) return false;  // So there is one part.
  const engine::PriorityState& priority = sources_[0].priority();
  const engine::EpochState* epoch = priority.epoch();
  return epoch != nullptr && !epoch->exhausted() && epoch->reserved() == 0 &&
         priority.selector().drawable() < static_cast<uint64_t>(options_.batch);
}

Result<bool> Sampler::Impl::LeaveOutRest() {
  engine::EpochMark ended;
  {
    MutexLock lock(&sources_[0].state()->mutex);
    if (!RestIsLeftOut()) return false;
    ended = sources_[0].priority().epoch()->mark();
  }
  GEARDB_RETURN_IF_ERROR(engine::EndPass(sources_[0].priority_table.get(), ended));
  return true;
}

namespace engine {

Status EpochStatus(const SamplerSource& source) {
  const EpochState* epoch = source.priority().epoch();
  if (epoch == nullptr) return Status::Ok();
  const EpochMark mark = epoch->mark();
  if (mark.epoch == 0) {
    return Status::OutOfRange(source.Name(), ": no epoch has begun (BeginEpoch)");
  }
  if (epoch->exhausted()) {
    return Status::OutOfRange(source.Name(), ": epoch ", mark.epoch, " is exhausted after pass ",
                              mark.pass);
  }
  if (epoch->reserved() == 0) return Status::Ok();
  return Status::DeadlineExceeded(source.Name(), " waits: ", epoch->reserved(), " items of pass ",
                                  mark.pass, " of epoch ", mark.epoch,
                                  " are drawn by other samplers and not handed over");
}

}  // namespace engine
}  // namespace geardb
