// Random sampler options, and the same questions in the model's words.
#pragma once

#include <optional>
#include <vector>

#include "engine/sampler.h"
#include "tests/conformance/random_choice.h"
#include "tests/conformance/random_table.h"
#include "tests/conformance/window_model.h"

namespace geardb::conformance {

/// A view of the model, or a per-trajectory column.
struct AskedView {
  ModelView view;
  std::optional<size_t> trajectory_column;
  bool drawn = false;  ///< It shows the rows of the sampler's row draw.
  /// Of one element of the batch's output.
  DType dtype = DType::kF32;
  /// Entries of every item in a padded batch; absent: as many as the longest item has.
  std::optional<int64_t> entries;
  /// One row, which has no axis of entries when padded.
  bool single = false;
};

struct RandomSampler {
  SamplerOptions options;
  std::vector<AskedView> views;  ///< As options.views.
  std::optional<ModelNStep> n_step;
};

/// Options that are valid for a priority table of `table`.
RandomSampler MakeRandomSampler(const RandomTable& table, const ModelRule& rule,
                                RandomChoice* choice);

}  // namespace geardb::conformance
