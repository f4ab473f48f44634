// Making samplers; engine/sampler.h is their public face.
#pragma once

#include <memory>

#include "engine/internal/core.h"
#include "engine/sampler.h"

namespace geardb::engine {

/// Checks the options against the table and compiles the views.
Result<std::unique_ptr<Sampler::Impl>> MakeSampler(
    const std::shared_ptr<PriorityTable::Impl>& priority_table, const SamplerOptions& options);

}  // namespace geardb::engine
