// The limits of a priority table: what they mean, whether they can be, and how the log stores them.
#pragma once

#include <string>

#include "engine/operations_generated.h"
#include "engine/schema.h"
#include "index/rate_limiter.h"

namespace geardb::engine {

PriorityLimits LimitsOf(const PriorityTableSpec& spec);
void SetLimits(const PriorityLimits& limits, PriorityTableSpec* spec);

index::RateLimiterSpec LimiterSpec(const RateLimit& limit);
/// 0: any number. Items of a queue or a stack are sampled once.
uint32_t MaxTimes(const PriorityLimits& limits);
/// On for queues and stacks, unless they say otherwise.
bool RemovesExhausted(const PriorityLimits& limits);

/// InvalidArgument naming the priority table and the number that is wrong.
Status ValidateLimits(const PriorityTableSpec& spec);
/// As an error shows it: "queue of capacity 4".
std::string Describe(const PriorityLimits& limits);

/// Defaults are not stored: 0.
flatbuffers::Offset<fb::Limits> EncodeLimits(flatbuffers::FlatBufferBuilder* builder,
                                             const PriorityLimits& limits);
/// Null is the defaults. Unsupported for a kind that this version does not know; the rest still has
/// to be validated.
Result<PriorityLimits> DecodeLimits(const fb::Limits* stored);

}  // namespace geardb::engine
