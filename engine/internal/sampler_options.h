// What NewSampler checks before it makes a sampler.
#pragma once

#include <span>
#include <vector>

#include "engine/internal/part_draw.h"
#include "engine/sampler.h"

namespace geardb::engine {

/// InvalidArgument unless it is finite and at least 0.
Status CheckBeta(const PriorityTableSpec& spec, double beta);

/// Checks all options, against all parts, and compiles the views; `parts` has at least one, and its
/// share is not looked at where it is the only one. NotFound, InvalidArgument or Unsupported,
/// naming what is wrong.
Result<std::vector<SamplerSource>> CheckSampler(
    std::span<const std::shared_ptr<PriorityTable::Impl>> tables,
    std::span<const SamplerPart> parts, const SamplerOptions& options);

}  // namespace geardb::engine
