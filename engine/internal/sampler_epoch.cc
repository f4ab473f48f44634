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

uint64_t Sampler::Impl::RowsAtOnce() const {
  const bool any = sources_.size() > 1 || options_.tokens_max > 0 ||
                   (sources_[0].priority().epoch() != nullptr && !options_.drop_last);
  return any ? 1 : static_cast<uint64_t>(options_.batch);
}

bool Sampler::Impl::RestIsLeftOut() const {
  if (!options_.drop_last || options_.observer) return false;  // So there is one part.
  const engine::PriorityState& priority = sources_[0].priority();
  const engine::EpochState* epoch = priority.epoch();
  if (epoch == nullptr || epoch->exhausted() || epoch->reserved() > 0) return false;
  if (priority.selector().drawable() >= static_cast<uint64_t>(options_.batch)) return false;
  // What could not be read may be after another open.
  return !sources_[0].state()->UnreadableRemain(priority);
}

Result<bool> Sampler::Impl::LeaveOutRest(Deadline deadline) {
  engine::EpochMark ended;
  {
    MutexLock lock(&sources_[0].state()->mutex);
    if (!RestIsLeftOut()) return false;
    ended = sources_[0].priority().epoch()->mark();
  }
  GEARDB_RETURN_IF_ERROR(engine::EndPass(sources_[0].priority_table.get(), ended, deadline));
  return true;
}

namespace engine {

Status EpochStatus(const SamplerSource& source) {
  const EpochState* epoch = source.priority().epoch();
  if (epoch == nullptr) return Status::Ok();
  const std::string why = epoch->WhyUndrawable();
  if (why.empty()) return Status::Ok();
  if (epoch->exhausted()) return Status::OutOfRange(source.Name(), ": ", why);
  return Status::DeadlineExceeded(source.Name(), " waits: ", why);
}

}  // namespace engine
}  // namespace geardb
