#include "index/importance_weights.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "index/limits.h"
#include "index/powers.h"

namespace geardb::index {

void ImportanceWeights(const WeightRequest& request, std::span<const double> probabilities,
                       std::span<float> weights) {
  GEARDB_CHECK(probabilities.size() == weights.size());
  // (n·P)^−β over the largest such weight, which the smallest probability has: (P / P_min)^−β.
  double reference = 0.0;
  switch (request.maximum) {
    case WeightMaximum::kBatch:
      for (const double p : probabilities) {
        if (p > 0.0 && (reference == 0.0 || p < reference)) reference = p;
      }
      break;
    case WeightMaximum::kTable:
      reference = request.smallest_probability;
      break;
    case WeightMaximum::kNone:
      reference = 1.0 / static_cast<double>(std::max<uint64_t>(request.drawable, 1));
      break;
  }
  std::array<double, kChunk> ratios;
  for (size_t start = 0; start < weights.size(); start += kChunk) {
    const size_t count = std::min(kChunk, weights.size() - start);
    for (size_t i = 0; i < count; ++i) {
      ratios[i] = reference > 0.0 ? probabilities[start + i] / reference : 0.0;
    }
    Powers(std::span<const double>(ratios).first(count), -request.beta,
           std::span(ratios).first(count));
    for (size_t i = 0; i < count; ++i) weights[start + i] = static_cast<float>(ratios[i]);
  }
}

}  // namespace geardb::index
