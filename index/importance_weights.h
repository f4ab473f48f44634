// Importance weights of a batch: (n·P)^−β, normalised by a maximum. Schaul et al., "Prioritized
// Experience Replay", ICLR 2016, section 3.4. The same bits on CPU and GPU (base/fixed_math.h).
#pragma once

#include <cstdint>
#include <span>

#include "base/types.h"

namespace geardb::index {

struct WeightRequest {
  double beta = 0.4;
  WeightMaximum maximum = WeightMaximum::kBatch;
  uint64_t drawable = 0;            ///< n; read by kNone alone (elsewhere it cancels out).
  double smallest_probability = 0;  ///< Of the table; read by kTable alone.
};

/// weights[i] for probabilities[i]; both of one length. A probability of 0 (no item) gives 0.
void ImportanceWeights(const WeightRequest& request, std::span<const double> probabilities,
                       std::span<float> weights);

}  // namespace geardb::index
