// Making samplers; engine/sampler.h is their public face.
#pragma once

#include <memory>
#include <span>

#include "engine/internal/core.h"
#include "engine/sampler.h"

namespace geardb::engine {

/// Checks the options against the tables and compiles the views. One part for each priority table,
/// of one database.
Result<std::unique_ptr<Sampler::Impl>> MakeSampler(
    std::span<const std::shared_ptr<PriorityTable::Impl>> tables,
    std::span<const SamplerPart> parts, const SamplerOptions& options);

}  // namespace geardb::engine
