#include "engine/internal/priority_limits.h"

#include "base/concatenate.h"
#include "index/item_counts.h"

namespace geardb::engine {
namespace {

static_assert(static_cast<int>(LimiterKind::kRatio) ==
              static_cast<int>(index::LimiterKind::kRatio));
static_assert(static_cast<int>(LimiterKind::kStack) ==
              static_cast<int>(index::LimiterKind::kStack));
static_assert(kMaxTimesSampledMax == index::ItemCounts::kMaxTimesMax);

/// How `remove_when_exhausted` is stored: 0 where nothing is said.
constexpr uint8_t kKeeps = 1;
constexpr uint8_t kRemoves = 2;

bool IsQueue(const RateLimit& limit) {
  return limit.kind == LimiterKind::kQueue || limit.kind == LimiterKind::kStack;
}

}  // namespace

PriorityLimits LimitsOf(const PriorityTableSpec& spec) {
  return {.limiter = spec.limiter,
          .max_times_sampled = spec.max_times_sampled,
          .remove_when_exhausted = spec.remove_when_exhausted};
}

void SetLimits(const PriorityLimits& limits, PriorityTableSpec* spec) {
  spec->limiter = limits.limiter;
  spec->max_times_sampled = limits.max_times_sampled;
  spec->remove_when_exhausted = limits.remove_when_exhausted;
}

index::RateLimiterSpec LimiterSpec(const RateLimit& limit) {
  return {.kind = static_cast<index::LimiterKind>(limit.kind),
          .min_size = limit.min_size,
          .samples_per_insert = limit.samples_per_insert,
          .error_buffer = limit.error_buffer,
          .capacity = limit.capacity};
}

uint32_t MaxTimes(const PriorityLimits& limits) {
  return IsQueue(limits.limiter) ? 1 : limits.max_times_sampled;
}

bool RemovesExhausted(const PriorityLimits& limits) {
  return limits.remove_when_exhausted.value_or(IsQueue(limits.limiter));
}

Status ValidateLimits(const PriorityTableSpec& spec) {
  const RateLimit& limit = spec.limiter;
  const Status valid = index::ValidateRateLimiter(LimiterSpec(limit));
  if (!valid.ok()) return valid.WithContext("priority table '" + spec.name + "'");
  // What the kind does not use is stored, too, and compared at the next open.
  if (limit.samples_per_insert != limit.samples_per_insert ||
      limit.error_buffer != limit.error_buffer) {
    return Status::InvalidArgument("priority table '", spec.name,
                                   "' has a samples_per_insert or error_buffer that is no number");
  }
  if (spec.max_times_sampled > kMaxTimesSampledMax) {
    return Status::InvalidArgument("priority table '", spec.name, "' has max_times_sampled ",
                                   spec.max_times_sampled, "; expected at most ",
                                   kMaxTimesSampledMax, " (0: any number)");
  }
  if (spec.epoch.passes == 0) {
    return Status::InvalidArgument("priority table '", spec.name,
                                   "' has epochs of 0 passes; expected at least 1");
  }
  if (spec.selector == SelectorKind::kEpoch && MaxTimes(LimitsOf(spec)) > 0) {
    return Status::InvalidArgument("priority table '", spec.name,
                                   "' draws epochs, whose passes say how often an item is sampled; "
                                   "it is no queue or stack and has no max_times_sampled");
  }
  if (!IsQueue(limit)) return Status::Ok();
  if (spec.max_times_sampled > 1) {
    return Status::InvalidArgument("priority table '", spec.name, "' has max_times_sampled ",
                                   spec.max_times_sampled,
                                   "; an item of a queue or stack is sampled once");
  }
  const bool lifo = spec.selector == SelectorKind::kLifo;
  if (lifo == (limit.kind == LimiterKind::kStack)) return Status::Ok();
  return Status::InvalidArgument("priority table '", spec.name, "' is a ", lifo ? "queue" : "stack",
                                 lifo ? " with" : " without",
                                 " a lifo selector: that is what makes a stack");
}

std::string Describe(const PriorityLimits& limits) {
  const RateLimit& limit = limits.limiter;
  std::string text;
  switch (limit.kind) {
    case LimiterKind::kMinSize:
      text = Concatenate("min size ", limit.min_size);
      break;
    case LimiterKind::kRatio:
      text = Concatenate("samples per insert ", limit.samples_per_insert, " with error buffer ",
                         limit.error_buffer, " from min size ", limit.min_size);
      break;
    case LimiterKind::kQueue:
    case LimiterKind::kStack:
      text = Concatenate(limit.kind == LimiterKind::kQueue ? "queue" : "stack", " of capacity ",
                         limit.capacity);
      break;
  }
  text += MaxTimes(limits) == 0
              ? ", items sampled any number of times"
              : Concatenate(", items sampled ", MaxTimes(limits), " times at most");
  return text + (RemovesExhausted(limits) ? ", removed when exhausted" : "");
}

flatbuffers::Offset<fb::Limits> EncodeLimits(flatbuffers::FlatBufferBuilder* builder,
                                             const PriorityLimits& limits) {
  if (limits == PriorityLimits()) return 0;
  uint8_t removes = 0;
  if (limits.remove_when_exhausted) removes = *limits.remove_when_exhausted ? kRemoves : kKeeps;
  return fb::CreateLimits(*builder, static_cast<uint8_t>(limits.limiter.kind),
                          limits.limiter.min_size, limits.limiter.samples_per_insert,
                          limits.limiter.error_buffer, limits.limiter.capacity,
                          limits.max_times_sampled, removes);
}

Result<PriorityLimits> DecodeLimits(const fb::Limits* stored) {
  PriorityLimits limits;
  if (stored == nullptr) return limits;
  if (stored->kind() > static_cast<uint8_t>(LimiterKind::kStack)) {
    return Status::Unsupported("written by a newer GearDB: a rate limiter of kind ",
                               static_cast<int>(stored->kind()));
  }
  if (stored->remove_when_exhausted() > kRemoves) {
    return Status::Corruption("remove_when_exhausted is stored as ",
                              static_cast<int>(stored->remove_when_exhausted()));
  }
  limits.limiter = {.kind = static_cast<LimiterKind>(stored->kind()),
                    .min_size = stored->min_size(),
                    .samples_per_insert = stored->samples_per_insert(),
                    .error_buffer = stored->error_buffer(),
                    .capacity = stored->capacity()};
  limits.max_times_sampled = stored->max_times_sampled();
  if (stored->remove_when_exhausted() != 0) {
    limits.remove_when_exhausted = stored->remove_when_exhausted() == kRemoves;
  }
  return limits;
}

}  // namespace geardb::engine
